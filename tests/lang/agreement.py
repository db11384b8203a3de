"""How a spec's functions run as Python compare with what an evaluator says of them; random well-formed states."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from fencepost.spec.lang import BoundSpec, Property, Rule, SpecError, State
from fencepost.spec.lang.bind import Arguments
from fencepost.spec.lang.layout import ArrayShape, Leaf, RecordShape, SeqShape, SetShape, Shape

Told = tuple[bool, State, bool]
"""What an evaluator says of an action instance in a state: enabled, the successor, and whether every obligation holds."""


COUNTING = '''
"""Counts."""
from fencepost.spec.lang import Int, action, state


@state
class Counter:
    """A number."""

    n: Int(0, 1_000_000)


@action
def count(s):
    """One by one."""
    total = 0
    for _ in range(s.n):
        total += 1
    s.n = total
'''
"""A spec with a loop that nothing but the state bounds."""


def random_state(shape: Shape, choose: random.Random) -> State:
    """A state in which every cell is within its range and what lies beyond a sequence is blank; often small."""
    match shape:
        case Leaf(low=low, high=high):
            return (choose.randint(low, high),)
        case SetShape(count=count):
            return (choose.randrange(1 << count),)
        case ArrayShape(count, item, _):
            return tuple(cell for _ in range(count) for cell in random_state(item, choose))
        case SeqShape(capacity, item):
            length = choose.randint(0, capacity)
            cells = [cell for _ in range(length) for cell in random_state(item, choose)]
            return (length, *cells, *(item.blank * (capacity - length)))
        case RecordShape():
            return tuple(cell for _, _, inner in shape.fields for cell in random_state(inner, choose))


def random_states(bound: BoundSpec, count: int, seed: int = 0) -> list[State]:
    """So many random states."""
    choose = random.Random(seed)
    return [random_state(bound.shape, choose) for _ in range(count)]


def reached(bound: BoundSpec, most: int) -> list[State]:
    """Reachable states in order of discovery, at most so many; where the spec leaves its bounds it stops."""
    todo = list(dict.fromkeys(state for _, _, state in bound.initial()))
    seen = set(todo)
    for state in todo:
        for rule in bound.actions:
            for args in rule.choices():
                after = expected(bound, rule, args, state)[1]
                if after is not None and after not in seen and len(todo) < most:
                    seen.add(after)
                    todo.append(after)
    return todo


def expected(bound: BoundSpec, rule: Rule, args: Arguments, state: State) -> tuple[str, State | None]:
    """What the spec's own function does: `error`, `disabled`, or `enabled` with the successor."""
    try:
        after = bound.after(state, rule, args)
    except SpecError:
        return "error", None
    return ("disabled", None) if after is None else ("enabled", after)


def truth(bound: BoundSpec, prop: Property, state: State, after: State | None = None) -> str:
    """What the spec's own function says of a property: `error`, `True` or `False`."""
    try:
        return str(bound.holds(prop, state, after))
    except SpecError:
        return "error"


def compare_actions(
    bound: BoundSpec, states: Sequence[State], tell: Callable[[Rule, Arguments, State], Told], counts: dict[str, int]
) -> None:
    """Assert that an evaluator agrees on every action instance in every state; count what happened."""
    for rule in bound.actions:
        for args in rule.choices():
            for state in states:
                outcome, after = expected(bound, rule, args, state)
                enabled, cells, fine = tell(rule, args, state)
                where = f"{rule.name}{args} in {state}"
                assert fine == (outcome != "error"), where
                if fine:
                    assert enabled == (outcome == "enabled"), where
                if after is not None:
                    assert cells == after, where
                counts[outcome] = counts.get(outcome, 0) + 1


def pairs(bound: BoundSpec, prop: Property, states: Sequence[State]) -> Iterator[tuple[State, State | None]]:
    """What a property is evaluated on: states, or states with a successor (any other state) for a step property."""
    for number, state in enumerate(states):
        yield state, states[number - 1] if prop.kind == "step" else None
