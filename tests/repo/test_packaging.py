"""The rules of the repository that no other tool checks."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
ROOMS = ("spec", "checker", "impl", "traces")
SOURCES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
# Import names that differ from the name of the package.
PACKAGE_OF = {"pysat": "python-sat", "yaml": "pyyaml", "z3": "z3-solver"}
# Imported by name only where they are used, and installed by extras, some of them of later parts.
OPTIONAL = {"coverage", "msgspec", "torch", "vllm"}


def name_of(requirement: str) -> str:
    """Returns the package that a requirement names, in lower case."""
    return re.split(r"[\[<>=!~; ]", requirement)[0].lower()


def pins(level: str) -> dict[str, str]:
    """Returns the releases that one file of requirements/ pins."""
    lines = (ROOT / "requirements" / f"{level}.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def imported_packages(path: Path) -> Iterator[str]:
    """Yields the packages that a file imports, ours and the standard library left out."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = [node.module]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "import_module":
            names = [str(a.value) for a in node.args[:1] if isinstance(a, ast.Constant)]
        for name in (name.split(".")[0] for name in names):
            if name not in sys.stdlib_module_names and name != "fencepost":
                yield PACKAGE_OF.get(name, name)


def test_sources_are_found() -> None:
    assert len(SOURCES) > 10


def test_every_folder_with_code_is_a_package() -> None:
    folders = {path.parent for path in SOURCES}
    assert [folder for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_is_mapped_typed_and_shown_to_type_checkers(room: str) -> None:
    assert PROJECT["tool"]["setuptools"]["package-dir"][f"fencepost.{room}"] == room
    assert (ROOT / room / "py.typed").exists()
    assert (ROOT / "tools" / "typing" / "fencepost" / room).resolve() == ROOT / room


def test_dependencies_have_no_upper_caps() -> None:
    extras = PROJECT["project"]["optional-dependencies"].values()
    requirements = [*PROJECT["project"]["dependencies"], *(item for extra in extras for item in extra)]
    assert [item for item in requirements if re.search(r"<|==|~=", item)] == []


def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    declared = {name_of(item) for item in PROJECT["project"]["dependencies"]}
    imported = {package for path in SOURCES for package in imported_packages(path)} - OPTIONAL
    assert imported == declared


def test_lock_files_hold_every_dependency() -> None:
    declared = {name_of(item) for item in PROJECT["project"]["dependencies"]}
    assert declared <= pins("run").keys()
    extras = PROJECT["project"]["optional-dependencies"]
    assert {name_of(item) for item in extras["test"]} <= pins("test").keys()
    assert {name_of(item) for item in extras["dev"]} - {"fencepost"} <= pins("dev").keys()
    assert {name_of(item) for item in extras["vllm"]} <= pins("vllm").keys() | pins("test").keys()
    assert not any(name.startswith(("torch", "nvidia", "vllm")) for level in ("run", "test", "dev") for name in pins(level))


def test_only_specs_escape_the_type_checker() -> None:
    spared = [item for item in PROJECT["tool"]["basedpyright"]["exclude"] if item.endswith(".py")]
    files = {path for item in spared for path in ROOT.glob(item) if path.name != "__init__.py"}
    assert files
    for path in files:
        for line in re.findall(r"^(?:from|import) .*", path.read_text(), re.M):
            # A spec imports the language, specs and the plain Python beside it (for people and drivers), and IntEnum.
            beside = re.match(r"from \.(\w+) import ", line)
            known = re.match(r"from (__future__|enum|[\w.]*\blang) import ", line)
            spec = beside and (
                beside[1] in ("narrate", "observe", "events", "refine") or path.with_name(f"{beside[1]}.py") in files
            )
            assert known or spec, f"{path}: {line}"


def test_every_make_target_that_pages_name_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / ".ci" / "run", *(ROOT / "docs").rglob("*.md")]
    named = {name for page in pages for name in re.findall(r"(?:`|^|step )make ([a-z-]+)", page.read_text(), re.M)}
    assert named
    assert named <= targets


def test_changelog_fragments_are_named_by_kind() -> None:
    names = [path.name for path in (ROOT / "changelog.d").glob("*.md") if path.name != "README.md"]
    assert [name for name in names if not re.fullmatch(r"[a-z0-9-]+\.(added|changed|fixed|removed)\.md", name)] == []


def test_the_license_is_the_one_declared() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert PROJECT["project"]["license"] == "Apache-2.0"
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_ci_runs_the_script_that_a_person_runs() -> None:
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
    assert ".ci/run" in (ROOT / ".github" / "workflows" / "ci.yml").read_text()
