"""States and what changed in them, in a reader's notation: members by their labels, blanks left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...spec.lang import BoundSpec, Index, State
from ...spec.lang.layout import NONE, ArrayShape, Leaf, RecordShape, SeqShape, SetShape, Shape


@dataclass(frozen=True)
class Change:
    """One place that a transition changed; a None in `before` or `after` means that the place was not there."""

    path: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        if self.before is None:
            return f"{self.path}: + {self.after}"
        return f"{self.path}: - {self.before}" if self.after is None else f"{self.path}: {self.before} -> {self.after}"


def grouped(changes: Iterable[Change]) -> list[str]:
    """Changes in lines; neighbours in one array that change alike share a line: `refs[0, 1]: 0 -> 1`."""
    merged: list[Change] = []
    for change in changes:
        stem, _, label = change.path.removesuffix("]").rpartition("[")
        last = merged[-1] if merged else None
        if last is not None and change.path.endswith("]") and _alike(last, change, stem):
            merged[-1] = Change(f"{last.path[:-1]}, {label}]", change.before, change.after)
        else:
            merged.append(change)
    return list(map(str, merged))


def _alike(one: Change, other: Change, stem: str) -> bool:
    """Whether two places of the array `stem` changed in the same way."""
    return one.path.rpartition("[")[0] == stem != "" and (one.before, one.after) == (other.before, other.after)


class Shower:
    """Shows values of one bound spec."""

    def __init__(self, bound: BoundSpec) -> None:
        self.shape = bound.shape
        self.indices = {name: b for name, b in bound.spec.bounds.items() if isinstance(b, Index)}

    def member(self, index: str | None, number: int) -> str:
        """A member of an index as its label, or a plain number."""
        return self.indices[index].label(number) if index in self.indices else str(number)

    def value(self, shape: Shape, cells: State, at: int) -> str:
        """A value in one line."""
        match shape:
            case Leaf():
                return self._leaf(shape, cells[at])
            case SetShape(index, count):
                return "{" + ", ".join(self.member(index, i) for i in range(count) if cells[at] >> i & 1) + "}"
            case SeqShape(_, item):
                return "[" + ", ".join(self.value(item, cells, at + 1 + i * item.size) for i in range(cells[at])) + "]"
            case ArrayShape(count, item, index):
                places = [(self.member(index, i), at + i * item.size) for i in range(count)]
                return self._filled([(name, item, place) for name, place in places], cells)
            case RecordShape():
                return self._filled([(name, inner, at + offset) for name, offset, inner in shape.fields], cells)

    def _filled(self, parts: list[tuple[str, Shape, int]], cells: State) -> str:
        shown = [
            f"{name}: {self.value(part, cells, place)}"
            for name, part, place in parts
            if cells[place : place + part.size] != part.blank
        ]
        return "(" + ", ".join(shown) + ")"

    def _leaf(self, leaf: Leaf, cell: int) -> str:
        if leaf.maybe and cell == NONE:
            return "none"
        if leaf.kind == "bool":
            return "yes" if cell else "no"
        return leaf.enum(cell).name if leaf.enum is not None else self.member(leaf.index, cell)

    def state(self, cells: State) -> list[tuple[str, str]]:
        """Every variable of a state with its value."""
        return [(name, self.value(inner, cells, offset)) for name, offset, inner in self.shape.fields]

    def changes(self, before: State, after: State) -> list[Change]:
        """What a transition changed, down to single places."""
        return list(self._changes(self.shape, before, after, "", 0))

    def _changes(self, shape: Shape, before: State, after: State, path: str, at: int) -> Iterator[Change]:
        if before[at : at + shape.size] == after[at : at + shape.size]:
            return
        match shape:
            case ArrayShape(count, item, index):
                for i in range(count):
                    yield from self._changes(item, before, after, f"{path}[{self.member(index, i)}]", at + i * item.size)
            case RecordShape():
                for name, offset, inner in shape.fields:
                    yield from self._changes(inner, before, after, f"{path}.{name}" if path else name, at + offset)
            case SeqShape(_, RecordShape() | ArrayShape()):
                yield from self._elements(shape, before, after, path, at)
            case _:
                yield Change(path, self.value(shape, before, at), self.value(shape, after, at))

    def _elements(self, shape: SeqShape, before: State, after: State, path: str, at: int) -> Iterator[Change]:
        """A sequence of records: equal elements at the front (else at the back) are the same ones, the rest differs."""
        item, size = shape.item, shape.item.size
        old, new = before[at], after[at]
        gone = max(0, old - new) if _tail_kept(before, after, at + 1, size, old, new) else 0
        if gone:
            for i in range(gone):
                yield Change(f"{path}[{i}]", self.value(item, before, at + 1 + i * size), None)
            return
        for i in range(max(old, new)):
            place = at + 1 + i * size
            if i < old and i < new:
                yield from self._changes(item, before, after, f"{path}[{i}]", place)
            elif i < new:
                yield Change(f"{path}[{i}]", None, self.value(item, after, place))
            else:
                yield Change(f"{path}[{i}]", self.value(item, before, place), None)


def _tail_kept(before: State, after: State, first: int, size: int, old: int, new: int) -> bool:
    """Whether a sequence lost elements at its front and kept the others."""
    return old > new and before[first + (old - new) * size : first + old * size] == after[first : first + new * size]
