"""A planted difference in any switch of the engine is found, and its trace is shortest.

Spec and engine differ in one switch. What lockstep finds is held against searches that know nothing of symmetry and of
digests: one over all saved states, and for the shortest of them one over all paths, each run from the start.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pytest
from fencepost.checker.conform.product import conform
from fencepost.checker.conform.result import Kind, Mismatch
from fencepost.checker.model import Limits, Model
from fencepost.impl.drivers.reference import ReferenceDriver
from fencepost.impl.engine.config import CHOICES
from fencepost.spec.lang import Arguments, BoundSpec, Rule, State
from fencepost.traces.driver import Refused, Stopped

from .runs import Values, bound_at, driver_of, expected

LOADS: Values = {
    "kv-role": "kv_consumer",
    "requests": 2,
    "blocks": 2,
    "prompt-tokens": 1,
    "max-tokens": 2,
    "remote-tokens": 1,
    "reset-running": 1,
}
PLAIN: Values = {"requests": 2, "blocks": 3, "prompt-tokens": 1, "max-tokens": 2}
CACHE: Values = {**PLAIN, "enable-prefix-caching": 1, "prompt-tokens": 2, "prompt-tokens-least": 2}
LONG: Values = {
    "kv-role": "kv_consumer",
    "requests": 2,
    "blocks": 4,
    "prompt-tokens": 3,
    "prompt-tokens-least": 3,
    "max-tokens": 1,
    "remote-tokens": 2,
    "scheduler-reserve-full-isl": 0,
}
ALL_PATHS = 4
"""Events up to which every path is tried."""


class Planted(NamedTuple):
    """Bounds at which a switch matters, and after how many events it is first seen: with the default in the spec, and
    with the other choice in the spec."""

    bounds: Values
    default: int
    other: int


PLANTED: Mapping[str, Planted] = {
    "finish-free": Planted(LOADS, 5, 5),
    "abort-free": Planted(LOADS, 3, 3),
    "preemption-free": Planted(LOADS, 3, 3),
    "uncached-free-order": Planted(PLAIN, 3, 3),
    "cached-free-order": Planted({**CACHE, "requests": 1, "prompt-tokens": 1, "prompt-tokens-least": 1}, 4, 4),
    "victim-rule": Planted(LOADS, 4, 4),
    "stale-output": Planted(PLAIN, 4, 4),
    "waiting-queues": Planted(PLAIN, 8, 8),
    "reset-while-parked": Planted(LOADS, 3, 3),
    "abort-of-load": Planted(LOADS, 3, 3),
    "abort-after-report": Planted(LOADS, 5, 5),
    "admission-reservation": Planted(LONG, 3, 3),
    "preempt-skips-ended": Planted(PLAIN, 4, 4),
    "pin-before-test": Planted(CACHE, 4, 4),
    "capacity-counts-hits": Planted(CACHE, 7, 7),
    "ended-rows": Planted(CACHE, 4, 5),
}


def events(mismatch: Mismatch) -> int:
    """How many events it takes to see a difference; the trace ends before one that must be quiet."""
    return len(mismatch.trace.steps) + (mismatch.kind is Kind.NOT_QUIET)


def instances(bound: BoundSpec) -> list[tuple[Rule, Arguments]]:
    """Every event there is."""
    return [(rule, args) for rule in bound.actions for args in rule.choices()]


def happens(driver: ReferenceDriver, bound: BoundSpec, state: State, rule: Rule, args: Arguments) -> tuple[State | None, bool]:
    """Let an event happen to a driver in a state of the spec: the spec's next state, and whether both show the same then.

    The state is None where the spec has the event disabled; then it is tried only if it must be quiet.
    """
    after = bound.after(state, rule, args)
    if after is None and rule.name not in driver.quiet:
        return None, True
    try:
        driver.take(rule.name, bound.arguments(rule, args))
    except Refused:
        return after, after is None
    except Stopped:
        return after, after is not None and driver.observe() == expected(bound, after)
    return after, driver.observe() == expected(bound, state if after is None else after)


def by_saved_states(bound: BoundSpec, driver: ReferenceDriver, most: int) -> int | None:
    """Events to the first difference, over all saved states; None if there is none so soon."""
    all_events = instances(bound)
    driver.reset()
    level = {(bound.initial()[0][2], pickle.dumps(driver.save()))}
    for depth in range(1, most + 1):
        following: set[tuple[State, bytes]] = set()
        for state, saved in level:
            for rule, args in all_events:
                driver.restore(pickle.loads(saved))
                after, agrees = happens(driver, bound, state, rule, args)
                if not agrees:
                    return depth
                if after is not None and driver.engine.error is None:
                    following.add((after, pickle.dumps(driver.save())))
        level = following
    return None


def by_paths(bound: BoundSpec, make: Callable[[], ReferenceDriver], most: int) -> int | None:
    """The same over all paths, each run on a new driver."""
    for length in range(1, most + 1):
        if any(not agrees for agrees in _paths(bound, make, length, [], bound.initial()[0][2])):
            return length
    return None


def _paths(
    bound: BoundSpec, make: Callable[[], ReferenceDriver], left: int, path: Sequence[tuple[Rule, Arguments]], state: State
) -> Iterator[bool]:
    """For every path that goes on from one with so many more events, whether both sides show the same at its end."""
    for rule, args in instances(bound):
        after = bound.after(state, rule, args)
        if left > 1:
            if after is not None:
                yield from _paths(bound, make, left - 1, [*path, (rule, args)], after)
        else:
            driver = make()
            for earlier, its_args in path:
                driver.take(earlier.name, bound.arguments(earlier, its_args))
            yield happens(driver, bound, state, rule, args)[1]


def check(switch: str, in_spec: str, in_engine: str, length: int) -> None:
    """Plant a difference, find it, and look for a shorter trace to one."""
    bounds = PLANTED[switch].bounds
    model = Model(bound_at("reference", bounds, {switch: in_spec}), "kv")
    bound = model.bound

    def make() -> ReferenceDriver:
        return driver_of(bound, **{switch: in_engine})

    mismatch = conform(model, make(), Limits()).mismatch
    assert mismatch is not None
    assert events(mismatch) == length
    shows_only_at_the_end(bound, make(), mismatch)
    assert by_saved_states(bound, make(), length) == length
    if length <= ALL_PATHS:
        assert by_paths(bound, make, length) == length


def shows_only_at_the_end(bound: BoundSpec, driver: ReferenceDriver, mismatch: Mismatch) -> None:
    """Run the trace again: without its last event both sides show the same, and with it they do not."""
    state = mismatch.trace.initial
    assert driver.observe() == expected(bound, state)
    rules = {rule.name: rule for rule in bound.actions}
    path = [(step.action, step.arguments) for step in mismatch.trace.steps]
    if mismatch.kind is Kind.NOT_QUIET:
        path.append(mismatch.event)
    for place, (action, args) in enumerate(path, 1):
        after, agrees = happens(driver, bound, state, rules[action], args)
        assert agrees == (place < len(path))
        assert after is not None or place == len(path)
        state = after or state
    assert path[-1] == mismatch.event


def test_every_switch_is_planted() -> None:
    assert set(PLANTED) == set(CHOICES)
    assert all(len(choices) == 2 for choices in CHOICES.values())


@pytest.mark.parametrize("switch", PLANTED)
def test_another_choice_in_the_engine_is_found_by_a_shortest_trace(switch: str) -> None:
    default, other = CHOICES[switch]
    check(switch, default, other, PLANTED[switch].default)


@pytest.mark.slow
@pytest.mark.parametrize("switch", PLANTED)
def test_another_choice_in_the_spec_is_found_by_a_shortest_trace(switch: str) -> None:
    default, other = CHOICES[switch]
    check(switch, other, default, PLANTED[switch].other)


@pytest.mark.parametrize("bounds", [LOADS, PLAIN, CACHE, LONG], ids=["loads", "plain", "cache", "long"])
def test_without_a_plant_the_searches_find_nothing(bounds: Values) -> None:
    bound = bound_at("reference", bounds)
    assert by_saved_states(bound, driver_of(bound), 4) is None
    assert by_paths(bound, lambda: driver_of(bound), 2) is None
