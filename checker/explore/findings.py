"""What an engine found, before a verdict is drawn: the same for every engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ...spec.lang import State
from ..model import Options


@dataclass(frozen=True)
class Progress:
    """How far a search is: `rate` in distinct states a second, memory in bytes of this process."""

    depth: int
    distinct: int
    generated: int
    queue: int
    rate: float
    memory_bytes: int
    note: str = ""


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class Failure:
    """The first level at which a property fails: `length` of the shortest trace; `on_step` if its last transition fails."""

    length: int
    on_step: bool


@dataclass
class Findings:
    """Figures and failures of a search; `failures` and `reached` go by property name, `covered` by (property, left side).

    A search that stops at a deadlock counts that one only.
    """

    engine: str
    symmetry: bool
    distinct: int = 0
    generated: int = 0
    depth: int = 0
    per_depth: list[int] = field(default_factory=list[int])
    enabled: list[int] = field(default_factory=list[int])
    taken: list[int] = field(default_factory=list[int])
    degrees: tuple[int, int] = (0, 0)
    expanded: int = 0
    deadlocks: int = 0
    failures: dict[str, Failure] = field(default_factory=dict[str, Failure])
    reached: dict[str, int] = field(default_factory=dict[str, int])
    covered: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    cut: str | None = None
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    peak_bytes: int = 0
    start_bytes: int = 0


class Engine(Protocol):
    """A search over a model. After `run`, `mark` prepares the shortest traces to one failure, and `is_marked` says
    whether a concrete state at a level lies on one of them."""

    def run(self, options: Options, on_progress: OnProgress | None) -> Findings:
        """Search; every failure of the levels that were finished is in the findings."""
        ...

    def mark(self, name: str, failure: Failure) -> None:
        """Find the states that lie on the shortest traces to this failure (or witness, by its name)."""
        ...

    def is_marked(self, state: State, level: int) -> bool:
        """Whether a state at this distance lies on one of them."""
        ...
