"""Evaluates the properties of states and transitions as Python, and notes which left sides held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...spec.lang import BoundSpec, Property, State
from ...spec.lang.declare import WITNESS_KINDS
from ...spec.lang.source import left_sides, tree_of, watched
from ...spec.lang.views import Cells, read


class Watch:
    """The properties of a bound spec; `covered` collects (property, number of the left side) as they hold."""

    def __init__(self, bound: BoundSpec, covered: set[tuple[str, int]]) -> None:
        self.bound, self.covered = bound, covered
        self.invariants = [p for p in bound.properties if p.kind in ("always", "quiescent")]
        self.steps = [p for p in bound.properties if p.kind == "step"]
        self.witnesses = [p for p in bound.properties if p.kind in WITNESS_KINDS]
        self.triggers = [p for p in bound.properties if p.kind == "leads_to"]
        self._functions = {p.name: self._watched(p) for p in (*self.invariants, *self.steps)}

    def _watched(self, prop: Property) -> Callable[..., Any]:
        name = prop.name
        return watched(prop.declared.function, prop.function.__globals__, lambda k: self.covered.add((name, k)))

    def check(self, state: State) -> tuple[list[str], list[str]]:
        """The invariants that fail in a state, and the witnesses that it is; `SpecError` where one cannot be evaluated."""
        failed: list[str] = []
        for prop in self.invariants:
            if prop.condition is not None:
                if not self.bound.condition_holds(prop, state):
                    continue
                self.covered.add((prop.name, condition_number(prop)))
            if not self.bound.call(self._functions[prop.name], Cells(state)):
                failed.append(prop.name)
        for prop in self.triggers:
            if self.bound.condition_holds(prop, state):
                self.covered.add((prop.name, 0))
        return failed, [p.name for p in self.witnesses if self.bound.holds(p, state)]

    def check_step(self, state: State, after: State) -> list[str]:
        """The step properties that fail on a transition."""
        following = read(Cells(after), 0, self.bound.shape)
        return [p.name for p in self.steps if not self.bound.call(self._functions[p.name], Cells(state), following)]


def condition_number(prop: Property) -> int:
    """The number of a property's condition among its left sides: after those of its body."""
    return 0 if prop.kind == "leads_to" else len(left_sides(tree_of(prop.declared.function)))


def left_side_places(prop: Property) -> list[str]:
    """Every left side of a property in words, by number."""
    if prop.kind not in ("always", "quiescent", "step", "leads_to"):
        return []
    tree = tree_of(prop.declared.function)
    file = prop.declared.place.file
    sides = [] if prop.kind == "leads_to" else [f"its left side at {file}:{n.lineno}" for n in left_sides(tree)]
    return sides + (["its condition"] if prop.condition is not None else [])
