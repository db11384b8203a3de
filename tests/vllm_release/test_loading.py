"""Loading a release: one a process, without a device, without sys.path, and with an error that says where it failed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fencepost.impl.vllm import loading

from .wheels import make_tree, source_files

START = """
import sys
sys.path.insert(0, {packages!r})
from pathlib import Path
from fencepost.impl.vllm.errors import ReleaseError
from fencepost.impl.vllm.find import at
from fencepost.impl.vllm.loading import load, loaded

def refused(path):
    try:
        load(at(Path(path)))
    except ReleaseError as error:
        return str(error)
    raise AssertionError("it was loaded")

release = at(Path({folder!r}))
"""


def run(tmp_path: Path, code: str, files: dict[str, str] | None = None, **variables: str) -> str:
    """Runs code in a process of its own, beside a tree `release` and empty packages of the extra; returns its output."""
    make_tree(tmp_path / "release", files)
    make_tree(tmp_path / "packages", {f"{name}.py": "" for name in ("torch", "transformers", "msgspec", "cloudpickle", "zmq")})
    start = START.format(packages=str(tmp_path / "packages"), folder=str(tmp_path / "release"))
    done = subprocess.run(
        [sys.executable, "-c", start + code], capture_output=True, text=True, check=False, env={**os.environ, **variables}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_a_release_is_loaded_from_its_folder(tmp_path: Path) -> None:
    code = """
before = list(sys.path)
assert loaded() is None
load(release)
load(release)
assert loaded() is release
assert sys.path == before
import vllm
from vllm.v1.core.sched.scheduler import Scheduler
assert Path(vllm.__file__).parent == release.package
assert sys.modules[Scheduler.__module__].__file__.startswith(str(release.package))
"""
    assert run(tmp_path, code) == ""


def test_there_is_no_device_while_the_package_is_imported(tmp_path: Path) -> None:
    early = "from .platforms import current_platform\nassert type(current_platform).__name__ == 'UnspecifiedPlatform'\n"
    run(tmp_path, "load(release)", {**source_files(), "vllm/__init__.py": early})


def test_a_second_release_needs_another_process(tmp_path: Path) -> None:
    make_tree(tmp_path / "other", {**source_files(), "vllm/_version.py": "__version__ = '1.2.4'\n"})
    code = f"""
load(release)
text = refused({str(tmp_path / "other")!r})
assert "1.2.4" in text and "1.2.3" in text and "process of its own" in text, text
import vllm
assert Path(vllm.__file__).parent == release.package
"""
    run(tmp_path, code, {**source_files(), "vllm/_version.py": "__version__ = '1.2.3'\n"})


def test_a_vllm_that_was_imported_otherwise_is_not_mistaken_for_the_release(tmp_path: Path) -> None:
    run(tmp_path, "sys.modules['vllm'] = sys\nassert 'process of its own' in refused(release.path)\n")


@pytest.mark.parametrize("name", ["torch", "zmq"])
def test_a_missing_package_is_named(name: str, tmp_path: Path) -> None:
    code = f"""
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == {name!r} else find(name)
assert refused(release.path) == "vLLM's scheduler needs {name}, not installed here: pip install 'fencepost[vllm]'"
assert "vllm" not in sys.modules
"""
    run(tmp_path, code)


def test_an_import_that_fails_says_where_and_can_be_tried_again(tmp_path: Path) -> None:
    files = {**source_files(), "vllm/v1/request.py": source_files()["vllm/v1/request.py"] + "\nimport nowhere_to_be_found\n"}
    code = """
text = refused(release.path)
line = release.package / "v1" / "request.py"
assert "No module named 'nowhere_to_be_found'" in text and f"({line}:" in text, text
assert "install it with pip" in text, text
assert not [name for name in sys.modules if name.partition(".")[0] == "vllm"]
assert loaded() is None
line.write_text(line.read_text().replace("import nowhere_to_be_found", "# mended"))
load(release)
"""
    run(tmp_path, code, files, PYTHONDONTWRITEBYTECODE="1")


@pytest.mark.parametrize(
    ("text", "said"),
    [("raise SystemExit('no')\n", "SystemExit: no (FILE:1)"), ("x = (\n", "FILE:1: syntax error: '(' was never closed")],
)
def test_a_package_that_ends_the_process_or_is_no_python(text: str, said: str, tmp_path: Path) -> None:
    said = said.replace("FILE", str(tmp_path / "release" / "vllm" / "__init__.py"))
    run(
        tmp_path,
        f"assert {said!r} in refused(release.path), refused(release.path)\n",
        {**source_files(), "vllm/__init__.py": text},
    )


def test_an_unknown_layout_is_not_imported(tmp_path: Path) -> None:
    files = {**source_files(), "vllm/__init__.py": "raise AssertionError\n"}
    del files["vllm/v1/core/sched/scheduler.py"]
    run(tmp_path, "assert 'module vllm.v1.core.sched.scheduler' in refused(release.path)\n", files)


def test_nothing_is_reported_and_a_user_may_ask_for_more_words(tmp_path: Path) -> None:
    code = """
import os
load(release)
print(os.environ["VLLM_LOGGING_LEVEL"], os.environ["VLLM_NO_USAGE_STATS"], os.environ["HF_HUB_OFFLINE"])
"""
    assert run(tmp_path, code, VLLM_NO_USAGE_STATS="0") == "CRITICAL 1 1\n"
    assert run(tmp_path, code, VLLM_LOGGING_LEVEL="DEBUG") == "DEBUG 1 1\n"


def test_the_extra_has_what_is_asked_for() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    listed = [*project["dependencies"], *project["optional-dependencies"]["vllm"]]
    package_of = {"yaml": "PyYAML", "zmq": "pyzmq"}
    for name in loading.PACKAGES:
        assert any(item.startswith(package_of.get(name, name)) for item in listed), name
