"""Why an implementation does something else than a trace: which mechanisms, put into the spec, make the spec do the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...spec.lang import BoundSpec, FencepostSpecError, State, Switch
from ...traces.claims import shows
from ...traces.trace import ReplayError, Step, Trace, rerun
from .observer import Observer
from .replay import Replayed

Choice = tuple[str, str]
"""A switch, and what it is to be."""
MOST_SWITCHES = 2
"""Switches that are changed together, at most, where nothing says how the implementation has them."""


Values = Mapping[str, int | str]


@dataclass(frozen=True)
class Why:
    """The smallest sets of switches that explain what an implementation did; none where nothing that was tried does.

    `tried` says what was changed to find that out: as many of these switches as `largest` together.
    """

    sets: tuple[tuple[Choice, ...], ...]
    tried: tuple[Choice, ...]
    largest: int


def explain(bound: BoundSpec, found: Replayed, own: Values | None, switches: Sequence[str]) -> Why:
    """With which switches the spec does what the implementation did, up to the event where it differs from a trace.

    `own` are the values of its switches where they are known: those that differ from the trace's are tried, all numbers of
    them together. Else each of `switches` is tried with all its choices, alone and in pairs.
    """

    def agrees(other: BoundSpec) -> bool:
        states, observer = _states(other, found), Observer(other)
        return states is not None and all(
            observer.expected(state) == shown for state, shown in zip(states, found.shown, strict=True)
        )

    return _smallest(bound, agrees, _differing(bound, own) if own is not None else _others(bound, switches), own is not None)


def acquit(bound: BoundSpec, trace: Trace, own: Values) -> Why:
    """With which of the implementation's own switches a trace that it did whole violates nothing: no sets if it does anyway.

    A property may say what a mechanism promises, and be none of an implementation with another one.
    """

    def innocent(other: BoundSpec) -> bool:
        return trace.property in other.not_applicable or not shows(other, rerun(other, trace))

    return _smallest(bound, innocent, _differing(bound, own), known=True)


def _smallest(bound: BoundSpec, explains: Callable[[BoundSpec], bool], tried: Sequence[Choice], known: bool) -> Why:
    """The smallest sets of choices with which a spec explains something; of `known` ones all together are tried first."""

    def succeeds(chosen: Sequence[Choice]) -> bool:
        try:
            return explains(BoundSpec(bound.spec, {**bound.values, **dict(chosen)}, enumerable=bound.enumerable))
        except (FencepostSpecError, ReplayError):
            return False

    largest = len(tried) if known and succeeds(tried) else min(MOST_SWITCHES, len(tried))
    for size in range(1, largest + 1):
        sets = (chosen for chosen in itertools.combinations(tried, size) if len(dict(chosen)) == size)
        explaining = tuple(chosen for chosen in sets if succeeds(chosen))
        if explaining:
            return Why(explaining, tuple(tried), size)
    return Why((), tuple(tried), largest)


def _differing(bound: BoundSpec, own: Values) -> list[Choice]:
    """The switches that an implementation has otherwise."""
    return [(n, str(own[n])) for n, b in bound.spec.bounds.items() if isinstance(b, Switch) and own[n] != bound.values[n]]


def _others(bound: BoundSpec, switches: Sequence[str]) -> list[Choice]:
    """Every other choice of these switches."""
    found = ((name, bound.spec.bounds[name]) for name in switches)
    return [(n, c) for n, b in found if isinstance(b, Switch) for c in b.choices if c != bound.values[n]]


def _states(other: BoundSpec, found: Replayed) -> tuple[State, ...] | None:
    """The states of another spec along the events, as many as were shown; None where it cannot go along.

    What it does not allow at the end the implementation must have refused, or done without any change.
    """
    if not found.events:
        return rerun(other, _events(other, found, ())).states
    states, last = rerun(other, _events(other, found, found.events[:-1])).states, found.events[-1]
    rule = next((rule for rule in other.actions if rule.name == last.action), None)
    after = None if rule is None else other.after(states[-1], rule, last.arguments)
    if found.refused:
        return states if after is None else None
    return (*states, states[-1] if after is None else after)


def _events(other: BoundSpec, found: Replayed, events: tuple[Step, ...]) -> Trace:
    return Trace(found.trace.spec, other.values, "", found.trace.start, other.shape.blank, events)
