"""From findings to a result: statuses, vacuity, and a shortest trace for what is violated."""

from __future__ import annotations

from collections.abc import Mapping

from ...spec.lang import BoundSpec, Property
from ...spec.lang.declare import WITNESS_KINDS
from ...traces.claims import shows, spec_error_after
from ...traces.trace import Trace, follow
from ..model import DEADLOCK, NO_ERROR, SPEC_ERROR, Model, Options
from ..result import ActionCount, Figures, PropertyResult, Result, Status
from .findings import Engine, Failure, Findings
from .walk import EngineDisagrees, shortest
from .watch import left_side_places

LIVENESS = ("eventually", "leads_to")
Decided = Mapping[str, Trace | str | None]
"""What was found of progress properties: a lasso, or why nothing was in words, or None where they hold."""
BY_REFERENCE = "a progress property, decided by --engine reference only"


def conclude(model: Model, engine: Engine, found: Findings, options: Options, decided: Decided) -> Result:
    """Draw the result, with the shortest traces in the spec."""
    bound = model.bound
    traces = {name: _replayed(bound, shortest(bound, engine, name, found.failures[name])) for name in shown(found, options)}
    return result_of(bound, found, options, decided, traces)


def result_of(bound: BoundSpec, found: Findings, options: Options, decided: Decided, traces: dict[str, Trace]) -> Result:
    """Draw the result, with these traces by the names of what they violate."""
    complete = found.cut is None and (not found.failures or (options.keep_going and SPEC_ERROR not in found.failures))
    properties = [_property(p, found, traces, decided, complete) for p in bound.properties]
    undecided = [p for p in properties if p.kind in LIVENESS and p.status is Status.UNDETERMINED]
    properties += _others(bound, found, traces)
    return Result(
        engine=found.engine,
        figures=figures(bound, found),
        properties=tuple(properties) + _not_applicable(bound),
        cut=found.cut,
        vacuous=tuple(_vacuous(bound, found, options)) if complete else (),
        open=tuple(_open(p.name, p.reason) for p in undecided),
    )


def _replayed(bound: BoundSpec, trace: Trace) -> Trace:
    """A trace that was run again from its start and shows what it claims; `EngineDisagrees` where it does not."""
    if not shows(bound, follow(bound, trace)):
        raise EngineDisagrees(f"{trace.property}: the end of the trace does not show it in the interpreted spec")
    return trace


def shown(found: Findings, options: Options) -> list[str]:
    """The failures whose traces are shown: all with keep-going, else one of the shortest."""
    if options.keep_going or not found.failures:
        return list(found.failures)
    length = min(f.length for f in found.failures.values())
    return [name for name, f in found.failures.items() if f.length == length]


def _property(prop: Property, found: Findings, traces: dict[str, Trace], decided: Decided, complete: bool) -> PropertyResult:
    failure = found.failures.get(prop.name)
    status, depth, reason = Status.UNDETERMINED, None, None
    trace = traces.get(prop.name)
    if failure is not None:
        status, depth = Status.VIOLATED, failure.length
    elif prop.kind in LIVENESS:
        lasso = decided.get(prop.name, _undecided(found))
        if isinstance(lasso, Trace):
            status, depth, trace = Status.VIOLATED, len(lasso), lasso
        elif lasso is None:
            status = Status.HOLDS
        reason = lasso if isinstance(lasso, str) else None
    elif prop.kind in WITNESS_KINDS:
        if prop.name in found.reached:
            status = Status.LATENT if prop.kind == "latent" else Status.REACHED
            depth = found.reached[prop.name]
        elif complete:
            status = Status.NOT_REACHED
    elif complete:
        status = Status.HOLDS
    if status is Status.HOLDS:
        missing = [side for k, side in enumerate(left_side_places(prop)) if (prop.name, k) not in found.covered]
        if missing:
            status, reason = Status.VACUOUS, f"{missing[0]} never held"
    if status is Status.UNDETERMINED and reason is None:
        reason = found.cut or "the search stopped at a violation"
    return PropertyResult(prop.name, prop.kind, prop.declared.doc, status, depth, reason, trace)


def _undecided(found: Findings) -> str:
    return found.cut or ("the search stopped at a violation" if found.failures else BY_REFERENCE)


def _open(name: str, reason: str | None) -> str:
    return f"{name} is {reason}" if reason == BY_REFERENCE else f"{name} is undetermined: {reason}"


def _others(bound: BoundSpec, found: Findings, traces: dict[str, Trace]) -> list[PropertyResult]:
    results: list[PropertyResult] = []
    if DEADLOCK in found.failures:
        text = "Some action is enabled in every state."
        results.append(_violated(DEADLOCK, text, found.failures[DEADLOCK], traces, None))
    if SPEC_ERROR in found.failures:
        text = "The spec stays within its own bounds."
        trace = traces.get(SPEC_ERROR)
        reason = None if trace is None else spec_error_after(bound, trace)
        results.append(_violated(SPEC_ERROR, text, found.failures[SPEC_ERROR], traces, reason))
    if NO_ERROR in found.failures and all(p.name != NO_ERROR for p in bound.properties):
        text = "No event stops the implementation with an error of its own."
        results.append(_violated(NO_ERROR, text, found.failures[NO_ERROR], traces, None))
    return results


def _violated(name: str, text: str, failure: Failure, traces: dict[str, Trace], reason: str | None) -> PropertyResult:
    return PropertyResult(name, "built in", text, Status.VIOLATED, failure.length, reason, traces.get(name))


def _not_applicable(bound: BoundSpec) -> tuple[PropertyResult, ...]:
    names = set(bound.not_applicable)
    return tuple(
        PropertyResult(d.name, d.declaration.kind, d.doc, Status.NOT_APPLICABLE, None, "its when= is false at these bounds")
        for d in bound.spec.properties
        if d.name in names
    )


def _vacuous(bound: BoundSpec, found: Findings, options: Options) -> list[str]:
    """What makes a completed search worthless."""
    reasons = [f"action {r.name} is never enabled" for r in bound.actions if not found.enabled[r.number]]
    if not bound.actions:
        reasons.append("no action applies at these bounds")
    if bound.spec.properties and not options.deadlock and not any(map(bound.applicable, bound.spec.properties)):
        reasons.append("no property applies at these bounds")
    for prop in bound.properties:
        if prop.kind == "reachable" and prop.name not in found.reached:
            reasons.append(f"witness {prop.name} is never reached")
        for number, side in enumerate(left_side_places(prop)):
            if (prop.name, number) not in found.covered:
                reasons.append(f"{prop.name}: {side} never holds")
    return reasons


def figures(bound: BoundSpec, found: Findings) -> Figures:
    """The figures of a search, as they are shown."""
    counts = zip(bound.actions, found.enabled, found.taken, strict=True)
    mean = found.generated / found.expanded if found.expanded else 0.0
    return Figures(
        distinct=found.distinct,
        generated=found.generated,
        depth=found.depth,
        per_depth=tuple(found.per_depth),
        actions=tuple(ActionCount(rule.name, enabled, taken) for rule, enabled, taken in counts),
        degrees=(found.degrees[0], mean, found.degrees[1]),
        deadlocks=found.deadlocks,
        symmetry=found.symmetry,
        seconds=dict(found.seconds),
        peak_memory_bytes=found.peak_bytes,
        start_memory_bytes=found.start_bytes,
    )
