"""Where each part of a state lives: types plus bounds give shapes, and shapes lie on a flat row of integer cells.

A state is a tuple of cells. Every engine uses this one layout, so a state means the same everywhere. Cells that stand for
nothing (the tail of a sequence beyond its length) hold their blank value, so that equal contents are equal states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, cast

from .bounds import Values, number_at
from .errors import BoundsError
from .types import Array, Bool, EnumType, Int, Maybe, Member, Record, Seq, SetOf, Type

State = tuple[int, ...]
MAX_CELLS = 20_000
NONE = -1
"""How None lies in a cell."""


@dataclass(frozen=True)
class Leaf:
    """One cell: `kind` is int, bool, enum or index; `low..high` its range (-1 for None where `maybe`)."""

    kind: str
    low: int
    high: int
    index: str | None = None
    maybe: bool = False
    enum: type[IntEnum] | None = None

    size = 1

    @property
    def blank(self) -> State:
        """The value before anything is stored: None, else 0 where allowed, else the least value."""
        if self.maybe:
            return (NONE,)
        return (0,) if self.low <= 0 <= self.high else (self.low,)


@dataclass(frozen=True)
class SetShape:
    """A set of members of an index of `count` members: one cell, bit i for member i."""

    index: str
    count: int

    size = 1
    blank: State = (0,)


@dataclass(frozen=True)
class ArrayShape:
    """`count` elements in a row; `index` names the index that they belong to, if any."""

    count: int
    item: Shape
    index: str | None

    @property
    def size(self) -> int:
        """Cells taken."""
        return self.count * self.item.size

    @property
    def blank(self) -> State:
        """All elements blank."""
        return self.item.blank * self.count


@dataclass(frozen=True)
class SeqShape:
    """A length cell, then room for `capacity` elements."""

    capacity: int
    item: Shape

    @property
    def size(self) -> int:
        """Cells taken."""
        return 1 + self.capacity * self.item.size

    @property
    def blank(self) -> State:
        """Empty."""
        return (0, *(self.item.blank * self.capacity))


@dataclass(frozen=True)
class RecordShape:
    """Fields one after another: name, offset of the first cell, shape."""

    name: str
    fields: tuple[tuple[str, int, Shape], ...]
    size: int

    @cached_property
    def blank(self) -> State:
        """All fields blank."""
        return tuple(cell for _, _, shape in self.fields for cell in shape.blank)

    @cached_property
    def _found(self) -> dict[str, tuple[int, Shape]]:
        return {name: (offset, shape) for name, offset, shape in self.fields}

    def field(self, name: str) -> tuple[int, Shape] | None:
        """Offset and shape of a field, or None."""
        return self._found.get(name)


Shape = Leaf | SetShape | ArrayShape | SeqShape | RecordShape


def shape_of(written: Type, at: Values) -> Shape:
    """Fix the sizes of a type at these bounds; `BoundsError` where a size is negative or a range is empty."""
    match written:
        case Int(low, high):
            lo, hi = number_at(low, at), number_at(high, at)
            if lo > hi:
                raise BoundsError(f"Int({low}, {high}) is empty at these bounds ({lo} > {hi})")
            return Leaf("int", lo, hi)
        case Bool():
            return Leaf("bool", 0, 1)
        case EnumType(enum):
            return Leaf("enum", 0, len(enum) - 1, enum=enum)
        case Member(index):
            return Leaf("index", 0, number_at(index, at) - 1, index=index.name)
        case Maybe(item):
            inner = shape_of(item, at)
            if not isinstance(inner, Leaf) or inner.low < 0:
                raise BoundsError("Maybe[Int(low, high)] needs low >= 0")
            return Leaf(inner.kind, NONE, inner.high, inner.index, True, inner.enum)
        case SetOf(index):
            return SetShape(index.name, number_at(index, at))
        case Array(size, item):
            index_name = getattr(size, "name", None) if getattr(size, "permutable", False) else None
            return _limited(ArrayShape(_size(size, at), shape_of(item, at), index_name))
        case Seq(item, capacity):
            return _limited(SeqShape(_size(capacity, at), shape_of(item, at)))
        case Record():
            return _record_shape(written, at)
        case _:
            raise TypeError(f"{written!r} is not a type of the spec language")


def _record_shape(written: Record, at: Values) -> RecordShape:
    fields: list[tuple[str, int, Shape]] = []
    offset = 0
    for name, item in written.fields:
        shape = shape_of(item, at)
        fields.append((name, offset, shape))
        offset += shape.size
    return RecordShape(written.name, tuple(fields), offset)


def _limited(shape: ArrayShape | SeqShape) -> Shape:
    if max(shape.size, shape.count if isinstance(shape, ArrayShape) else shape.capacity) > MAX_CELLS:
        raise BoundsError(f"a state has {shape.size:,} cells at these bounds, the limit is {MAX_CELLS:,}; lower them")
    return shape


def _size(written: Any, at: Values) -> int:
    size = number_at(written, at)
    if size < 0:
        raise BoundsError(f"size {written} is {size} at these bounds; it must not be negative")
    return size


def leaves(shape: Shape, at: int = 0) -> Iterator[tuple[int, Leaf | SetShape]]:
    """Every cell with what it holds, in order; the length of a sequence is an int leaf."""
    match shape:
        case Leaf() | SetShape():
            yield at, shape
        case ArrayShape(count, item, _):
            for i in range(count):
                yield from leaves(item, at + i * item.size)
        case SeqShape(capacity, item):
            yield at, Leaf("int", 0, capacity)
            for i in range(capacity):
                yield from leaves(item, at + 1 + i * item.size)
        case RecordShape():
            for _, offset, inner in shape.fields:
                yield from leaves(inner, at + offset)


def decode(shape: Shape, cells: State, at: int = 0) -> Any:
    """Cells as plain Python: bool, int, str (enumeration member), None, list, frozenset, dict."""
    match shape:
        case Leaf():
            return _decode_leaf(shape, cells[at])
        case SetShape(_, count):
            return frozenset(i for i in range(count) if cells[at] >> i & 1)
        case ArrayShape(count, item, _):
            return [decode(item, cells, at + i * item.size) for i in range(count)]
        case SeqShape(_, item):
            return [decode(item, cells, at + 1 + i * item.size) for i in range(cells[at])]
        case RecordShape():
            return {name: decode(inner, cells, at + offset) for name, offset, inner in shape.fields}


def _decode_leaf(leaf: Leaf, cell: int) -> bool | int | str | None:
    if leaf.maybe and cell == NONE:
        return None
    if leaf.kind == "bool":
        return bool(cell)
    return leaf.enum(cell).name if leaf.enum is not None else cell


def encode(shape: Shape, value: Any, path: str = "state") -> State:
    """The inverse of `decode`; `ValueError` names the path that does not fit the shape."""
    match shape:
        case Leaf():
            return (_encode_leaf(shape, value, path),)
        case SetShape(_, count):
            return (_encode_set(count, value, path),)
        case ArrayShape(count, item, _):
            parts = _parts(value, path)
            if len(parts) != count:
                raise ValueError(f"{path}: expected a list of {count} elements")
            return tuple(c for i, part in enumerate(parts) for c in encode(item, part, f"{path}[{i}]"))
        case SeqShape(capacity, item):
            parts = _parts(value, path)
            if len(parts) > capacity:
                raise ValueError(f"{path}: expected a list of at most {capacity} elements")
            body = tuple(c for i, part in enumerate(parts) for c in encode(item, part, f"{path}[{i}]"))
            return (len(parts), *body, *(item.blank * (capacity - len(parts))))
        case RecordShape():
            names = [name for name, _, _ in shape.fields]
            fields = cast("Mapping[str, Any]", value)
            if not isinstance(value, Mapping) or set(fields) != set(names):
                raise ValueError(f"{path}: expected the fields {', '.join(names)}")
            return tuple(c for name, _, inner in shape.fields for c in encode(inner, fields[name], f"{path}.{name}"))


def _parts(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{path}: expected a list")
    return cast("list[Any]", value)


def _encode_set(count: int, value: Any, path: str) -> int:
    members = cast("frozenset[Any]", value) if isinstance(value, set | frozenset) else None
    if members is None or not all(type(i) is int and 0 <= i < count for i in members):
        raise ValueError(f"{path}: {value!r} is not a set of members 0..{count - 1}")
    return sum(1 << i for i in members)


def _encode_leaf(leaf: Leaf, value: Any, path: str) -> int:
    if value is None and leaf.maybe:
        return NONE
    if leaf.enum is not None and isinstance(value, str) and value in leaf.enum.__members__:
        return int(leaf.enum[value])
    wanted = bool if leaf.kind == "bool" else int
    if type(value) is not wanted or not max(leaf.low, 0 if leaf.maybe else leaf.low) <= value <= leaf.high:
        raise ValueError(f"{path}: {value!r} is not in {describe_leaf(leaf)}")
    return int(value)


def describe_leaf(leaf: Leaf) -> str:
    """The range of a cell, in words."""
    if leaf.enum is not None:
        text = "{" + ", ".join(member.name for member in leaf.enum) + "}"
    elif leaf.kind == "bool":
        text = "{False, True}"
    else:
        text = f"{max(leaf.low, 0) if leaf.maybe else leaf.low}..{leaf.high}"
    return f"{text} or None" if leaf.maybe else text


def changes(shape: Shape, before: State, after: State, path: str = "", at: int = 0) -> Iterator[tuple[str, Any, Any]]:
    """What differs between two states: (path, value before, value after), down to single fields, sets and sequences."""
    if before[at : at + shape.size] == after[at : at + shape.size]:
        return
    match shape:
        case ArrayShape(count, item, _):
            for i in range(count):
                yield from changes(item, before, after, f"{path}[{i}]", at + i * item.size)
        case RecordShape():
            for name, offset, inner in shape.fields:
                yield from changes(inner, before, after, f"{path}.{name}" if path else name, at + offset)
        case _:
            yield path, decode(shape, before, at), decode(shape, after, at)
