"""Where two observations differ: path by path, in words that a reader finds again in both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from .result import Difference


class _Absent:
    """Stands where one side has nothing; there is one of it, also of what another process sends."""

    def __repr__(self) -> str:
        return "absent"

    def __reduce__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()
"""What a side shows that has no such entry."""


def differences(spec: Any, implementation: Any, path: str = "") -> tuple[Difference, ...]:
    """Every place at which two values differ; empty if and only if they are equal.

    Mappings and lists are gone into (a tuple of pairs with different names counts as a mapping); sets and lists of
    scalars, such as queues and tables, are shown whole.
    """
    return tuple(_differences(spec, implementation, path))


def _differences(spec: Any, implementation: Any, path: str) -> Iterator[Difference]:
    if spec is not ABSENT and implementation is not ABSENT and spec == implementation:
        return
    ours, theirs = _named(spec), _named(implementation)
    if ours is not None and theirs is not None and ours != theirs:
        yield from _of_mappings(ours, theirs, path)
    elif type(spec) is type(implementation) and _is_deep(spec) and _is_deep(implementation):
        yield from _of_sequences(spec, implementation, path)
    else:
        yield Difference(path or "value", spec, implementation)


def _of_mappings(spec: Mapping[Any, Any], implementation: Mapping[Any, Any], path: str) -> Iterator[Difference]:
    for key in (*spec, *(key for key in implementation if key not in spec)):
        yield from _differences(spec.get(key, ABSENT), implementation.get(key, ABSENT), _entry(path, key))


def _of_sequences(spec: Sequence[Any], implementation: Sequence[Any], path: str) -> Iterator[Difference]:
    for number in range(max(len(spec), len(implementation))):
        ours, theirs = (side[number] if number < len(side) else ABSENT for side in (spec, implementation))
        yield from _differences(ours, theirs, f"{path}[{number}]")


def _entry(path: str, key: object) -> str:
    """The path of an entry: names of fields after a dot, members and everything else in brackets."""
    if not (isinstance(key, str) and key.isidentifier() and key[0].islower()):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _named(value: Any) -> Mapping[Any, Any] | None:
    """A value as a mapping: one, or a tuple of (name, value) as digests have them; None for any other."""
    if isinstance(value, Mapping):
        return cast("Mapping[Any, Any]", value)
    if not isinstance(value, tuple) or not value:
        return None
    pairs = cast("tuple[Any, ...]", value)
    if not all(isinstance(pair, tuple) and len(cast("tuple[Any, ...]", pair)) == 2 for pair in pairs):
        return None
    names = {name for name, _ in pairs if isinstance(name, str)}
    return dict(pairs) if len(names) == len(pairs) else None


def _is_deep(value: Any) -> bool:
    """Whether a value is a list or tuple that has more than scalars in it, or nothing at all."""
    if not isinstance(value, list | tuple):
        return False
    parts = cast("Sequence[Any]", value)
    return not parts or any(isinstance(part, list | tuple | Mapping | set | frozenset) for part in parts)
