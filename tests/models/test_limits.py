"""A search that is cut short says so, and is never a pass; a violation that it found before counts all the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.checker.model import Limits, Model, Options
from fencepost.checker.result import Result, Status, Verdict
from fencepost.spec.lang import load_file

from .engines import search

SPECS = Path(__file__).parent / "specs"
each_engine = pytest.mark.parametrize("engine", ["reference", "native"])
CUTS = [
    (Limits(max_states=100), "more than 100 states (--max-states)"),
    (Limits(max_depth=3), "depth limit of 3 (--max-depth)"),
    (Limits(max_seconds=0), "time limit of 0 s (--max-time)"),
    (Limits(max_bytes=1), "memory limit of 1 bytes (--max-memory)"),
    (Limits(cancelled=lambda: True), "interrupted"),
]


def run(engine: str, name: str, limits: Limits, **bounds: int | str) -> Result:
    """Searches a model within limits."""
    model = Model.of(load_file(SPECS / f"{name}.py"), bounds)
    return search(model, Options(symmetry=False, threads=2, limits=limits), engine)


@each_engine
@pytest.mark.parametrize(("limits", "reason"), CUTS, ids=[reason for _, reason in CUTS])
def test_cut_short(engine: str, limits: Limits, reason: str) -> None:
    found = run(engine, "switches", limits, lamps=12)
    assert (found.verdict, found.reason, found.exit_code) == (Verdict.UNDETERMINED, reason, 3)
    assert found.figures.distinct < 4096
    assert {p.status for p in found.properties} == {Status.UNDETERMINED}
    assert {p.reason for p in found.properties} == {reason}
    assert found.vacuous == ()


@each_engine
def test_a_limit_that_is_not_reached_is_no_cut(engine: str) -> None:
    limits = Limits(max_states=64, max_depth=7, max_seconds=600, max_bytes=1 << 40)
    assert run(engine, "switches", limits, lamps=6).verdict is Verdict.HOLDS


@each_engine
def test_a_violation_outranks_a_limit(engine: str) -> None:
    found = run(engine, "path_graph", Limits(max_depth=4), nodes=5)
    assert (found.verdict, found.reason, found.exit_code) == (Verdict.UNDETERMINED, "depth limit of 4 (--max-depth)", 3)
    found = run(engine, "path_graph", Limits(max_depth=5), nodes=5)
    assert (found.verdict, found.exit_code) == (Verdict.VIOLATED, 1)


@each_engine
def test_a_violation_in_the_last_level_is_found(engine: str) -> None:
    found = run(engine, "peterson", Limits(max_depth=6), order="broken")
    assert found.verdict is Verdict.VIOLATED
    assert found.trace is not None
    assert len(found.trace) == 6


@each_engine
def test_a_witness_is_known_although_the_search_was_cut(engine: str) -> None:
    found = run(engine, "peterson", Limits(max_depth=5), order="right")
    statuses = {p.name: p.status for p in found.properties}
    assert statuses == {"mutual-exclusion": Status.UNDETERMINED, "one-waits-for-the-other": Status.REACHED}


@each_engine
def test_memory_is_looked_at_in_small_searches_too(engine: str) -> None:
    found = run(engine, "switches", Limits(max_bytes=1), lamps=4)
    assert (found.verdict, found.exit_code) == (Verdict.UNDETERMINED, 3)
