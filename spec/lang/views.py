"""Places: how a spec's functions see cells as fields, arrays, sequences and sets, with every bound checked.

A place is a position in a row of cells, not a copy: `step = s.flight[0]` names the slot. This is what all engines do.
"""

# Fields of a record are attributes of its view, so everything of our own starts with an underscore, also between classes.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .errors import SpecError
from .layout import NONE, ArrayShape, Leaf, RecordShape, SeqShape, SetShape, Shape, describe_leaf


class Cells(list[int]):
    """A row of cells being worked on; remembers which sequences are being iterated."""

    __slots__ = ("iterated",)

    def __init__(self, values: tuple[int, ...]) -> None:
        super().__init__(values)
        self.iterated: list[int] = []


class View:
    """Base of all places."""

    __slots__ = ("_at", "_cells", "_shape")

    _cells: Cells
    _at: int
    _shape: Any

    def __init__(self, cells: Cells, at: int, shape: Shape) -> None:
        _SET_CELLS(self, cells)
        _SET_AT(self, at)
        _SET_SHAPE(self, shape)

    def _contents(self) -> list[int]:
        return self._cells[self._at : self._at + self._shape.size]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, View) or other._shape != self._shape:
            raise SpecError("only places of one type can be compared")
        return self._contents() == other._contents()

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def clear(self) -> None:
        """Make the place blank again."""
        self._restructure()
        self._cells[self._at : self._at + self._shape.size] = self._shape.blank

    def _restructure(self) -> None:
        first, last = self._at, self._at + self._shape.size
        if any(first <= at < last for at in self._cells.iterated):
            raise SpecError("a sequence is changed while a loop runs over it")


# Records turn every assignment to an attribute into one to a field; the slots themselves are set by their descriptors.
_SET_CELLS, _SET_AT, _SET_SHAPE = (View.__dict__[name].__set__ for name in ("_cells", "_at", "_shape"))


def read(cells: Cells, at: int, shape: Shape) -> Any:
    """What lies at a position: a scalar, or a place."""
    if type(shape) is Leaf:
        cell = cells[at]
        if shape.kind == "bool":
            return bool(cell)
        return None if shape.maybe and cell == NONE else cell
    return _VIEWS[type(shape)](cells, at, shape)


def write(cells: Cells, at: int, shape: Shape, value: Any) -> None:
    """Store a scalar, or copy the contents of another place of the same type; `SpecError` where it does not fit."""
    if isinstance(shape, Leaf):
        cells[at] = _fit(shape, value)
    elif isinstance(shape, SetShape):
        cells[at] = _mask(value, shape)
    elif isinstance(value, View) and value._shape == shape:
        contents = value._contents()
        read(cells, at, shape)._restructure()
        cells[at : at + shape.size] = contents
    else:
        raise SpecError(f"{value!r} is not a place of the type it is stored in")


def _fit(leaf: Leaf, value: Any) -> int:
    if value is None:
        if leaf.maybe:
            return NONE
        raise SpecError(f"None is stored where {describe_leaf(leaf)} is declared")
    if not isinstance(value, int) or isinstance(value, bool) != (leaf.kind == "bool"):
        raise SpecError(f"{value!r} is stored where {describe_leaf(leaf)} is declared")
    if not (0 if leaf.maybe else leaf.low) <= value <= leaf.high:
        raise SpecError(f"{int(value)} is stored where {describe_leaf(leaf)} is declared")
    return int(value)


def _mask(value: Any, shape: SetShape) -> int:
    if isinstance(value, SetView):
        return value._cells[value._at]
    if isinstance(value, set | frozenset):
        return sum(1 << _member(item, shape.count) for item in value)  # pyright: ignore[reportUnknownVariableType]
    raise SpecError(f"{value!r} is not a set")


def _member(value: Any, count: int) -> int:
    if value is None or not isinstance(value, int) or not 0 <= value < count:
        raise SpecError(f"{value!r} is not a member of an index of {count}")
    return int(value)


