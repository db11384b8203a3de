"""What a check found. The verdict is computed from the findings, so that none can say more than was checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from ..traces.trace import Trace


class Verdict(Enum):
    """HOLDS at the stated bounds; VIOLATED with a trace; UNDETERMINED with a reason."""

    HOLDS = "HOLDS"
    VIOLATED = "VIOLATED"
    UNDETERMINED = "UNDETERMINED"


class Status(Enum):
    """What is known of one property."""

    HOLDS = "holds"
    VIOLATED = "violated"
    REACHED = "reached"
    NOT_REACHED = "not reached"
    LATENT = "LATENT"
    VACUOUS = "vacuous"
    UNDETERMINED = "undetermined"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class PropertyResult:
    """One property: its kind and statement, what is known, and for a violation or witness the length of the shortest trace.

    `reason` says why it is vacuous or undetermined; `trace` is set for the violations that are shown.
    """

    name: str
    kind: str
    statement: str
    status: Status
    depth: int | None = None
    reason: str | None = None
    trace: Trace | None = None


@dataclass(frozen=True)
class ActionCount:
    """How often an action was enabled (states) and taken (transitions)."""

    name: str
    enabled: int
    taken: int


@dataclass(frozen=True)
class Figures:
    """The size of a search. With symmetry, states are orbits and the counts say so (`symmetry`).

    `depth` is the greatest distance from an initial state; `per_depth` the new states at each distance; `degrees` the
    least, mean and greatest number of transitions out of an expanded state; bytes are of this process.
    """

    distinct: int
    generated: int
    depth: int
    per_depth: tuple[int, ...]
    actions: tuple[ActionCount, ...]
    degrees: tuple[int, float, int]
    deadlocks: int
    symmetry: bool
    seconds: dict[str, float] = field(default_factory=dict)
    peak_memory_bytes: int = 0
    start_memory_bytes: int = 0


@dataclass(frozen=True)
class Result:
    """The outcome of checking a model at its bounds.

    `cut` says why the search stopped before all states were seen (None: it saw all); `vacuous` lists what makes a pass
    worthless: actions never enabled, witnesses never reached, left sides that never held; `open` lists properties that
    this engine cannot decide.
    """

    engine: str
    figures: Figures
    properties: tuple[PropertyResult, ...]
    cut: str | None
    vacuous: tuple[str, ...]
    open: tuple[str, ...] = ()

    @property
    def violations(self) -> tuple[PropertyResult, ...]:
        """The violated properties, shortest trace first."""
        found = [p for p in self.properties if p.status is Status.VIOLATED]
        return tuple(sorted(found, key=lambda p: p.depth or 0))

    @property
    def verdict(self) -> Verdict:
        """VIOLATED outranks everything; anything cut, vacuous or open is UNDETERMINED."""
        if self.violations:
            return Verdict.VIOLATED
        if self.cut or self.vacuous or self.open:
            return Verdict.UNDETERMINED
        return Verdict.HOLDS

    @property
    def reason(self) -> str | None:
        """Why the verdict is UNDETERMINED."""
        if self.verdict is not Verdict.UNDETERMINED:
            return None
        if self.cut:
            return self.cut
        return "vacuous: " + "; ".join(self.vacuous) if self.vacuous else "; ".join(self.open)

    @property
    def trace(self) -> Trace | None:
        """The shortest counterexample."""
        return self.violations[0].trace if self.violations else None

    @property
    def exit_code(self) -> int:
        """0 holds, 1 violated, 3 undetermined; 2 if the spec itself is at fault."""
        if any(p.name == "spec-error" for p in self.violations):
            return 2
        return {Verdict.HOLDS: 0, Verdict.VIOLATED: 1, Verdict.UNDETERMINED: 3}[self.verdict]
