"""Values as nested tuples that do not depend on how a run came to them, nor on the names that members happen to have."""

from __future__ import annotations

import random
import types
import weakref
from array import array
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from ..vllm.memory import CODE, VIEWS, inside

if TYPE_CHECKING:
    from .vllm_state import State

PLAIN = (int, float, str, bytes, bool, type(None), complex)
REQUEST, BLOCK, GONE = "(request)", "(block)", "(gone)"
"""Before the name of a request or block, and before the number of a request that has ended among those met.

In brackets, because nothing else begins so: a dict of a user's can well have the key "request".
"""
ABSENT = "(absent)"
"""In the place of a field that is not there."""
ENOUGH = 2
"""So many entries that are alike, and speak only of requests that have ended, are as good as any more."""

_PLAIN_VALUE: Mapping[type, Any] = {str: str.__str__, int: int.__int__, float: float.__float__, bytes: bytes.__bytes__}
Place = tuple[str | int, ...]
"""Where in a value something stands: names of fields, and positions."""

_STEPS = "vllm.v1.core.sched.output"


class Frozen:
    """Makes nested tuples of values, which have all that can differ; an object that is met again is said by where it was first.

    A number that could be that of a request or a block is `named`: then it has their names beside it.
    """

    def __init__(self, state: State, requests: Sequence[int], blocks: Sequence[int], *, named: bool) -> None:
        self.state, self.requests, self.blocks, self.named = state, requests, blocks, named
        self.met: dict[int, tuple[Place, Any]] = {}

    def of(self, value: Any, place: Place = ()) -> Hashable:
        """A value's tuple."""
        made = _type(value)
        if made is str:
            return self.state.request_name(value, self.requests) or value
        if made in PLAIN:
            return self._number(value) if made is int else value if value == value else (made.__name__, repr(value))
        if isinstance(value, Enum):
            return made.__name__, value.name or str(value)
        for plain in (str, int, float, bytes):
            if isinstance(value, plain):
                return made.__name__, self.of(_PLAIN_VALUE[plain](value))
        if isinstance(value, self.state.request_type):
            return self.of(value.request_id)
        name = self.state.block_name(value, self.blocks) if isinstance(value, self.state.block_type) else None
        if name is not None:
            return BLOCK, name
        if made not in (tuple, frozenset):
            if id(value) in self.met:
                return "met", self.met[id(value)][0]
            self.met[id(value)] = place, value
        return self._compound(value, place)

    def _number(self, value: int) -> Hashable:
        names = [one[value] for one in (self.requests, self.blocks) if self.named and 0 <= value < len(one)]
        return (value, *names) if names else value

    def _compound(self, value: Any, place: Place) -> Hashable:
        made = _type(value)
        fields = sorted(self.state.fields(value).items()) if self.state.is_followed(value) else []
        if made.__module__ == _STEPS:  # tokens are said by the request's name
            fields = [(name, one) for name, one in fields if not name.endswith("token_ids")]
        told = [(f".{name}", self.of(one, (*place, name))) for name, one in fields]
        return (made.__name__, *told, *self._content(value, place))

    def _content(self, value: Any, place: Place) -> Iterator[Hashable]:
        """What is in an object besides its fields."""
        if isinstance(value, Mapping):
            items = cast("Mapping[Any, Any]", value).items()
            yield from [(self.of(key, (*place, i, 0)), self.of(one, (*place, i, 1))) for i, (key, one) in enumerate(items)]
        elif isinstance(value, set | frozenset):
            ordered = sorted(cast("set[Any] | frozenset[Any]", value), key=self._by_content)
            yield from sorted(self._each(ordered, place), key=repr)
        elif isinstance(value, list | tuple | deque):
            yield from self._each(cast("Sequence[Any]", value), place)
        elif isinstance(value, weakref.ref):
            yield self.of(value(), (*place, 0))
        elif isinstance(value, random.Random):
            yield self.of(value.getstate(), (*place, 0))
        elif isinstance(value, (*CODE, *VIEWS, types.CellType)):
            yield from _written(value)
            yield from self._each(inside(value), place)
        else:
            yield from self._data(value, place)

    def _by_content(self, one: Any) -> tuple[int, str]:
        """A key that puts the members of a set into the same order in every process; ids of requests by their age."""
        if isinstance(one, str):
            return len(one), one
        return 0, repr(Frozen(self.state, self.requests, self.blocks, named=self.named).of(one))

    def _each(self, values: Iterable[Any], place: Place) -> list[Hashable]:
        return [self.of(one, (*place, i)) for i, one in enumerate(values)]

    def _data(self, value: Any, place: Place) -> Iterator[Hashable]:
        """The content of arrays, tensors and what is known by its value only."""
        made = _type(value)
        if made in self.state.constant:
            return
        if isinstance(value, bytearray):
            yield bytes(value)
        elif isinstance(value, array):
            yield from (value.typecode, *self._each(cast("array[Any]", value), place))
        elif _is_array(made):
            yield from (str(value.dtype), tuple(value.shape), self.of(value.tolist(), (*place, 0)))
        elif isinstance(value, type | types.ModuleType):
            yield getattr(value, "__module__", ""), value.__name__
        elif made is slice or (made.__hash__ not in (None, object.__hash__) and self.state.is_opaque(value)):
            yield repr(value)


