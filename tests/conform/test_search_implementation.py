"""The search of an implementation: its own states, counted by brute force too; every kind of violation; honest ends."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.conform.errors import ConformError, DriverUnstable
from fencepost.checker.conform.search import Searched, search
from fencepost.checker.conform.transitions import Kind
from fencepost.checker.explore import explore
from fencepost.checker.explore.findings import Progress
from fencepost.checker.model import Limits, Model, Options
from fencepost.checker.result import Figures, Result, Status, Verdict
from fencepost.spec.lang import load_file
from fencepost.traces.driver import ANYTHING, Driver, Refused, Stopped, UpTo
from fencepost.traces.trace import follow

from .kiosks import PLAIN, Copying, Counting, Crashing, Hoarding, Kiosk, Settling, kiosk, of, timeless
from .specdriver import NotCopyable, SpecDriver

HERE = Path(__file__).parent
MODELS = HERE.parent / "models" / "specs"
DESK = load_file(HERE / "specs" / "desk.py")
ALL = Options(keep_going=True)


def searched(model: Model, driver: SpecDriver, options: Options = PLAIN) -> Searched:
    """What comes of a search, which must be the same for a driver that can only be run again from the start."""
    found = search(model, driver, options)
    again = search(model, NotCopyable(driver), options)
    assert replace(timeless(again), title=found.title) == timeless(found)
    return found


def violations(result: Result) -> dict[str, int | None]:
    return {prop.name: prop.depth for prop in result.violations}


def counts(figures: Figures) -> Figures:
    return replace(figures, seconds={}, peak_memory_bytes=0, start_memory_bytes=0)


# -- an implementation that is the spec itself ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "bounds"),
    [
        (HERE / "specs" / "kiosk.py", {"guests": 3, "umbrellas": 3}),
        (HERE / "specs" / "kiosk.py", {"returns": "front"}),
        (MODELS / "two_phase.py", {}),
        (MODELS / "mutex.py", {}),
        (MODELS / "lossy_queue.py", {"messages": 3}),
        (MODELS / "token_ring.py", {}),
        (MODELS / "switches.py", {}),
        (MODELS / "philosophers.py", {}),
        pytest.param(MODELS / "everything.py", {}, marks=pytest.mark.slow),
    ],
    ids=lambda value: value.stem if isinstance(value, Path) else "",
)
@pytest.mark.parametrize("options", [PLAIN, ALL], ids=["", "keep-going"])
def test_a_spec_that_drives_itself_has_the_result_of_its_own_search(
    path: Path, bounds: Mapping[str, int | str], options: Options
) -> None:
    model = Model.of(load_file(path), bounds)
    found, own = search(model, SpecDriver(model.bound), options), explore(model, options, "native")
    assert counts(found.result.figures) == counts(own.figures)
    assert found.result.verdict == own.verdict
    progress = {prop.name for prop in own.properties if prop.kind in ("eventually", "leads_to")}
    for ours, theirs in zip(found.result.properties, own.properties, strict=True):
        assert (ours.name, ours.status, ours.depth) == (theirs.name, theirs.status, theirs.depth)
        assert ours.reason == theirs.reason or ours.name in progress
    assert all(path.otherwise is None for path in found.paths.values())
    assert (found.states, found.ended) == (found.result.figures.distinct, None)


def test_without_symmetry_every_naming_is_a_state() -> None:
    model, options = kiosk(guests=3, umbrellas=2), Options(symmetry=False)
    found, own = search(model, SpecDriver(model.bound), options), explore(model, options, "native")
    assert counts(found.result.figures) == counts(own.figures)
    assert found.result.figures.distinct > search(model, SpecDriver(model.bound), PLAIN).result.figures.distinct


def test_violations_come_with_traces_that_the_spec_takes_too() -> None:
    model = kiosk(returns="front")
    found = searched(model, SpecDriver(model.bound), ALL)
    assert violations(found.result) == {"first-come": 2}
    trace = found.paths["first-come"].trace
    assert follow(model.bound, trace) == trace
    assert [step.action for step in trace.steps] == ["lend", "bring"]


PROMISE = '''"""A light that is to come on some time."""

from fencepost.spec.lang import Bool, action, eventually, state


@state
class Light:
    on: Bool


@action(fair="weak")
def switch(s):
    """Somebody switches."""
    s.on = not s.on


@eventually
def comes_on(s):
    """It is on some time."""
    return s.on
'''


def test_progress_properties_are_left_open(tmp_path: Path) -> None:
    (tmp_path / "light.py").write_text(PROMISE)
    model = Model.of(load_file(tmp_path / "light.py"))
    result = search(model, SpecDriver(model.bound), PLAIN).result
    assert (result.verdict, result.vacuous) == (Verdict.UNDETERMINED, ())
    assert result.reason == "comes-on is undetermined: a progress property, not decided for implementations"


# -- implementations that are wrong where the spec is right -----------------------------------------------------------


def test_the_kiosk_itself_holds() -> None:
    found = of(Kiosk, guests=3, umbrellas=2)
    own = explore(kiosk(guests=3, umbrellas=2), PLAIN, "native")
    assert found.result.verdict is Verdict.HOLDS
    assert counts(found.result.figures) == counts(own.figures)
    assert found.refusals > 0


class Reversing(Kiosk):
    """Puts what comes back in front."""

    def bring(self, g: int) -> None:
        self.rack.insert(0, self.has.pop(g))


class Stuck(Kiosk):
    """Does nothing more once all loans are made and settled."""

    def lend(self, g: int) -> None:
        if self.hidden:
            raise Refused("closed")
        super().lend(g)

    def settle(self) -> None:
        super().settle()
        self.hidden = 1


@pytest.mark.parametrize(
    ("kind", "wrong", "step", "why"),
    [
        (Copying, {"every-umbrella-once": 5}, 5, "it leads to another state"),
        (Reversing, {"first-come": 2}, 2, "it leads to another state"),
        (Settling, {"all-back": 2}, 2, "it does not allow this event there"),
        (Stuck, {"deadlock": 3}, None, ""),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_wrong_implementation_violates_what_the_spec_keeps(
    kind: type[Kiosk], wrong: Mapping[str, int], step: int | None, why: str
) -> None:
    found = of(kind)
    assert violations(found.result) == wrong
    (path,) = found.paths.values()
    assert len(path.trace) == next(iter(wrong.values()))
    if step is None:
        assert path.otherwise is None
    else:
        assert path.otherwise is not None
        assert (path.otherwise.step, path.otherwise.why) == (step, why)
        assert bool(path.otherwise.differences) == ("another state" in why)


def test_keep_going_finds_what_lies_behind_a_violation() -> None:
    found = of(Reversing, ALL)
    assert found.result.violations[0].depth == 2
    assert found.result.cut is None
    assert found.result.figures.distinct > of(Reversing).result.figures.distinct


def test_hidden_states_are_states_of_their_own_and_are_searched() -> None:
    found = of(Hoarding)
    assert violations(found.result) == {"deadlock": 6}
    assert found.states < found.result.figures.distinct
    assert found.paths["deadlock"].otherwise is None


# -- errors of the implementation's own -------------------------------------------------------------------------------


class Jamming(Kiosk):
    """Jams when the last umbrella comes back."""

    def bring(self, g: int) -> None:
        super().bring(g)
        if len(self.rack) == self.umbrellas and self.loans > 1:
            self.trouble = "JAMMED"
            raise Stopped("JAMMED", "the rack is full")


class Bursting(Kiosk):
    """The same with an error that the spec does not know."""

    def bring(self, g: int) -> None:
        super().bring(g)
        if len(self.rack) == self.umbrellas and self.loans > 1:
            self.trouble = "BURST"
            raise Stopped("BURST", "the rack has burst")


class Hiding(Kiosk):
    """The same, and shows nothing of it."""

    def bring(self, g: int) -> None:
        super().bring(g)
        if len(self.rack) == self.umbrellas and self.loans > 1:
            raise Stopped("BURST", "the rack has burst")


def test_an_error_that_the_spec_knows_is_judged_by_its_properties() -> None:
    found = of(Jamming)
    assert violations(found.result) == {"no-trouble": 4}
    path = found.paths["no-trouble"]
    assert path.trace.last[-1] == 1
    assert path.trace.last[:-1] == path.trace.states[-2][:-1], "what it does not show is as it was before"
    assert path.message == "the rack is full"
    assert found.result.violations[0].reason == "The implementation says: the rack is full"
    assert path.otherwise is not None
    assert path.otherwise.step == 4


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Bursting, "the rack has burst"),
        (Hiding, "the rack has burst"),
        (Crashing, "ZeroDivisionError: loans (kiosks.py:"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
@pytest.mark.parametrize("only", [None, "first-come"])
def test_an_error_that_the_spec_does_not_know_is_a_violation_with_what_was_said(
    kind: type[Kiosk], said: str, only: str | None
) -> None:
    model = kiosk()
    if only is not None:
        model.bound.properties = tuple(p for p in model.bound.properties if p.name == only)
    found = search(model, kind(model.bound.values), PLAIN)
    assert violations(found.result) == {"no-error": 4}
    (prop,) = found.result.violations
    assert (prop.kind, prop.status) == ("built in", Status.VIOLATED)
    assert str(prop.reason).startswith(f"The implementation says: {said}")
    path = found.paths["no-error"]
    assert path.dead is Kind.ERROR
    assert path.trace.states[-1] == path.trace.states[-2], "of its state nothing is known"
    assert path.otherwise is not None
    assert (path.otherwise.step, path.otherwise.why) == (4, "it goes on")


# -- what is no state of the spec, and what cannot be judged ----------------------------------------------------------


def test_what_is_no_state_of_the_spec_leaves_the_search_undetermined_with_the_path() -> None:
    found = of(Counting)
    assert found.result.verdict is Verdict.UNDETERMINED
    assert found.result.reason == (
        "the implementation shows what is no state of the spec, after 3 events: loans: 4 is not in 0..3"
    )
    assert found.ended is not None
    assert found.ended.kind is Kind.BEYOND
    assert len(found.ended.path.trace) == 3
    assert found.ended.path.otherwise is not None
    assert [d.path for d in found.ended.path.otherwise.differences] == ["left"]
    assert of(Counting, guests=1).result.verdict is not Verdict.VIOLATED


class CountingAndReversing(Counting, Reversing):
    """Both: the violation outranks what is undetermined."""


def test_a_violation_outranks_what_is_no_state_of_the_spec() -> None:
    assert of(CountingAndReversing).result.verdict is Verdict.VIOLATED


class Overfull(Kiosk):
    """Puts an umbrella that the kiosk never had on the rack."""

    def bring(self, g: int) -> None:
        self.has.pop(g)
        self.rack.append(self.umbrellas)


def test_the_place_that_does_not_fit_is_named() -> None:
    reason = str(of(Overfull).result.reason)
    assert reason.startswith("the implementation shows what is no state of the spec, after 2 events: rack[1]: 2 is not in 0..1")


UNJUDGEABLE = '''"""A counter whose property looks beyond the end of a sequence that is never that short in the spec."""

from fencepost.spec.lang import Bool, Int, Seq, action, always, init, require, state


@state
class Line:
    line: Seq[Int(0, 3), 3]
    more: Bool


@init
def begin(s):
    s.line.append(1)


@action
def turn(s):
    """The line turns."""
    s.more = not s.more


@always
def first_is_one(s):
    """The first is one."""
    return s.line[0] == 1
'''


class Losing:
    """Loses the line at the second turn."""

    title = "a line that is lost"
    quiet = frozenset[str]()

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.turns = 0

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        self.turns += 1

    def observe(self) -> dict[str, Any]:
        return {"line": [1] if self.turns < 2 else [], "more": self.turns % 2 == 1}

    def digest(self, names: object = None) -> int:
        return self.turns


def test_a_property_that_cannot_be_evaluated_leaves_the_search_undetermined(tmp_path: Path) -> None:
    (tmp_path / "line.py").write_text(UNJUDGEABLE)
    model = Model.of(load_file(tmp_path / "line.py"))
    found = search(model, Losing(), PLAIN)
    assert found.result.verdict is Verdict.UNDETERMINED
    assert str(found.result.reason).startswith("a property of the spec cannot be evaluated, after 2 events: ")
    assert found.ended is not None
    assert found.ended.kind is Kind.UNJUDGED


class Vague(Kiosk):
    """Promises nothing of an umbrella that is out, and less than it knows of the loans that are left."""

    def observe(self) -> dict[str, Any]:
        shown = super().observe()
        return {**shown, "left": UpTo(shown["left"]), "guests": dict.fromkeys(shown["guests"], ANYTHING)}


def test_what_is_not_promised_is_none_and_a_limit_counts_as_reached() -> None:
    found = of(Vague)
    assert violations(found.result) == {"every-umbrella-once": 1}, "an umbrella of which nothing is promised is nowhere"


# -- limits, and drivers that do not fit ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(max_states=5), "more than 5 states (--max-states)"),
        (Limits(max_depth=2), "depth limit of 2 (--max-depth)"),
        (Limits(max_seconds=0), "time limit of 0 s (--max-time)"),
        (Limits(max_bytes=1), "memory limit of 1 bytes (--max-memory)"),
        (Limits(cancelled=lambda: True), "interrupted"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_limit_leaves_the_search_undetermined(limits: Limits, reason: str) -> None:
    result = of(Kiosk, Options(limits=limits)).result
    assert (result.verdict, result.reason) == (Verdict.UNDETERMINED, reason)
    assert all(prop.status is not Status.HOLDS for prop in result.properties)


def test_progress_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Progress] = []
    model = kiosk()
    clock = iter(range(10_000))
    monkeypatch.setattr("fencepost.checker.conform.budget.time.monotonic", lambda: float(next(clock)))
    search(model, Kiosk(model.bound.values), PLAIN, told.append)
    assert told
    assert told[-1].distinct <= 100


class Lazy(Kiosk):
    """Never settles."""

    def settle(self) -> None:
        raise Refused("tomorrow")


def test_what_never_happens_makes_a_pass_worthless() -> None:
    model = kiosk(loans=9)
    result = search(model, Lazy(model.bound.values), Options(deadlock=False)).result
    assert (result.verdict, result.reason) == (Verdict.UNDETERMINED, "vacuous: action settle is never enabled")


class Random(Kiosk):
    """Is not deterministic."""

    dice = random.Random(1)

    def lend(self, g: int) -> None:
        super().lend(g)
        self.dice.shuffle(self.rack)


class Leaking(Kiosk):
    """Refuses, and changes something all the same."""

    def settle(self) -> None:
        self.hidden += not self.loans
        super().settle()


@pytest.mark.parametrize("kind", [Random, Leaking])
def test_a_driver_that_does_not_show_the_same_twice_is_no_ground_for_a_verdict(kind: type[Kiosk]) -> None:
    model = kiosk(umbrellas=3)
    with pytest.raises(DriverUnstable):
        search(model, NotCopyable(kind(model.bound.values)), PLAIN)  # type: ignore[arg-type]


def test_a_spec_that_says_what_is_shown_must_say_what_that_stands_for() -> None:
    model = Model.of(DESK)
    with pytest.raises(ConformError, match=r"desk has an @observed function and no @abstraction"):
        search(model, SpecDriver(model.bound), PLAIN)


class Foreign(Kiosk):
    """Shows what the spec's function does not understand."""

    def observe(self) -> dict[str, Any]:
        return {"umbrellas": 3}


def test_a_driver_that_begins_in_no_state_of_the_spec_is_refused() -> None:
    with pytest.raises(ConformError, match=r"at the start is no state of kiosk: meant fails: KeyError: 'guests'"):
        of(Foreign)


def test_drivers_are_drivers() -> None:
    driver: Driver = Kiosk({"guests": 1, "umbrellas": 1, "loans": 1})
    assert driver.title == "a kiosk in Python; all of it is real"


class Moody(Kiosk):
    """Jams the third time that something is brought, whoever brings it and wherever it is."""

    def __init__(self, values: Mapping[str, int | str]) -> None:
        self.brought = 0
        super().__init__(values)

    def bring(self, g: int) -> None:
        self.brought += 1
        if self.brought == 3:
            raise RuntimeError("not today")
        super().bring(g)


def test_an_error_that_does_not_come_again_is_no_violation() -> None:
    with pytest.raises(DriverUnstable, match="stops the implementation, and does not when its path is run again"):
        of(Moody)
