"""The state of a release's objects, copied and put back in place: whatever they are, and whatever fields they have.

From some roots the walk follows fields, slots, containers, tuples, bound methods and closures. Values that never change once
they are made (numbers, strings, configurations, functions, outputs of steps) are kept by reference; everything else is written
back into the same objects, so that views and references among them stay what they are.

Kept by reference, too, are objects into which Python cannot see, such as locks, and what a closure's variable is bound to
later. An iterator, which changes and cannot be put back, is refused.
"""

from __future__ import annotations

import enum
import types
from array import array
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import attrgetter
from typing import Any, cast

from .errors import ReleaseError

PLAIN: tuple[type, ...] = (int, float, str, bytes, bool, type(None), complex, range)
BY_REFERENCE: tuple[type, ...] = (*PLAIN, type, enum.Enum, types.BuiltinFunctionType, types.ModuleType)
"""Types whose values are kept by reference, with their subclasses."""

Record = tuple[Any, int, Any]
"""An object, how it is written back, and its content."""
_DICT, _LIST, _SET, _DEQUE, _FIELDS, _SLOTS, _NUMBERS, _FOLLOWED = range(8)
_EXACT = {dict: _DICT, defaultdict: _DICT, OrderedDict: _DICT, list: _LIST, set: _SET, deque: _DEQUE, tuple: _FOLLOWED}
_BASES: tuple[tuple[type, int], ...] = (
    (dict, _DICT), (deque, _DEQUE), (set, _SET), (list, _LIST), (bytearray, _NUMBERS), (array, _NUMBERS),
    (tuple, _FOLLOWED), (frozenset, _FOLLOWED), (partial, _FOLLOWED),
    (types.FunctionType, _FOLLOWED), (types.MethodType, _FOLLOWED),
)  # fmt: skip
_ABSENT = enum.Enum("Absent", ["ABSENT"]).ABSENT
"""Stands for a slot without a value."""


class Memory:
    """Copies what hangs on the `roots`. Objects of `constant` types are not followed."""

    def __init__(self, roots: Iterable[Any], constant: Iterable[type] = ()) -> None:
        self.roots = list(roots)
        self._parts: dict[type, tuple[int, ...]] = {made: (kind,) for made, kind in _EXACT.items()}
        self._parts |= dict.fromkeys((*PLAIN, *constant), ())
        self._slots: dict[type, tuple[str, ...]] = {}
        self._getters: dict[type, Callable[[Any], Any]] = {}

    def save(self) -> Saved:
        """Everything that can change, as it is now."""
        records: list[Record] = []
        seen: set[int] = set()
        todo: list[Any] = list(self.roots)
        parts_of = self._parts
        content: Any
        while todo:
            one = todo.pop()
            made: type = one.__class__
            parts = parts_of[made] if made in parts_of else self._learn(one)
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
                    todo += _inside(one)
                    continue
                elif kind == _NUMBERS:
                    records.append((one, kind, one[:] if made is bytearray or made is array else one.copy()))
                    continue
                elif kind == _SLOTS:
                    content = values = self._slot_values(one, made)
                else:
                    content = values = tuple(one)
                records.append((one, kind, content))
                if content:
                    todo += [value for value in values if parts_of.get(value.__class__, True)]
        return Saved(self, records)

    def _slot_values(self, one: Any, made: type) -> tuple[Any, ...]:
        try:
            found = self._getters[made](one)
        except AttributeError:
            return tuple([getattr(one, name, _ABSENT) for name in self._slots[made]])
        return found if len(self._slots[made]) > 1 else (found,)

    def _learn(self, one: Any) -> tuple[int, ...]:
        """How objects of a type that was not met before are copied: nothing for one that is kept by reference."""
        made: type = one.__class__
        self._parts[made] = parts = self._kinds_of(made)
        return parts

    def _kinds_of(self, made: type) -> tuple[int, ...]:
        if issubclass(made, BY_REFERENCE):
            return ()
        kinds = [kind for base, kind in _BASES if issubclass(made, base)][:1]
        if kinds == [_FOLLOWED] and made in (tuple, frozenset, partial, types.FunctionType, types.MethodType):
            return (_FOLLOWED,)
        if hasattr(made, "__array_interface__"):
            return (_NUMBERS,)
        slots = tuple(dict.fromkeys(name for base in made.__mro__ for name in _declared_slots(base)))
        if slots:
            self._slots[made], self._getters[made] = slots, attrgetter(*slots)
            kinds.append(_SLOTS)
        if made.__dictoffset__:
            kinds.append(_FIELDS)
        if not kinds and issubclass(made, Iterator):
            name = f"{made.__module__}.{made.__qualname__}"
            raise ReleaseError(f"the scheduler holds a {name}, an iterator, which cannot be put back as it was; use a number")
        return tuple(kinds)

    def slots(self, made: type) -> tuple[str, ...]:
        """The slots of a type that are copied; none of one that is kept by reference."""
        if made not in self._parts:
            self._parts[made] = self._kinds_of(made)
        return self._slots.get(made, ())

    def is_copied(self, one: Any) -> bool:
        """Whether an object is copied by fields or slots alone."""
        made: type = one.__class__
        parts = self._parts[made] if made in self._parts else self._learn(one)
        return bool(parts) and set(parts) <= {_FIELDS, _SLOTS}


def _inside(one: Any) -> Iterable[Any]:
    """What an object leads to that does not change itself."""
    if isinstance(one, types.MethodType):
        return (one.__self__,)
    if isinstance(one, types.FunctionType):
        return [cell.cell_contents for cell in one.__closure__ or () if _is_bound(cell)]
    if isinstance(one, partial):
        return (cast(Any, one).func, cast(Any, one).args, cast(Any, one).keywords)
    return cast("Iterable[Any]", one)


def _is_bound(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _declared_slots(base: type) -> Iterable[str]:
    declared = base.__dict__.get("__slots__", ())
    names = (declared,) if isinstance(declared, str) else cast("Iterable[str]", declared)
    return [name for name in names if name not in ("__dict__", "__weakref__")]


class Saved:
    """A saved state, which only the process that it was saved in can restore."""

    __slots__ = ("memory", "records")

    def __init__(self, memory: Memory, records: list[Record]) -> None:
        self.memory = memory
        self.records = records

    def restore(self) -> None:
        """Write everything back."""
        for one, kind, content in self.records:
            if kind == _FIELDS:
                fields = one.__dict__
                fields.update(content)
                if len(fields) != len(content):
                    for name in [name for name in fields if name not in content]:
                        del fields[name]
            elif kind == _SLOTS:
                self._fill_slots(one, content)
            elif kind == _LIST:
                one[:] = content
            elif kind == _NUMBERS:
                one[... if hasattr(one, "__array_interface__") else slice(None)] = content
            else:
                one.clear()
                (one.extend if kind == _DEQUE else one.update)(content)

    def _fill_slots(self, one: Any, content: tuple[Any, ...]) -> None:
        for name, value in zip(self.memory.slots(one.__class__), content, strict=True):
            if value is not _ABSENT:
                setattr(one, name, value)
            elif hasattr(one, name):
                delattr(one, name)
