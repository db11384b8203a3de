"""What an implementation showed, as states of the spec: to judge its properties, and to name what differs as traces do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ...spec.lang import BoundSpec, State
from ...traces.claims import shows
from ...traces.driver import Observation
from ..report.show import Shower
from .abstract import Abstraction, NoState
from .errors import ConformError
from .observer import Observer
from .properties import fails
from .replay import Replayed
from .result import Difference, Kind


def violates(bound: BoundSpec, found: Replayed) -> bool:
    """Whether an implementation that did a whole trace shows what it claims, in states of its own.

    Where these say nothing (a spec without `@abstraction`, a claim of more than the last transition), those of the trace do,
    which look the same.
    """
    trace = found.trace
    prop = next((p for p in bound.properties if p.name == trace.property), None)
    own = own_states(bound, found) if prop is not None and prop.kind in ("always", "step", "quiescent") else None
    if prop is None or own is None or trace.loop is not None:
        return shows(bound, trace)
    return fails(bound, prop, own[-1], own[-2] if len(own) > 1 else None)


def own_states(bound: BoundSpec, found: Replayed) -> tuple[State, ...] | None:
    """The states that the observations stand for, as many as there are; None where they stand for none."""
    try:
        abstraction, made = Abstraction(bound), list[State]()
        for number, shown in enumerate(found.shown, 1):
            stopped = bool(found.message) and 1 < number == len(found.shown)
            made.append(abstraction.state(shown, made[-1] if stopped else None))
        return tuple(made)
    except (ConformError, NoState):
        return None


def as_states(bound: BoundSpec, found: Replayed) -> tuple[Difference, ...] | None:
    """Where the last state of an implementation differs from the trace's, in the words of traces; None where that is unknown.

    What an implementation need not promise is taken as the trace has it, so that nothing differs there.
    """
    if found.discord is None or found.discord.kind is not Kind.OBSERVATION:
        return None
    expected = Observer(bound).expected(found.events[-1].state if found.events else found.trace.initial)
    try:
        abstraction = Abstraction(bound)
        one, other = abstraction.state(expected), abstraction.state(_filled(expected, found.shown[-1]))
    except (ConformError, NoState):
        return None
    return _changes(bound, one, other) or None


def last_change(bound: BoundSpec, found: Replayed) -> tuple[Difference, ...] | None:
    """What the last event changed in an implementation, in the words of traces; None where that is unknown."""
    own = own_states(bound, found)
    return None if own is None or len(own) < 2 else _changes(bound, own[-2], own[-1])


def _changes(bound: BoundSpec, one: State, other: State) -> tuple[Difference, ...]:
    return tuple(Difference(c.path, c.before or "absent", c.after or "absent") for c in Shower(bound).changes(one, other))


def _filled(expected: Any, shown: Any) -> Any:
    """What is shown, with whatever equals what is expected in its place."""
    if expected == shown:
        return expected
    if isinstance(expected, Mapping) and isinstance(shown, Mapping):
        ours, theirs = cast("Observation", expected), cast("Observation", shown)
        return {name: _filled(ours.get(name), part) for name, part in theirs.items()}
    if isinstance(expected, list | tuple) and isinstance(shown, list | tuple):
        ours, theirs = cast("Sequence[Any]", expected), cast("Sequence[Any]", shown)
        parts = [_filled(ours[i] if i < len(ours) else None, part) for i, part in enumerate(theirs)]
        return tuple(parts) if isinstance(shown, tuple) else parts
    return shown
