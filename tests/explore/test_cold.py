"""The first run of a model: whichever search ends first, and whatever becomes of the child, the result is the same."""

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.explore import cold
from fencepost.checker.explore.findings import Findings
from fencepost.checker.explore.native.engine import NativeEngine
from fencepost.checker.explore.reference import ReferenceEngine
from fencepost.checker.model import Limits, Model, Options
from fencepost.spec.lang import load_file

RING = Path(__file__).parent / "specs" / "ring.py"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path / "cache"))
    return Model.of(load_file(RING))


def child(code: str) -> Any:
    """A stand-in for `compile_apart` whose process does something else."""

    def start(*_: object) -> "subprocess.Popen[bytes]":
        return subprocess.Popen([sys.executable, "-c", code])

    return start


def counts(found: Findings) -> dict[str, Any]:
    """All that does not depend on the engine and the machine."""
    figures = dataclasses.asdict(found)
    return {name: value for name, value in figures.items() if name not in ("engine", "seconds", "peak_bytes", "start_bytes")}


def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference engine that goes on until it is told to stop."""

    def search(self: ReferenceEngine, options: Options, on_progress: Any = None) -> Findings:
        while not options.limits.cancelled():
            pass
        return Findings("reference", symmetry=False, cut="interrupted")

    monkeypatch.setattr(ReferenceEngine, "run", search)


@pytest.mark.parametrize("code", ["raise SystemExit(1)", "import os; os.kill(os.getpid(), 9)"])
def test_a_child_that_dies_does_no_harm(model: Model, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    expected = ReferenceEngine(model).run(Options())
    slow(monkeypatch)
    monkeypatch.setattr(NativeEngine, "compile_apart", child(code))
    _, found = cold.run(model, Options(), None)
    assert found.engine == "native"
    assert counts(found) == counts(expected)


def test_the_reference_engine_reports_if_it_ends_first(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    children: list[subprocess.Popen[bytes]] = []

    def start(*_: Any) -> subprocess.Popen[bytes]:
        children.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
        return children[0]

    monkeypatch.setattr(NativeEngine, "compile_apart", start)
    _, found = cold.run(model, Options(), None)
    assert (found.engine, found.cut) == ("reference", None)
    children[0].kill()
    children[0].wait()


def out_of_memory(self: ReferenceEngine, options: Options, on_progress: Any = None) -> Findings:
    return Findings("reference", symmetry=False, cut="memory limit of 1 bytes (--max-memory)")


def test_where_memory_runs_out_the_compiled_search_is_waited_for(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReferenceEngine, "run", out_of_memory)
    _, found = cold.run(model, Options(limits=Limits(max_bytes=1 << 40)), None)
    assert (found.engine, found.cut) == ("native", None)


def test_but_not_beyond_the_time_limit(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReferenceEngine, "run", out_of_memory)
    monkeypatch.setattr(NativeEngine, "compile_apart", child("import time; time.sleep(5)"))
    _, found = cold.run(model, Options(limits=Limits(max_seconds=0.1)), None)
    assert (found.engine, found.cut) == ("reference", "memory limit of 1 bytes (--max-memory)")
