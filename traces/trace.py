"""A trace: an initial state and the action instances that lead on from it, with every state in between."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass

from ..spec.lang import Arguments, BoundSpec, Rule, State


@dataclass(frozen=True)
class Step:
    """One transition: the action, its arguments (members, numbers, 0/1, bit masks), the state it leads to."""

    action: str
    arguments: Arguments
    state: State


@dataclass(frozen=True)
class Trace:
    """A path of a spec at given bounds.

    `start` names the @init function and its arguments (None for a spec without one); `property` is what the trace shows
    (a property's name, `deadlock`, or `spec-error`); `loop` is the index of a state that the last one equals:
    what is between goes on for ever (nothing, if it is the last state itself).
    """

    spec: str
    values: Mapping[str, int | str]
    property: str
    start: tuple[str, Arguments] | None
    initial: State
    steps: tuple[Step, ...]
    loop: int | None = None

    @builtins.property  # `property` is a field here
    def states(self) -> tuple[State, ...]:
        """All states, the initial one first."""
        return (self.initial, *(step.state for step in self.steps))

    @builtins.property  # `property` is a field here
    def last(self) -> State:
        """The state at the end."""
        return self.states[-1]

    def __len__(self) -> int:
        return len(self.steps)


class ReplayError(Exception):
    """A trace does not run on a spec: which step, and why."""


def follow(bound: BoundSpec, trace: Trace) -> Trace:
    """Run the trace's actions again in the interpreted spec; `ReplayError` at the first that differs.

    The states of the result are those of this run; equal states in the trace are demanded, and that a loop closes.
    """
    state = _start(bound, trace)
    if state != trace.initial:
        raise ReplayError("step 0: the initial state is another one in this spec")
    rules = {rule.name: rule for rule in bound.actions}
    for number, step in enumerate(trace.steps, 1):
        after = _take(bound, rules, step, state, number)
        if after != step.state:
            raise ReplayError(f"step {number}: {step.action} leads to another state in this spec")
        state = after
    if trace.loop is not None and not (0 <= trace.loop <= len(trace) and trace.states[trace.loop] == state):
        raise ReplayError(f"step {len(trace)}: the last state is not state {trace.loop}, to which the trace returns")
    return trace


def rerun(bound: BoundSpec, trace: Trace) -> Trace:
    """The same actions on another version of the spec, with the states they lead to; `ReplayError` if disabled."""
    state = initial = _start(bound, trace)
    rules = {rule.name: rule for rule in bound.actions}
    steps: list[Step] = []
    for number, step in enumerate(trace.steps, 1):
        state = _take(bound, rules, step, state, number)
        steps.append(Step(step.action, step.arguments, state))
    return Trace(bound.spec.name, bound.values, trace.property, trace.start, initial, tuple(steps), trace.loop)


def _start(bound: BoundSpec, trace: Trace) -> State:
    for rule, args, state in bound.initial():
        if (None if rule is None else (rule.name, args)) == trace.start:
            return state
    raise ReplayError(f"step 0: this spec has no initial state {trace.start}")


def _take(bound: BoundSpec, rules: Mapping[str, Rule], step: Step, state: State, number: int) -> State:
    rule = rules.get(step.action)
    if rule is None:
        raise ReplayError(f"step {number}: this spec has no action {step.action} at these bounds")
    if len(step.arguments) != len(rule.domains) or any(a not in d for a, d in zip(step.arguments, rule.domains, strict=True)):
        raise ReplayError(f"step {number}: {step.action}{step.arguments} is outside the bounds of this spec")
    after = bound.after(state, rule, step.arguments)
    if after is None:
        raise ReplayError(f"step {number}: {step.action} is not enabled there in this spec")
    return after
