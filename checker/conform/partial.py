"""Partial observations, as logs have them: checked against the words of a spec, and compared with what a state shows.

An object says something of the keys that it has, and nothing of others; a list is whole, or an object of some of its
elements by member or position. Members are letters or numbers, members of an enumeration names, sets lists. A letter
stands for a member that the state has, of an index with letters; as a key of an object for any member.
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
from .result import Difference
from .shown import Labelled, LabellingObserver, Names


class Vocabulary:
    """What can be said of the states of a bound spec: by its `@observed` function, else of the decoded state."""

    def __init__(self, bound: BoundSpec) -> None:
        self.bound = bound
        self.shown = LabellingObserver(bound).expected
        self.indices = {name: b for name, b in bound.spec.bounds.items() if isinstance(b, Index)}
        self.letters = {
            index.label(member): member
            for name, index in self.indices.items()
            for member in range(int(bound.values[name]))
            if not index.label(member).isdecimal()
        }
        self.names = None if bound.spec.observed is None else self._observed_names()
        """The names in what the states met so far show; None where the spec's own types say all."""

    def _observed_names(self) -> Names:
        names = Names(self.number, max((int(self.bound.values[name]) for name in self.indices), default=0))
        for _, _, state in self.bound.initial():
            shown: Any = self.shown(state)
            if not isinstance(shown, Mapping):
                raise ConformError(f"{self.bound.spec.name}: its @observed function returns {type(shown).__name__}, not a dict")
            names.see(cast("Mapping[Any, Any]", shown))
        return names

    def check(self, observation: Mapping[str, Any], where: str) -> None:
        """`ValueError` where an observation names or holds something that no state shows.

        With an `@observed` function only the names at its top are known now: those that a state so far shows; for the
        others see `misspelt`.
        """
        if self.names is None:
            self._check(self.bound.shape, observation, where)
            return
        known = self.names.root.names
        for name in observation:
            if name not in known:
                raise ValueError(f"{where}: {self.bound.spec.name} shows nothing named {name!r}; {nearest(name, known)}")

    def misspelt(self) -> tuple[int, str] | None:
        """The line of the first key that no state so far has, and what is wrong with it; None where there is none."""
        found = None if self.names is None else self.names.unknown()
        if found is None:
            return None
        where = found.where[0]
        for key in found.where[1:]:
            where = _place(where, key, listed=False)
        known = nearest(found.key, found.known) if found.known else "its keys are members or positions"
        return found.line, f"{where}: {found.key!r} is in no state up to the end of the log, so it says nothing; {known}"

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
        if (
            number is None
            or not 0 <= number < count
            or (value in self.letters and (index is None or index.label(number) != value))
        ):
            what, label = ("position", str) if index is None else (f"member of {index.name}", index.label)
            known = "there is none" if count == 0 else label(0) if count == 1 else f"{label(0)} to {label(count - 1)}"
            more = "" if index is None else f"; are the bounds too small? (--bounds {index.name}={count})"
            raise ValueError(f"{path}: {brief(value)} is no {what} ({known}){more}")
        return number

    def number(self, value: Any) -> int | None:
        """The number that a number, its digits or a letter stands for, or None."""
        if isinstance(value, str):
            return self.letters[value] if value in self.letters else _digits(value)
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
            return said == shown.label if isinstance(shown, Labelled) and said in self.letters else _digits(said) == shown
        return said is None if shown is ABSENT else said == shown

    def differences(self, said: Any, shown: Any, path: str = "") -> Iterator[Difference]:
        """Where they do not match; the state's values spelled as the log spells its own.

        `ValueError` for a letter where the state has a number of which nothing says that it is a member.
        """
        if self.matches(said, shown):
            return
        if is_object(said) and isinstance(shown, Mapping | list | tuple):
            for key, part in said.items():
                place = _place(path, key, listed=not isinstance(shown, Mapping))
                yield from self.differences(part, self._part(cast("Any", shown), key), place)
        elif is_list(said) and isinstance(shown, list | tuple) and any(is_object(part) for part in said):
            yield from self._elements(said, cast("Sequence[Any]", shown), path)
        else:
            self._refuse_letters(said, shown, path)
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

    def _refuse_letters(self, said: Any, shown: Any, path: str) -> None:
        if is_list(said) and isinstance(shown, list | tuple):
            for position, (part, other) in enumerate(zip(said, cast("Sequence[Any]", shown), strict=False)):
                self._refuse_letters(part, other, f"{path}[{position}]")
        elif is_list(said) and isinstance(shown, set | frozenset):
            for part in said:
                for member in cast("frozenset[Any]", shown):
                    self._refuse_letters(part, member, path)
        elif isinstance(said, str) and said in self.letters and type(shown) is int:
            raise ValueError(f"{path}: {said!r} is a letter, where the spec shows a number; write the number")

    def _spelled(self, shown: Any, said: Any) -> Any:
        """A shown value with letters for members, where the log has letters."""
        parts = said if is_list(said) else [said]
        if not any(isinstance(part, str) and part in self.letters for part in parts):
            return shown
        if isinstance(shown, list | tuple | set | frozenset):
            return [_label(part) for part in _ordered(cast("Any", shown))]
        return _label(shown)


def _label(value: Any) -> Any:
    return value.label if isinstance(value, Labelled) else value


def _digits(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


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

    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except (TypeError, ValueError):  # keys that JSON has not, from a format that has them
        text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
