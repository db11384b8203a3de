"""What one run of one tool came to, and the tools' common face."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

from .expected import Bounds, Case
from .process import BenchmarkError


@dataclass(frozen=True)
class Outcome:
    """One run: what was counted (None: the tool does not say), seconds to build, of the search and of the whole run.

    `memory` is what the search added, in bytes; None where it says nothing (a fixed heap).
    """

    distinct: int | None
    generated: int | None
    depth: int | None
    trace: int | None
    build: float
    search: float
    wall: float
    memory: int | None = None

    @property
    def rate(self) -> float:
        """Distinct states a second of search."""
        return (self.distinct or 0) / max(self.search, 1e-9)

    @property
    def bytes_per_state(self) -> float | None:
        """Bytes of memory a distinct state; None where the tool's memory says nothing."""
        return self.memory / self.distinct if self.memory and self.distinct else None

    def against(self, case: Case, tool: str) -> Outcome:
        """This, if its counts are the expected ones as far as the tool states them; `BenchmarkError` otherwise.

        On a violation only the length of the trace is compared: tools stop at different places of its last level.
        """
        want = case.counts
        pairs = [("trace", self.trace, want.trace)]
        if want.trace is None:
            pairs += [(name, getattr(self, name), getattr(want, name)) for name in ("distinct", "generated", "depth")]
        for name, got, expected in pairs:
            if got != expected and not (got is None and name != "trace"):
                raise BenchmarkError(f"{tool} on {case.name}: {name} is {got}, expected {expected}")
        return self

    def built_in(self, seconds: float) -> Outcome:
        """This, with the seconds its program took to build."""
        return replace(self, build=seconds)


@dataclass(frozen=True)
class Tool(ABC):
    """One tool in one mode: its name in the tables, the cores it uses, and the symmetry: none, requests or both."""

    name: str
    cores: int
    symmetry: str
    family: ClassVar[str]

    @property
    def shortest(self) -> bool:
        """Whether a counterexample of this mode is a shortest one."""
        return self.cores == 1

    @abstractmethod
    def missing(self) -> str | None:
        """What is not installed, None if all is there."""

    def prepare(self, bounds: Bounds) -> None:  # noqa: B027
        """Do what is not measured, such as filling a cache; called before the runs at these bounds."""

    @abstractmethod
    def run(self, bounds: Bounds) -> Outcome:
        """Build and run once."""