def _is_array(made: type) -> bool:
    """Whether objects of a type are arrays or tensors, as numpy's and torch's are."""
    return all(any(name in vars(base) for base in made.__mro__) for name in ("dtype", "shape", "tolist"))


def _written(code: Any) -> tuple[Hashable, ...]:
    """Where a function was written."""
    if isinstance(code, types.BuiltinFunctionType):
        return str(code.__module__), code.__qualname__
    function = code.__func__ if isinstance(code, types.MethodType) else code
    if not isinstance(function, types.FunctionType):
        return ()
    where = function.__code__
    return function.__module__, function.__qualname__, where.co_firstlineno, where.co_linetable


def changes(path: str, named: Any, now: Any, before: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a frozen value that are not as before, with named numbers: what has not changed names nobody new."""
    if now == before:
        return
    parts = [_parts(one) for one in (named, now, before)]
    if any(len(one) < 2 or len(one) != len(parts[0]) or one[0] != parts[0][0] for one in parts):
        yield path, named
        return
    for i, sides in enumerate(zip(*parts, strict=True)):
        field = _field(sides[0])
        if field is not None and all(_field(side) == field for side in sides):
            yield from changes(path + field, *[side[1] for side in sides])
        else:
            yield from changes(f"{path}[{i - 1}]", *sides)


def _field(value: Any) -> str | None:
    """The name of a frozen field, after a dot; None for what is no field."""
    name = _parts(value)[0] if len(_parts(value)) == 2 else None
    return name if isinstance(name, str) and name.startswith(".") else None


def few_of_the_gone(value: Any) -> Any:
    """Frozen values without the third and further ones of entries that are alike and name only requests that are gone.

    In what has an order they count if they stand in a row. Without that a list that is emptied by a step grows for ever where
    requests come and go between steps.
    """
    return _numbered(_few(value, Counter(_gone_in(value))), {})


def _few(value: Any, mentions: Counter[int]) -> Any:
    if _is_gone(value) or not isinstance(value, tuple):
        return value
    kept: list[Any] = []
    met: Counter[Hashable] = Counter()
    ordered = _parts(value)[:1] not in (("set",), ("frozenset",))
    for entry in _parts(value):
        here = Counter(_gone_in(entry))
        alone = here and all(count == mentions[number] for number, count in here.items()) and not _is_of_the_living(entry)
        alike = _numbered(entry, {}) if alone else None
        if ordered and alike not in met:
            met.clear()
        met[alike] += 1
        if alike is None or met[alike] <= ENOUGH:
            kept.append(_few(entry, mentions) if here else entry)
    return tuple(kept)


def _is_of_the_living(value: Any) -> bool:
    """Whether a value names a request that has not ended, or a block."""
    parts = _parts(value)
    return (len(parts) == 2 and parts[0] in (REQUEST, BLOCK)) or any(map(_is_of_the_living, parts))


def _numbered(value: Any, numbers: dict[int, int]) -> Any:
    """A value in which the requests that are gone are numbered in the order in which they are met."""
    if _is_gone(value):
        return GONE, numbers.setdefault(value[1], len(numbers))
    if isinstance(value, tuple):
        return tuple([_numbered(one, numbers) for one in cast("tuple[Any, ...]", value)])
    return value


def _gone_in(value: Any) -> list[int]:
    """The numbers of requests that are gone, as often as they are mentioned."""
    if _is_gone(value):
        return [value[1]]
    return [number for one in _parts(value) for number in _gone_in(one)]


def _is_gone(value: Any) -> bool:
    return len(_parts(value)) == 2 and value[0] == GONE


def _parts(value: Any) -> tuple[Any, ...]:
    """What is in a tuple; nothing where a value is none."""
    return cast("tuple[Any, ...]", value) if isinstance(value, tuple) else ()


def _type(one: Any) -> type:
    return one.__class__
