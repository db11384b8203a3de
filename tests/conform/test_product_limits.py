"""Exhaustive lockstep: what makes it worthless or undetermined, and drivers that are no drivers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.conform.errors import ConformError, DriverUnstable
from fencepost.checker.conform.product import conform
from fencepost.checker.explore.findings import Progress
from fencepost.checker.model import Limits, Model
from fencepost.checker.result import Verdict
from fencepost.spec.lang import BoundSpec, load_file

from .desks import DESK, NO_LIMITS, QUIET, Counting, Make, Tired, at, desk, held, least_events
from .specdriver import SpecDriver, encoded

HERE = Path(__file__).parent
MODELS = HERE.parent / "models" / "specs"


# -- vacuity and limits -----------------------------------------------------------------------------------------------


def test_an_action_that_is_never_taken_makes_agreement_vacuous() -> None:
    model = Model.of(load_file(MODELS / "vacuity.py"), {"empty": "action"})
    found = held(model, SpecDriver(model.bound))
    assert (found.verdict, found.vacuous) == (Verdict.UNDETERMINED, ("action other is never taken",))


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(max_states=20), "more than 20 states (--max-states)"),
        (Limits(max_depth=4), "depth limit of 4 (--max-depth)"),
        (Limits(max_seconds=0.0), "time limit of 0 s (--max-time)"),
        (Limits(max_bytes=1), "memory limit of 1 bytes (--max-memory)"),
        (Limits(cancelled=lambda: True), "interrupted"),
    ],
)
def test_a_limit_leaves_it_undetermined(limits: Limits, reason: str) -> None:
    model = desk()
    found = conform(model, SpecDriver(model.bound), limits)
    assert (found.verdict, found.cut, found.vacuous) == (Verdict.UNDETERMINED, reason, ())


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    model = desk()
    whole = conform(model, SpecDriver(model.bound), NO_LIMITS).figures
    for limits in (Limits(max_states=whole.product_states), Limits(max_depth=whole.depth + 1), Limits(max_bytes=2**40)):
        assert conform(model, SpecDriver(model.bound), limits).verdict is Verdict.HOLDS
    cut = conform(model, SpecDriver(model.bound), Limits(max_states=whole.product_states - 1))
    assert cut.verdict is Verdict.UNDETERMINED
    assert conform(model, SpecDriver(model.bound), Limits(max_depth=whole.depth)).figures.depth == whole.depth


class Endless(SpecDriver):
    """Counts, unseen, how often the desk was shut."""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        super().take(action, arguments)
        self.hidden += action == "shut" and arguments == (False,)


def test_what_keeps_a_comparison_from_ending_is_shown() -> None:
    """A cut shows the first and the last of the spec state that has most states; nothing else may have differed before."""
    model = desk()
    found = conform(model, Endless(model.bound), Limits(max_states=600))
    assert (found.verdict, found.cut) == (Verdict.UNDETERMINED, "more than 600 states (--max-states)")
    assert found.hidden is not None
    assert found.hidden.most > 5
    assert [(d.path, d.spec, d.implementation) for d in found.hidden.differences] == [("hidden", 0, found.hidden.most - 1)]


def test_a_difference_outranks_a_limit() -> None:
    model = desk()
    length = least_events(model.bound, at(order="newest")(model.bound))
    driver = at(order="newest")(model.bound)
    assert conform(model, driver, Limits(max_depth=length - 1)).verdict is Verdict.UNDETERMINED
    found = conform(model, driver, Limits(max_depth=length))
    assert (found.verdict, found.cut) == (Verdict.VIOLATED, None)


def test_progress_is_told_every_second(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Progress] = []
    clock = iter(range(10_000))
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    model = desk()
    found = conform(model, SpecDriver(model.bound), NO_LIMITS, told.append)
    assert len(told) == found.figures.product_states
    assert (told[-1].generated, told[-1].depth) == (found.figures.transitions, found.figures.depth)


# -- what does not fit, and drivers that are wrong ----------------------------------------------------------------------


def test_a_spec_with_several_initial_states_is_refused() -> None:
    model = Model.of(load_file(MODELS / "several.py"), {})
    with pytest.raises(ConformError, match=r"several has \d+ initial states"):
        conform(model, SpecDriver(model.bound), NO_LIMITS)


def test_quiet_actions_must_exist_and_take_no_sets() -> None:
    model = desk()
    with pytest.raises(ConformError, match="desk has no action burn"):
        conform(model, SpecDriver(model.bound, ("burn",)), NO_LIMITS)
    kinds = Model.of(load_file(HERE.parent / "traces" / "specs" / "kinds.py"), {})
    taking = next(a.name for a in kinds.bound.actions if any("SetOf" in repr(p.type) for p in a.declared.parameters))
    with pytest.raises(ConformError, match=f"{taking} takes a set"):
        conform(kinds, SpecDriver(kinds.bound, (taking,)), NO_LIMITS)


def test_a_digest_must_be_plain() -> None:
    model = desk()

    class Odd(SpecDriver):
        def digest(self, names: Any = None) -> Any:
            return (object(),)

    with pytest.raises(ConformError, match="nested tuples of plain values"):
        conform(model, Odd(model.bound), NO_LIMITS)


class Forgetful(Counting):
    """Its `restore` leaves the hidden number as it is."""

    def restore(self, saved: Any) -> None:
        self.state, _ = saved


class Shared(SpecDriver):
    """Its `save` hands out what later events change."""

    def reset(self) -> None:
        super().reset()
        self.box = [self.state]

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        super().take(action, arguments)
        self.box[0] = self.state

    def save(self) -> Any:
        return self.box

    def restore(self, saved: Any) -> None:
        self.box, self.state = saved, saved[0]


class Dicing(SpecDriver):
    """Lends any copy."""

    def __init__(self, bound: BoundSpec) -> None:
        self.dice = random.Random(3)
        self.other = BoundSpec(DESK, {**bound.values, "order": "newest"})
        super().__init__(bound)

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        if action != "lend" or self.dice.random() < 0.9:
            super().take(action, arguments)
            return
        rule = next(rule for rule in self.other.actions if rule.name == action)
        after = self.other.after(self.state, rule, encoded(arguments))
        assert after is not None
        self.state = after


class Blind(Tired):
    """Its digest leaves the hidden number out: what depends on it is met by the wrong paths."""

    def digest(self, names: Any = None) -> Any:
        return super().digest(names)[:1]  # pyright: ignore[reportIndexIssue, reportUnknownVariableType]


@pytest.mark.parametrize("make", [Forgetful, Shared, Dicing], ids=["restore", "save", "dice"])
@pytest.mark.parametrize("quiet", [(), QUIET], ids=["", "quiet"])
def test_a_driver_that_does_not_show_the_same_twice_gets_no_verdict(make: Make, quiet: Sequence[str]) -> None:
    model = desk()
    driver = make(model.bound)
    driver.quiet = frozenset(quiet)
    with pytest.raises(DriverUnstable, match="save, restore or digest"):
        conform(model, driver, NO_LIMITS)


def test_what_a_digest_leaves_out_hides_differences() -> None:
    """Why the digest has to be whole: the same implementation differs, and is found with a whole one only."""
    model = desk()
    assert conform(model, Tired(model.bound), NO_LIMITS).verdict is Verdict.VIOLATED
    assert conform(model, Blind(model.bound), NO_LIMITS).verdict is Verdict.HOLDS


def test_errors_come_back_from_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.checker.conform.parallel.LEAST", 2)
    model = desk()
    with pytest.raises(DriverUnstable, match=r"^a restored state shows something else, or has another digest"):
        conform(model, Forgetful(model.bound), NO_LIMITS, workers=2)
