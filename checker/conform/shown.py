"""What the states of a spec show, as a log can speak of it: members that know their letter, and the names met so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from ...spec.lang import BoundSpec, Index, State
from ...spec.lang.decoder import decoder
from ...spec.lang.layout import ArrayShape, Leaf, RecordShape, SeqShape, SetShape, Shape
from ...traces.driver import ANYTHING
from ...traces.untyped import is_list, is_object
from .observer import Observer

Path = tuple[str, ...]
"""The keys that lead to a place of an observation."""


class Labelled(int):
    """A member of an index that has letters; a number in everything but that it knows its letter."""

    label: str


Labels = Mapping[str, Sequence[int]]
"""The members of the indices that have letters."""


class LabellingObserver(Observer):
    """Shows states with members that know their letters, as far as the `@observed` function hands them on."""

    def __init__(self, bound: BoundSpec) -> None:
        super().__init__(bound)
        mark = _marker(bound.shape, _labels(bound))
        decode: Callable[[State], Any] = decoder(bound.shape)

        def labelled(state: State) -> Any:
            return decode(state) if mark is None else mark(decode(state))

        self._decode = labelled


def _labels(bound: BoundSpec) -> Labels:
    made: dict[str, list[int]] = {}
    for name, index in bound.spec.bounds.items():
        if isinstance(index, Index) and index.letters:
            made[name] = [_labelled(index, member) for member in range(int(bound.values[name]))]
    return made


def _labelled(index: Index, member: int) -> int:
    if index.label(member).isdecimal():
        return member
    made = Labelled(member)
    made.label = index.label(member)
    return made


Mark = Callable[[Any], Any]


def _marker(shape: Shape, labels: Labels) -> Mark | None:
    """A function that gives the members in a decoded value their letters; None where there are none in this shape."""
    match shape:
        case Leaf(index=str(index)) if index in labels:
            return _one(labels[index])
        case SetShape(index) if index in labels:
            return _set(labels[index])
        case ArrayShape() | SeqShape():
            inner = _marker(shape.item, labels)
            return None if inner is None else lambda value: [inner(part) for part in value]
        case RecordShape():
            marks = [(name, mark) for name, _, part in shape.fields if (mark := _marker(part, labels)) is not None]
            return (lambda value: {**value, **{name: mark(value[name]) for name, mark in marks}}) if marks else None
        case _:
            return None


def _one(members: Sequence[int]) -> Mark:
    def mark(value: int | None) -> int | None:
        return None if value is None else members[value]

    return mark


def _set(members: Sequence[int]) -> Mark:
    def mark(value: frozenset[int]) -> frozenset[int]:
        return frozenset(members[member] for member in value)

    return mark


@dataclass
class Place:
    """A place of observations: the names that were met in it, what its members or elements are, and whether it is a list."""

    names: dict[str, Place] = field(default_factory=dict[str, "Place"])
    each: Place | None = None
    listed: bool = False
    anything: bool = False


class Unknown(NamedTuple):
    """A key of a log that no state that was met has: its line, the place, the key, and the names met there."""

    line: int
    where: Path
    key: str
    known: tuple[str, ...]


class Names:
    """The names met in observations, and where a log first said of what that it is not there.

    A key that no state has is always absent, so a log that says `null` of it says nothing: it is misspelt.
    """

    def __init__(self, number: Callable[[str], int | None], members: int) -> None:
        """`number` of a key that may stand for a member or position; the largest index has so many `members`."""
        self.root = Place()
        self._number, self._members = number, members
        self._said: dict[Path, int] = {}
        self._last: object = None

    def see(self, shown: Mapping[Any, Any]) -> None:
        """Learn the names in what a state shows."""
        if shown is not self._last:
            self._last = shown
            _see(self.root, shown)

    def say(self, line: int, observation: Mapping[str, Any], key: str) -> None:
        """Remember of what a line said that it is not there, under its `after` or `start`."""
        for path in _nulls(observation, (key,)):
            self._said.setdefault(path, line)

    def unknown(self) -> Unknown | None:
        """The first key that a log has and no state that was met."""
        for path, line in self._said.items():
            place = self.root
            for depth, key in enumerate(path[1:], 1):
                if place.anything:
                    break
                found = self._part(place, key)
                if found is None:
                    return Unknown(line, path[:depth], key, tuple(place.names))
                place = found
        return None

    def _part(self, place: Place, key: str) -> Place | None:
        if key in place.names:
            return place.names[key]
        number = self._number(key)
        if number is None or not (place.listed or number < self._members):
            return None
        if place.each is None and (place.listed or not place.names):
            return Place()  # empty whenever it was met
        return place.each


_DEEP = (dict, list, tuple, Mapping)


def _see(place: Place, shown: Any) -> None:
    if isinstance(shown, Mapping):
        for key, part in cast("Mapping[Any, Any]", shown).items():
            if isinstance(key, str):
                inner = place.names[key] if key in place.names else place.names.setdefault(key, Place())
            else:
                inner = place.each = place.each or Place()
            if isinstance(part, _DEEP) or part is ANYTHING:
                _see(inner, part)
    elif isinstance(shown, list | tuple):
        place.listed = True
        for part in cast("Sequence[Any]", shown):
            if isinstance(part, _DEEP) or part is ANYTHING:
                place.each = place.each or Place()
                _see(place.each, part)
    elif shown is ANYTHING:
        place.anything = True


def _nulls(said: Any, path: Path) -> Iterator[Path]:
    """The path of every key of which a log says `null`; of any other key it says something that a state must have."""
    if is_object(said):
        for key, part in said.items():
            if part is None:
                yield (*path, key)
            elif isinstance(part, dict | list):
                yield from _nulls(part, (*path, key))
    elif is_list(said):
        for position, part in enumerate(said):
            if isinstance(part, dict | list):
                yield from _nulls(part, (*path, str(position)))
