"""`layout.encode` as functions made once for a shape: the same result, several times faster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, cast

from .layout import ArrayShape, Leaf, RecordShape, SeqShape, SetShape, Shape, State, encode

Writer = Callable[[Any, list[int]], None]
"""Appends the cells of a value; fails in whatever way where the value does not fit."""
_MISFITS = (ValueError, TypeError, KeyError, AttributeError)


@lru_cache(maxsize=32)
def encoder(shape: Shape) -> Callable[[Any], State]:
    """A function that does the same as `encode(shape, value)`: it says where a value does not fit, too."""
    write = _writer(shape)

    def encoded(value: Any) -> State:
        cells: list[int] = []
        try:
            write(value, cells)
        except _MISFITS:
            return encode(shape, value)
        return tuple(cells)

    return encoded


def _writer(shape: Shape) -> Writer:
    match shape:
        case Leaf():
            return _leaf(shape)
        case SetShape():
            return lambda value, cells: cells.extend(encode(shape, value))
        case ArrayShape(count, item, _):
            return _elements(item, count, count)
        case SeqShape(capacity, item):
            return _sequence(_elements(item, 0, capacity), capacity, item.blank)
        case RecordShape():
            return _record(tuple((name, _writer(inner)) for name, _, inner in shape.fields))


def _is_plain(shape: Shape) -> bool:
    return isinstance(shape, Leaf) and not shape.maybe and shape.kind != "bool" and shape.enum is None


def _leaf(leaf: Leaf) -> Writer:
    if _is_plain(leaf):
        return lambda value, cells: cells.append(_number(value, leaf.low, leaf.high))
    return lambda value, cells: cells.extend(encode(leaf, value))


def _number(value: Any, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise ValueError
    return value


def _elements(item: Shape, least: int, most: int) -> Writer:
    """The elements of a list of so many; plain numbers all at once."""
    low, high = (item.low, item.high) if isinstance(item, Leaf) and _is_plain(item) else (0, -1)
    write = _writer(item)

    def elements(value: Any, cells: list[int]) -> None:
        parts = cast("list[Any]", value)
        if type(value) is not list or not least <= len(parts) <= most:
            raise ValueError
        if not parts:
            return
        if low <= high and {*map(type, parts)} == {int} and low <= min(parts) and max(parts) <= high:
            cells.extend(parts)
        else:
            for part in parts:
                write(part, cells)

    return elements


def _sequence(elements: Writer, capacity: int, blank: State) -> Writer:
    def sequence(value: Any, cells: list[int]) -> None:
        cells.append(len(value))
        elements(value, cells)
        cells.extend(blank * (capacity - len(value)))

    return sequence


def _record(fields: tuple[tuple[str, Writer], ...]) -> Writer:
    def record(value: Any, cells: list[int]) -> None:
        if not isinstance(value, Mapping) or len(cast("Mapping[str, Any]", value)) != len(fields):
            raise ValueError
        for name, write in fields:
            write(value[name], cells)

    return record
