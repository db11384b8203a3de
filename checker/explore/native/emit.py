"""What the lowering writes with: lines of dialect text, values with what is known of their range, addresses of places."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ....spec.lang.errors import Place
from ....spec.lang.layout import Shape

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
TOO_LARGE = "a number leaves the range of 64 bits"
"""The rule of a site at which the spec is not wrong: it computes with whole numbers, compiled code with these."""


@dataclass(frozen=True)
class Value:
    """A scalar or set: dialect text without side effects, and the least and greatest value that it can have."""

    text: str
    low: int = LEAST
    high: int = GREATEST

    @property
    def constant(self) -> int | None:
        """The value, if only one is possible."""
        return self.low if self.low == self.high else None

    def within(self, low: int, high: int) -> bool:
        """Whether the value is surely from `low` to `high`."""
        return low <= self.low and self.high <= high


def number(value: int) -> Value:
    """A constant."""
    return Value(str(value), value, value)


def truth(text: str) -> Value:
    """A truth value, 0 or 1."""
    return Value(text, 0, 1)


@dataclass(frozen=True)
class Address:
    """Where a place lies: a base, a fixed number of bytes, and terms that vary; with the shape of what lies there."""

    base: str
    shape: Shape
    offset: int = 0
    terms: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The address as dialect text, the base leftmost."""
        parts = [self.base, *([str(self.offset)] if self.offset else []), *self.terms]
        return " + ".join(parts)

    def plus(self, offset: int, shape: Shape, *terms: str) -> Address:
        """A part of this place."""
        return replace(self, shape=shape, offset=self.offset + offset, terms=(*self.terms, *terms))


@dataclass(frozen=True)
class Returning:
    """A return statement whose spelling waits until it is known whether the function can fail."""

    value: str | None


Line = tuple[int, str | Returning]


class Sites:
    """The places at which a spec can leave its own bounds, numbered from 1."""

    def __init__(self) -> None:
        self.found: dict[tuple[Place, str], int] = {}

    def number(self, place: Place, rule: str) -> int:
        """The number of a site."""
        return self.found.setdefault((place, rule), len(self.found) + 1)


class Emitter:
    """Collects the lines of one function."""

    def __init__(self, sites: Sites) -> None:
        self.sites = sites
        self.lines: list[Line] = []
        self.depth = 1
        self.names = 0
        self.can_fail = False

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append((self.depth, text))

    def name(self, hint: str = "v") -> str:
        """A name not used before in this function."""
        self.names += 1
        return f"{hint}{self.names}"

    def keep(self, value: Value) -> Value:
        """The value under a name, evaluated here and once."""
        if value.constant is not None or value.text.isidentifier():
            return value
        name = self.name()
        self.line(f"{name} = {value.text}")
        return replace(value, text=name)

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        """An indented block."""
        self.line(head)
        before = len(self.lines)
        self.depth += 1
        yield
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    @contextmanager
    def aside(self) -> Generator[list[Line]]:
        """Collect lines without adding them yet."""
        lines, self.lines = self.lines, []
        held: list[Line] = []
        yield held
        held += self.lines
        self.lines = lines

    def fail_if(self, condition: str, place: Place, rule: str) -> None:
        """Leave with a spec error if the condition holds."""
        self.can_fail = True
        with self.block(f"if unlikely({condition}):"):
            self.line(f"return {self.sites.number(place, rule)}")

    def disable_if(self, condition: str) -> None:
        """Leave as disabled if the condition holds."""
        self.can_fail = True
        with self.block(f"if {condition}:"):
            self.line("return -1")

    def check_range(self, value: Value, low: int, high: int, place: Place, rule: str) -> Value:
        """The value, checked to be from `low` to `high` unless that is known."""
        if value.within(low, high):
            return value
        value = self.keep(value)
        if low == 0:
            self.fail_if(f"ult({high}, {value.text})", place, rule)
        else:
            tests = [f"{value.text} < {low}"] * (value.low < low) + [f"{value.text} > {high}"] * (value.high > high)
            self.fail_if(" or ".join(tests), place, rule)
        return replace(value, low=max(low, value.low), high=min(high, value.high))

    def render(self, head: str, *, returns: bool) -> str:
        """The function's text; a function that can fail returns a status and stores its result at `ret`."""
        lines = [head]
        for depth, item in self.lines:
            pad = "    " * depth
            if isinstance(item, str):
                lines.append(pad + item)
            elif not self.can_fail:
                lines.append(f"{pad}return {item.value or 0}")
            else:
                if item.value is not None and returns:
                    lines.append(f"{pad}store64(ret, {item.value})")
                lines.append(f"{pad}return 0")
        lines.append("    return 0")
        return "\n".join(lines) + "\n"
