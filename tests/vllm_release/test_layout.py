"""A release whose source is laid out otherwise is named, with everything that is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fencepost.impl.vllm import layout
from fencepost.impl.vllm.errors import ReleaseError
from fencepost.impl.vllm.fetch import fetch
from fencepost.impl.vllm.find import at

from .wheels import file_of, make_tree, make_wheel, source_files

SCHEDULER = "vllm/v1/core/sched/scheduler.py"


def test_the_known_layout_lacks_nothing(tmp_path: Path) -> None:
    release = at(make_tree(tmp_path))
    assert layout.missing(release) == []
    layout.check(release)


def test_a_renamed_module_is_named(tmp_path: Path) -> None:
    release = at(make_tree(tmp_path))
    (tmp_path / SCHEDULER).rename(tmp_path / "vllm/v1/core/sched/planner.py")
    (tmp_path / "vllm/v1/request.py").unlink()
    assert layout.missing(release) == ["module vllm.v1.core.sched.scheduler", "module vllm.v1.request"]
    with pytest.raises(
        ReleaseError, match=r"missing:\n  module vllm\.v1\.core\.sched\.scheduler\n  module vllm\.v1\.request\n"
    ):
        layout.check(release)


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in layout.NAMES.items() for name in names])
def test_each_renamed_name_is_named(module: str, name: str, tmp_path: Path) -> None:
    path = file_of(module)
    files = source_files()
    last = name.partition(" or ")[0].rpartition(".")[2]
    files[path] = files[path].replace(f" {last}:", " Renamed:").replace(f" {last} =", " renamed =")
    gaps = layout.missing(at(make_tree(tmp_path, files)))
    assert f"{module}.{name}" in gaps
    assert all(gap.startswith(f"{module}.{name.partition('.')[0]}") for gap in gaps)


@pytest.mark.parametrize(
    "text",
    [
        "class Thing:\n    member: int\n",
        "class Thing:\n    member = 1\n",
        "class Thing:\n    def member(self): ...\n",
        "class Thing:\n    if True:\n        async def member(self): ...\n",
        "class Thing:\n    def __init__(self):\n        self.member: dict[str, int] = {}\n",
        "class Thing:\n    def __init__(self):\n        if True:\n            self.other, self.member = 1, 2\n",
        "try:\n    class Thing:\n        member = 1\nexcept ImportError:\n    pass\n",
    ],
)
def test_however_a_member_is_written(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "NAMES", {"vllm.m": ("Thing", "Thing.member")})
    release = at(make_tree(tmp_path, {"vllm/__init__.py": "", "vllm/m.py": text}))
    assert layout.missing(release) == []


def test_one_of_two_names_suffices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "NAMES", {"vllm.m": ("Old or New", "Old or Newer")})
    release = at(make_tree(tmp_path, {"vllm/__init__.py": "", "vllm/m.py": "class New: ...\n"}))
    assert layout.missing(release) == ["vllm.m.Old or Newer"]


@pytest.mark.parametrize("text", ["from x import Thing", "import x as Thing", "Thing = 1", "Thing: int = 1"])
def test_a_name_may_be_imported_or_assigned(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "NAMES", {"vllm.m": ("Thing",)})
    assert layout.missing(at(make_tree(tmp_path, {"vllm/__init__.py": "", "vllm/m/__init__.py": text}))) == []


def test_a_file_that_is_no_python_is_named(tmp_path: Path) -> None:
    release = at(make_tree(tmp_path, {**source_files(), SCHEDULER: "class Scheduler(\n"}))
    (gap,) = layout.missing(release)
    assert gap.startswith("module vllm.v1.core.sched.scheduler (")
    fault = f"{release.path / SCHEDULER}:1: syntax error: '(' was never closed"
    assert gap == f"module vllm.v1.core.sched.scheduler ({fault})"
    with pytest.raises(ReleaseError, match=f"^{re.escape(fault)}; mend this line of vLLM .*copy or install it again$"):
        layout.check(release)


def test_a_file_that_a_wheel_had_is_not_taken_for_another_layout(tmp_path: Path, cache: Path) -> None:
    release = fetch("1.2.3", make_wheel(tmp_path)).release
    (release.package / "v1" / "request.py").unlink()
    with pytest.raises(ReleaseError, match=r"vllm/v1/request\.py is missing, which its RECORD lists; .*vllm fetch 1\.2\.3$"):
        layout.check(release)


def test_nothing_is_imported(tmp_path: Path) -> None:
    raising = {name: text + "\nraise AssertionError\n" for name, text in source_files().items()}
    layout.check(at(make_tree(tmp_path, raising)))
