"""What can go wrong with a spec: at import (`LanguageError`), at binding (`BoundsError`), in a state (`SpecError`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, order=True)
class Place:
    """A place in a spec's source: file, 1-based line, 1-based column."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class FencepostSpecError(Exception):
    """Base of every error that a spec or its bounds can cause; the command line answers each with exit code 2."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Come out of another process as what went in, whatever the class is made of."""
        return _again, (type(self), self.args), vars(self)


def _again(kind: type[FencepostSpecError], args: tuple[Any, ...]) -> FencepostSpecError:
    return kind.__new__(kind, *args)


class LanguageError(FencepostSpecError):
    """A spec uses something outside the language: stable code, place, rule and fix."""

    def __init__(self, code: str, place: Place, rule: str, fix: str) -> None:
        self.code, self.place, self.rule, self.fix = code, place, rule, fix
        super().__init__(f"{place}: {code}: {rule}; {fix}")


class BoundsError(FencepostSpecError):
    """A value for a bound, index or switch is missing, unknown or outside its range."""


class LoadError(FencepostSpecError):
    """A spec file could not be read or imported."""


class SpecError(FencepostSpecError):
    """The spec left its own bounds in some state: a value out of range, an index outside, a pop from an empty sequence."""

    def __init__(self, rule: str, place: Place | None = None) -> None:
        self.rule, self.place = rule, place
        super().__init__(rule if place is None else f"{place}: {rule}")


class Disabled(BaseException):
    """Raised by `require`: the action is not enabled with these arguments in this state."""
