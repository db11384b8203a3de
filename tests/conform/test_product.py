"""Exhaustive lockstep: complete, exact counts, shortest traces of every kind of difference, hidden state, honest limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.conform.product import conform
from fencepost.checker.conform.result import Kind
from fencepost.checker.explore.native.engine import NativeEngine
from fencepost.checker.explore.reference import ReferenceEngine
from fencepost.checker.model import Model, Options
from fencepost.checker.result import Verdict
from fencepost.spec.lang import BoundSpec, load_file
from fencepost.spec.lang.symmetry import Symmetry
from fencepost.traces.driver import Refused, Stopped
from fencepost.traces.trace import follow

from .desks import BOUNDS, DESK, NO_LIMITS, QUIET, Counting, Make, Tired, at, desk, differs, held, least_events, timeless
from .specdriver import NotCopyable, SpecDriver

HERE = Path(__file__).parent
MODELS = HERE.parent / "models" / "specs"


# -- agreement --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "bounds"),
    [
        (HERE / "specs" / "desk.py", BOUNDS),
        (MODELS / "two_phase.py", {}),
        (MODELS / "mutex.py", {}),
        (MODELS / "lossy_queue.py", {"messages": 3}),
        (MODELS / "token_ring.py", {}),
        (MODELS / "switches.py", {}),
        (MODELS / "philosophers.py", {}),
        (MODELS / "everything.py", {}),
    ],
    ids=lambda value: value.stem if isinstance(value, Path) else "",
)
def test_everything_is_compared_once(path: Path, bounds: Mapping[str, int | str]) -> None:
    model = Model.of(load_file(path), bounds)
    found = conform(model, SpecDriver(model.bound), NO_LIMITS)
    searched = NativeEngine(model).run(Options(deadlock=False))
    assert searched.failures == {}
    figures = found.figures
    assert (figures.spec_states, figures.product_states) == (searched.distinct, searched.distinct)
    assert (figures.transitions, figures.depth) == (searched.generated, searched.depth)
    assert list(figures.taken.values()) == searched.taken
    assert (found.mismatch, found.hidden, found.cut, found.vacuous) == (None, None, None, ())
    assert found.verdict is Verdict.HOLDS
    assert found.target == f"{path.stem}, interpreted"


def test_a_driver_that_cannot_go_back_is_run_again_for_every_transition() -> None:
    model = desk()
    driver = NotCopyable(SpecDriver(model.bound))
    found = conform(model, driver, NO_LIMITS)
    assert found.verdict is Verdict.HOLDS
    assert driver.resets == 1 + found.figures.transitions


def test_quiet_events_are_tried_wherever_the_spec_has_them_disabled() -> None:
    model = desk()
    found = held(model, SpecDriver(model.bound, QUIET))
    assert found.verdict is Verdict.HOLDS
    instances = sum(rule.count for rule in model.bound.actions if rule.name in QUIET)
    enabled = sum(found.figures.taken[name] for name in QUIET)
    assert found.figures.refusals == found.figures.product_states * instances - enabled


# -- differences ------------------------------------------------------------------------------------------------------


class Failing(SpecDriver):
    """Fails an assertion where the second loan is made while somebody waits."""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        super().take(action, arguments)
        shown = self.observe()
        if action == "lend" and shown["left"] == 1 and shown["line"]:
            raise AssertionError("two at once")


class Stopping(SpecDriver):
    """Stops for good when somebody returns a copy to an empty shelf; the hidden number is 1 then."""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        empty = not self.observe()["shelf"]
        super().take(action, arguments)
        if action == "give_back" and empty:
            self.hidden = 1
            raise Stopped("SHELF", "the shelf broke")

    def observe(self) -> Mapping[str, Any]:
        return {"broken": True} if self.hidden else super().observe()


class Busy(SpecDriver):
    """Asking again is refused, but not without effect; the effect is hidden."""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        try:
            super().take(action, arguments)
        except Refused:
            if action == "ask" and len(self.observe()["line"]) == 2:
                self.hidden += 1
            raise


class Loud(SpecDriver):
    """Asking again is refused, but not without effect; the effect is shown."""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        try:
            super().take(action, arguments)
        except Refused:
            if action == "ask" and len(self.observe()["line"]) == 2:
                self.state = next(after for _, _, after in self.bound.transitions(self.state))
            raise


class Crashing(SpecDriver):
    """Fails where a reader who is away gives a copy back while one is on the shelf."""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        shown = self.observe()
        if action == "give_back" and len(shown["shelf"]) == 1 and shown["readers"]["ABC"[arguments[0]]]["at"] == "AWAY":
            raise IndexError
        super().take(action, arguments)


PLANTED: list[tuple[str, Make, Kind, str, str]] = [
    ("order", at(order="newest"), Kind.OBSERVATION, "lend", ""),
    ("return", at(**{"return": "not-when-all-lent"}), Kind.REFUSED, "give_back", "give_back is disabled"),
    ("closing", at(closing="any"), Kind.NOT_QUIET, "shut", ""),
    ("failing", Failing, Kind.STOPPED, "lend", "AssertionError: two at once"),
    ("stopping", Stopping, Kind.STOPPED, "give_back", "the shelf broke"),
    ("tired", Tired, Kind.REFUSED, "ask", "closed for today"),
    ("busy", lambda bound: Busy(bound, QUIET), Kind.NOT_QUIET, "ask", "ask is disabled"),
    ("loud", lambda bound: Loud(bound, QUIET), Kind.NOT_QUIET, "ask", "ask is disabled"),
    ("crashing", lambda bound: Crashing(bound, QUIET), Kind.NOT_QUIET, "give_back", "IndexError"),
]


@pytest.mark.parametrize(("make", "kind", "action", "message"), [p[1:] for p in PLANTED], ids=[p[0] for p in PLANTED])
def test_a_planted_difference_is_found_by_a_shortest_path(make: Make, kind: Kind, action: str, message: str) -> None:
    model = desk()
    found = held(model, make(model.bound))
    assert found.verdict is Verdict.VIOLATED
    mismatch = found.mismatch
    assert mismatch is not None
    assert (mismatch.kind, mismatch.event[0]) == (kind, action)
    assert re.sub(r" \(test_product.py:\d+\)$", "", mismatch.message) == message
    events = [(step.action, step.arguments) for step in mismatch.trace.steps]
    events += [mismatch.event] if kind is Kind.NOT_QUIET else []
    assert events[-1] == mismatch.event
    assert follow(model.bound, mismatch.trace) == mismatch.trace
    assert len(events) == least_events(model.bound, make(model.bound))
    assert differs_only_at_the_end(model.bound, make(model.bound), events)


def test_what_differs_is_shown_side_by_side() -> None:
    model = desk()
    order = held(model, at(order="newest")(model.bound)).mismatch
    assert order is not None
    assert [(d.path, d.spec, d.implementation) for d in order.differences] == [
        ("readers[A].copy", 0, 2),
        ("shelf", [1, 2], [0, 1]),
    ]
    busy = held(model, Busy(model.bound, QUIET)).mismatch
    assert busy is not None
    assert [(d.path, d.spec, d.implementation) for d in busy.differences] == [("digest.hidden", 0, 1)]


def differs_only_at_the_end(bound: BoundSpec, driver: SpecDriver, events: list[tuple[str, tuple[int, ...]]]) -> bool:
    rules = {rule.name: rule for rule in bound.actions}
    ((_, _, state),) = bound.initial()
    driver.reset()
    told: list[bool] = []
    for name, args in events:
        after = bound.after(state, rules[name], args)
        told.append(differs(bound, driver, state, name, bound.arguments(rules[name], args), after))
        state = state if after is None else after
    return told == [False] * (len(told) - 1) + [True]


def test_a_difference_in_the_initial_state_has_no_steps() -> None:
    model = desk()
    found = held(model, SpecDriver(BoundSpec(DESK, {**BOUNDS, "copies": 2})))
    assert found.mismatch is not None
    assert (found.mismatch.kind, len(found.mismatch.trace), found.mismatch.event) == (Kind.OBSERVATION, 0, ("reset", ()))
    assert [(d.path, d.spec, d.implementation) for d in found.mismatch.differences] == [("shelf", [0, 1, 2], [0, 1])]


def test_the_same_difference_is_found_every_time() -> None:
    model = desk()
    found = [conform(model, Tired(model.bound), NO_LIMITS).mismatch for _ in range(3)]
    assert found[0] is not None
    assert found[0] == found[1] == found[2]


class Playing(SpecDriver):
    """Plays favourites: when reader C was the first to ask, and B comes next, nobody gets anything."""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        if action == "lend" and self.observe()["line"] == [2, 1]:
            raise Refused("not these two")
        super().take(action, arguments)


def test_without_symmetry_an_implementation_may_tell_members_apart() -> None:
    model = desk()
    assert conform(model, Playing(model.bound), NO_LIMITS).verdict is Verdict.HOLDS
    found = conform(model, Playing(model.bound), NO_LIMITS, symmetry=False).mismatch
    assert found is not None
    assert [(step.action, step.arguments) for step in found.trace.steps] == [("ask", (2,)), ("ask", (1,)), ("lend", ())]
    whole = conform(model, SpecDriver(model.bound), NO_LIMITS, symmetry=False).figures
    searched = ReferenceEngine(model).run(Options(symmetry=False, deadlock=False))
    assert (whole.spec_states, whole.transitions, whole.depth) == (searched.distinct, searched.generated, searched.depth)


@pytest.mark.parametrize("make", [SpecDriver, Counting, *(p[1] for p in PLANTED)])
def test_any_number_of_processes_finds_the_same(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.checker.conform.parallel.LEAST", 2)
    monkeypatch.setattr("fencepost.checker.conform.parallel.CHUNK", 2)
    model = desk()
    one, three = (conform(model, make(model.bound), NO_LIMITS, workers=n) for n in (1, 3))
    assert timeless(one) == timeless(three)


# -- errors of the implementation -------------------------------------------------------------------------------------


class Flooded(SpecDriver):
    """Stops where the spec shows that it does, and takes no more events."""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        assert "wet" not in self.observe(), "it had stopped"
        super().take(action, arguments)
        if "wet" in self.observe():
            raise Stopped("FLOOD")


def test_an_error_that_both_sides_show_agrees_and_the_spec_may_go_on_unseen() -> None:
    model = desk(storm="on")
    found = held(model, Flooded(model.bound)).figures
    searched = NativeEngine(model).run(Options(deadlock=False))
    names = [rule.name for rule in model.bound.actions]
    taken = dict(zip(names, searched.taken, strict=True))
    assert (found.spec_states, found.product_states) == (searched.distinct, searched.distinct)
    assert found.transitions + found.after_stop == searched.generated
    assert {name for name in names if found.taken[name] != taken[name]} == {"rain"}
    assert found.after_stop == taken["rain"] - found.taken["rain"] > 0


def test_stopping_unseen_is_a_difference_as_soon_as_the_spec_shows_something_new() -> None:
    model = desk()

    class Silent(SpecDriver):
        def take(self, action: str, arguments: tuple[Any, ...]) -> None:
            super().take(action, arguments)
            if action == "lend":
                raise Stopped("SILENT")

    found = held(model, Silent(model.bound)).mismatch
    assert found is not None
    assert (found.kind, found.message) == (Kind.STOPPED, "stopped by an earlier event")
    assert [step.action for step in found.trace.steps] == ["ask", "lend", "ask"]
    assert [(d.path, d.spec, d.implementation) for d in found.differences] == [
        ("readers[B].at", "IN_LINE", "AWAY"),
        ("line", [1], []),
    ]


def test_going_on_where_the_spec_stops_is_a_difference() -> None:
    model = desk(storm="on")

    class Dry(SpecDriver):
        def take(self, action: str, arguments: tuple[Any, ...]) -> None:
            if action != "flood":
                super().take(action, arguments)

    found = held(model, Dry(model.bound)).mismatch
    assert found is not None
    assert (found.kind, found.event, found.differences[0].path) == (Kind.OBSERVATION, ("flood", ()), "wet")


# -- hidden state -----------------------------------------------------------------------------------------------------


def test_hidden_state_is_counted_and_shown() -> None:
    model = desk()
    found = held(model, Counting(model.bound))
    assert (found.verdict, found.mismatch) == (Verdict.HOLDS, None)
    pairs = all_pairs(model.bound, Counting(model.bound))
    states: dict[Any, int] = {}
    for state, _ in pairs:
        states[state] = states.get(state, 0) + 1
    assert (found.figures.spec_states, found.figures.product_states) == (len(states), len(pairs))
    hidden = found.hidden
    assert hidden is not None
    assert (hidden.states, hidden.most) == (sum(n > 1 for n in states.values()), 3)
    assert [(d.path, d.spec, d.implementation) for d in hidden.differences] == [("hidden", 0, 1)]
    symmetry = Symmetry(model.bound.shape, model.bound.permutable())
    one, other = (follow(model.bound, trace) for trace in hidden.paths)
    assert symmetry.canonical(one.last) == symmetry.canonical(other.last)
    assert (len(one), [step.action for step in other.steps]) == (0, ["shut", "shut"])


def all_pairs(bound: BoundSpec, driver: SpecDriver) -> set[tuple[Any, int]]:
    """Every state of the spec, up to symmetry, with every hidden number that can be met there."""
    symmetry = Symmetry(bound.shape, bound.permutable())
    todo = [driver.save()]
    seen = set(todo)
    while todo:
        saved = todo.pop()
        for rule, args, _ in bound.transitions(saved[0]):
            driver.restore(saved)
            driver.take(rule.name, bound.arguments(rule, args))
            if driver.save() not in seen:
                seen.add(driver.save())
                todo.append(driver.save())
    return {(symmetry.canonical(state), hidden) for state, hidden in seen}


def test_names_of_members_hide_nothing() -> None:
    """The driver's digest has its own names, and there is still one for each state of the spec."""
    model = Model.of(load_file(MODELS / "two_phase.py"), {"managers": 4})
    found = conform(model, SpecDriver(model.bound), NO_LIMITS)
    assert found.hidden is None
    assert found.figures.product_states == found.figures.spec_states
