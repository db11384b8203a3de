"""What of a spec's properties a state of an implementation violates, judged by the interpreted spec."""

from __future__ import annotations

from ...spec.lang import BoundSpec, Property, State


def violated(bound: BoundSpec, state: State, before: State | None = None) -> tuple[Property, ...]:
    """The properties that a state violates, and with the state `before` it those that the last transition does.

    Witnesses and progress properties are left out: no single state or transition violates them. `SpecError` where a property
    cannot be evaluated.
    """
    return tuple(prop for prop in bound.properties if fails(bound, prop, state, before))


def fails(bound: BoundSpec, prop: Property, state: State, before: State | None = None) -> bool:
    """The same for one property."""
    match prop.kind:
        case "always":
            return not bound.holds(prop, state)
        case "quiescent":
            return bound.condition_holds(prop, state) and not bound.holds(prop, state)
        case "step":
            return before is not None and not bound.holds(prop, before, state)
        case _:
            return False
