"""The state of a driver as a value: everything reachable from its engine and its worker, and what is the same object."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, cast

from fencepost.impl.drivers.kv_names import Life
from fencepost.impl.drivers.reference import ReferenceDriver
from fencepost.impl.engine.simulated_worker import RequestState, Row

CODE = (FunctionType, MethodType, BuiltinFunctionType, type)
PLAIN = (type(None), bool, int, float, str, bytes, Enum)

VIEWS: Mapping[tuple[type, str], Callable[[Any, int], Any]] = {
    (Row, "state"): lambda row, _: row.state.prompt_tags,
    (Row, "tables"): lambda row, size: row.block_ids(size),
}
"""Attributes that need not be the same object as elsewhere, and what of them must be there: a row reads the tags of its
request's prompt, and of its tables what it reaches."""


def kind_of(thing: object) -> type:
    """The class of an object."""
    return type(thing)


def slots(kind: type) -> list[str]:
    """The attributes that instances of a class have by its slots."""
    return [name for base in reversed(kind.__mro__) for name in cast("Sequence[str]", base.__dict__.get("__slots__", ()))]


def attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    """Every attribute of an object by name, of slots and of its dictionary."""
    yield from ((name, getattr(thing, name)) for name in slots(kind_of(thing)) if hasattr(thing, name))
    yield from sorted(getattr(thing, "__dict__", {}).items())


class Graph:
    """Walks over objects; `things` are those that can change, in the order they were met, with the number each has.

    In a saved state only rows lead to what the worker knows of requests, and they read nothing but the tags.
    """

    def __init__(self, block_size: int, *, in_saved: bool = False) -> None:
        self.block_size, self.in_saved = block_size, in_saved
        self.things: list[Any] = []
        self._numbers: dict[int, int] = {}

    def of(self, value: Any) -> Any:
        """A value that is equal for equal graphs: what was met before is said by its number."""
        if isinstance(value, PLAIN):
            return type(value).__name__, value
        if isinstance(value, CODE):
            return "code"
        if isinstance(value, Life):
            return "Life", value.r, value.number, value.prompt, value.group
        if isinstance(value, RequestState) and self.in_saved:
            return "RequestState", self.of(value.prompt_tags)
        if isinstance(value, tuple | frozenset):
            parts = cast("tuple[Any, ...]", value if isinstance(value, tuple) else sorted(cast("frozenset[Any]", value)))
            return type(cast("object", value)).__name__, tuple([self.of(part) for part in parts])
        known = self._numbers.get(id(value))
        if known is not None:
            return "again", known
        self._numbers[id(value)] = len(self.things)
        self.things.append(value)
        return type(value).__name__, self._inside(value)

    def _inside(self, value: Any) -> Any:
        if isinstance(value, list | deque):
            return [self.of(part) for part in cast("list[Any]", value)]
        if isinstance(value, set):
            return [self.of(part) for part in sorted(cast("set[Any]", value))]
        if isinstance(value, dict):
            return [(self.of(key), self.of(part)) for key, part in cast("dict[Any, Any]", value).items()]
        if isinstance(value, BaseException):
            return str(value)
        return [(name, self.of(self._part(value, name, part))) for name, part in attributes(value)]

    def _part(self, thing: Any, name: str, part: Any) -> Any:
        view = VIEWS.get((kind_of(thing), name))
        return part if view is None else view(thing, self.block_size)


ROOTS = ("engine", "worker", "connector", "born", "foreign", "misread", "current")
"""The attributes of a driver that are its state."""


def graph(driver: ReferenceDriver) -> Any:
    """The state of a driver, and of what it drives, as a value."""
    walk = Graph(driver.config.block_size)
    return [(name, walk.of(getattr(driver, name))) for name in ROOTS]


def things(driver: ReferenceDriver) -> list[Any]:
    """Every object of that state that can change, in the order of the graph."""
    walk = Graph(driver.config.block_size)
    for name in ROOTS:
        walk.of(getattr(driver, name))
    return walk.things


def graph_of_saved(saved: Any) -> Any:
    """What is in a saved state, as a value."""
    return Graph(1, in_saved=True).of(saved)
