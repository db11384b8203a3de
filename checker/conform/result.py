"""What came out of holding an implementation against a spec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ...traces.trace import Trace
from ..result import Verdict


class Kind(Enum):
    """In what way spec and implementation differ after an event."""

    OBSERVATION = "the implementation shows something else"
    REFUSED = "the implementation refuses what the spec allows"
    STOPPED = "the implementation stops where the spec goes on"
    NOT_QUIET = "the implementation changes something where the spec allows nothing"


@dataclass(frozen=True)
class Difference:
    """One place in which two sides differ: `path` in an observation, and what the spec and the implementation show there.

    Differences of digests are of the implementation before and after an event, or after one path and another.
    """

    path: str
    spec: Any
    implementation: Any


@dataclass(frozen=True)
class Mismatch:
    """A shortest path after which spec and implementation differ.

    `trace` ends with the event in question where the spec allows it (then its last state is what the spec expects);
    for NOT_QUIET it ends before it, and `event` says which one it was. `message` is what the implementation said.
    A difference in the initial state has no steps, and the event `reset`.
    """

    kind: Kind
    trace: Trace
    event: tuple[str, tuple[int, ...]]
    differences: tuple[Difference, ...]
    message: str = ""


@dataclass(frozen=True)
class Hidden:
    """Spec states in which the implementation can be in several states of its own.

    `states` such spec states, `most` states of the implementation in one of them; two shortest paths to one spec state
    (up to the names of interchangeable members), and where the digests at their ends differ. They are the first two that were
    met; of a comparison that was cut, the first and the last of the spec state that has most.
    """

    states: int
    most: int
    paths: tuple[Trace, Trace]
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class Figures:
    """What was compared.

    `spec_states` distinct states of the spec, `product_states` distinct pairs of a spec state and a digest, up to
    symmetry; `transitions` compared, by action in `taken`; `refusals` events tried where the spec allows nothing;
    `depth` of the last level; seconds. `after_stop` counts transitions of the spec after an error that stopped the
    implementation and that both sides show: the spec must show nothing new then, and nothing is compared any more.
    """

    spec_states: int
    product_states: int
    transitions: int
    taken: Mapping[str, int]
    refusals: int
    depth: int
    seconds: float
    after_stop: int = 0

    @property
    def rate(self) -> float:
        """Compared transitions a second."""
        return self.transitions / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Sampled:
    """What a lockstep of random runs drew: HOLDS then means no difference in these runs, and says nothing of others.

    The same `seed` draws the same runs; `runs` from the initial state, of which `ended` ended early with no event found
    enabled. Of a mismatch: the `events` of the run that found it, before it was shortened, and why `shrinking` stopped
    early, if it did; a trace that was shortened need not be a shortest one.
    """

    seed: int
    runs: int
    ended: int = 0
    events: int | None = None
    shrinking: str | None = None


@dataclass(frozen=True)
class Agreement:
    """The result of a lockstep: HOLDS means that every transition within the bounds was compared and agrees.

    `target` says what is real in the implementation; `cut` why the comparison was not complete, `vacuous` what of it
    says nothing; `sampled` that only random runs were compared.
    """

    target: str
    figures: Figures
    mismatch: Mismatch | None = None
    hidden: Hidden | None = None
    cut: str | None = None
    vacuous: tuple[str, ...] = field(default=())
    sampled: Sampled | None = None

    @property
    def verdict(self) -> Verdict:
        """HOLDS, VIOLATED or UNDETERMINED."""
        if self.mismatch is not None:
            return Verdict.VIOLATED
        return Verdict.UNDETERMINED if self.cut is not None or self.vacuous else Verdict.HOLDS
