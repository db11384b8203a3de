"""Cells that the evaluator works on: one row of domain values, places in it whose index may be symbolic, and an undo log.

The row holds the state, for a step property its successor, then local variables and local containers. The log makes a
branch cheap: what it wrote is taken back as a `Delta`, and only those cells are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

from .domain import Domain
from .layout import ArrayShape, Leaf, SeqShape, SetShape, Shape, leaves

V = TypeVar("V")
T = TypeVar("T")


class Step(NamedTuple):
    """A part of a place that is picked by an index that is not a constant: `stride` cells an element."""

    index: Any
    low: int
    high: int
    stride: int


@dataclass(frozen=True)
class Location:
    """A place: the cell at which it starts, what lies there, and what is still to be picked."""

    at: int
    shape: Shape
    steps: tuple[Step, ...] = ()

    def plus(self, cells: int, shape: Shape) -> Location:
        """A part of this place."""
        return Location(self.at + cells, shape, self.steps)


Delta = dict[int, Any]
"""Cells written on a path, with their values."""


class Memory(Generic[V]):
    """The row of cells; that of a local which is not assigned yet is None, and nobody reads it."""

    def __init__(self, domain: Domain[V]) -> None:
        self.domain = domain
        self.cells: list[Any] = []
        self.log: list[tuple[int, Any]] = []

    def allocate(self, contents: Sequence[Any]) -> int:
        """Add cells at the end; returns the first."""
        self.cells += contents
        return len(self.cells) - len(contents)

    # ---- single cells

    def write(self, at: int, value: V) -> None:
        """Store into a cell."""
        old = self.cells[at]
        if old is not value:
            self.log.append((at, old))
            self.cells[at] = value

    def take_back(self, mark: int) -> Delta:
        """Undo what was written since the log had `mark` entries; returns it."""
        cells, log = self.cells, self.log
        written = {at: cells[at] for at, _ in log[mark:]}
        for at, old in reversed(log[mark:]):
            cells[at] = old
        del log[mark:]
        return {at: value for at, value in written.items() if value is not cells[at]}

    def release(self, first: int, mark: int) -> None:
        """Drop the cells from `first` on, and what the log says of them since it had `mark` entries."""
        del self.cells[first:]
        self.log[mark:] = [entry for entry in self.log[mark:] if entry[0] < first]

    def merge(self, paths: Sequence[tuple[V, Delta]], default: Delta, last: int | None = None) -> None:
        """Write the cells (up to `last`) of the first path whose condition holds, else those of the default."""
        touched = dict.fromkeys(default)
        for _, delta in paths:
            touched.update(dict.fromkeys(delta))
        for at in touched:
            if last is not None and at > last:
                continue
            base = self.cells[at]
            value = default.get(at, base)
            for condition, delta in reversed(paths):
                value = self._choose(condition, delta.get(at, base), value)
            self.write(at, value)

    def _choose(self, condition: V, then: Any, otherwise: Any) -> Any:
        if then is otherwise or otherwise is None:
            return then
        return otherwise if then is None else self.domain.choose(condition, then, otherwise)

    # ---- places

    def load(self, place: Location, offset: int = 0) -> V:
        """The value of a cell of a place."""
        if not place.steps:
            return self.cells[place.at + offset]
        return self._pick(place.at + offset, place.steps)

    def _pick(self, at: int, steps: tuple[Step, ...]) -> V:
        if not steps:
            return self.cells[at]
        step, rest = steps[0], steps[1:]
        elements = [self._pick(at + i * step.stride, rest) for i in range(step.low, step.high + 1)]
        return self.domain.select(step.index, step.low, elements)

    def store(self, place: Location, value: V, offset: int = 0) -> None:
        """Store into a cell of a place."""
        if not place.steps:
            self.write(place.at + offset, value)
            return
        for condition, at in self._targets(place.at + offset, place.steps):
            self.write(at, value if condition is None else self._choose(condition, value, self.cells[at]))

    def _targets(self, at: int, steps: tuple[Step, ...]) -> Iterator[tuple[V | None, int]]:
        if not steps:
            yield None, at
            return
        step, domain = steps[0], self.domain
        for i in range(step.low, step.high + 1):
            here = domain.equal(step.index, domain.number(i))
            for more, inner in self._targets(at + i * step.stride, steps[1:]):
                yield (here if more is None else domain.both(here, more)), inner

    def contents(self, place: Location) -> list[V]:
        """Every cell of a place."""
        if not place.steps:
            return self.cells[place.at : place.at + place.shape.size]
        return [self.load(place, offset) for offset in range(place.shape.size)]

    def replace(self, place: Location, contents: Sequence[V], old: Sequence[V] | None = None) -> None:
        """Store every cell of a place; those that are `old` are left alone."""
        for offset, value in enumerate(contents):
            if old is None or old[offset] is not value:
                self.store(place, value, offset)

    def blank(self, shape: Shape) -> list[V]:
        """What lies in a place of this shape before anything is stored."""
        return self.values(shape, shape.blank)

    def values(self, shape: Shape, state: Sequence[int]) -> list[V]:
        """Cells of a concrete state as domain values: truth values, sets or numbers."""
        return [literal(self.domain, leaf, state[at]) for at, leaf in leaves(shape)]

    # ---- sequences

    def length(self, place: Location) -> V:
        """The number of elements of an array or sequence."""
        if isinstance(place.shape, ArrayShape):
            return self.domain.number(place.shape.count)
        return self.load(place)

    def element(self, place: Location, index: V, low: int, high: int) -> Location:
        """Element `index`, which is from `low` to `high`."""
        shape = place.shape
        assert isinstance(shape, ArrayShape | SeqShape)
        head, stride = int(isinstance(shape, SeqShape)), shape.item.size
        known = self.domain.constant(index)
        if known is not None or low == high:
            return place.plus(head + (low if known is None else known) * stride, shape.item)
        whole = place.plus(head, shape.item)
        return replace(whole, steps=(*whole.steps, Step(index, low, high, stride)))

    def reshape(self, place: Location, length: V, slot: Callable[[list[list[V]], int], list[V]]) -> None:
        """Give a sequence a new length and new elements; `slot` makes the i-th of the old ones and a blank one behind."""
        shape = place.shape
        assert isinstance(shape, SeqShape)
        old, size = self.contents(place), shape.item.size
        elements = [old[1 + i * size : 1 + (i + 1) * size] for i in range(shape.capacity)]
        elements.append(self.blank(shape.item))
        new = [cell for i in range(shape.capacity) for cell in slot(elements, i)]
        self.replace(place, [length, *new], old)

    def pick_cells(self, condition: V, then: Sequence[V], otherwise: Sequence[V]) -> list[V]:
        """One of two elements, cell by cell."""
        return [self._choose(condition, a, b) for a, b in zip(then, otherwise, strict=True)]


def literal(domain: Domain[T], leaf: Leaf | SetShape, cell: int) -> T:
    """A cell of a concrete state as a value of a domain."""
    if isinstance(leaf, SetShape):
        return domain.mask(cell)
    return domain.truth(bool(cell)) if leaf.kind == "bool" else domain.number(cell)
