"""Random lockstep: the same runs for a seed, everything drawn, differences found, honest about what it says."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.conform.draw import Dice, Drawer
from fencepost.checker.conform.errors import ConformError, DriverUnstable
from fencepost.checker.conform.random_runs import RandomOptions, run
from fencepost.checker.conform.result import Agreement, Kind
from fencepost.checker.explore.findings import Progress
from fencepost.checker.explore.native.stepper import Stepper
from fencepost.checker.model import Limits, Model
from fencepost.checker.result import Verdict
from fencepost.spec.lang import Arguments, Rule, SpecError, load_file, load_module
from fencepost.traces.driver import Observation, Refused
from fencepost.traces.trace import follow

from .specdriver import SpecDriver

HERE = Path(__file__).parent
MODELS = HERE.parent / "models" / "specs"
DESK = load_file(HERE / "specs" / "desk.py")
CRATES = load_file(HERE / "specs" / "crates.py")
KV = load_module("fencepost.spec.kv.kv", "kv")
READERS: Mapping[str, int | str] = {"readers": 4, "copies": 3, "loans": 40}
REAL: Mapping[str, int | str] = {
    "requests": 48,
    "blocks": 160,
    "block-size": 4,
    "prompt-tokens": 40,
    "max-tokens": 24,
    "steps-in-flight": 3,
    "max-num-batched-tokens": 64,
    "max-num-seqs": 32,
    "enable-prefix-caching": 1,
    "prefix-groups": 3,
    "remote-tokens": 24,
    "kv-role": "kv_consumer",
}
NO_LIMITS = Limits()
Event = tuple[str, Arguments]


def desk(**bounds: int | str) -> Model:
    return Model.of(DESK, {**READERS, **bounds})


def drawn(model: Model, seed: int, transitions: int = 300, driver: SpecDriver | None = None) -> list[Event]:
    """The events of a lockstep that finds nothing."""
    events: list[Event] = []

    def note(_: int, rule: Rule, args: Arguments, observation: Observation) -> None:
        assert observation == used.observe()
        events.append((rule.name, args))

    used = driver or SpecDriver(model.bound)
    found = run(model, used, RandomOptions(transitions, seed, 100), NO_LIMITS, on_event=note, after=model.bound.after)
    assert found.mismatch is None
    return events


def compared(
    model: Model, driver: SpecDriver, transitions: int = 2_000, seed: int = 0, limits: Limits = NO_LIMITS
) -> Agreement:
    return run(model, driver, RandomOptions(transitions, seed, 200), limits, after=model.bound.after)


# -- what is drawn ----------------------------------------------------------------------------------------------------


def test_a_seed_draws_the_same_events_on_every_machine_and_version() -> None:
    events = drawn(desk(), 7) + drawn(Model.of(CRATES), 7)
    assert len(events) == 600
    assert (
        hashlib.sha256(repr(events).encode()).hexdigest() == "ff163bce5a9ee1c4867c0596998d766a5e3322fd0cbd3bea0cfca3f8f4e37ac7"
    )


def test_other_seeds_and_other_runs_of_a_seed_draw_other_events() -> None:
    events = drawn(desk(), 7)
    assert events != drawn(desk(), 8)
    assert events[:100] != events[100:200]


def test_compiled_steps_draw_the_same_events() -> None:
    model = desk()
    events: list[Event] = []
    found = run(
        model, SpecDriver(model.bound), RandomOptions(300, 7, 100), NO_LIMITS,
        on_event=lambda _, rule, args, __: events.append((rule.name, args)),
    )  # fmt: skip
    assert found.verdict is Verdict.HOLDS
    assert events == drawn(model, 7)


def test_sets_are_drawn_of_every_size_where_they_are_too_many_to_list() -> None:
    model = Model.of(CRATES, {"things": 50}, enumerable=False)
    sizes = Counter(args[0].bit_count() for name, args in drawn(model, 1, 2_000) if name == "pack")
    assert len(sizes) > 40
    assert {1, 2, 3} < set(sizes) <= set(range(1, 51))


def test_at_real_sizes_every_action_of_the_kv_spec_is_drawn() -> None:
    bound = Model.of(KV, REAL, enumerable=False).bound
    after = Stepper(bound, symmetry=False).after
    drawer, state, taken = Drawer(bound, after, Dice(3)), bound.initial()[0][2], Counter[str]()
    stopped = full = 0
    free = next(offset for name, offset, _ in bound.shape.fields if name == "free")
    for _ in range(2_500):
        found = drawer.draw(state)
        assert found is not None
        rule, args, state = found
        taken[rule.name] += 1
        stopped |= args[0] if rule.name == "process" else 0
        full += state[free] < 8
    assert set(taken) >= {"submit", "schedule", "run_step", "process", "land", "report", "abort"}
    assert min(taken[name] for name in ("submit", "schedule", "run_step", "process")) > 400
    assert 20 < taken["abort"] < 400  # an abort need not happen, and comes seldom
    assert stopped.bit_count() > 40  # requests beyond the 40th stop too
    assert full > 100  # the pool runs full: preemption and eviction


def test_actions_that_need_not_happen_come_seldom() -> None:
    taken = Counter(name for name, _ in drawn(Model.of(CRATES), 3, 2_000))
    assert set(taken) == {"pack", "ship", "lights_out"}
    assert taken["lights_out"] < 100 < taken["ship"]


# -- verdicts ---------------------------------------------------------------------------------------------------------


def test_agreement_says_how_much_was_drawn() -> None:
    model = desk(storm="on")
    found = compared(model, SpecDriver(model.bound, ("ask", "give_back", "shut")))
    assert (found.verdict, found.mismatch, found.cut, found.vacuous) == (Verdict.HOLDS, None, None, ())
    assert found.sampled is not None
    assert (found.sampled.seed, found.sampled.events) == (0, None)
    assert found.figures.transitions == sum(found.figures.taken.values()) == 2_000
    assert found.figures.depth == 200
    assert found.sampled.runs >= 10
    assert 50 < found.figures.refusals < 200
    assert 100 < found.figures.spec_states < 2_000


def test_an_action_that_is_never_taken_makes_it_undetermined() -> None:
    model = Model.of(load_file(MODELS / "vacuity.py"), {"empty": "action"})
    found = compared(model, SpecDriver(model.bound), 500)
    assert (found.verdict, found.vacuous) == (Verdict.UNDETERMINED, ("action other is never taken",))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("bounds", "event", "paths"),
    [
        ({"order": "newest"}, "lend", {"readers[A].copy", "shelf"}),
        ({"return": "not-when-all-lent"}, "give_back", set[str]()),
        ({"loans": 39}, "", {"left"}),
    ],
)
def test_a_planted_difference_is_found(bounds: Mapping[str, int | str], event: str, paths: set[str], compiled: bool) -> None:
    model = desk()
    after = Stepper(model.bound).after if compiled else model.bound.after
    found = run(model, SpecDriver(desk(**bounds).bound), RandomOptions(2_000, 1, 200), NO_LIMITS, after=after)
    assert found.verdict is Verdict.VIOLATED
    assert found.mismatch is not None
    assert follow(model.bound, found.mismatch.trace) == found.mismatch.trace
    assert found.mismatch.event[0] == (event or "reset")
    assert {one.path for one in found.mismatch.differences} == paths
    assert found.mismatch.kind is (Kind.OBSERVATION if paths else Kind.REFUSED)


def test_a_difference_says_how_long_its_run_was() -> None:
    model = Model.of(CRATES)
    found = compared(model, SpecDriver(Model.of(CRATES, {"counts": "heavy-twice"}).bound))
    assert found.mismatch is not None
    assert found.sampled is not None
    assert found.sampled.events is not None
    assert len(found.mismatch.trace) == 3 < 20 < found.sampled.events <= found.figures.depth
    assert found.sampled.shrinking is None


class Careless(SpecDriver):
    """Changes something when it is asked at the wrong time, at first only where nobody sees it."""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        try:
            super().take(action, arguments)
        except Refused:
            self.hidden += action == "shut"
            raise


def test_events_that_the_spec_does_not_allow_are_tried_where_they_are_quiet() -> None:
    model = desk()
    assert compared(model, Careless(model.bound)).verdict is Verdict.HOLDS
    assert compared(model, Careless(model.bound, ("ask",))).verdict is Verdict.HOLDS
    found = compared(model, Careless(model.bound, ("ask", "shut"))).mismatch
    assert found is not None
    assert (found.kind, found.event[0], len(found.trace)) == (Kind.NOT_QUIET, "shut", 0)
    assert [one.path for one in found.differences] == ["digest.hidden"]


class Fragile(SpecDriver):
    """Falls over at the third loan."""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        super().take(action, arguments)
        if action == "lend":
            self.hidden += 1
        if self.hidden == 3:
            raise ZeroDivisionError("no shelf")


def test_an_implementation_that_falls_over_stops_where_the_spec_goes_on() -> None:
    model = desk()
    found = compared(model, Fragile(model.bound)).mismatch
    assert found is not None
    assert found.kind is Kind.STOPPED
    assert found.message.startswith("ZeroDivisionError: no shelf (test_random_runs.py:")
    assert [step.action for step in found.trace.steps] == ["ask", "lend"] * 3 or len(found.trace) == 6


class Forgetful(SpecDriver):
    """Refuses one event, once in its life."""

    done = False

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        if action == "lend" and not self.done:
            self.done = True
            raise Refused("not today")
        super().take(action, arguments)


def test_a_difference_that_is_not_there_again_is_the_fault_of_the_driver() -> None:
    model = desk()
    with pytest.raises(DriverUnstable):
        compared(model, Forgetful(model.bound))


def test_an_error_of_the_spec_is_no_verdict() -> None:
    model = Model.of(load_file(MODELS / "spec_errors.py"))
    with pytest.raises(SpecError):
        compared(model, SpecDriver(model.bound))


def test_a_spec_with_several_initial_states_is_refused() -> None:
    model = Model.of(load_file(MODELS / "several.py"))
    with pytest.raises(ConformError, match="initial states; an implementation starts in one"):
        compared(model, SpecDriver(model.bound))


# -- ends -------------------------------------------------------------------------------------------------------------


def test_a_run_in_which_nothing_is_enabled_any_more_is_followed_by_another() -> None:
    model = Model.of(CRATES)
    found = compared(model, SpecDriver(model.bound))
    assert found.verdict is Verdict.HOLDS
    assert found.sampled is not None
    assert found.figures.taken["lights_out"] == found.sampled.ended > 5
    assert found.sampled.runs > found.sampled.ended


def test_where_nothing_can_happen_at_all_nothing_holds() -> None:
    model = desk()
    found = run(model, SpecDriver(model.bound), RandomOptions(10), NO_LIMITS, after=lambda state, rule, args: None)
    assert found.verdict is Verdict.UNDETERMINED
    assert found.cut == "no event was found enabled in the initial state"


def test_limits_of_time_and_of_the_caller_are_heeded() -> None:
    model = desk()
    told: list[Progress] = []
    found = run(
        model, SpecDriver(model.bound), RandomOptions(10**9), Limits(max_seconds=1.3), told.append, after=model.bound.after
    )
    assert (found.verdict, found.cut) == (Verdict.UNDETERMINED, "time limit of 1.3 s (--max-time)")
    assert 1.3 <= found.figures.seconds < 3
    assert [(one.generated + one.queue, one.note[:4]) for one in told] == [(10**9, "run ")]
    calls = iter([False] * 5)
    found = compared(model, SpecDriver(model.bound), limits=Limits(cancelled=lambda: next(calls, True)))
    assert (found.verdict, found.cut, found.figures.transitions) == (Verdict.UNDETERMINED, "interrupted", 5)
    assert replace(found, cut=None, vacuous=()).verdict is Verdict.HOLDS
