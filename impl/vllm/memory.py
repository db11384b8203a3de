"""The state of a release's objects, copied and put back in place: whatever they are, and whatever fields they have.

From some roots the walk follows fields, slots, containers, arrays, tuples, bound methods, functions and their closures. Values
that never change once they are made (numbers, strings, configurations, outputs of steps) are kept by reference; everything
else is written back into the same objects, so that views and references among them stay what they are.

Kept by reference, too, are objects into which Python cannot see, such as locks, and loggers. An iterator, or another object of
that kind that changes and cannot be put back, is refused. What hangs on classes and modules is not looked at.
"""

from __future__ import annotations

import enum
import gc
import logging
import random
import types
from array import array
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Any, cast

import numpy as np

from .errors import ReleaseError

PLAIN: tuple[type, ...] = (int, float, str, bytes, bool, type(None), complex, range)
BY_REFERENCE: tuple[type, ...] = (*PLAIN, type, enum.Enum, types.ModuleType, np.generic, logging.Logger)
"""Types whose values are kept by reference, with their subclasses."""
CHANGING = (
    "__next__",
    "__setitem__",
    "append",
    "add",
    "put",
    "pop",
    "update",
    "write",
    "seed",
    "shuffle",
    "set_state",
    "state",
)
"""What only objects have that change."""

Record = tuple[Any, int, Any]
"""An object, how it is written back, and its content."""
_DICT, _SET, _LIST, _DEQUE, _FIELDS, _SLOTS, _BYTES, _FOLLOWED, _ARRAY, _TENSOR, _CELL, _RANDOM = range(12)
_EXACT = {dict: _DICT, defaultdict: _DICT, OrderedDict: _DICT, list: _LIST, set: _SET, deque: _DEQUE, tuple: _FOLLOWED}
CODE: tuple[type, ...] = (partial, types.FunctionType, types.MethodType, types.BuiltinFunctionType)
_NOTHING: dict[Any, Any] = {}
VIEWS: tuple[type, ...] = (types.MappingProxyType, type(_NOTHING.keys()), type(_NOTHING.values()), type(_NOTHING.items()))
_BASES: tuple[tuple[type, int], ...] = (
    (dict, _DICT), (deque, _DEQUE), (set, _SET), (list, _LIST), (bytearray, _BYTES), (array, _BYTES),
    (np.ndarray, _ARRAY), (types.CellType, _CELL), (random.Random, _RANDOM),
    *((base, _FOLLOWED) for base in (tuple, frozenset, *CODE, *VIEWS)),
)  # fmt: skip
_ABSENT = enum.Enum("Absent", ["ABSENT"]).ABSENT
"""Stands for a slot, or a closure's variable, without a value."""


class Memory:
    """Copies what hangs on the `roots`. Objects of `constant` types are not followed."""

    def __init__(self, roots: Iterable[Any], constant: Iterable[type] = ()) -> None:
        self.roots = list(roots)
        self._parts: dict[type, tuple[int, ...]] = {made: (kind,) for made, kind in _EXACT.items()}
        self._parts |= dict.fromkeys((*PLAIN, *constant), ())
        self._slots: dict[type, tuple[str, ...]] = {}
        self._getters: dict[type, Callable[[Any], Any]] = {}
        self.setters: dict[type, tuple[Callable[[Any, Any], None], ...]] = {}

    def save(self) -> Saved:
        """Everything that can change, as it is now."""
        records: list[Record] = []
        keyed: list[Record] = []
        seen: set[int] = set()
        todo: list[Any] = list(self.roots)
        parts_of = self._parts
        content: Any
        while todo:
            one = todo.pop()
            made: type = one.__class__
            parts = parts_of[made] if made in parts_of else self._learn(made, one, records)
            if not parts or id(one) in seen:
                continue
            seen.add(id(one))
            for kind in parts:
                if kind == _FIELDS:
                    content = one.__dict__.copy()
                    values = content.values()
                elif kind == _DICT:
                    content = dict(one)
                    values = (*content, *content.values())
                elif kind == _FOLLOWED:
                    todo += inside(one)
                    continue
                elif kind == _SLOTS:
                    content = values = self._slot_values(one, made)
                elif kind <= _DEQUE:
                    content = values = tuple(one)
                else:
                    content, values = _copied(one, kind)
                (keyed if kind <= _SET else records).append((one, kind, content))
                if values:
                    todo += [value for value in values if parts_of.get(value.__class__, True)]
        return Saved(self, records + keyed[::-1])

    def _slot_values(self, one: Any, made: type) -> tuple[Any, ...]:
        try:
            found = self._getters[made](one)
        except AttributeError:
            return tuple([getattr(one, name, _ABSENT) for name in self._slots[made]])
        return found if len(self._slots[made]) > 1 else (found,)

    def _learn(self, made: type, one: Any, records: Sequence[Record]) -> tuple[int, ...]:
        """How objects of a type that was not met before are copied: nothing for one that is kept by reference."""
        try:
            return self._kinds(made)
        except ReleaseError as error:
            raise ReleaseError(f"{_place(one, records)}{error}") from None

    def _kinds(self, made: type) -> tuple[int, ...]:
        if made not in self._parts:
            self._parts[made] = self._kinds_of(made)
        return self._parts[made]

    def _kinds_of(self, made: type) -> tuple[int, ...]:
        if issubclass(made, BY_REFERENCE):
            return ()
        kinds = [kind for base, kind in _BASES if issubclass(made, base)][:1]
        if hasattr(made, "copy_") and hasattr(made, "clone"):
            kinds = [_TENSOR]
        slots = {name: slot for base in reversed(made.__mro__) for name, slot in _declared_slots(base)}
        if slots:
            self._slots[made], self._getters[made] = tuple(slots), attrgetter(*slots)
            self.setters[made] = tuple([slot.__set__ for slot in slots.values()])
            kinds.append(_SLOTS)
        if made.__dictoffset__:
            kinds.append(_FIELDS)
        if not kinds and any(hasattr(made, name) for name in CHANGING):
            what = "an iterator, which" if issubclass(made, Iterator) else "which changes and"
            better = "a number, a list, a dict or a random.Random"
            name = f"{made.__module__}.{made.__qualname__}"
            raise ReleaseError(f"the scheduler holds a {name}, {what} cannot be put back as it was; use {better}")
        return tuple(kinds)

    def slots(self, made: type) -> tuple[str, ...]:
        """The slots of a type that are copied; none of one that is kept by reference."""
        self._kinds(made)
        return self._slots.get(made, ())

    def has_fields(self, one: Any) -> bool:
        """Whether fields or slots of an object are copied."""
        parts = self._kinds(one.__class__)
        return _FIELDS in parts or _SLOTS in parts


