"""The trace that is shown: of the shortest ones, the least by (action, arguments) in declaration order.

An engine marks, level by level, the states that lie on some shortest trace. Walking forward from the concrete initial state in
the interpreter, always by the least action instance into a marked state, gives the same trace for every engine, any number of
threads, with and without symmetry; and it is a replay.
"""

from __future__ import annotations

from ...spec.lang import Arguments, BoundSpec, Rule, SpecError, State
from ...traces.trace import Step, Trace
from ..model import SPEC_ERROR
from .findings import Engine, Failure


class EngineDisagrees(Exception):
    """An engine reported a failure that the interpreted spec does not show: an internal error."""


def shortest(bound: BoundSpec, engine: Engine, name: str, failure: Failure) -> Trace:
    """The least of the shortest traces to a failure, run in the interpreter; `EngineDisagrees` if there is none."""
    engine.mark(name, failure)
    for rule, args, state in bound.initial():
        if engine.is_marked(state, 0):
            start = None if rule is None else (rule.name, args)
            steps = _forward(bound, engine, state, failure.length - failure.on_step)
            if failure.on_step:
                steps += _last(bound, steps[-1].state if steps else state, name)
            return Trace(bound.spec.name, bound.values, name, start, state, tuple(steps))
    raise EngineDisagrees(f"{name}: no initial state leads to it in the interpreted spec")


def _forward(bound: BoundSpec, engine: Engine, state: State, levels: int) -> list[Step]:
    steps: list[Step] = []
    for level in range(1, levels + 1):
        for rule, args, after in _transitions(bound, state):
            if engine.is_marked(after, level):
                steps.append(Step(rule.name, args, after))
                state = after
                break
        else:
            raise EngineDisagrees(f"no marked successor at distance {level}")
    return steps


def _transitions(bound: BoundSpec, state: State) -> list[tuple[Rule, Arguments, State]]:
    found: list[tuple[Rule, Arguments, State]] = []
    for rule in bound.actions:
        for args in rule.choices():
            try:
                after = bound.after(state, rule, args)
            except SpecError:
                continue
            if after is not None:
                found.append((rule, args, after))
    return found


def _last(bound: BoundSpec, state: State, name: str) -> list[Step]:
    found = failing_step(bound, state, name)
    if found is None:
        raise EngineDisagrees(f"{name}: no transition out of the last state fails it in the interpreted spec")
    rule, args, after = found
    return [Step(rule.name, args, after)] if after is not None else []


def failing_step(bound: BoundSpec, state: State, name: str) -> tuple[Rule, Arguments, State | None] | None:
    """The least action instance out of a state that fails a step property, or (for a spec error) cannot be evaluated."""
    props = [p for p in bound.properties if p.kind == "step" and name in (p.name, SPEC_ERROR)]
    for rule in bound.actions:
        for args in rule.choices():
            after = None
            try:
                after = bound.after(state, rule, args)
                failed = after is not None and not all(bound.holds(p, state, after) for p in props)
            except SpecError:
                failed = name == SPEC_ERROR
                after = None
            else:
                failed = failed and name != SPEC_ERROR
            if failed:
                return rule, args, after
    return None
