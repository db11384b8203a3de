"""The evaluator: a spec's functions over any value domain.

It reads the typed tree and works on a row of cells laid out as in `layout.py`. Where a condition is not known, both
branches are evaluated and the cells that differ are merged; loops are unrolled as far as their ends can reach; helpers
are entered; an index that is not known becomes a selection. Nothing is raised for what would be a spec error: it becomes
an obligation. With a `ConcreteDomain` an evaluation is one execution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .bind import Arguments, BoundSpec, LoopInvariant, Property, Rule
from .domain import Domain
from .evaluate_base import Obligation, UnboundedLoop
from .evaluate_memory import literal
from .evaluate_property import PropertyRun
from .evaluate_statements import Run
from .layout import leaves
from .tree import Function
from .types import Bool, SetOf

V = TypeVar("V")


@dataclass(frozen=True)
class Outcome(Generic[V]):
    """What an action does: the condition under which it is enabled, its successor, and what must hold for either to count."""

    enabled: V
    cells: tuple[V, ...]
    obligations: tuple[Obligation[V], ...]


class Evaluator(Generic[V]):
    """Evaluates the actions and properties of a bound spec over a value domain.

    Cells are truth values where a boolean is declared, sets where a set is, else numbers, all within their declared
    ranges, with blank cells beyond the length of a sequence. `UnboundedLoop` where a loop cannot be unrolled.
    """

    def __init__(self, bound: BoundSpec, domain: Domain[V]) -> None:
        assert bound.spec.elaborated is not None
        self.bound, self.domain, self.functions = bound, domain, bound.spec.elaborated

    def cells(self, state: Sequence[int]) -> tuple[V, ...]:
        """The cells of a concrete state as values of the domain."""
        return tuple(literal(self.domain, leaf, state[at]) for at, leaf in leaves(self.bound.shape))

    def arguments(self, rule: Rule, args: Arguments) -> tuple[V, ...]:
        """The arguments of an action instance as values of the domain."""
        domain = self.domain
        kinds = [p.type for p in rule.declared.parameters]
        return tuple(
            domain.truth(bool(a)) if isinstance(k, Bool) else domain.mask(a) if isinstance(k, SetOf) else domain.number(a)
            for k, a in zip(kinds, args, strict=True)
        )

    def action(self, cells: Sequence[V], rule: Rule, args: Sequence[V]) -> Outcome[V]:
        """What an action or @init function does to cells, with values of the domain as arguments."""
        run = Run(self.bound, self.domain, cells)
        run.function(self.functions.of(rule.declared.function), args)
        return Outcome(run.enabled, tuple(run.memory.cells[: len(cells)]), tuple(run.obligations))

    def holds(
        self, prop: Property, cells: Sequence[V], after: Sequence[V] | None = None
    ) -> tuple[V, tuple[Obligation[V], ...]]:
        """Whether a property's own formula holds (for a step property: with the successor's cells), and its obligations."""
        return self._truth(prop.declared.function, [cells] if after is None else [cells, after])

    def sides(self, prop: Property, cells: Sequence[V], after: Sequence[V] | None = None) -> dict[int, V]:
        """Whether each left side of a property, by number, holds somewhere in it: a property is vacuous where it never does."""
        function = self.functions.of(prop.declared.function)
        run = self._run(function, [cells] if after is None else [cells, after])
        run.once = False
        run.function(function, ())
        return run.sides

    def invariant(
        self, loop: LoopInvariant, states: Sequence[Sequence[V]], named: Mapping[str, V]
    ) -> tuple[V, tuple[Obligation[V], ...]]:
        """Whether a loop's invariant holds at its head with these locals, and its obligations; `states` as it takes them."""
        function = self.functions.of(loop.declared.function)
        run = self._run(function, states)
        value = run.function(function, [named[parameter.name] for parameter in loop.declared.parameters])
        assert value is not None
        return value, tuple(run.obligations)

    def condition(self, prop: Property, cells: Sequence[V]) -> tuple[V, tuple[Obligation[V], ...]]:
        """Whether the condition of a quiescent or leads-to property holds, and its obligations."""
        return self._truth(prop.declared.declaration.condition, [cells])

    def _truth(self, written: Any, states: Sequence[Sequence[V]]) -> tuple[V, tuple[Obligation[V], ...]]:
        function = self.functions.of(written)
        run = self._run(function, states)
        value = run.function(function, ())
        assert value is not None
        return value, tuple(run.obligations)

    def _run(self, function: Function, states: Sequence[Sequence[V]]) -> PropertyRun[V]:
        """An evaluation of a function about these states."""
        return PropertyRun(self.bound, self.domain, *states)


__all__ = ["Evaluator", "Obligation", "Outcome", "UnboundedLoop"]
