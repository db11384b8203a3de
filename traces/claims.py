"""What a trace shows: which properties fail at its end, judged by the interpreted spec alone."""

from __future__ import annotations

from dataclasses import replace

from ..spec.lang import BoundSpec, Property, SpecError, State
from ..spec.lang.declare import WITNESS_KINDS
from .lasso import objection
from .trace import Trace

DEADLOCK, SPEC_ERROR = "deadlock", "spec-error"
LOCKSTEP = "lockstep"
"""What a trace is said to show that leads to where an implementation differs: of the spec, only that it allows it."""
REFINES = "refines-"
"""What such a claim begins with of a trace whose last transition is none of a protocol's: of the spec, the same."""


def shown_by(bound: BoundSpec, trace: Trace) -> tuple[str, ...]:
    """The properties that the end of a trace violates, then witnesses of no use here left out: deadlock, spec error."""
    found = [prop.name for prop in bound.properties if prop.kind not in WITNESS_KINDS and _fails(bound, prop, trace)]
    if spec_error_after(bound, trace) is not None:
        found.append(SPEC_ERROR)
    elif is_deadlock(bound, trace.last):
        found.append(DEADLOCK)
    return tuple(found)


def shows(bound: BoundSpec, trace: Trace) -> bool:
    """Whether the trace shows what it claims: a violation of its property, or a witness of it."""
    if trace.property == LOCKSTEP:
        return True
    prop = next((p for p in bound.every if p.name == trace.property), None)
    if prop is not None and prop.declared.declaration.lemma:
        return _fails(bound, prop, trace)
    if prop is None and trace.property.startswith(REFINES):
        return True
    if prop is not None and prop.kind in WITNESS_KINDS:
        return _safely(bound, prop, trace.last)
    return trace.property in shown_by(bound, trace)


def _fails(bound: BoundSpec, prop: Property, trace: Trace) -> bool:
    states = trace.states
    try:
        match prop.kind:
            case "always":
                return not bound.holds(prop, trace.last)
            case "step":
                return len(states) > 1 and not bound.holds(prop, states[-2], states[-1])
            case "quiescent":
                return bound.condition_holds(prop, trace.last) and not bound.holds(prop, trace.last)
            case _:
                return _never_reached(bound, prop, trace)
    except SpecError:
        return False


def _never_reached(bound: BoundSpec, prop: Property, trace: Trace) -> bool:
    """Whether the trace is a fair lasso (or ends in a deadlock) on which the awaited state does not come."""
    if trace.loop is None and is_deadlock(bound, trace.last):
        trace = replace(trace, loop=len(trace))
    return objection(bound, prop, trace) is None


def _safely(bound: BoundSpec, prop: Property, state: State) -> bool:
    try:
        return bound.holds(prop, state)
    except SpecError:
        return False


def is_deadlock(bound: BoundSpec, state: State) -> bool:
    """Whether nothing is enabled in a state."""
    try:
        return next(iter(bound.transitions(state)), None) is None
    except SpecError:
        return False


def spec_error_after(bound: BoundSpec, trace: Trace) -> str | None:
    """The first error of the spec itself in the last state or out of it, with where it was met; None if there is none."""
    for prop in bound.properties:
        try:
            idle = prop.condition is not None and not bound.condition_holds(prop, trace.last)
            if prop.kind in ("always", *WITNESS_KINDS) or (prop.kind == "quiescent" and not idle):
                bound.holds(prop, trace.last)
        except SpecError as error:
            return f"{error} (in property {prop.name})"
    for rule in bound.actions:
        for args in rule.choices():
            try:
                after = bound.after(trace.last, rule, args)
                for prop in bound.properties:
                    if after is not None and prop.kind == "step":
                        bound.holds(prop, trace.last, after)
            except SpecError as error:
                shown = ", ".join(f"{name}={value}" for name, value in bound.show_arguments(rule, args).items())
                return f"{error} (in {rule.name}({shown}))"
    return None
