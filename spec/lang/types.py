"""The types a state is built from, as they are written in a spec (sizes still open); `layout.py` fixes the sizes."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from .bounds import Count, Index, Number

RESERVED = frozenset({"clear"})
"""What every place has already, so that no field can."""


class Type:
    """Base of the types; an `IntEnum` class is a type too."""


@dataclass(frozen=True)
class Int(Type):
    """A whole number from `low` to `high`, both included; as a parameter, every such number is tried."""

    low: Number | int
    high: Number | int


class Bool(Type):
    """True or false; written without brackets."""


@dataclass(frozen=True)
class Member(Type):
    """A member of an index; written as the index itself."""

    index: Index


@dataclass(frozen=True)
class Maybe(Type):
    """A member of an index, or a number from 0, or None."""

    item: Type

    def __class_getitem__(cls, item: Any) -> Maybe:
        inner = as_type(item)
        if not isinstance(inner, Member | Int | EnumType):
            raise TypeError("Maybe[...] takes an index, an enumeration or an Int from 0 on")
        return cls(inner)


@dataclass(frozen=True)
class EnumType(Type):
    """An enumeration whose members are numbered from 0 without gaps."""

    enum: type[IntEnum]


@dataclass(frozen=True)
class Array(Type):
    """One element for each member of an index, or for each number below a bound."""

    size: Number | int
    item: Type

    def __class_getitem__(cls, of: tuple[Any, Any]) -> Array:
        size, item = _two(of, "Array[size, element]")
        return cls(_size(size), as_type(item))


@dataclass(frozen=True)
class Seq(Type):
    """A sequence of at most `capacity` elements."""

    item: Type
    capacity: Number | int

    def __class_getitem__(cls, of: tuple[Any, Any]) -> Seq:
        item, capacity = _two(of, "Seq[element, capacity]")
        return cls(as_type(item), _size(capacity))


@dataclass(frozen=True)
class SetOf(Type):
    """A set of members of an index."""

    index: Index

    def __class_getitem__(cls, index: Any) -> SetOf:
        index = index.index if isinstance(index, Count) else index
        if not isinstance(index, Index):
            raise TypeError(f"SetOf[...] takes an index, not {index!r}")
        return cls(index)


@dataclass(frozen=True)
class Record(Type):
    """Named fields, declared by a class under `@record` or `@state`."""

    name: str
    fields: tuple[tuple[str, Type], ...]
    doc: str = ""


def record(declaration: type) -> Record:
    """Make a record type of a class whose annotations are its fields."""
    if not isinstance(declaration, type):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"a record is declared by a class, not by {declaration!r}")
    annotations = inspect.get_annotations(declaration, eval_str=True)
    fields = tuple((name, _field_type(declaration, name, written)) for name, written in annotations.items())
    for name, _ in fields:
        if name.startswith("_") or name in RESERVED:
            raise TypeError(f"{declaration.__name__}.{name}: a field cannot have this name")
    if not fields:
        raise TypeError(f"{declaration.__name__} declares no fields")
    return Record(declaration.__name__, fields, inspect.getdoc(declaration) or "")


def _field_type(declaration: type, name: str, written: Any) -> Type:
    try:
        return as_type(written)
    except TypeError as error:
        raise TypeError(f"{declaration.__name__}.{name}: {error}") from None


def as_type(written: Any) -> Type:
    """The type that an annotation stands for; `TypeError` where it stands for none."""
    if isinstance(written, Type):
        return written
    if isinstance(written, Index | Count):
        return Member(written.index if isinstance(written, Count) else written)
    if isinstance(written, type):
        if issubclass(written, Bool):
            return Bool()
        if issubclass(written, IntEnum):
            if [int(member) for member in written] != list(range(len(written))):
                raise TypeError(f"{written.__name__}: members of an enumeration are numbered 0, 1, 2, … without gaps")
            return EnumType(written)
    raise TypeError(f"{written!r} is not a type of the spec language")


def _two(of: Any, form: str) -> tuple[Any, Any]:
    if not isinstance(of, tuple) or len(of) != 2:  # pyright: ignore[reportUnknownArgumentType]
        raise TypeError(f"write {form}")
    return of  # pyright: ignore[reportUnknownVariableType]


def _size(written: Any) -> Number | int:
    if isinstance(written, Count):
        return written.index
    if isinstance(written, Number | int) and not isinstance(written, bool):
        return written
    raise TypeError(f"{written!r} is not a size: use a number, a bound or an index")
