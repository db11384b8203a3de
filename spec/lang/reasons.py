"""Why a property holds or fails in a state: the members of indices that decide it.

A formula is evaluated once more, and each truth value carries the members that make it what it is. Of a quantifier these are
the ones for which its element decides (`all` is false for them, `any` is true); of `and` and `or` those of the deciding
part; of a helper those of the value that it returned, with the loops and branches in which it returned.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from . import tree as t
from .bind import BoundSpec, Property
from .bounds import Index, number_at
from .domain import ConcreteDomain
from .evaluate_expressions import Trip
from .evaluate_memory import Location
from .evaluate_statements import Left, Run
from .layout import ArrayShape, Leaf, RecordShape, SeqShape, SetShape, Shape, State

Members = frozenset[tuple[str, int]]
"""Members of indices: (name of the index, member)."""
_NOBODY: Members = frozenset()


class Judgement(NamedTuple):
    """Whether a formula holds, and the members that decide it."""

    holds: bool
    members: Members


def judge(bound: BoundSpec, prop: Property, state: State, after: State | None = None) -> Judgement:
    """Whether a property's own formula holds in a state (a step property: on the transition to `after`), and who decides it.

    Nobody does where the formula is not about single members, such as one that compares two counters. The formula must have
    a value there.
    """
    assert bound.spec.elaborated is not None
    run = _Reasons(bound, *((state,) if after is None else (state, after)))
    value = run.function(bound.spec.elaborated.of(prop.declared.function), ())
    return Judgement(bool(value), run.members)


class _Reasons(Run[int]):
    """An execution in which `members` are those that decide the value evaluated last.

    `control` has for each loop and branch around the place of execution, in the function at hand, who decided to be there.
    """

    def __init__(self, bound: BoundSpec, *states: State) -> None:
        super().__init__(bound, ConcreteDomain(), *states)
        self.members: Members = _NOBODY
        self.control: list[Members] = []
        self._returned: Members = _NOBODY
        self._deciding: Members = _NOBODY

    # ---- expressions

    def value(self, node: t.Expr) -> int:
        """The value of a scalar or set; only truth values have reasons."""
        self.members = _NOBODY
        made = super().value(node)
        if node.type != t.BOOL:
            self.members = _NOBODY
        return made

    def _contains(self, node: t.Contains) -> int:
        value, item = super()._contains(node), super().value(node.item)
        self.members = _member(node.item.type, item) if value else _NOBODY
        return value

    def _compare(self, node: t.Compare) -> int:
        value = super()._compare(node)
        self.members = _NOBODY if value else self._missing(node.left, node.right)
        return value

    def _missing(self, length: t.Expr, size: t.Expr) -> Members:
        """Of a length that should be the size of an index, as in `len(s.free) == BLOCKS`: the members that are not there."""
        if not (isinstance(length, t.Length) and isinstance(size, t.Const) and isinstance(size.value, Index)):
            return _NOBODY
        index, container = size.value, length.container
        if isinstance(container.type, t.SetValue):
            there = _members(SetShape(index.name, 0), (super().value(container),), 0)
        else:
            place = self.location(container)
            there = _members(place.shape, tuple(self.memory.contents(place)), 0)
        return frozenset((index.name, member) for member in range(number_at(index, self.values))) - there

    def _logic(self, node: t.Logic) -> int:
        together = _NOBODY
        for part in node.parts:
            value = self.value(part)
            if value == (node.op == "or"):
                return value
            together |= self.members
        self.members = together
        return int(node.op == "and")

    def _choice(self, node: t.Choice) -> int:
        condition = self.value(node.condition)
        because = self.members
        value = self.value(node.then if condition else node.otherwise)
        self.members |= because
        return value

    def _implies(self, node: t.Implies) -> int:
        left = self.value(node.left)
        because = self.members
        right = self.value(node.right)
        if not left:
            self.members = because
        elif not right:
            self.members |= because
        return int(not left or bool(right))

    def _quantified(self, node: t.Quantified) -> int:
        outer, self._deciding = self._deciding, _NOBODY
        value = super()._quantified(node)
        self.members, self._deciding = self._deciding, outer
        return value

    def _gather(self, node: t.Quantified, guard: int, total: list[int]) -> None:
        if node.op not in ("all", "any"):
            super()._gather(node, guard, total)
            return
        deciding = self._deciding
        value = self.value(node.element)
        if value == (node.op == "any"):
            total[0] = value
            deciding |= self.members
            for clause in node.clauses:
                deciding |= self._bound_by(clause.loop, self.frame.quantified.get(clause.loop.variable or ""))
        self._deciding = deciding

    def _bound_by(self, loop: t.Loop, item: int | Location | None) -> Members:
        return _NOBODY if item is None or isinstance(item, Location) else _member(loop.type, item)

    # ---- control

    def function(self, function: t.Function, arguments: Sequence[int | Location]) -> int | None:
        """Evaluate a call."""
        outer = self.control, self._returned
        self.control, self._returned = [], _NOBODY
        result = super().function(function, arguments)
        self.members = self._returned if function.returns == t.BOOL else _NOBODY
        self.control, self._returned = outer
        return result

    @contextmanager
    def _within(self, members: Members) -> Generator[None]:
        self.control.append(members)
        yield
        self.control.pop()

    def _do_if(self, node: t.If) -> Left[int]:
        condition = self.value(node.condition)
        with self._within(self.members):
            return self._block(node.then if condition else node.otherwise)

    def _iteration(self, node: t.For, level: int, trip: Trip) -> Left[int]:
        with self._within(self._bound_by(node.loop, trip.item)):
            return super()._iteration(node, level, trip)

    def _do_return(self, node: t.Return) -> Left[int]:
        before = self._returned
        left = super()._do_return(node)
        self._returned = before.union(self.members if node.value is not None else _NOBODY, *self.control)
        return left


def _member(kind: Any, value: int) -> Members:
    """A value as a member, where its type says so and it is one."""
    if isinstance(kind, t.Scalar) and kind.index is not None and value >= 0:
        return frozenset({(kind.index.name, value)})
    return _NOBODY


def changed(bound: BoundSpec, before: State, after: State) -> Members:
    """The members of which something differs between two states: what stands at their places, or where they stand."""
    return frozenset(_changed(bound.shape, before, after, 0))


def _changed(shape: Shape, before: State, after: State, at: int) -> Iterator[tuple[str, int]]:
    """The same for the part that begins at a cell."""
    if before[at : at + shape.size] == after[at : at + shape.size]:
        return
    match shape:
        case ArrayShape(count, item, index):
            for i in range(count):
                place = at + i * item.size
                if index is not None and before[place : place + item.size] != after[place : place + item.size]:
                    yield index, i
                yield from _changed(item, before, after, place)
        case RecordShape():
            for _, offset, inner in shape.fields:
                yield from _changed(inner, before, after, at + offset)
        case _:
            yield from _members(shape, before, at) ^ _members(shape, after, at)


def _members(shape: Shape, cells: State, at: int) -> Members:
    """The members that stand in a part of a state, as values."""
    match shape:
        case Leaf(index=str(index)):
            return frozenset({(index, cells[at])} if cells[at] >= 0 else ())
        case SetShape(index):
            return frozenset((index, i) for i in range(cells[at].bit_length()) if cells[at] >> i & 1)
        case ArrayShape(count, item, _):
            return _NOBODY.union(*(_members(item, cells, at + i * item.size) for i in range(count)))
        case SeqShape(_, item):
            return _NOBODY.union(*(_members(item, cells, at + 1 + i * item.size) for i in range(cells[at])))
        case RecordShape():
            return _NOBODY.union(*(_members(inner, cells, at + offset) for _, offset, inner in shape.fields))
        case _:
            return _NOBODY
