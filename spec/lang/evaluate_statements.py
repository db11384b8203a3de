"""Evaluation of statements and functions: branches, loops, and leaving them early.

A function, a loop and each of its iterations is a scope. Leaving one early sets the cells written in it aside, with the
condition under which control came there; where the scope ends they are merged with what fell through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from . import tree as t
from .bind import BoundSpec
from .domain import Domain
from .evaluate_base import Frame
from .evaluate_expressions import Expressions, Trip
from .evaluate_memory import Delta, Location
from .layout import Leaf, SetShape

V = TypeVar("V")

BRANCH = 1 << 30
"""Instead of a level: deeper than every scope."""


@dataclass
class Scope(Generic[V]):
    """What can be left early: its ways out so far, in order, and where log and conditions stood when it was entered."""

    level: int
    mark: int
    depth: int
    exits: list[tuple[V, Delta]] = field(default_factory=list[tuple[Any, Delta]])


@dataclass
class Left(Generic[V]):
    """For each scope (by level) that a block may have left, the condition under which it has; `over`: surely one of them."""

    gone: dict[int, V] = field(default_factory=dict[int, Any])
    over: bool = False


class Run(Expressions[V]):
    """Evaluates statements and functions.

    `absent` are the conditions under which control is not here, outermost first: a scope was left early before (by level),
    or a branch is not taken (`BRANCH`).
    """

    def __init__(self, bound: BoundSpec, domain: Domain[V], *states: Sequence[V]) -> None:
        super().__init__(bound, domain)
        self.roots = [self.memory.allocate(state) for state in states]
        self.scopes: list[Scope[V]] = []
        self.absent: list[dict[int, V]] = []

    # ---- functions

    def function(self, function: t.Function, arguments: Sequence[V | Location]) -> V | None:
        """Evaluate a call; `arguments` are those behind the states of an action or property."""
        outer, level, mark = self.frame, self._open(), len(self.memory.log)
        frame = self.frame = Frame[V](level, self.memory.allocate([None]))
        names = [name for name, _ in function.parameters]
        for name, argument in zip(names[len(names) - len(arguments) :], arguments, strict=True):
            self._bind(name, argument)
        left = self._close(self._block(function.body), frame.result)
        self.aborted = self.aborted or left.over
        self.frame = outer
        result: V | None = self.memory.cells[frame.result]
        self.memory.release(frame.result, mark)
        if function.returns is None:
            return None
        return self._nothing(function.returns) if result is None else result

    def _nothing(self, kind: Any) -> V:
        if isinstance(kind, t.SetValue):
            return self.domain.mask(0)
        return self.false if kind == t.BOOL else self.domain.number(0)

    def call(self, node: t.Call) -> V | None:
        """Call a helper; returns what it returns."""
        arguments: list[V | Location] = []
        for part in node.arguments:
            arguments.append(self.location(part) if isinstance(part.type, t.PlaceType) else self.value(part))
        return self.enter(node, arguments)

    def enter(self, node: t.Call, arguments: Sequence[V | Location]) -> V | None:
        """Evaluate a helper with these arguments."""
        return self.function(node.function, arguments)

    # ---- control

    def _open(self) -> int:
        level = len(self.scopes)
        self.scopes.append(Scope(level, len(self.memory.log), len(self.absent)))
        return level

    def _close(self, left: Left[V], last: int | None = None) -> Left[V]:
        """Merge the ways out of the innermost scope, cells up to `last`; returns how outer ones were left."""
        scope, memory = self.scopes.pop(), self.memory
        if scope.exits and not (len(scope.exits) == 1 and self.surely(scope.exits[0][0])):
            rest = memory.take_back(scope.mark)
            if left.over:
                memory.merge(scope.exits[:-1], scope.exits[-1][1], last)
            else:
                memory.merge(scope.exits, rest, last)
        if scope.exits:
            self.aborted = False
        gone = {level: condition for level, condition in left.gone.items() if level != scope.level}
        return Left(gone, left.over and not scope.exits)

    def _jump(self, level: int) -> Left[V]:
        """Leave a scope: set aside what was written in it.

        The condition need not exclude earlier ways out of the same or an outer scope, because those are merged first.
        """
        scope, domain, condition = self.scopes[level], self.domain, self.true
        for gone in self.absent[scope.depth :]:
            for inner, elsewhere in gone.items():
                if inner > level:
                    condition = domain.both(condition, domain.negation(elsewhere))
        cells, delta = self.memory.cells, Delta()
        if scope.exits or not self.surely(condition):
            delta = {at: cells[at] for at, _ in self.memory.log[scope.mark :]}
        scope.exits.append((condition, delta))
        return Left({level: self.true}, over=True)

    def _stays(self, left: Left[V]) -> V:
        stays = self.true
        for condition in left.gone.values():
            stays = self.domain.both(stays, self.domain.negation(condition))
        return stays

    def _sequence(self, steps: Iterable[Callable[[], Left[V]]]) -> Left[V]:
        """Take steps one after another, as far as control goes."""
        domain, path, depth = self.domain, self.path, len(self.absent)
        total, goes_on = Left[V](), self.true
        for step in steps:
            if self.aborted:
                break
            left = step()
            for level, condition in left.gone.items():
                reached = domain.both(goes_on, condition)
                total.gone[level] = domain.either(total.gone[level], reached) if level in total.gone else reached
            if left.over:
                total.over = True
                break
            if left.gone:
                stays = self._stays(left)
                goes_on, self.path = domain.both(goes_on, stays), domain.both(self.path, stays)
                self.absent.append(left.gone)
        del self.absent[depth:]
        self.path = path
        total.over = total.over or self.aborted
        return total

    def _branch(self, condition: V, then: Callable[[], Left[V]], otherwise: Callable[[], Left[V]]) -> Left[V]:
        """Go one way or the other; where it is not known which, both, and merge what they write."""
        domain, memory = self.domain, self.memory
        if self.surely(condition) or self.never(condition):
            return then() if self.surely(condition) else otherwise()
        path, mark, negation = self.path, len(memory.log), domain.negation(condition)
        sides: list[tuple[Left[V], Delta]] = []
        for side, taken, not_taken in ((then, condition, negation), (otherwise, negation, condition)):
            self.path = domain.both(path, taken)
            self.absent.append({BRANCH: not_taken})
            left = side()
            left.over = left.over or self.aborted
            sides.append((left, memory.take_back(mark)))
            self.absent.pop()
            self.aborted = False
        self.path = path
        (first, written), (second, other) = sides
        if first.over or second.over:
            memory.merge([], other if first.over else written)
        else:
            memory.merge([(condition, written)], other)
        gone: dict[int, V] = {}
        for level in first.gone | second.gone:
            gone[level] = domain.choose(condition, first.gone.get(level, self.false), second.gone.get(level, self.false))
        return Left(gone, first.over and second.over)

    # ---- statements

    def _statement(self, node: t.Stmt) -> Left[V]:
        left: Left[V] | None = getattr(self, "_do_" + type(node).__name__.lower())(node)
        return Left() if left is None else left

    def _bind(self, name: str, item: V | Location) -> None:
        """Give a local a value, or a place a name."""
        frame = self.frame
        if isinstance(item, Location):
            frame.places[name] = item
            return
        if name not in frame.slots:
            frame.slots[name] = self.memory.allocate([None])
        self.memory.write(frame.slots[name], item)

    def _do_setlocal(self, node: t.SetLocal) -> None:
        value = node.value
        self._bind(node.name, self.location(value) if isinstance(value.type, t.PlaceType) else self.value(value))

    def _do_store(self, node: t.Store) -> None:
        memory, value = self.memory, node.value
        if node.op is not None:
            self._update(node, node.op)
        elif isinstance(value.type, t.PlaceType):
            contents = memory.contents(self.location(value))
            memory.replace(self.location(node.target), contents)
        else:
            new = self.value(value)
            target = self.location(node.target)
            if isinstance(target.shape, Leaf):
                new = self.fitted(new, value.type, target.shape, value.place)
            memory.store(target, new)

    def _update(self, node: t.Store, op: str) -> None:
        target = self.location(node.target)
        before = self.memory.load(target)
        if isinstance(target.shape, SetShape):
            new = self.combine_sets(op, before, self.value(node.value))
        else:
            assert isinstance(target.shape, Leaf)
            before = self.defined(before, node.target.type, node.place)
            new = self.combine(op, before, self.value(node.value), node.value)
            new = self.fitted(new, t.INT, target.shape, node.place)
        self.memory.store(target, new)

    def _do_do(self, node: t.Do) -> None:
        match node.value:
            case t.Method():
                self.method(node.value)
            case t.Call():
                self.call(node.value)
            case _:
                self.value(node.value)

    def _do_require(self, node: t.Require) -> None:
        self.demand(self.value(node.condition))

    def _do_if(self, node: t.If) -> Left[V]:
        return self._branch(self.value(node.condition), partial(self._block, node.then), partial(self._block, node.otherwise))

    def _block(self, body: Sequence[t.Stmt]) -> Left[V]:
        return self._sequence(partial(self._statement, statement) for statement in body)

    def _do_for(self, node: t.For) -> Left[V]:
        level = self._open()
        return self._close(self._sequence(self._iterations(node, level)))

    def _iterations(self, node: t.For, level: int) -> Iterator[Callable[[], Left[V]]]:
        """What a loop does, step by step: leave it if it ends here, go once through the body."""
        for trip in self.trips(node.loop):
            if self.never(trip.more):
                return
            if not self.surely(trip.more):
                yield partial(self._branch, trip.more, Left, partial(self._jump, level))
            yield partial(self._branch, trip.runs, partial(self._iteration, node, level, trip), Left)

    def _iteration(self, node: t.For, level: int, trip: Trip) -> Left[V]:
        self.frame.loops.append((level, self._open()))
        if node.loop.variable is not None:
            self._bind(node.loop.variable, trip.item)
        left = self._block(node.body)
        self.frame.loops.pop()
        return self._close(left)

    def _do_jump(self, node: t.Jump) -> Left[V]:
        loop, iteration = self.frame.loops[-1]
        return self._jump(loop if node.kind == "break" else iteration)

    def _do_return(self, node: t.Return) -> Left[V]:
        if node.value is not None:
            self.memory.write(self.frame.result, self.value(node.value))
        return self._jump(self.frame.level)
