"""Partial observations, as logs have them: checked against the words of a spec, and compared with what a state shows.

An object says something of the keys that it has, and nothing of others; a list is whole, or an object of some of its
elements by member or position. Members are labels or numbers, members of an enumeration names, sets lists.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from ...spec.lang import BoundSpec, Index
from ...spec.lang.layout import ArrayShape, Leaf, RecordShape, SeqShape, SetShape, Shape, describe_leaf
from ...traces.driver import ANYTHING
from ...traces.untyped import is_list, is_object
from .differences import ABSENT
from .errors import ConformError
from .observer import Observer
from .result import Difference


class Vocabulary:
    """What can be said of the states of a bound spec: by its `@observed` function, else of the decoded state."""

    def __init__(self, bound: BoundSpec) -> None:
        self.bound = bound
        self.shown = Observer(bound).expected
        self.indices = {name: b for name, b in bound.spec.bounds.items() if isinstance(b, Index)}
        self.letters = {
            index.label(member): member
            for name, index in self.indices.items()
            for member in range(int(bound.values[name]))
            if not index.label(member).isdecimal()
        }
        self.names = None if bound.spec.observed is None else self._observed_names()

    def _observed_names(self) -> tuple[str, ...]:
        names: dict[str, None] = {}
        for _, _, state in self.bound.initial():
            shown: Any = self.shown(state)
            if not isinstance(shown, Mapping):
                raise ConformError(f"{self.bound.spec.name}: its @observed function returns {type(shown).__name__}, not a dict")
            names |= dict.fromkeys(map(str, cast("Mapping[Any, Any]", shown)))
        return tuple(names)

    def check(self, observation: Mapping[str, Any], where: str) -> None:
        """`ValueError` where an observation names or holds something that no state shows.

        With an `@observed` function only the names at its top are known: those that an initial state shows.
        """
        if self.names is None:
            self._check(self.bound.shape, observation, where)
            return
        for name in observation:
            if name not in self.names:
                raise ValueError(f"{where}: {self.bound.spec.name} shows nothing named {name!r}; {nearest(name, self.names)}")

    def _check(self, shape: Shape, value: Any, path: str) -> None:
        match shape:
            case Leaf():
                self._check_leaf(shape, value, path)
            case SetShape(index, count):
                if not is_list(value):
                    raise ValueError(f"{path}: {brief(value)} is not a list; a set is written as the list of its members")
                members = [self.member(self.indices.get(index), count, part, path) for part in value]
                if len(set(members)) < len(members):
                    raise ValueError(f"{path}: {brief(value)} names a member twice; a set has each once")
            case ArrayShape(count, item, index):
                if is_list(value) and len(value) != count:
                    raise ValueError(
                        f"{path}: a list of {len(value)}, where there are {count}; give all, or some as "
                        f'{{"{self.label(index, 0)}": …}}'
                    )
                for key, part in _parts(value, path):
                    self._check(item, part, f"{path}[{self.label(index, self.member_of(index, count, key, path))}]")
            case SeqShape(capacity, item):
                for key, part in _parts(value, path):
                    position = self.member(None, capacity, key, path)
                    self._check(item, part, f"{path}[{position}]")
            case RecordShape():
                self._check_record(shape, value, path)

    def _check_record(self, shape: RecordShape, value: Any, path: str) -> None:
        if not is_object(value):
            raise ValueError(f"{path}: {brief(value)} is not an object with fields of {shape.name}")
        for name, part in value.items():
            found = shape.field(name)
            if found is None:
                raise ValueError(f"{path}: {shape.name} has no {name!r}; {nearest(name, [n for n, _, _ in shape.fields])}")
            self._check(found[1], part, f"{path}.{name}")

    def _check_leaf(self, leaf: Leaf, value: Any, path: str) -> None:
        if value is None and leaf.maybe:
            return
        if leaf.enum is not None:
            if not isinstance(value, str) or value not in leaf.enum.__members__:
                raise ValueError(f"{path}: {brief(value)} is not in {describe_leaf(leaf)}{_meant(value, leaf)}")
        elif leaf.kind == "index":
            self.member_of(leaf.index, leaf.high + 1, value, path)
        elif leaf.kind == "bool":
            if not isinstance(value, bool):
                raise ValueError(f"{path}: {brief(value)} is no truth value; write true or false")
        elif type(value) is not int or not leaf.low <= value <= leaf.high:
            raise ValueError(f"{path}: {brief(value)} is not in {describe_leaf(leaf)} (at these bounds)")

    def label(self, index: str | None, member: int) -> str:
        """How a member of an index is shown."""
        return self.indices[index].label(member) if index in self.indices else str(member)

    def member_of(self, index: str | None, count: int, value: Any, path: str) -> int:
        """The number of a member given by label or number, of an index by its name."""
        return self.member(self.indices.get(index or ""), count, value, path)

    def member(self, index: Index | None, count: int, value: Any, path: str) -> int:
        """The number of a member given by label or number; `ValueError` where there are only `count`."""
        number = self.number(value)
        if number is None or not 0 <= number < count:
            what, label = ("position", str) if index is None else (f"member of {index.name}", index.label)
            known = "there is none" if count == 0 else label(0) if count == 1 else f"{label(0)} to {label(count - 1)}"
            more = "" if index is None else f"; are the bounds too small? (--bounds {index.name}={count})"
            raise ValueError(f"{path}: {brief(value)} is no {what} ({known}){more}")
        return number

    def number(self, value: Any) -> int | None:
        """The number that a number, its digits or a letter stands for, or None."""
        if isinstance(value, str):
            if value in self.letters:
                return self.letters[value]
            return int(value) if value.isascii() and value.isdecimal() and len(value) < 10 else None
        return value if type(value) is int else None

    def matches(self, said: Any, shown: Any) -> bool:
        """Whether a state that shows `shown` agrees with all that an observation says."""
        if type(said) is type(shown) and not isinstance(said, dict | list):
            return said == shown
        if shown is ANYTHING:
            return True
        if is_object(said) and isinstance(shown, Mapping | list | tuple):
            return all(self.matches(part, self._part(cast("Any", shown), key)) for key, part in said.items())
        if is_list(said) and isinstance(shown, list | tuple):
            parts = cast("Sequence[Any]", shown)
            return len(said) == len(parts) and all(map(self.matches, said, parts))
        if is_list(said) and isinstance(shown, set | frozenset):
            members = cast("frozenset[Any]", shown)
            return len(said) == len(members) and all(any(self.matches(part, m) for part in said) for m in members)
        if isinstance(said, bool) or isinstance(shown, bool):
            return False
        if isinstance(said, str) and isinstance(shown, int):
            return self.number(said) == shown
        return said is None if shown is ABSENT else said == shown

    def differences(self, said: Any, shown: Any, path: str = "") -> Iterator[Difference]:
        """Where they do not match; the state's values spelled as the log spells its own."""
        if self.matches(said, shown):
            return
        if is_object(said) and isinstance(shown, Mapping | list | tuple):
            for key, part in said.items():
                place = _place(path, key, listed=not isinstance(shown, Mapping))
                yield from self.differences(part, self._part(cast("Any", shown), key), place)
        elif is_list(said) and isinstance(shown, list | tuple) and any(is_object(part) for part in said):
            yield from self._elements(said, cast("Sequence[Any]", shown), path)
        else:
            yield Difference(path, self._spelled(shown, said), said)

    def _elements(self, said: list[Any], shown: Sequence[Any], path: str) -> Iterator[Difference]:
        for position in range(max(len(said), len(shown))):
            place = f"{path}[{position}]"
            if position >= len(said):
                yield Difference(place, shown[position], ABSENT)
            elif position >= len(shown):
                yield Difference(place, ABSENT, said[position])
            else:
                yield from self.differences(said[position], shown[position], place)

    def _part(self, shown: Mapping[Any, Any] | Sequence[Any], key: str) -> Any:
        """The part of what a state shows that a key of JSON, which is a string, stands for."""
        number = self.number(key)
        if isinstance(shown, Mapping):
            return shown[key] if key in shown else shown.get(number, ABSENT)
        return shown[number] if number is not None and number < len(shown) else ABSENT

    def _spelled(self, shown: Any, said: Any) -> Any:
        """A shown value with letters for members, where the log has letters."""
        parts = said if is_list(said) else [said]
        if not any(isinstance(part, str) and part in self.letters for part in parts):
            return shown
        letters = {number: letter for letter, number in self.letters.items()}
        if isinstance(shown, list | tuple | set | frozenset):
            return [letters.get(part, part) if type(part) is int else part for part in _ordered(cast("Any", shown))]
        return letters.get(shown, shown) if type(shown) is int else shown


def _parts(value: Any, path: str) -> Iterable[tuple[Any, Any]]:
    if is_object(value):
        return value.items()
    if is_list(value):
        return enumerate(value)
    raise ValueError(f"{path}: {brief(value)} is neither a list nor an object of some of its elements")


def _ordered(values: Iterable[Any]) -> list[Any]:
    return sorted(values) if isinstance(values, set | frozenset) else list(values)


def _place(path: str, key: str, *, listed: bool) -> str:
    if not path:
        return key
    return f"{path}[{key}]" if listed or key.isdecimal() or len(key) == 1 else f"{path}.{key}"


def _meant(value: Any, leaf: Leaf) -> str:
    close = difflib.get_close_matches(str(value), leaf.enum.__members__ if leaf.enum is not None else (), 1)
    return f"; did you mean {close[0]}?" if close else ""


def nearest(name: str, known: Iterable[str]) -> str:
    """What somebody who wrote an unknown name may have meant: the closest known one, else all of them."""
    names = list(known)
    close = difflib.get_close_matches(name, names, 1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known are {', '.join(names)}" if names else "there are none"


def brief(value: Any) -> str:
    """A value as JSON has it, cut to what fits in a message."""
    import json

    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 60 else f"{text[:57]}..."
