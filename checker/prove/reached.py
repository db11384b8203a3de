"""States that are surely reachable, and facts that are true in all of them: to judge and mend a failed induction."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ...spec.lang import BoundSpec, SpecError, State
from ..explore import explore
from ..explore.cold import run
from ..explore.conclude import conclude
from ..explore.memory import default_budget
from ..explore.native.stepper import Stepper
from ..model import Limits, Model, Options
from ..result import PropertyResult, Status
from .solver import Disagreement

SEEN = (Status.REACHED, Status.NOT_APPLICABLE)
MOST_STATES = 20_000
MOST_SECONDS = 20.0
MOST_LOOKED_AT = 300_000
"""Most states in which actions and left sides are looked for before anything is asked of a solver."""
Side = tuple[str, int]
"""A left side: the property and its number in it."""


@dataclass(frozen=True)
class Reached:
    """Reachable states up to symmetry, up to a number of transitions; `all` if there are no others."""

    stepper: Stepper
    states: frozenset[State]
    depth: int
    all: bool

    def has(self, state: State) -> bool | None:
        """Whether a state is reachable; None where that is not known."""
        return True if self.stepper.canonical(state)[0] in self.states else False if self.all else None


@dataclass(frozen=True)
class Near:
    """What a search of the states near the initial ones shows: actions that are taken, left sides that hold, violations.

    What is seen in a reachable state needs no solver: all facts that are proved hold there. What is not seen may still exist.
    """

    taken: frozenset[str]
    seen: frozenset[Side]
    violations: tuple[PropertyResult, ...]


def near_start(model: Model, limits: Limits, left: float) -> Near:
    """Search the first states, in no more than the seconds that are `left`; lemmas are not looked at."""
    bytes_ = limits.max_bytes or default_budget()
    short = replace(limits, max_states=MOST_LOOKED_AT, max_seconds=min(MOST_SECONDS, left), max_depth=None, max_bytes=bytes_)
    options = Options(deadlock=False, keep_going=True, limits=short)
    with _without_lemmas(model.bound):
        engine, found = run(model, options, None)
        result = conclude(model, engine, found, options, {})
    taken = frozenset(rule.name for rule, times in zip(model.bound.actions, found.enabled, strict=True) if times)
    return Near(taken, frozenset(found.covered), result.violations)


def unseen(model: Model, limits: Limits, left: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What no state explored shows, of what must be somewhere for a proof to say anything: surely nowhere, and not yet.

    Actions, witnesses and left sides, looked for by a search of the model; what is nowhere is known only if it saw every state.
    """
    short = replace(limits, max_states=MOST_STATES, max_seconds=min(MOST_SECONDS, left), max_depth=None)
    with _without_lemmas(model.bound):
        found = explore(model, Options(deadlock=False, keep_going=True, limits=short))
    if found.violations:
        names = ", ".join(p.name for p in found.violations)
        raise Disagreement(f"the solver proves what a search finds violated: {names}")
    if found.cut is None:
        return found.vacuous, ()
    actions = [f"action {action.name}" for action in found.figures.actions if not action.enabled]
    witnesses = [f"witness {p.name}" for p in found.properties if p.kind == "reachable" and p.status not in SEEN]
    return (), (*actions, *witnesses)


@contextmanager
def _without_lemmas(bound: BoundSpec) -> Generator[None]:
    """All properties are looked at, also those that are not asked about, and no lemmas."""
    kept, bound.properties = bound.properties, tuple(p for p in bound.every if not p.declared.declaration.lemma)
    try:
        yield
    finally:
        bound.properties = kept


def reached(bound: BoundSpec, most: int = MOST_STATES, seconds: float = MOST_SECONDS) -> Reached:
    """Explore level by level until so many states were found, or so much time is over."""
    stepper = Stepper(bound)
    ends = time.monotonic() + seconds
    level = list(dict.fromkeys(stepper.canonical(state)[0] for _, _, state in bound.initial()))
    found = dict.fromkeys(level)
    depth = 0
    while level:
        fresh: list[State] = []
        for state in level:
            for after in _successors(stepper, state):
                if after not in found:
                    found[after] = None
                    fresh.append(after)
            if len(found) >= most or time.monotonic() >= ends:
                return Reached(stepper, frozenset(found), depth, False)
        level, depth = fresh, depth + bool(fresh)
    return Reached(stepper, frozenset(found), depth, True)


def _successors(stepper: Stepper, state: State) -> Sequence[State]:
    try:
        return [stepper.canonical(after)[0] for _, _, after in stepper.successors(state)]
    except SpecError:
        return []
