"""What a native search says: progress, figures; and what it is asked to mark."""

from dataclasses import dataclass, field
from typing import Literal

Stop = Literal["violation", "deadlock", "max-states", "max-depth", "max-time", "max-memory", "cancelled"]
"""Why a search ended early; a spec error is a "violation" too."""

Kind = Literal["property", "witness", "check-error", "deadlock", "step", "action-error"]


@dataclass(frozen=True)
class NativeProgress:
    """Where a running search is; `queue` is the number of states that wait for their expansion."""

    depth: int
    distinct: int
    generated: int
    queue: int
    rate: float
    memory: int
    seconds: float
    per_depth: tuple[int, ...]
    """States of the levels that are complete."""


@dataclass(frozen=True)
class Failure:
    """The first violation of a property: the length of its trace, and whether a transition fails and not a state."""

    level: int
    on_step: bool


@dataclass(frozen=True)
class SpecErrorAt:
    """The first spec error of a kind; with several at one level, the one with the least action and site."""

    kind: Literal["check", "action"]
    level: int
    action: int | None
    site: int


@dataclass(frozen=True)
class Target:
    """States to mark: of `level`, those where `kind` is so for property or witness number `index`."""

    kind: Kind
    index: int
    level: int


@dataclass
class NativeStats:
    """The figures of a finished or stopped search."""

    distinct: int = 0
    generated: int = 0
    depth: int = 0
    per_depth: list[int] = field(default_factory=list)
    expanded: int = 0
    enabled: list[int] = field(default_factory=list)
    """For each action, in how many states it was enabled."""
    taken: list[int] = field(default_factory=list)
    """For each action, its transitions."""
    degree_min: int = 0
    degree_max: int = 0
    deadlocks: int = 0
    deadlock_level: int | None = None
    failed: dict[int, Failure] = field(default_factory=dict)
    witnesses: dict[int, int] = field(default_factory=dict)
    covered: bytes = b""
    errors: list[SpecErrorAt] = field(default_factory=list)
    stopped: Stop | None = None
    """Why the search ended before every state was seen; None: it is complete."""
    seconds: float = 0.0
    threads: int = 1
    memory: int = 0
    """Greatest memory of the tables, the states and the outboxes, in bytes."""
