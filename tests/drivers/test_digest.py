"""Digests are sound: what lockstep takes for one state of the implementation has one future, whatever led to it.

Random runs from the start arrive in one product state (a state of the spec up to names, with the digest) on different
paths. From the first two implementations that arrive there, every event must lead to equal observations and digests
again, and longer runs must, too.
"""

from __future__ import annotations

import pickle
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from fencepost.checker.conform.draw import Dice
from fencepost.impl.drivers.reference import ReferenceDriver
from fencepost.spec.lang import Arguments, BoundSpec, Rule, State
from fencepost.traces.driver import Observation

from .runs import PROFILES, Relabellings, Values, bound_at, draw, exact, inverse, renamed, renamed_event, take

SIZES: Mapping[str, Values] = {
    "loads": {"kv-role": "kv_consumer", "blocks": 3, "prompt-tokens": 2, "remote-tokens": 2, "reset-running": 1},
    "cache": {"blocks": 3, "enable-prefix-caching": 1, "prompt-tokens": 2, "reset-running": 1},
    "both": {
        "kv-role": "kv_both",
        "blocks": 3,
        "block-size": 2,
        "prompt-tokens": 3,
        "remote-tokens": 3,
        "enable-prefix-caching": 1,
        "prompt-tokens-least": 2,
    },
    "three steps": {"kv-role": "kv_consumer", "blocks": 3, "steps-in-flight": 3, "prompt-tokens": 2, "remote-tokens": 1},
    "late": {"blocks": 3, "enable-prefix-caching": 1, "ended-rows": "dropped", "prompt-tokens": 2, "block-size": 2},
}
"""Bounds so small that runs meet."""


class Arrived(NamedTuple):
    """An implementation in a product state: the spec's state, the saved driver, its own names for those of the least state."""

    state: State
    saved: Any
    names: dict[str, tuple[int, ...]]


class Meetings:
    """Runs at some bounds, and the pairs of implementations that met in one product state."""

    def __init__(self, bound: BoundSpec, make: type[ReferenceDriver] = ReferenceDriver) -> None:
        self.bound, self.names = bound, Relabellings(bound)
        self.one, self.other = make(bound.values), make(bound.values)
        self.first: dict[tuple[State, Hashable], Arrived] = {}
        self.paired: set[tuple[State, Hashable]] = set()
        self.pairs: list[tuple[Arrived, Arrived]] = []

    def run(self, seed: int, length: int) -> None:
        """Note where a run comes by."""
        driver = self.one
        driver.reset()
        for rule, args, state in draw(self.bound, seed, length):
            if take(driver, self.bound, rule, args):
                return
            least, names = self.names.least(state)
            arrived = Arrived(state, driver.save(), names)
            key = least, driver.digest(names)
            before = self.first.setdefault(key, arrived)
            if key not in self.paired and pickle.dumps(before.saved) != pickle.dumps(arrived.saved):
                self.paired.add(key)
                self.pairs.append((before, arrived))

    def agree(self, pair: tuple[Arrived, Arrived], events: Sequence[tuple[Rule, Arguments]]) -> None:
        """Let the same events happen to both, up to names: what they show and their digests must be the same."""
        one, other = pair
        to = {index: tuple(inverse(other.names[index])[name] for name in one.names[index]) for index in one.names}
        assert self.names.symmetry.permute(one.state, to) == other.state
        self.one.restore(one.saved)
        self.other.restore(other.saved)
        self._same(to)
        for rule, args in events:
            stopped = take(self.one, self.bound, rule, args)
            assert take(self.other, self.bound, rule, renamed_event(rule, args, to)) == stopped
            self._same(to)

    def _same(self, to: Mapping[str, Sequence[int]]) -> None:
        assert renamed(self.one.observe(), to["requests"], to["blocks"]) == exact(self.other.observe())
        assert digest(self.one, to) == digest(self.other, None)


def digest(driver: ReferenceDriver, names: Mapping[str, Sequence[int]] | None) -> Hashable:
    """The digest of a driver; of one that has stopped nothing is of interest."""
    return driver.digest(names) if driver.engine.error is None else None


def check(bound: BoundSpec, seeds: int, make: type[ReferenceDriver] = ReferenceDriver) -> None:
    """Let runs meet, and hold the futures of those that met against each other."""
    meetings, dice = Meetings(bound, make), Dice(5)
    for seed in range(seeds):
        meetings.run(seed, 60)
    assert len(meetings.pairs) > 20
    for pair in meetings.pairs:
        for rule, args, _ in bound.transitions(pair[0].state):
            meetings.agree(pair, [(rule, args)])
    for pair in meetings.pairs[::4]:
        meetings.agree(pair, [event[:2] for event in draw(bound, dice.below(1 << 20), 15, pair[0].state)])


@pytest.mark.parametrize("size", SIZES)
def test_states_that_are_told_as_one_have_one_future(size: str) -> None:
    check(bound_at("reference", SIZES[size]), 8)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("profile", PROFILES)
def test_states_that_are_told_as_one_have_one_future_at_length(profile: str, size: str) -> None:
    check(bound_at(profile, SIZES[size]), 40)


class Secretive(ReferenceDriver):
    """Remembers, unseen, how many clients disconnected; from the second one on it shows something else."""

    aborts = 0

    def reset(self) -> None:
        super().reset()
        self.aborts = 0

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        super().take(action, arguments)
        self.aborts = min(2, self.aborts + (action == "abort"))

    def observe(self) -> Observation:
        return {**super().observe(), "misread": self.aborts == 2}

    def save(self) -> Any:
        return super().save(), self.aborts

    def restore(self, saved: Any) -> None:
        super().restore(saved[0])
        self.aborts = saved[1]


class Frank(Secretive):
    """Its digest tells."""

    def digest(self, names: Mapping[str, Sequence[int]] | None = None) -> Hashable:
        return super().digest(names), self.aborts


def test_hidden_state_that_the_digest_does_not_tell_is_caught() -> None:
    bound = bound_at("reference", SIZES["loads"])
    with pytest.raises(AssertionError):
        check(bound, 8, Secretive)
    check(bound, 8, Frank)
