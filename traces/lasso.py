"""Lassos: whether a trace that returns to one of its own states shows that a progress property fails, fairly."""

from __future__ import annotations

from ..spec.lang import BoundSpec, Property, SpecError
from .trace import Trace


def objection(bound: BoundSpec, prop: Property, trace: Trace) -> str | None:
    """Why a trace does not violate a progress property, in words, by the interpreted spec alone; None if it does."""
    loop = trace.loop
    if loop is None:
        return "it does not go on for ever"
    if not 0 <= loop <= len(trace) or trace.states[loop] != trace.last:
        return "its end is not the state that it returns to"
    try:
        if _gets_there(bound, prop, trace, loop):
            return "it gets there"
        unfair = _unfair_to(bound, trace, loop)
    except SpecError as error:
        return str(error)
    return f"it is not fair to {unfair}" if unfair is not None else None


def _gets_there(bound: BoundSpec, prop: Property, trace: Trace, loop: int) -> bool:
    """Whether the awaited state comes: at all, or for a leads-to property after every state that asks for it."""
    met = [bound.holds(prop, state) for state in trace.states]
    if prop.kind == "eventually":
        return any(met)
    asking = (number for number, state in enumerate(trace.states) if bound.condition_holds(prop, state))
    return all(any(met[min(number, loop) :]) for number in asking)


def _unfair_to(bound: BoundSpec, trace: Trace, loop: int) -> str | None:
    """The first action that is left out unfairly for ever, if any; only instances that change the state count."""
    states = trace.states[loop:]
    pairs = zip(states, trace.steps[loop:], strict=False)
    taken = {step.action for before, step in pairs if before != step.state}
    able = [{rule.name for rule, _, after in bound.transitions(state) if after != state} for state in set(states)]
    for rule in bound.actions:
        fair = rule.declared.declaration.fair
        if fair is None or rule.name in taken:
            continue
        enabled = [rule.name in names for names in able]
        if all(enabled) if fair == "weak" else any(enabled):
            return rule.name
    return None
