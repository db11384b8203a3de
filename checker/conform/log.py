"""Logs of events: one JSON object a line (docs/logs.md). What they say is checked against the spec as it is read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, NoReturn, cast

from ...spec.lang import Arguments, BoundSpec, Index, Rule, SetOf
from ...spec.lang.bind import MAX_INSTANCES
from ...spec.lang.layout import ArrayShape, Leaf, RecordShape, SeqShape, SetShape, Shape, shape_of
from ...spec.lang.spec import Parameter
from ...spec.lang.types import Bool, Member
from ...traces.driver import ANYTHING, Observation, UpTo
from ...traces.untyped import is_list, is_object
from .errors import ConformError
from .partial import Vocabulary, brief, nearest

LONGEST = 4 * 1024 * 1024
"""The longest line that is read, in bytes."""
REMARKS = ("time", "note")
"""Keys that any line may have, for whoever reads the log; their values are not looked at."""
KEYS = {"event": ("arguments", "after"), "start": (), "gap": ()}
"""The kinds of line, by the key that each has, with the keys that it may have besides."""


class LogError(ConformError):
    """A log cannot be read or understood; the message names file and line, what is wrong, and what to do."""


@dataclass(frozen=True)
class Event:
    """A line of an event: the action, for each parameter the values that it may have, and what was shown after it."""

    line: int
    rule: Rule
    choices: tuple[Sequence[int], ...]
    after: Mapping[str, Any]


@dataclass(frozen=True)
class Start:
    """A line that says what was shown at the beginning."""

    line: int
    shown: Mapping[str, Any]


@dataclass(frozen=True)
class Gap:
    """A place where events may be missing, and why; `cut_off` for a last line that is not whole."""

    line: int
    why: str
    cut_off: bool = False


Entry = Event | Start | Gap


class Log:
    """A log in a file; iterate over it to read it line by line."""

    def __init__(self, path: Path, bound: BoundSpec) -> None:
        self.path, self.bound = path, bound
        self.rules = {rule.name: rule for rule in bound.actions}
        self.vocabulary = Vocabulary(bound)

    def fail(self, line: int, what: str) -> NoReturn:
        """Raise the error of a line."""
        raise LogError(f"{self.path}:{line}: {what}")

    def __iter__(self) -> Iterator[Entry]:
        some = False
        for line, text, ended in self._lines():
            if not text.strip():
                continue
            some = True
            entry = self._entry(line, text, ended)
            if entry is not None:
                yield entry
        if not some:
            raise LogError(f'{self.path}: is empty; a log has one JSON object a line, such as {{"event": …}}')

    def _lines(self) -> Iterator[tuple[int, bytes, bool]]:
        """Every line with its number, and whether a newline ended it."""
        try:
            with self.path.open("rb") as stream:
                line = 0
                while text := stream.readline(LONGEST + 1):
                    line += 1
                    if len(text) > LONGEST:
                        self.fail(line, f"longer than {LONGEST:,} bytes; a log has one event a line")
                    yield line, text.removeprefix(b"\xef\xbb\xbf") if line == 1 else text, text.endswith(b"\n")
        except OSError as error:
            raise LogError(f"{self.path}: cannot be read: {error.strerror or error}") from None

    def _entry(self, line: int, text: bytes, ended: bool) -> Entry | None:
        try:
            made = json.loads(text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse)
        except _Twice as error:
            self.fail(line, f"the key {error} is there twice; leave out one")
        except RecursionError:
            self.fail(line, "nested too deeply")
        except ValueError as error:  # JSON and UTF-8
            if not ended and text.lstrip().startswith(b"{") and _cut_off(error, text):
                return Gap(line, "the last line is cut off", cut_off=True)
            self.fail(line, f'not JSON ({_told(error)}); a line is one object, such as {{"event": …}}')
        if not is_object(made):
            self.fail(line, f'{brief(made)} is not an object; a line is one, such as {{"event": …}}')
        return self._parse(line, made)

    def _parse(self, line: int, made: dict[str, Any]) -> Entry | None:
        kinds = [key for key in KEYS if key in made]
        if len(kinds) > 1:
            self.fail(line, f"both {kinds[0]!r} and {kinds[1]!r}; write them as two lines")
        allowed = (*kinds, *(KEYS[kinds[0]] if kinds else KEYS), *REMARKS)
        for key in made:
            if key not in allowed:
                self.fail(line, f"unknown key {key!r}; {nearest(key, allowed)} (remarks go under 'note' and 'time')")
        if not kinds:
            if any(key in REMARKS for key in made):
                return None  # a line of remarks only
            self.fail(line, "says nothing; a line has 'event', 'start' or 'gap'")
        if kinds == ["gap"]:
            return Gap(line, made["gap"] if isinstance(made["gap"], str) else brief(made["gap"]))
        if kinds == ["start"]:
            return Start(line, self._observation(line, made["start"], "start"))
        rule = self._rule(line, made["event"])
        choices = self._choices(line, rule, made.get("arguments", {}))
        return Event(line, rule, choices, self._observation(line, made.get("after", {}), "after"))

    def _rule(self, line: int, name: Any) -> Rule:
        if isinstance(name, str) and name in self.rules:
            return self.rules[name]
        if name in self.bound.not_applicable:
            self.fail(line, f"event {name!r} does not apply at these bounds (its when= is false); change --bounds")
        self.fail(line, f"unknown event {brief(name)}; {nearest(str(name), self.rules)}")

    def _choices(self, line: int, rule: Rule, given: Any) -> tuple[Sequence[int], ...]:
        if not is_object(given):
            self.fail(line, f'arguments: {brief(given)} is not an object, such as {{"r": "A"}}')
        parameters = {p.name: p for p in rule.declared.parameters}
        for name in given:
            if name not in parameters:
                self.fail(line, f"{rule.name} has no argument {name!r}; {nearest(name, parameters)}")
        choices = tuple(
            (self._argument(line, rule, p, domain, given[p.name]),) if p.name in given else domain
            for p, domain in zip(rule.declared.parameters, rule.domains, strict=True)
        )
        if (many := instances(choices)) > MAX_INSTANCES:
            self.fail(line, f"{rule.name} can be {many:,} events, at most {MAX_INSTANCES:,} are tried; give more arguments")
        return choices

    def _argument(self, line: int, rule: Rule, parameter: Parameter, domain: range, value: Any) -> int:
        where = f"{rule.name}, argument {parameter.name}"
        try:
            match parameter.type:
                case Member(index):
                    return self.vocabulary.member(index, domain.stop, value, where)
                case SetOf(index):
                    if not is_list(value):
                        raise ValueError(f"{where}: {brief(value)} is not a list; a set is the list of its members")
                    size = self.bound.indices()[index.name]
                    return sum(1 << m for m in {self.vocabulary.member(index, size, part, where) for part in value})
                case Bool():
                    if not isinstance(value, bool):
                        raise ValueError(f"{where}: {brief(value)} is no truth value; write true or false")
                case _:
                    if type(value) is not int or value not in domain:
                        raise ValueError(f"{where}: {brief(value)} is not in {_range(domain)} (at these bounds)")
        except ValueError as error:
            self.fail(line, str(error))
        return int(value)

    def _observation(self, line: int, given: Any, key: str) -> Mapping[str, Any]:
        if not is_object(given):
            self.fail(line, f"{key}: {brief(given)} is not an object of what was shown")
        try:
            self.vocabulary.check(given, key)
        except ValueError as error:
            self.fail(line, str(error))
        return given


class _Twice(Exception):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise _Twice(repr(key))
        made[key] = value
    return made


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _cut_off(error: ValueError, text: bytes) -> bool:
    """Whether a line without a newline may be the first part of a whole one."""
    at_end = isinstance(error, json.JSONDecodeError) and error.pos >= len(error.doc) - 1
    return at_end or not text.rstrip().endswith(b"}")


def _told(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at column {error.colno}"
    return "it is not text in UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)


def _range(domain: range) -> str:
    return f"{domain.start} to {domain.stop - 1}"


def instances(choices: Sequence[Sequence[int]]) -> int:
    """How many combinations of arguments there are."""
    return prod(how_many(values) for values in choices)


def how_many(values: Sequence[int]) -> int:
    """The length of a sequence; that of a range may be larger than `len` can count."""
    return values.stop - values.start if isinstance(values, range) else len(values)


def log_line(bound: BoundSpec, rule: Rule, args: Arguments, observation: Observation | None = None) -> str:
    """An event and what was shown after it as a line of a log, without the newline.

    Members have their labels where their type is known: in arguments, and in observations of the decoded state.
    Parts that say less than a value (`ANYTHING`, `UpTo`) are left out.
    """
    made: dict[str, Any] = {"event": rule.name}
    if args:
        parameters = zip(rule.declared.parameters, bound.arguments(rule, args), strict=True)
        made["arguments"] = {p.name: _written(value, shape_of(p.type, bound.values), bound) for p, value in parameters}
    if observation is not None:
        made["after"] = _written(observation, bound.shape if bound.spec.observed is None else None, bound)
    return json.dumps(made, ensure_ascii=False)


def plain(value: Any) -> Any:
    """A value of an observation ready for JSON: sets as sorted lists, keys as strings."""
    return _written(value, None, None)


def _written(value: Any, shape: Shape | None, bound: BoundSpec | None) -> Any:
    """A value ready for JSON; a list of which something is not said becomes an object of its other elements."""
    match value:
        case Mapping():
            parts = cast("Mapping[Any, Any]", value)
            return {str(k): _written(v, _shape_at(shape, k), bound) for k, v in parts.items() if _says(v)}
        case list() | tuple():
            parts = cast("Sequence[Any]", value)
            made = {i: _written(v, _shape_at(shape, i), bound) for i, v in enumerate(parts) if _says(v)}
            index = shape.index if isinstance(shape, ArrayShape) else None
            some = {str(_member(i, index, bound)): part for i, part in made.items()}
            return list(made.values()) if len(made) == len(parts) else some
        case set() | frozenset():
            index = shape.index if isinstance(shape, SetShape) else None
            return [_member(m, index, bound) for m in sorted(cast("frozenset[int]", value))]
        case _:
            return _member(value, shape.index if isinstance(shape, Leaf) else None, bound)


def _says(value: Any) -> bool:
    """Whether a part of an observation is a value, and not one that stands for several."""
    return value is not ANYTHING and not isinstance(value, UpTo)


def _member(value: Any, index: str | None, bound: BoundSpec | None) -> Any:
    """A member by its letter, where its index has letters; anything else as it is."""
    found = None if bound is None or index is None else bound.spec.bounds.get(index)
    if type(value) is not int or not isinstance(found, Index) or found.label(value).isdecimal():
        return value
    return found.label(value)


def _shape_at(shape: Shape | None, key: Any) -> Shape | None:
    match shape:
        case RecordShape():
            found = shape.field(key)
            return None if found is None else found[1]
        case ArrayShape() | SeqShape():
            return shape.item
        case _:
            return None
