"""What is read from the peers' output. TLC is played by a script, since its jar is not a package of any registry."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from harness import rumur, spin, tlc
from harness.expected import case

TINY = case("tiny")
HOLDS = """TLC2 Version 2.20
Model checking completed. No error has been found.
20137 states generated, 4374 distinct states found, 0 states left on queue.
The depth of the complete state graph search is 13.
Finished in 01s at (2026-01-01 00:00:00)
"""
VIOLATED = """Error: Invariant NoWriteIntoABlockInFlight is violated.
Error: The behavior up to this point is:
State 1: <Initial predicate>
/\\ flight = <<>>

State 2: <AdmitLocal line 51, col 18 to line 51, col 60 of module kvfence>
State 3: <Schedule line 81, col 5 to line 84, col 50 of module kvfence>
State 4: <Finish line 65, col 14 to line 65, col 60 of module kvfence>
State 5: <AdmitRemote line 53, col 19 to line 53, col 60 of module kvfence>

404 states generated, 171 distinct states found, 50 states left on queue.
"""


def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, code: int) -> tlc.Tlc:
    """TLC with one worker, whose Java prints this."""
    (tmp_path / "said").write_text(output, encoding="utf-8")
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\ncat '{tmp_path}/said'\nexit {code}\n", encoding="utf-8")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    jar = tmp_path / "tla2tools.jar"
    jar.touch()
    return tlc.modes(jar, tmp_path / "work")[0]


def test_tlc_counts_the_initial_state_and_levels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = play(tmp_path, monkeypatch, HOLDS, 0)
    assert tool.missing() is None
    found = tool.run(TINY.bounds).against(TINY, tool.name)
    assert (found.distinct, found.generated, found.depth, found.memory) == (4374, 20136, 12, None)


def test_tlc_shows_the_states_of_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = play(tmp_path, monkeypatch, VIOLATED, 12)
    each = case("tiny", 0)
    assert tool.run(each.bounds).against(each, tool.name).trace == 4


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("spin"), reason="SPIN is not installed")
@pytest.mark.parametrize("fence", [0, 1, 2])
def test_spin_agrees(tmp_path: Path, fence: int) -> None:
    each = case("tiny", fence)
    for tool in spin.modes(tmp_path):
        if fence == 1 or tool.shortest:
            tool.run(each.bounds).against(each, tool.name)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("rumur"), reason="Rumur is not installed")
@pytest.mark.parametrize("fence", [0, 1, 2])
def test_rumur_agrees(tmp_path: Path, fence: int) -> None:
    for tool in rumur.modes(tmp_path):
        each = case("tiny", fence, tool.symmetry)
        if fence == 1 or tool.shortest:
            tool.run(each.bounds).against(each, tool.name)
