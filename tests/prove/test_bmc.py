"""Bounded search finds what an exhaustive search of the same depth finds, at the same depth, and nothing else."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from fencepost.checker.cli import kvdata
from fencepost.checker.cli.interrupt import Interrupts
from fencepost.checker.cli.target import Wanted, resolve
from fencepost.checker.explore.reference import ReferenceEngine
from fencepost.checker.model import SPEC_ERROR, Limits, Model, Options
from fencepost.checker.prove.bmc import Bounded, BoundedSearch, Cut, Depth
from fencepost.checker.prove.solver import Disagreement, z3
from fencepost.checker.result import Status, Verdict
from fencepost.spec.lang import BoundSpec, SpecError, load_file
from fencepost.traces.trace import follow

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests" / "models"
QUICK = ("B03-abort", "B11", "B22", "B23", "B40", "B47")
"""Faults that bounded search finds within seconds."""
SLOW = ("B01", "B03-finish", "B03-preemption", "B13", "B17-pin", "B37", "B41")
"""Faults that take it up to minutes; B17-count takes longer."""
ROWS: list[dict[str, Any]] = yaml.safe_load((MODELS / "manifest.yaml").read_text())
CASES = {f"{row['model']}-{'-'.join(f'{k}={v}' for k, v in row['bounds'].items())}": row for row in ROWS}
KVFENCE = ROOT / "benchmarks" / "kvfence.py"
TINY = {"requests": 2, "blocks": 2, "steps": 2, "per_request": 2}
DEPTH = 4


def model_of(row: dict[str, Any]) -> Model:
    """The model of a row of the manifest."""
    return Model.of(load_file(MODELS / "specs" / f"{row['model']}.py"), row["bounds"])


def exhaustive(model: Model, depth: int) -> tuple[dict[str, int], dict[str, int]]:
    """What every path of at most so many transitions violates and reaches, with the least depth of each."""
    engine = ReferenceEngine(model)
    found = engine.run(Options(symmetry=False, deadlock=False, keep_going=True, limits=Limits(max_depth=depth)))
    return {name: failure.length for name, failure in found.failures.items()}, found.reached


def first_taken(bound: BoundSpec, depth: int) -> dict[str, int]:
    """The length of the shortest path that each action ends, up to a depth."""
    found: dict[str, int] = {}
    level = {state for _, _, state in bound.initial()}
    for length in range(1, depth + 1):
        after = set[tuple[int, ...]]()
        for state in level:
            for rule in bound.actions:
                for args in rule.choices():
                    try:
                        reached = bound.after(state, rule, args)
                        steps = [p for p in bound.properties if reached is not None and p.kind == "step"]
                        assert all(isinstance(bound.holds(p, state, reached), bool) for p in steps)
                    except SpecError:
                        found.setdefault(rule.name, length)
                        continue
                    if reached is not None:
                        found.setdefault(rule.name, length)
                        after.add(reached)
        level = after
    return found


def bounded(model: Model, depth: int, **more: Any) -> Bounded:
    """The result of bounded search."""
    return BoundedSearch(model, Limits(max_depth=depth), **more).run()


@pytest.mark.parametrize("row", CASES.values(), ids=CASES)
def test_the_same_as_exhaustive_search(row: dict[str, Any]) -> None:
    model = model_of(row)
    failures, reached = exhaustive(model, DEPTH)
    found = bounded(model, DEPTH, keep_going=True)
    assert {p.name: p.depth for p in found.violations} == failures
    assert {p.name: p.depth for p in found.properties if p.status in (Status.REACHED, Status.LATENT)} == reached
    assert found.possible == first_taken(model.bound, DEPTH)
    for result in found.violations:
        assert result.trace is not None
        assert follow(model.bound, result.trace) == result.trace
        assert (result.reason is not None) == (result.name == SPEC_ERROR)


@pytest.mark.parametrize("row", CASES.values(), ids=CASES)
def test_it_stops_at_the_first_violation(row: dict[str, Any]) -> None:
    model = model_of(row)
    failures, _ = exhaustive(model, DEPTH)
    found = bounded(model, DEPTH)
    least = min(failures.values(), default=None)
    assert {p.name: p.depth for p in found.violations} == {name: n for name, n in failures.items() if n == least}
    if least is not None:
        assert (found.depth, found.cut) == (least, None)


def test_a_progress_property_is_named_as_not_decided() -> None:
    found = bounded(Model.of(load_file(ROOT / "tests" / "explore" / "specs" / "mutex.py"), {}), 2)
    progress = [p for p in found.properties if p.kind in ("eventually", "leads_to")]
    assert progress
    for prop in progress:
        assert (prop.status, prop.reason) == (Status.UNDETERMINED, "not decided by bounded search")
        assert f"{prop.name} is not decided by bounded search" in found.open


def test_no_verdict_says_that_a_property_holds() -> None:
    found = bounded(Model.of(load_file(MODELS / "specs" / "counter.py"), {"limit": 3}), 6)
    assert (found.verdict, found.exit_code) == (Verdict.UNDETERMINED, 3)
    assert found.reason == "no violation within 6 transitions: depth limit of 6 (--max-depth)"


def test_paths_that_end_are_the_end_of_the_search() -> None:
    found = bounded(Model.of(load_file(MODELS / "specs" / "path_graph.py"), {"nodes": 4}), 10)
    assert (found.depth, found.cut) == (3, None)
    assert found.reason is not None
    assert "longer paths do not exist" in found.reason


def test_an_action_that_was_never_enabled_is_named() -> None:
    model = Model.of(load_file(MODELS / "specs" / "vacuity.py"), {"empty": "action"})
    found = bounded(model, 3)
    assert found.never
    assert {*found.never, *found.possible} == {rule.name for rule in model.bound.actions}


def test_what_was_decided_is_told_as_it_is() -> None:
    told: list[Depth] = []
    found = bounded(Model.of(load_file(KVFENCE), {**TINY, "fence": 0}), 6, tell=told.append)
    assert tuple(told) == found.depths
    assert [(d.depth, bool(d.violated)) for d in told] == [(0, False), (1, False), (2, False), (3, False), (4, True)]


def test_integers_say_the_same() -> None:
    for fence in (0, 1):
        model = Model.of(load_file(KVFENCE), {**TINY, "fence": fence})
        bits, integers = (bounded(model, 4, integers=which) for which in (False, True))
        assert [(p.name, p.status, p.depth) for p in integers.properties] == [
            (p.name, p.status, p.depth) for p in bits.properties
        ]


def test_asked_to_stop_it_says_how_far_it_came() -> None:
    asked: list[Depth] = []
    limits = Limits(cancelled=lambda: len(asked) > 2)
    found = BoundedSearch(Model.of(load_file(KVFENCE), {**TINY, "fence": 1}), limits, asked.append).run()
    assert (found.cut, found.depth) == ("interrupted", 2)
    assert found.reason == "no violation within 2 transitions: interrupted"


def test_time_is_a_limit_also_of_a_question() -> None:
    model = resolve(Wanted(fault="B37")).model
    began = time.monotonic()
    found = BoundedSearch(model, Limits(max_seconds=1)).run()
    assert (found.verdict, found.cut) == (Verdict.UNDETERMINED, "time limit of 1 s (--max-time)")
    assert time.monotonic() - began < 10


def test_an_interrupt_ends_a_question_of_the_solver() -> None:
    search = BoundedSearch(Model.of(load_file(KVFENCE), {**TINY, "fence": 1}), Limits())
    one, other = (z3.ZeroExt(31, z3.BitVec(name, 31)) for name in ("one", "other"))
    search.solver.add(one * other == 2**61 - 1)  # a prime number
    signals = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
    with Interrupts():
        signals.start()
        with pytest.raises(Cut, match="interrupted"):
            search._solve([search.unrolled.terms.yes])  # pyright: ignore[reportPrivateUsage]


def test_what_the_interpreter_does_not_find_is_a_disagreement() -> None:
    search = BoundedSearch(Model.of(load_file(KVFENCE), {**TINY, "fence": 1}), Limits(max_depth=2))
    search.formulas.violated = lambda prop: search.unrolled.terms.yes  # type: ignore[method-assign]
    with pytest.raises(Disagreement, match="the interpreter does not find it"):
        search.run()


def fault_is_found(name: str) -> None:
    fault, model = kvdata.faults()[name], resolve(Wanted(fault=name)).model
    found = BoundedSearch(model, Limits(max_depth=fault.depth)).run()
    assert {p.name: p.depth for p in found.violations} == {fault.breaks: fault.depth}
    trace = found.violations[0].trace
    assert trace is not None
    assert follow(model.bound, trace) == trace


@pytest.mark.parametrize("name", QUICK)
def test_faults_at_their_depths(name: str) -> None:
    fault_is_found(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_more_faults_at_their_depths(name: str) -> None:
    fault_is_found(name)


@pytest.mark.slow
def test_the_race_at_six_requests_sixteen_blocks_three_steps() -> None:
    bounds = (
        "requests=6,blocks=16,steps-in-flight=3,kv-role=kv_consumer,remote-tokens=1,prompt-tokens=1,max-tokens=2,"
        "abort-free=at-once"
    )
    race = "no-unordered-write-in-flight"
    found = BoundedSearch(resolve(Wanted(("kv",), "vllm-0.33", None, (bounds,), (race,))).model, Limits(max_seconds=120)).run()
    assert {p.name: p.depth for p in found.violations} == {race: 5}
