"""Who decides a property: members by quantifiers, branches and helpers; and that the value is always that of the spec."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from fencepost.spec.lang import BoundSpec, SpecError, State, load_file
from fencepost.spec.lang.layout import decode, encode
from fencepost.spec.lang.reasons import changed, judge

SPECS = Path(__file__).parent / "specs"
BOUND = BoundSpec(load_file(SPECS / "blame.py"), {})
EMPTY: dict[str, Any] = decode(BOUND.shape, BOUND.shape.blank)


def state(**variables: Any) -> State:
    """An empty room, but for these variables."""
    return encode(BOUND.shape, {**EMPTY, **variables})


def who(name: str, before: State, after: State | None = None) -> tuple[bool, str]:
    """Whether a property holds, and the members that decide it, such as `A 1`."""
    prop = next(p for p in BOUND.properties if p.name == name)
    made = judge(BOUND, prop, before, after)
    assert made.holds == BOUND.holds(prop, before, after)
    labels = {"people": "ABC", "seats": "012"}
    return made.holds, " ".join(labels[index][member] for index, member in sorted(made.members))


TWO_ON_ONE: dict[str, Any] = {"seat": [None, 1, 1]}


@pytest.mark.parametrize(
    ("name", "variables", "holds", "members"),
    [
        ("each-alone", TWO_ON_ONE, False, "B C"),
        ("each-alone", {"seat": [0, 1, None]}, True, ""),
        ("nobody-on-broken", {**TWO_ON_ONE, "broken": {1}}, False, "B C 1"),
        ("nobody-on-broken", {**TWO_ON_ONE, "broken": {0}}, True, ""),
        ("waits-or-sits", {**TWO_ON_ONE, "queue": [0, 2, 1]}, False, ""),  # of a number nobody is the reason
        ("patient", {**TWO_ON_ONE, "queue": [0, 2, 1]}, False, "C"),
        ("patient", {**TWO_ON_ONE, "queue": [0]}, True, ""),
        ("all-whole", {"broken": {1}}, False, ""),
        ("all-wait", {"queue": [2]}, False, "A B"),
        ("all-smashed", {"broken": {1}}, False, "0 2"),
        ("all-smashed", {"broken": {0, 1, 2}}, True, ""),
        ("quiet", {"bell": True}, False, ""),
        ("rings-for-somebody", {**TWO_ON_ONE, "bell": True, "queue": [0]}, False, "B C"),
        ("rings-for-somebody", TWO_ON_ONE, True, ""),
        ("either", {"queue": [1], "broken": {2}}, False, "B 2"),
        ("either", {"queue": [1]}, True, ""),
        ("few", TWO_ON_ONE, False, ""),
        ("chosen", {**TWO_ON_ONE, "bell": True, "queue": [0, 1]}, False, "B"),
        ("chosen", {"queue": [0]}, False, ""),
        ("empty", {"seat": [None, 2, None]}, False, "B"),
    ],
)
def test_who_decides(name: str, variables: dict[str, Any], holds: bool, members: str) -> None:
    assert who(name, state(**variables)) == (holds, members)


def test_who_decides_on_a_transition() -> None:
    assert who("keeps-seats", state(seat=[0, 1, 2]), state(seat=[0, 2, None])) == (False, "B C")
    assert who("keeps-order", state(queue=[0, 1]), state(queue=[0])) == (False, "")


def test_every_value_is_that_of_the_spec() -> None:
    """On hundreds of random states, whatever the formula's form; those with spec errors have no value."""
    draw = random.Random(3)
    seen = {(p.name, holds): 0 for p in BOUND.properties for holds in (True, False)}
    people, seats = range(3), [None, 0, 1, 2]
    for _ in range(400):
        before, after = (
            state(
                seat=[draw.choice(seats) for _ in people],
                queue=draw.sample(people, draw.randrange(4)),
                broken=frozenset(draw.sample(range(3), draw.randrange(4))),
                bell=draw.random() < 0.5,
            )
            for _ in range(2)
        )
        for prop in BOUND.properties:
            more = (after,) if prop.kind == "step" else ()
            try:
                expected = BOUND.holds(prop, before, *more)
            except SpecError:
                continue
            assert judge(BOUND, prop, before, *more).holds == expected
            seen[prop.name, expected] += 1
    assert all(seen.values()), seen


def test_what_changed() -> None:
    old = state(seat=[None, 1, None], queue=[0, 2], broken={1}, rings=1)
    assert changed(BOUND, old, old) == frozenset()
    assert changed(BOUND, old, state(seat=[None, 1, 0], queue=[0, 2], broken={1}, rings=1)) == {("people", 2), ("seats", 0)}
    assert changed(BOUND, old, state(seat=[None, 1, None], queue=[2], broken={1, 2}, rings=2)) == {("people", 0), ("seats", 2)}
    assert changed(BOUND, old, state(seat=[None, 1, None], queue=[2, 0], broken={1}, rings=1)) == frozenset()
