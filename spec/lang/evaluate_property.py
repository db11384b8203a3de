"""Evaluation of properties: states stay as they are, so a helper that is called again with the same arguments says the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from . import tree as t
from .bind import BoundSpec
from .domain import Domain
from .evaluate_base import Obligation
from .evaluate_memory import Location
from .evaluate_statements import Run

V = TypeVar("V")


class PropertyRun(Run[V]):
    """Evaluates a function of states that does not change them; each helper once for the same arguments.

    `said` is what a call came to: its arguments, which its key names by identity and which are kept for that, its result, and
    what must hold for it whatever the path is. Where left sides are noted, helpers are evaluated every time (`once`).
    """

    once = True

    def __init__(self, bound: BoundSpec, domain: Domain[V], *states: Sequence[V]) -> None:
        super().__init__(bound, domain, *states)
        self.said: dict[tuple[Any, ...], tuple[Sequence[V | Location], V | None, list[Obligation[V]]]] = {}

    def enter(self, node: t.Call, arguments: Sequence[V | Location]) -> V | None:
        if not self._says_the_same(node.function, arguments):
            return super().enter(node, arguments)
        named = (one.at if isinstance(one, Location) else id(one) for one in arguments)
        key = (id(node.function), *named)
        if key not in self.said:
            path, obligations = self.path, self.obligations
            self.path, self.obligations = self.true, []
            result = super().enter(node, arguments)
            self.said[key] = arguments, result, self.obligations
            self.path, self.obligations = path, obligations
        _, result, obligations = self.said[key]
        for one in obligations:
            self.oblige(one.condition, one.place, one.rule)
        return result

    def _says_the_same(self, function: t.Function, arguments: Sequence[V | Location]) -> bool:
        """Whether a helper depends on nothing but the states and these arguments, and changes nothing."""
        if not self.once or self.aborted or any(effect.kind != "read" for effect in function.effects):
            return False
        kinds = [kind for _, kind in function.parameters[len(function.parameters) - len(arguments) :]]
        return all(map(self.is_fixed, arguments, kinds))

    def is_fixed(self, argument: V | Location, kind: Any) -> bool:
        """Whether an argument means the same wherever it is passed: a whole state, or a value."""
        return not isinstance(argument, Location) or (argument.at in self.roots and argument.shape is self.bound.shape)
