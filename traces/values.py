"""State values as ITF writes them, and the types of them in Apalache's notation.

Whole numbers and members of an index are `{"#bigint": "3"}`, sets `{"#set": […]}`, arrays and sequences lists, records
objects, members of an enumeration strings. Where None is possible, a value is a variant as Apalache and Quint write it:
`{"tag": "Some", "value": …}` or `{"tag": "None", "value": "U_OF_UNIT"}`.
"""

from __future__ import annotations

from typing import Any

from ..spec.lang import State
from ..spec.lang.layout import NONE, ArrayShape, Leaf, RecordShape, SeqShape, SetShape, Shape, encode
from .untyped import is_list, is_object

UNIT = "U_OF_UNIT"
"""Apalache's only value of the type UNIT (src/tla/Variants.tla)."""


def to_itf(shape: Shape, cells: State, at: int = 0) -> Any:
    """The value that starts at cell `at`, ready for JSON."""
    match shape:
        case Leaf():
            return _leaf_to_itf(shape, cells[at])
        case SetShape(_, count):
            return {"#set": [big(i) for i in range(count) if cells[at] >> i & 1]}
        case ArrayShape(count, item, _):
            return [to_itf(item, cells, at + i * item.size) for i in range(count)]
        case SeqShape(_, item):
            return [to_itf(item, cells, at + 1 + i * item.size) for i in range(cells[at])]
        case RecordShape():
            return {name: to_itf(inner, cells, at + offset) for name, offset, inner in shape.fields}


def big(number: int) -> dict[str, str]:
    """A whole number in ITF."""
    return {"#bigint": str(number)}


def _leaf_to_itf(leaf: Leaf, cell: int) -> Any:
    if leaf.maybe and cell == NONE:
        return {"tag": "None", "value": UNIT}
    if leaf.kind == "bool":
        value: Any = bool(cell)
    else:
        value = leaf.enum(cell).name if leaf.enum is not None else big(cell)
    return {"tag": "Some", "value": value} if leaf.maybe else value


def from_itf(shape: Shape, value: Any, path: str) -> State:
    """The cells of an ITF value; `ValueError` names the path that does not fit the shape."""
    return encode(shape, _plain(shape, value, path), path)


def _plain(shape: Shape, value: Any, path: str) -> Any:
    match shape:
        case Leaf():
            return _plain_leaf(shape, value, path)
        case SetShape():
            return frozenset(_number(member, path) for member in _tagged(value, "#set", path))
        case ArrayShape(count, item, _):
            return [_plain(item, part, f"{path}[{i}]") for i, part in enumerate(_elements(value, count, path))]
        case SeqShape(_, item):
            return [_plain(item, part, f"{path}[{i}]") for i, part in enumerate(_list(value, path))]
        case RecordShape():
            if not is_object(value):
                raise ValueError(f"{path}: expected an object with the fields of {shape.name}")
            inner = {name: part for name, _, part in shape.fields}
            return {
                name: _plain(inner[name], part, f"{path}.{name}") if name in inner else part for name, part in value.items()
            }


def _plain_leaf(leaf: Leaf, value: Any, path: str) -> Any:
    if leaf.maybe:
        if not is_object(value) or value.get("tag") not in ("None", "Some"):
            raise ValueError(f'{path}: expected {{"tag": "Some", "value": …}} or {{"tag": "None", …}}')
        if value["tag"] == "None":
            return None
        value = value.get("value")
    if leaf.kind == "bool" or leaf.enum is not None:
        if not isinstance(value, bool if leaf.kind == "bool" else str):
            raise ValueError(f"{path}: {_short(value)} is not a {'truth value' if leaf.kind == 'bool' else 'name'}")
        return value
    return _number(value, path)


def _number(value: Any, path: str) -> int:
    digits = value.get("#bigint") if is_object(value) else None
    if isinstance(digits, str) and len(digits) <= 40:
        try:
            return int(digits)
        except ValueError:
            pass
    raise ValueError(f'{path}: {_short(value)} is not a whole number; ITF writes {{"#bigint": "3"}}')


def _tagged(value: Any, tag: str, path: str) -> list[Any]:
    if not is_object(value) or tag not in value:
        raise ValueError(f'{path}: {_short(value)} is not an ITF value of the form {{"{tag}": […]}}')
    return _list(value[tag], path)


def _elements(value: Any, count: int, path: str) -> list[Any]:
    """An array as a list, or as the function 0..count-1 that other tools write."""
    if not is_object(value):
        return _list(value, path)
    pairs = [_list(pair, path) for pair in _tagged(value, "#map", path)]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"{path}: a #map holds pairs of key and value")
    by_key = {_number(key, path): part for key, part in pairs}
    if sorted(by_key) != list(range(count)):
        raise ValueError(f"{path}: expected the keys 0 to {count - 1}")
    return [by_key[i] for i in range(count)]


def _list(value: Any, path: str) -> list[Any]:
    if not is_list(value):
        raise ValueError(f"{path}: {_short(value)} is not a list")
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def type_in_apalache(shape: Shape) -> str:
    """The type of a shape in Apalache's notation (`#meta.varTypes`)."""
    match shape:
        case Leaf():
            inner = "Bool" if shape.kind == "bool" else "Int" if shape.enum is None else "Str"
            return f"Some({inner}) | None(UNIT)" if shape.maybe else inner
        case SetShape():
            return "Set(Int)"
        case ArrayShape(_, item, _) | SeqShape(_, item):
            return f"Seq({type_in_apalache(item)})"
        case RecordShape():
            return "{ " + ", ".join(f"{name}: {type_in_apalache(inner)}" for name, _, inner in shape.fields) + " }"
