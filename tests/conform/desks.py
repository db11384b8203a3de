"""The desk of specs/desk.py as an implementation of itself, and desks that get something wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fencepost.checker.conform.product import conform
from fencepost.checker.conform.result import Agreement
from fencepost.checker.model import Limits, Model
from fencepost.spec.lang import BoundSpec, load_file
from fencepost.traces.driver import Refused

from .specdriver import NotCopyable, SpecDriver

HERE = Path(__file__).parent
DESK = load_file(HERE / "specs" / "desk.py")
BOUNDS: Mapping[str, int | str] = {"readers": 3, "copies": 3}
QUIET = ("ask", "give_back", "shut")
NO_LIMITS = Limits()
Make = Callable[[BoundSpec], SpecDriver]


def desk(**bounds: int | str) -> Model:
    return Model.of(DESK, {**BOUNDS, **bounds})


def held(model: Model, driver: SpecDriver) -> Agreement:
    """What comes of a comparison, which must be the same for a driver that can only be run again from the start."""
    found = conform(model, driver, NO_LIMITS)
    assert timeless(conform(model, NotCopyable(driver), NO_LIMITS)) == timeless(found)
    return found


def timeless(found: Agreement) -> Agreement:
    return replace(found, figures=replace(found.figures, seconds=0.0))


class Counting(SpecDriver):
    """Counts, unseen, how often the desk was shut, up to twice."""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        super().take(action, arguments)
        if action == "shut" and arguments == (False,):
            self.hidden = min(2, self.hidden + 1)


class Tired(Counting):
    """Once the desk was shut twice, a reader who comes back is not let in line."""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        if action == "ask" and self.hidden == 2 and self.observe()["left"] < 3:
            raise Refused("closed for today")
        super().take(action, arguments)


def at(**switches: str) -> Make:
    return lambda bound: SpecDriver(BoundSpec(DESK, {**bound.values, **switches}), QUIET)


def least_events(bound: BoundSpec, driver: SpecDriver) -> int:
    """Without symmetry, hashes or canonical states: how many events it takes until the two sides differ."""
    ((_, _, initial),) = bound.initial()
    level = {(initial, driver.save())}
    seen = set(level)
    for events in range(1, 100):
        following: set[Any] = set()
        for state, saved in level:
            for rule in bound.actions:
                for args in rule.choices():
                    after = bound.after(state, rule, args)
                    driver.restore(saved)
                    if differs(bound, driver, state, rule.name, bound.arguments(rule, args), after):
                        return events
                    if after is not None:
                        following.add((after, driver.save()))
        level = following - seen
        seen |= level
    raise AssertionError("they never differ")


def differs(bound: BoundSpec, driver: SpecDriver, state: Any, action: str, arguments: Any, after: Any) -> bool:
    """Whether one event makes a difference, said once more in other words."""
    if after is None and action not in driver.quiet:
        return False
    before = driver.save()
    try:
        driver.take(action, arguments)
    except Refused:
        return after is not None or driver.save() != before
    except Exception:
        return True
    shown = SpecDriver(bound)
    shown.restore((state if after is None else after, 0))
    return driver.observe() != shown.observe() or (after is None and driver.save() != before)
