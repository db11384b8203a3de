"""Numbers that are fixed only when a spec is bound: bounds, sizes of indices, switches, and arithmetic on them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import NoReturn

from .errors import BoundsError


def _floor_divide(left: int, right: int) -> int:
    return left // right


Values = Mapping[str, int | str]
"""Bounds by name: a number for a `Bound` or `Index`, a choice for a `Switch`."""


class Number:
    """A whole number known once the bounds are; supports `+ - * // %` with other numbers."""

    def value(self, at: Values) -> int:
        """The number at these bounds."""
        raise NotImplementedError

    def __add__(self, other: Number | int) -> Number:
        return _Combined("+", operator.add, self, other)

    def __radd__(self, other: Number | int) -> Number:
        return _Combined("+", operator.add, other, self)

    def __sub__(self, other: Number | int) -> Number:
        return _Combined("-", operator.sub, self, other)

    def __rsub__(self, other: Number | int) -> Number:
        return _Combined("-", operator.sub, other, self)

    def __mul__(self, other: Number | int) -> Number:
        return _Combined("*", operator.mul, self, other)

    def __rmul__(self, other: Number | int) -> Number:
        return _Combined("*", operator.mul, other, self)

    def __floordiv__(self, other: Number | int) -> Number:
        return _Combined("//", _floor_divide, self, other)

    def __rfloordiv__(self, other: Number | int) -> Number:
        return _Combined("//", _floor_divide, other, self)

    def __mod__(self, other: Number | int) -> Number:
        return _Combined("%", operator.mod, self, other)

    def __index__(self) -> NoReturn:
        raise TypeError(f"{self} has no value yet: bounds are given when the spec is checked, not at import")

    def __lt__(self, other: object) -> NoReturn:
        raise TypeError(f"{self} has no value yet, so it cannot be compared at import; use larger() or smaller()")

    __le__ = __gt__ = __ge__ = __lt__


class Bound(Number):
    """A number that a run chooses, such as steps in flight."""

    permutable = False

    def __init__(
        self, name: str, default: int | None = None, *, least: int = 0, most: int | None = None, doc: str = ""
    ) -> None:
        self.name, self.default, self.least, self.most, self.doc = name, default, least, most, doc

    def value(self, at: Values) -> int:
        got = at[self.name]
        assert isinstance(got, int)
        return got

    def parse(self, given: int | str) -> int:
        """The given value as a number within this bound's range; `BoundsError` otherwise."""
        try:
            number = int(given)
        except ValueError:
            raise BoundsError(f"bound {self.name}: {given!r} is not a whole number") from None
        if number < self.least:
            raise BoundsError(f"bound {self.name}: {number} is below its least value {self.least}")
        if self.most is not None and number > self.most:
            raise BoundsError(f"bound {self.name}: {number} is above its greatest value {self.most}")
        return number

    def describe(self) -> str:
        """The range of values, in words."""
        return f"{self.least} to {self.most}" if self.most is not None else f"at least {self.least}"

    def __repr__(self) -> str:
        return self.name


class Index(Bound):
    """A set of interchangeable things (requests, blocks), numbered from 0; used as a number, it is their count."""

    permutable = True

    def __init__(
        self,
        name: str,
        default: int | None = None,
        *,
        least: int = 1,
        most: int | None = None,
        letters: bool = False,
        doc: str = "",
    ) -> None:
        super().__init__(name, default, least=least, most=most, doc=doc)
        self.letters = letters

    def label(self, member: int) -> str:
        """How a member is shown: a letter where the index asks for letters and has at most 26, else its number."""
        return chr(ord("A") + member) if self.letters and member < 26 else str(member)


class Count(int):
    """The number of members of an index, which in `fresh(Seq[BLOCKS, 2])` still stands for the index."""

    index: Index

    @classmethod
    def of(cls, index: Index, at: Values) -> Count:
        """The count at these bounds."""
        made = cls(index.value(at))
        made.index = index
        return made


class Switch:
    """A named choice between mechanisms; in a spec's functions it is a string, compared with `==`."""

    def __init__(self, name: str, *choices: str, default: str | None = None, doc: str = "") -> None:
        if len(choices) < 2:
            raise TypeError(f"switch {name} needs at least two choices")
        self.name, self.choices, self.doc = name, choices, doc
        self.default = choices[0] if default is None else default

    def parse(self, given: int | str) -> str:
        """The given value as one of the choices; `BoundsError` otherwise."""
        if given not in self.choices:
            raise BoundsError(f"switch {self.name}: {given!r} is not one of {', '.join(self.choices)}")
        return str(given)

    def describe(self) -> str:
        """The choices, in words."""
        return " | ".join(self.choices)

    def choose(self, numbers: Mapping[str, Number | int]) -> Number:
        """A number that depends on the choice, such as a capacity that is 0 when a mechanism is off."""
        missing = set(self.choices) ^ set(numbers)
        if missing:
            raise TypeError(f"switch {self.name}: choose() must name exactly its choices; check {sorted(missing)}")
        return _Chosen(self, numbers)

    def __repr__(self) -> str:
        return self.name


class _Chosen(Number):
    def __init__(self, switch: Switch, numbers: Mapping[str, Number | int]) -> None:
        self.switch, self.numbers = switch, numbers

    def value(self, at: Values) -> int:
        return number_at(self.numbers[str(at[self.switch.name])], at)


class _Combined(Number):
    def __init__(self, sign: str, apply: Callable[[int, int], int], left: Number | int, right: Number | int) -> None:
        self.sign, self.apply, self.left, self.right = sign, apply, left, right

    def value(self, at: Values) -> int:
        left, right = number_at(self.left, at), number_at(self.right, at)
        try:
            return self.apply(left, right)
        except ZeroDivisionError:
            raise BoundsError(f"{self}: division by zero at these bounds") from None

    def __repr__(self) -> str:
        return f"({self.left} {self.sign} {self.right})"


def larger(left: Number | int, right: Number | int) -> Number:
    """The larger of two numbers over bounds (in a spec's functions, use `max`)."""
    return _Combined("max", max, left, right)


def smaller(left: Number | int, right: Number | int) -> Number:
    """The smaller of two numbers over bounds (in a spec's functions, use `min`)."""
    return _Combined("min", min, left, right)


def number_at(number: Number | int, at: Values) -> int:
    """The value of a number or plain integer at these bounds."""
    return number.value(at) if isinstance(number, Number) else int(number)