def _place(one: Any, records: Iterable[Record]) -> str:
    """The field that has an object, where it is one of an object that was met."""
    fields = [(owner, content) for owner, kind, content in records if kind == _FIELDS]
    found = [f"{type(owner).__name__}.{name}" for owner, content in fields for name, value in content.items() if value is one]
    return f"{found[0]}: " if found else ""


def _copied(one: Any, kind: int) -> tuple[Any, Iterable[Any]]:
    """The content of an object of a rarer kind, and the objects in it."""
    if kind == _CELL:
        content = one.cell_contents if _is_bound(one) else _ABSENT
        return content, (content,)
    if kind == _ARRAY:
        return one.copy(), one.ravel().tolist() if one.dtype.hasobject else ()
    if kind == _TENSOR:
        return one.detach().clone(), ()
    return (one.getstate() if kind == _RANDOM else one[:]), ()


def inside(one: Any) -> Iterable[Any]:
    """What an object leads to that does not change itself."""
    if isinstance(one, types.MethodType | types.BuiltinFunctionType):
        return (one.__self__,)
    if isinstance(one, types.FunctionType):
        return (*(one.__closure__ or ()), *(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values())
    if isinstance(one, partial):
        return (cast(Any, one).func, cast(Any, one).args, cast(Any, one).keywords)
    return gc.get_referents(one) if isinstance(one, (*VIEWS, types.CellType)) else cast("Iterable[Any]", one)


def _is_bound(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _declared_slots(base: type) -> Iterable[tuple[str, Any]]:
    """The slots that a class declares, private ones by the names that they get."""
    declared = base.__dict__.get("__slots__", ())
    names = (declared,) if isinstance(declared, str) else cast("Iterable[str]", declared)
    private = f"_{base.__name__.lstrip('_')}"
    mangled = [private + name if name.startswith("__") and not name.endswith("__") else name for name in names]
    return [(name, base.__dict__[name]) for name in mangled if name not in ("__dict__", "__weakref__")]


class Saved:
    """A saved state, which only the process that it was saved in can restore."""

    __slots__ = ("memory", "records")

    def __init__(self, memory: Memory, records: list[Record]) -> None:
        self.memory = memory
        self.records = records

    def restore(self) -> None:
        """Write everything back: sets and dicts last, for hashes can depend on fields, and the innermost of them first."""
        setters = self.memory.setters
        for one, kind, content in self.records:
            if kind == _FIELDS:
                fields = one.__dict__
                fields.update(content)
                if len(fields) != len(content):
                    for name in [name for name in fields if name not in content]:
                        del fields[name]
            elif kind == _SLOTS:
                for put, value in zip(setters[one.__class__], content, strict=True):
                    if value is _ABSENT:
                        _clear(one, put)
                    else:
                        put(one, value)
            elif kind == _LIST:
                one[:] = content
            elif kind <= _DEQUE:
                one.clear()
                (one.extend if kind == _DEQUE else one.update)(content)
            else:
                _put_back(one, kind, content)


def _clear(one: Any, put: Callable[[Any, Any], None]) -> None:
    """Take away what is in a slot, if there is anything."""
    slot: Any = cast(Any, put).__self__
    with suppress(AttributeError):
        slot.__delete__(one)


def _put_back(one: Any, kind: int, content: Any) -> None:
    """Write back the content of an object of a rarer kind."""
    if kind == _CELL and content is not _ABSENT:
        one.cell_contents = content
    elif kind == _CELL and _is_bound(one):
        del one.cell_contents
    elif kind == _TENSOR:
        one.detach().copy_(content)
    elif kind == _RANDOM:
        one.setstate(content)
    elif kind == _BYTES or (kind == _ARRAY and one.flags.writeable):
        one[... if kind == _ARRAY else slice(None)] = content
