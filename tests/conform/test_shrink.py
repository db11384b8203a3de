"""Shortening of runs that fail: to the shortest where that is known, in the same way, within its time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.conform.draw import Dice, Drawer
from fencepost.checker.conform.follow import Discord, Instance, Walk, confirm
from fencepost.checker.conform.observer import Observer
from fencepost.checker.conform.product import conform
from fencepost.checker.conform.result import Difference, Kind
from fencepost.checker.conform.shrink import Failing, shrink
from fencepost.checker.explore.native.stepper import Stepper
from fencepost.checker.model import Limits, Model
from fencepost.spec.lang import Spec, load_file, load_module
from fencepost.traces.driver import Driver, Observation, Refused, Stopped

from .specdriver import NotCopyable, SpecDriver

HERE = Path(__file__).parent
DESK = load_file(HERE / "specs" / "desk.py")
CRATES = load_file(HERE / "specs" / "crates.py")
KV = load_module("fencepost.spec.kv.kv", "kv")
Bounds = Mapping[str, int | str]
SMALL: Bounds = {"requests": 3, "blocks": 5, "prompt-tokens": 3, "max-tokens": 2}
LOADS: Bounds = {**SMALL, "kv-role": "kv_consumer", "remote-tokens": 2}
CACHE: Bounds = {**SMALL, "enable-prefix-caching": 1, "prefix-groups": 1}


def failing(model: Model, driver: Driver, least: int, seed: int = 0) -> Failing:
    """A random run of at least so many events that fails at its end."""
    bound, after = model.bound, Stepper(model.bound, symmetry=False).after
    observer = Observer(bound)
    for number in range(seed, seed + 500):
        drawer, walk, state = Drawer(bound, after, Dice(number)), Walk(driver), bound.initial()[0][2]
        path: list[Instance] = []
        while len(path) < 600 and (drawn := drawer.draw(state)) is not None:
            rule, args, state = drawn
            found = walk.take(rule.name, bound.arguments(rule, args), observer.expected(state))
            if found is not None:
                if len(path) >= least:
                    return Failing(tuple(path), (rule, args), found)
                break
            path.append((rule, args))
    raise AssertionError("no run fails so late")


def shortened(model: Model, driver: Driver, long: Failing) -> Failing:
    short, note = shrink(model, driver, model.bound.after, long, 300)
    assert note is None
    assert short.found.kind is long.found.kind
    confirm(driver, Observer(model.bound), model.bound, short.path, short.event, short.found)
    return short


def names(events: Sequence[Instance]) -> list[tuple[str, tuple[int, ...]]]:
    return [(rule.name, args) for rule, args in events]


def planted(spec: Spec, bounds: Bounds, different: Bounds) -> tuple[Model, SpecDriver]:
    return Model.of(spec, bounds), SpecDriver(Model.of(spec, {**bounds, **different}).bound)


# -- as short as can be -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "bounds", "different", "least"),
    [
        (DESK, {"readers": 3, "copies": 3, "loans": 20}, {"order": "newest"}, 1),
        (DESK, {"readers": 3, "copies": 3, "loans": 20}, {"return": "not-when-all-lent"}, 40),
        pytest.param(KV, LOADS, {"finish-free": "at-once"}, 100, marks=pytest.mark.slow),
        (KV, LOADS, {"abort-free": "at-once"}, 100),
        (KV, LOADS, {"preemption-free": "at-once"}, 30),
        (KV, LOADS, {"uncached-free-order": "tail"}, 20),
        pytest.param(KV, LOADS, {"admission-reservation": "off"}, 200, marks=pytest.mark.slow),
        pytest.param(KV, LOADS, {"abort-after-report": "hold"}, 200, marks=pytest.mark.slow),
        (KV, CACHE, {"pin-before-test": "yes"}, 100),
    ],
)
def test_a_long_run_becomes_a_shortest_one(spec: Spec, bounds: Bounds, different: Bounds, least: int) -> None:
    model, driver = planted(spec, bounds, different)
    long = failing(model, driver, least)
    shortest = conform(model, driver, Limits()).mismatch
    assert shortest is not None
    short = shortened(model, driver, long)
    assert len(short.events) == len(shortest.trace)


def test_arguments_become_small_and_members_are_numbered_as_they_come() -> None:
    model, driver = planted(CRATES, {"things": 9}, {"counts": "heavy-twice"})
    short = shortened(model, driver, failing(model, driver, 60))
    (first, (one, light)), (second, (two, heavy)), last = names(short.events)
    assert (first, second, last) == ("pack", "pack", ("ship", ()))
    assert (one, two, light + heavy) == (0b1, 0b110, 51)


def test_a_driver_that_cannot_go_back_gives_the_same() -> None:
    model, driver = planted(KV, LOADS, {"finish-free": "at-once"})
    long = failing(model, driver, 100)
    assert shortened(model, NotCopyable(driver), long) == shortened(model, driver, long)


# -- in the same way --------------------------------------------------------------------------------------------------


class Strange(SpecDriver):
    """After the third loan: refuses, stops or falls over at a return, or changes on an event that is refused."""

    way = Kind.REFUSED

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        before = self.state
        try:
            super().take(action, arguments)
        except Refused:
            self.hidden += 10 * (self.way is Kind.NOT_QUIET and self.hidden == 3)
            raise
        self.hidden = min(3, self.hidden + (action == "lend"))
        if self.hidden == 3 and action == "give_back" and self.way is not Kind.NOT_QUIET:
            self.state = before
            raise Refused("no more") if self.way is Kind.REFUSED else Stopped("TIRED", "enough")


@pytest.mark.parametrize(("way", "length"), [(Kind.REFUSED, 7), (Kind.STOPPED, 7)])
def test_other_failures_than_of_what_is_shown_are_kept(way: Kind, length: int) -> None:
    model = Model.of(DESK, {"readers": 4, "copies": 3, "loans": 30})
    driver = Strange(model.bound)
    driver.way = way
    long = failing(model, driver, 12)
    assert long.found.kind is way
    short = shortened(model, driver, long)
    assert len(short.events) == length
    assert short.found.message == long.found.message


def test_an_event_that_is_not_quiet_is_kept() -> None:
    model = Model.of(DESK, {"readers": 4, "copies": 3, "loans": 30})
    bound, driver = model.bound, Strange(model.bound)
    driver.way = Kind.NOT_QUIET
    rules = {rule.name: rule for rule in bound.actions}
    path: list[Instance] = [(rules["shut"], (again % 2,)) for again in range(10)]
    for reader in (3, 1, 2):
        path += [(rules["ask"], (reader,)), (rules["lend"], ()), (rules["shut"], (0,)), (rules["shut"], (1,))]
    hidden = (Difference("digest.hidden", 3, 13),)
    long = Failing(tuple(path), (rules["ask"], (2,)), Discord(Kind.NOT_QUIET, hidden))
    short = shortened(model, driver, long)
    assert names(short.path) == [("ask", (0,)), ("lend", ()), ("ask", (1,)), ("lend", ()), ("ask", (2,)), ("lend", ())]
    assert [one.path for one in short.found.differences] == ["digest.hidden"]


class Twofold(SpecDriver):
    """At a loan it shows a wrong line; after the desk was once shut a wrong shelf instead."""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        super().take(action, arguments)
        self.hidden = self.hidden or int(action == "shut")
        self.lent = action == "lend"

    def observe(self) -> Observation:
        shown = dict(super().observe())
        return shown | {"shelf" if self.hidden else "line": [9, 9]} if self.lent else shown

    lent = False


def test_a_difference_in_one_part_does_not_become_one_in_another() -> None:
    model = Model.of(DESK, {"readers": 4, "copies": 3, "loans": 30})
    driver, rules = Twofold(model.bound), {rule.name: rule for rule in model.bound.actions}
    path = (*((rules["shut"], (again % 2,)) for again in range(4)), *((rules["ask"], (reader,)) for reader in (2, 3)))
    long = Failing(path, (rules["lend"], ()), Discord(Kind.OBSERVATION, (Difference("shelf", [1, 2], [9, 9]),)))
    short = shortened(model, driver, long)
    assert [one.path for one in short.found.differences] == ["shelf"]
    assert sorted(rule.name for rule, _ in short.events) == ["ask", "lend", "shut", "shut"]


def test_a_run_that_does_not_fail_again_is_left_as_it_is() -> None:
    model = Model.of(DESK)
    ask = model.bound.actions[0]
    long = Failing(((ask, (0,)),), (ask, (1,)), Discord(Kind.REFUSED, message="never again"))
    assert shrink(model, SpecDriver(model.bound), model.bound.after, long, 60) == (long, None)


# -- within its time --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "cancelled", "why"),
    [(0.0, lambda: False, "time limit of 0 s"), (60.0, lambda: True, "interrupted")],
)
def test_what_is_left_when_time_is_up_still_fails(seconds: float, cancelled: Callable[[], bool], why: str) -> None:
    model, driver = planted(KV, LOADS, {"finish-free": "at-once"})
    long = failing(model, driver, 100)
    short, note = shrink(model, driver, model.bound.after, long, seconds, cancelled)
    assert (short, note) == (long, f"{why} for making the run shorter")


def test_it_stops_in_the_middle() -> None:
    model, driver = planted(KV, LOADS, {"finish-free": "at-once"})
    long = failing(model, driver, 100)
    calls = iter([False] * 5)
    short, note = shrink(model, driver, model.bound.after, long, 60, lambda: next(calls, True))
    assert note == "interrupted for making the run shorter"
    assert 5 < len(short.events) < len(long.events)
    confirm(driver, Observer(model.bound), model.bound, short.path, short.event, short.found)
