"""What the solver found, run in the interpreter: a trace, or a disagreement."""

from __future__ import annotations

from typing import Any

from ...spec.lang import Arguments, BoundSpec, Rule, SpecError, State
from ...spec.lang.declare import WITNESS_KINDS
from ...traces.trace import Step, Trace
from ..model import SPEC_ERROR
from .solver import Disagreement
from .unroll import Unrolled


def confirmed(unrolled: Unrolled, name: str, model: Any) -> tuple[Trace, str | None]:
    """The path of a model as a trace that shows what it is said to, and for a spec error what is wrong, in words.

    A trace to a spec error ends where the transition begins that cannot be taken or judged.
    """
    bound = unrolled.bound
    start, path = unrolled.path(model)
    begun, given, initial = unrolled.initial(start)
    state, steps, error = initial, list[Step](), None
    for number, (rule, args) in enumerate(path, 1):
        if not all(arg in domain for arg, domain in zip(args, rule.domains, strict=True)):
            raise Disagreement(f"{name}: the solver takes {rule.name}{args}, where there are no such arguments")
        try:
            after = bound.after(state, rule, args)
        except SpecError as wrong:
            if name != SPEC_ERROR or number < len(path):
                raise Disagreement(f"{name}: the solver takes {_shown(bound, rule, args)}: {wrong}") from wrong
            error = f"{wrong} (in {_shown(bound, rule, args)})"
            break
        if after is None:
            raise Disagreement(f"{name}: the solver takes {_shown(bound, rule, args)}, which the interpreter does not allow")
        error = _unjudged(bound, state, after, rule, args) if number == len(path) else None
        if error is not None:
            break
        steps.append(Step(rule.name, args, after))
        state = after
    trace = Trace(bound.spec.name, bound.values, name, None if begun is None else (begun.name, given), initial, tuple(steps))
    if name == SPEC_ERROR:
        error = error or _undefined(bound, state)
    if (error is not None) if name == SPEC_ERROR else (error is None and _shows(bound, name, trace)):
        return trace, error
    raise Disagreement(
        f"{name}: the interpreter does not find it after {', '.join(step.action for step in steps) or 'nothing'}"
    )


def _shown(bound: BoundSpec, rule: Rule, args: Arguments) -> str:
    return f"{rule.name}({', '.join(f'{name}={value}' for name, value in bound.show_arguments(rule, args).items())})"


def _unjudged(bound: BoundSpec, state: State, after: State, rule: Rule, args: Arguments) -> str | None:
    """Why a step property cannot be evaluated on a transition; None where all can."""
    for prop in bound.properties:
        try:
            if prop.kind == "step":
                bound.holds(prop, state, after)
        except SpecError as error:
            return f"{error} (in {_shown(bound, rule, args)})"
    return None


def _undefined(bound: BoundSpec, state: State) -> str | None:
    """Why a property cannot be evaluated in a state; None where all can."""
    for prop in bound.properties:
        try:
            applies = prop.condition is None or bound.condition_holds(prop, state)
            if prop.kind in ("always", *WITNESS_KINDS) or (prop.kind == "quiescent" and applies):
                bound.holds(prop, state)
        except SpecError as error:
            return f"{error} (in property {prop.name})"
    return None


def _shows(bound: BoundSpec, name: str, trace: Trace) -> bool:
    """Whether the end of a trace violates a property, or is a witness."""
    prop = next(p for p in bound.properties if p.name == name)
    if prop.kind in WITNESS_KINDS:
        return bound.holds(prop, trace.last)
    if prop.kind == "step":
        return not bound.holds(prop, *trace.states[-2:])
    applies = prop.condition is None or bound.condition_holds(prop, trace.last)
    return applies and not bound.holds(prop, trace.last)