class RecordView(View):
    """Fields by name."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        found = self._shape.field(name)
        if found is None:
            raise SpecError(f"{self._shape.name} has no field {name}")
        return read(self._cells, self._at + found[0], found[1])

    def __setattr__(self, name: str, value: Any) -> None:
        found = self._shape.field(name)
        if found is None:
            raise SpecError(f"{self._shape.name} has no field {name}")
        write(self._cells, self._at + found[0], found[1], value)


class ArrayView(View):
    """Elements by member or number."""

    __slots__ = ()

    def _where(self, i: Any) -> int:
        if not isinstance(i, int) or not 0 <= i < self._shape.count:
            raise SpecError(f"index {i!r} is outside an array of {self._shape.count}")
        return self._at + i * self._shape.item.size

    def __getitem__(self, i: int) -> Any:
        return read(self._cells, self._where(i), self._shape.item)

    def __setitem__(self, i: int, value: Any) -> None:
        write(self._cells, self._where(i), self._shape.item, value)

    def __len__(self) -> int:
        return self._shape.count

    def __iter__(self) -> Iterator[Any]:
        for i in range(self._shape.count):
            yield self[i]

    def __contains__(self, value: Any) -> bool:
        return any(item == value for item in self)


class SeqView(View):
    """A bounded sequence; index 0 is the front."""

    __slots__ = ()

    def __len__(self) -> int:
        return self._cells[self._at]

    def _slot(self, i: int) -> int:
        return self._at + 1 + i * self._shape.item.size

    def _where(self, i: Any) -> int:
        if not isinstance(i, int) or not 0 <= i < len(self):
            raise SpecError(f"index {i!r} is outside a sequence of length {len(self)}")
        return self._slot(i)

    def __getitem__(self, i: int) -> Any:
        return read(self._cells, self._where(i), self._shape.item)

    def __setitem__(self, i: int, value: Any) -> None:
        write(self._cells, self._where(i), self._shape.item, value)

    def __iter__(self) -> Iterator[Any]:
        return self._walk(backwards=False)

    def __reversed__(self) -> Iterator[Any]:
        return self._walk(backwards=True)

    def _walk(self, *, backwards: bool) -> Iterator[Any]:
        self._cells.iterated.append(self._at)
        try:
            order = range(len(self))
            for i in reversed(order) if backwards else order:
                yield read(self._cells, self._slot(i), self._shape.item)
        finally:
            self._cells.iterated.remove(self._at)

    def __contains__(self, value: Any) -> bool:
        return any(self[i] == value for i in range(len(self)))

    def _open(self, i: Any) -> None:
        self._restructure()
        length = len(self)
        if not isinstance(i, int) or not 0 <= i <= length:
            raise SpecError(f"position {i!r} is outside a sequence of length {length}")
        if length == self._shape.capacity:
            raise SpecError(f"a sequence of capacity {length} overflows")
        kept = self._cells[self._slot(i) : self._slot(length)]
        self._cells[self._slot(i) : self._slot(length + 1)] = [*self._shape.item.blank, *kept]
        self._cells[self._at] = length + 1

    def insert(self, i: int, value: Any) -> None:
        """Put an element before position i (0 to the length)."""
        new = Cells(self._shape.item.blank)
        write(new, 0, self._shape.item, value)
        self._open(i)
        self._cells[self._slot(i) : self._slot(i + 1)] = new

    def append(self, value: Any) -> None:
        """Add an element at the end."""
        self.insert(len(self), value)

    def push_front(self, value: Any) -> None:
        """Add an element at the front."""
        self.insert(0, value)

    def grow(self) -> Any:
        """Add a blank element at the end and return its place."""
        self._open(len(self))
        return self[len(self) - 1]

    def remove_at(self, i: int) -> None:
        """Take out the element at position i."""
        self._restructure()
        self._where(i)
        length = len(self)
        kept = self._cells[self._slot(i + 1) : self._slot(length)]
        self._cells[self._slot(i) : self._slot(length)] = [*kept, *self._shape.item.blank]
        self._cells[self._at] = length - 1

    def remove(self, value: Any) -> None:
        """Take out the first element equal to the value; it must be there."""
        for i in range(len(self)):
            if self[i] == value:
                self.remove_at(i)
                return
        raise SpecError(f"{value!r} is not in the sequence it is removed from")

    def pop_front(self) -> Any:
        """Take out the first element (a scalar) and return it."""
        return self._pop(0)

    def pop_back(self) -> Any:
        """Take out the last element (a scalar) and return it."""
        return self._pop(len(self) - 1)

    def _pop(self, i: int) -> Any:
        if len(self) == 0:
            raise SpecError("pop from an empty sequence")
        value = self[i]
        if isinstance(value, View):
            raise SpecError("pop returns scalars only; use drop_front() or drop_back() on a sequence of places")
        self.remove_at(i)
        return value

    def drop_front(self) -> None:
        """Take out the first element."""
        if len(self) == 0:
            raise SpecError("pop from an empty sequence")
        self.remove_at(0)

    def drop_back(self) -> None:
        """Take out the last element."""
        if len(self) == 0:
            raise SpecError("pop from an empty sequence")
        self.remove_at(len(self) - 1)


class SetView(View):
    """A set of members of an index; `|`, `&` and `-` give set values."""

    __slots__ = ()

    def _members(self) -> frozenset[int]:
        mask = self._cells[self._at]
        return frozenset(i for i in range(self._shape.count) if mask >> i & 1)

    def add(self, value: int) -> None:
        """Put a member in."""
        self._cells[self._at] |= 1 << _member(value, self._shape.count)

    def discard(self, value: int) -> None:
        """Take a member out, if it is in."""
        self._cells[self._at] &= ~(1 << _member(value, self._shape.count))

    def __contains__(self, value: object) -> bool:
        return bool(self._cells[self._at] >> _member(value, self._shape.count) & 1)

    def __len__(self) -> int:
        return self._cells[self._at].bit_count()

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._members()))

    def __or__(self, other: Any) -> frozenset[int]:
        return self._members() | _as_set(other)

    __ror__ = __or__

    def __and__(self, other: Any) -> frozenset[int]:
        return self._members() & _as_set(other)

    __rand__ = __and__

    def __sub__(self, other: Any) -> frozenset[int]:
        return self._members() - _as_set(other)

    def __rsub__(self, other: Any) -> frozenset[int]:
        return _as_set(other) - self._members()

    def __eq__(self, other: object) -> bool:
        return self._members() == _as_set(other)

    def __le__(self, other: Any) -> bool:
        return self._members() <= _as_set(other)

    def __ge__(self, other: Any) -> bool:
        return self._members() >= _as_set(other)


def _as_set(value: Any) -> frozenset[int]:
    if isinstance(value, SetView):
        return value._members()
    if isinstance(value, set | frozenset):
        if None in value:
            raise SpecError("None is not a member of a set")
        return frozenset(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    raise SpecError(f"{value!r} is not a set")


_VIEWS: dict[type, type[View]] = {
    RecordShape: RecordView,
    ArrayShape: ArrayView,
    SeqShape: SeqView,
    SetShape: SetView,
}
