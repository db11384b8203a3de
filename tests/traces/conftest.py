"""Specs and traces that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fencepost.spec.lang import BoundSpec, load_file
from fencepost.traces.trace import Step, Trace

KINDS = Path(__file__).parent / "specs" / "kinds.py"
LENDING = Path(__file__).parents[1] / "cli" / "specs" / "lending.py"

Walk = Callable[..., Trace]


@pytest.fixture
def kinds() -> BoundSpec:
    """A spec with every kind of value, parameter and property."""
    return BoundSpec(load_file(KINDS), {})


@pytest.fixture
def lending() -> BoundSpec:
    """A pool that lends blocks; at its default bounds it violates a property after three transitions."""
    return BoundSpec(load_file(LENDING), {})


@pytest.fixture
def walk() -> Walk:
    """Build a trace by running named actions in a spec."""
    return run


def run(bound: BoundSpec, shows: str, *actions: tuple[str, tuple[int, ...]], start: int = 0, loop: Any = None) -> Trace:
    """The trace that begins in an initial state and takes these actions."""
    rule, args, state = bound.initial()[start]
    rules = {r.name: r for r in bound.actions}
    initial, steps = state, list[Step]()
    for name, given in actions:
        after = bound.after(state, rules[name], given)
        assert after is not None, f"{name}{given} is not enabled"
        steps.append(Step(name, given, after))
        state = after
    begun = None if rule is None else (rule.name, args)
    return Trace(bound.spec.name, bound.values, shows, begun, initial, tuple(steps), loop)
