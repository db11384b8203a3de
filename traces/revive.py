"""Bringing a recorded trace back to life: accepted where it fits or still runs, refused with the difference named."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..spec.lang import Arguments, BoundSpec, Rule, SetOf, State
from ..spec.lang.types import Bool
from .claims import shown_by
from .files import TraceError
from .origin import version
from .recorded import Instance, Recorded
from .short import Short, difference, rule_of
from .trace import ReplayError, Step, Trace, follow, rerun
from .untyped import is_list
from .values import from_itf


@dataclass(frozen=True)
class Revived:
    """A trace that runs on the spec at hand, and what a reader should know of how it got here."""

    trace: Trace
    notes: tuple[str, ...]


def _of_implementation(recorded: Recorded) -> bool:
    return recorded.origin is not None and recorded.origin.engine == "implementation"


def revive(bound: BoundSpec, recorded: Recorded) -> Revived:
    """Run a recorded trace on a spec; `TraceError` where it does not fit, `ReplayError` where it does not run."""
    if recorded.origin is None:
        return _foreign(bound, recorded)
    differences = recorded.origin.differences(bound)
    given = _trace(bound, recorded, differences)
    if not differences:
        try:
            follow(bound, given)
        except ReplayError as error:
            why = "; it is a trace of an implementation that goes another way there" if _of_implementation(recorded) else ""
            raise ReplayError(f"{recorded.path}: {error}, though spec and bounds are the recorded ones{why}") from None
        return Revived(given, _version_note(recorded))
    try:
        trace = rerun(bound, given)
    except ReplayError as error:
        raise ReplayError(f"{recorded.path}: {'; '.join(differences)}; and it does not run here: {error}") from None
    note = f"not quite as recorded, but its actions still run: {'; '.join(differences)}"
    return Revived(trace, (note, *_version_note(recorded)))


def _version_note(recorded: Recorded) -> tuple[str, ...]:
    assert recorded.origin is not None
    if recorded.origin.version == version():
        return ()
    return (f"written by Fencepost {recorded.origin.version}, this is {version()}",)


def _trace(bound: BoundSpec, recorded: Recorded, differences: list[str]) -> Trace:
    """The trace with the recorded states, or with blank ones where differences make those meaningless."""
    assert recorded.origin is not None
    start = None if recorded.start is None else _instance(bound.inits, recorded.start, "the initial state")
    blank = bound.shape.blank
    states = [blank] * len(recorded.states) if differences else _states(bound, recorded)
    steps: list[Step] = []
    for number, step in enumerate(recorded.steps, 1):
        if step is None:
            raise TraceError(f"{recorded.path}: states[{number}].#meta: names no action")
        try:
            steps.append(Step(*_instance(bound.actions, step, f"step {number}"), states[number]))
        except TraceError as error:
            why = f"{'; '.join(differences)}; " if differences else ""
            raise TraceError(f"{recorded.path}: {why}{error}") from None
    claim, loop = recorded.origin.property, loop_of(recorded)
    return Trace(bound.spec.name, bound.values, claim, start, states[0], tuple(steps), loop)


def loop_of(recorded: Recorded) -> int | None:
    """The state that the last one equals, where the file says which one comes after the last."""
    loop, states = recorded.loop, recorded.states
    if loop is None or loop == 0:
        return loop
    closed = all(states[loop - 1][name] == states[-1][name] for name in recorded.variables)
    return loop - 1 if closed else loop


def _states(bound: BoundSpec, recorded: Recorded) -> list[State]:
    names = [name for name, _, _ in bound.shape.fields]
    if set(recorded.variables) != set(names):
        other = sorted(set(recorded.variables) ^ set(names))
        raise TraceError(f"{recorded.path}: vars: the variables differ from those of {bound.spec.name}: {', '.join(other)}")
    try:
        return [
            tuple(c for name, _, inner in bound.shape.fields for c in from_itf(inner, state[name], f"states[{i}].{name}"))
            for i, state in enumerate(recorded.states)
        ]
    except ValueError as error:
        raise TraceError(f"{recorded.path}: {error}") from None


def _instance(rules: tuple[Rule, ...], instance: Instance, where: str) -> tuple[str, Arguments]:
    name, given = instance
    rule = next((rule for rule in rules if rule.name == name), None)
    if rule is None:
        raise TraceError(f"{where}: this spec has no action {name} at these bounds")
    if set(given) != {p.name for p in rule.declared.parameters}:
        wanted = ", ".join(p.name for p in rule.declared.parameters) or "no arguments"
        raise TraceError(f"{where}: {name} takes {wanted}")
    return name, tuple(_cell(given[p.name], p.type, f"{where}: {name}, argument {p.name}") for p in rule.declared.parameters)


def _cell(value: Any, kind: Any, where: str) -> int:
    if isinstance(kind, SetOf) and is_list(value):
        if all(type(i) is int and 0 <= i < 64 for i in value):
            return sum(1 << i for i in set(value))
    elif type(value) is (bool if isinstance(kind, Bool) else int):
        return int(value)
    raise TraceError(f"{where}: {value!r} does not fit")


def _foreign(bound: BoundSpec, recorded: Recorded) -> Revived:
    """A trace of another tool: find, for each pair of states, an action that leads from one to the next."""
    states = _states(bound, recorded)
    loop = loop_of(recorded)
    if loop is not None and states[loop] != states[-1]:
        states.append(states[loop])
    start = next((_started(rule, args) for rule, args, state in bound.initial() if state == states[0]), False)
    if start is False:
        raise ReplayError(f"{recorded.path}: its first state is no initial state of {bound.spec.name}")
    assert not isinstance(start, bool)
    steps: list[Step] = []
    for number, (before, after) in enumerate(itertools.pairwise(states), 1):
        found = next((Step(r.name, a, after) for r, a, s in bound.transitions(before) if s == after), None)
        if found is None:
            raise ReplayError(f"{recorded.path}: step {number}: no action leads from its state to the next")
        steps.append(found)
    trace = Trace(bound.spec.name, bound.values, "", start, states[0], tuple(steps), loop)
    return Revived(_claimed(bound, trace), ("not written by Fencepost: the actions were found by search",))


def _started(rule: Rule | None, args: Arguments) -> tuple[str, Arguments] | None:
    return None if rule is None else (rule.name, args)


def _claimed(bound: BoundSpec, trace: Trace) -> Trace:
    """The trace with the first of the properties that it violates, since its source names none."""
    found = shown_by(bound, trace)
    values: Mapping[str, int | str] = trace.values
    return Trace(trace.spec, values, found[0] if found else "", trace.start, trace.initial, trace.steps, trace.loop)


def revive_short(bound: BoundSpec, short: Short) -> Revived:
    """Run a short form on a spec; `ReplayError` where its actions do not run, with the difference named."""
    differs = difference(short, bound)
    blank = bound.shape.blank
    steps = tuple(Step(rule_of(bound.actions, number, i).name, args, blank) for i, (number, args) in enumerate(short.items, 1))
    if short.start is not None:
        start = (rule_of(bound.inits, short.start[0], 0).name, short.start[1])
    else:
        start = next((_started(rule, args) for rule, args, _ in bound.initial()), None)
    given = Trace(bound.spec.name, bound.values, "", start, blank, steps, short.loop)
    try:
        trace = rerun(bound, given)
    except ReplayError as error:
        raise ReplayError(f"{differs}; and it does not run here: {error}" if differs else str(error)) from None
    note = (f"not quite as recorded, but its actions still run: {differs}",) if differs else ()
    return Revived(_claimed(bound, trace), note)
