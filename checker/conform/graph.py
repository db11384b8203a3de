"""The product states that were met, in little memory: states and digests are kept as hashes and packed bytes."""

from __future__ import annotations

from array import array
from typing import Any

from ...spec.lang import Arguments, BoundSpec

Event = tuple[int, Arguments]
"""An action instance: the number of the action in the bound spec, and its arguments."""


class Decoded(dict[Event, tuple[str, tuple[Any, ...]]]):
    """Events as drivers take them, each decoded once: the name of the action, and its arguments."""

    def __init__(self, bound: BoundSpec) -> None:
        super().__init__()
        self.bound = bound

    def __missing__(self, event: Event) -> tuple[str, tuple[Any, ...]]:
        rule = self.bound.actions[event[0]]
        found = self[event] = rule.name, self.bound.arguments(rule, event[1])
        return found


class Graph:
    """Every product state by number, in the order they were met: its parent, and the event that leads from there to it.

    `firsts` is the first product state of each spec state, `counts` how many it has; `pair` the first two product states
    that share a spec state, `crowded` the first and the last one of the spec state that has most.
    """

    def __init__(self) -> None:
        self._spec: dict[bytes, int] = {}
        self._product: dict[bytes, int] = {}
        self._parents, self._reached_by = array("q"), array("q")
        self._events: dict[Event, int] = {}
        self.firsts, self.counts = array("q"), array("q")
        self.pair: tuple[int, int] | None = None
        self.crowded: tuple[int, int] | None = None
        self._most = 1

    def __len__(self) -> int:
        return len(self._product)

    @property
    def spec_states(self) -> int:
        """Different states of the spec."""
        return len(self._spec)

    def knows(self, canonical: bytes, digest: bytes) -> bool:
        """Whether a product state was met."""
        spec = self._spec.get(canonical)
        return spec is not None and _key(spec, digest) in self._product

    def add(self, canonical: bytes, digest: bytes, parent: int, event: Event | None) -> int | None:
        """The number of a product state that is new; None for one that was met. The root has no event."""
        number = len(self._product)
        spec = self._spec.setdefault(canonical, len(self._spec))
        if self._product.setdefault(_key(spec, digest), number) != number:
            return None
        self._parents.append(parent)
        self._reached_by.append(-1 if event is None else self._events.setdefault(event, len(self._events)))
        if spec == len(self.firsts):
            self.firsts.append(number)
            self.counts.append(1)
        else:
            self.counts[spec] += 1
            self.pair = self.pair or (self.firsts[spec], number)
            if self.counts[spec] > self._most:
                self._most, self.crowded = self.counts[spec], (self.firsts[spec], number)
        return number

    def path(self, number: int) -> list[Event]:
        """The events that lead to a product state from the root."""
        events = list(self._events)
        found: list[Event] = []
        while self._reached_by[number] >= 0:
            found.append(events[self._reached_by[number]])
            number = self._parents[number]
        return found[::-1]


def _key(spec: int, digest: bytes) -> bytes:
    return digest + spec.to_bytes(5, "little")
