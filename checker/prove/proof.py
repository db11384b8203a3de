"""The result of a proof: what is proved of every reachable state, and of what else what is known."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from ...spec.lang import BoundSpec, Property
from ...spec.lang.declare import WITNESS_KINDS
from ..model import SPEC_ERROR, Limits, Model
from ..result import PropertyResult, Status, Verdict
from .asked import Answer, Unkept
from .bmc import DECIDED, Bounded, BoundedSearch, OnDepth
from .induction import Induced, Induction, Tell
from .reached import MOST_SECONDS, Reached, near_start, reached, unseen
from .solver import Disagreement

STOPPED = "not looked at, as a short search found a violation (--keep-going looks at all)"
SEARCHED = 60.0
"""Seconds to look for a counterexample of what is not proved, where no limit is given."""


@dataclass(frozen=True)
class Gap:
    """Why something is not proved: the answers that are missing; where a state was found, whether it is reachable.

    `initially` says that it does not hold at the start, of which nothing else is asked.
    """

    name: str
    answers: tuple[Answer, ...]
    reachable: bool | None = None
    initially: bool = False

    @property
    def unkept(self) -> Unkept | None:
        """The first counterexample to induction, if there is one."""
        return next((answer.unkept for answer in self.answers if answer.unkept is not None), None)

    @property
    def words(self) -> str:
        """Which actions it is open for."""
        if self.initially:
            return "it does not hold in the initial states"
        lost = dict.fromkeys(answer.action for answer in self.answers if answer.answer == "unkept")
        unknown = dict.fromkeys(answer.action for answer in self.answers if answer.answer == "unknown")
        told = [f"not inductive: {', '.join(lost)} may break it"] if lost else []
        return "; ".join([*told, *([f"no answer in time: {', '.join(unknown)}"] if unknown else [])]) or "not looked at"


@dataclass(frozen=True)
class Proof:
    """Properties that were to be proved and lemmas, each with what is known of it.

    `gaps` says of each that is not proved what is missing; `bounded` is the search for counterexamples of these, `reached`
    the states that were explored to judge the gaps; `open` lists properties that induction does not decide. `nowhere` lists
    what no reachable state shows though it should, `unseen` what none of those explored does. `stopped` says that nothing was
    proved, as a short search found a violation.
    """

    properties: tuple[PropertyResult, ...]
    lemmas: tuple[PropertyResult, ...]
    induced: Induced
    gaps: tuple[Gap, ...]
    bounded: Bounded | None
    reached: Reached | None
    open: tuple[str, ...]
    nowhere: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    stopped: bool = False

    @property
    def engine(self) -> str:
        """What found the violations."""
        return "z3" if self.bounded is not None and self.bounded.violations else "native"

    @property
    def vacuous(self) -> tuple[str, ...]:
        """What makes the proof worthless: what the facts rule out, or no reachable state shows."""
        return tuple(dict.fromkeys((*self.induced.vacuous, *self.nowhere)))

    @property
    def violations(self) -> tuple[PropertyResult, ...]:
        """The violated properties, shortest trace first."""
        found = [p for p in self.properties if p.status is Status.VIOLATED]
        return tuple(sorted(found, key=lambda p: p.depth or 0))

    @property
    def proved(self) -> tuple[PropertyResult, ...]:
        """The properties that hold in every reachable state."""
        return tuple(p for p in self.properties if p.status is Status.HOLDS)

    @property
    def verdict(self) -> Verdict:
        """HOLDS if everything asked for is proved and nothing is vacuous."""
        if self.violations:
            return Verdict.VIOLATED
        return Verdict.UNDETERMINED if self.reason else Verdict.HOLDS

    @property
    def reason(self) -> str | None:
        """Why the verdict is UNDETERMINED."""
        if self.violations:
            return None
        open_ = [f"{p.name} ({p.reason})" for p in self.properties if p.status is Status.UNDETERMINED]
        if open_ and self.induced.cut:
            return self.induced.cut
        if open_:
            return f"not proved: {'; '.join(open_)}"
        if self.vacuous:
            return f"vacuous: {'; '.join(self.vacuous)}"
        if self.open:
            return "; ".join(self.open)
        return None if self.proved else "there is nothing to prove: no property of states or steps applies"

    @property
    def exit_code(self) -> int:
        """0 proved, 1 violated, 3 undetermined; 2 if the spec itself is at fault."""
        if any(p.name == SPEC_ERROR for p in self.violations):
            return 2
        return {Verdict.HOLDS: 0, Verdict.VIOLATED: 1, Verdict.UNDETERMINED: 3}[self.verdict]


@dataclass(frozen=True)
class Told:
    """Who is told what while a proof is under way: of each action, of each length of path, of what is done next."""

    action: Tell | None = None
    depth: OnDepth | None = None
    next: Callable[[str], None] = lambda _: None


def prove(model: Model, limits: Limits, *, each: float, told: Told, workers: int = 1, keep_going: bool = False) -> Proof:
    """Prove the properties of a model by induction; of those that are not proved, look for counterexamples.

    Nothing is proved where a short search finds one, or with `keep_going` nothing of what it finds violated. `each` is the
    most seconds for a query; `workers` is how many processes put questions to the solver.
    """
    begun, bound = time.monotonic(), model.bound
    told.next("searching the states near the start for violations")
    near = near_start(model, limits, _left(limits, begun))
    violated = {p.name: p for p in near.violations}
    if not keep_going and not violated.keys().isdisjoint((SPEC_ERROR, *(p.name for p in _wanted(bound)))):
        return _stopped(bound, violated)
    induced = Induction(model, limits, told.action, each=each, next=told.next, workers=workers, near=near).run()
    both = violated.keys() & {*induced.kept, *induced.stepped}
    if both:
        raise Disagreement(f"the solver proves what a search finds violated: {', '.join(sorted(both))}")
    gaps = tuple(gap for gap in _gaps(bound, induced) if gap.name not in violated)
    seen, bounded, nowhere, unshown = None, None, (), ()
    decided = {SPEC_ERROR, *(prop.name for prop in _wanted(bound))}
    lost = {*violated, *(gap.name for gap in gaps)}
    if decided.isdisjoint(lost) and not induced.vacuous and induced.cut is None:
        told.next("exploring states, to see that it is about something")
        nowhere, unshown = unseen(model, limits, _left(limits, begun))
    if gaps and induced.cut is None:
        told.next("exploring states, to judge what is not proved")
        seen = reached(bound, seconds=min(MOST_SECONDS, _left(limits, begun)))
        gaps = tuple(_judged(gap, seen) for gap in gaps)
        bounded = _searched(model, limits, begun, gaps, seen, told)
    violated |= {p.name: p for p in bounded.violations} if bounded else {}
    wanted = [_result(bound, prop, induced, violated, gaps) for prop in _wanted(bound)]
    if SPEC_ERROR in violated:
        wanted.append(violated[SPEC_ERROR])
    elif any(gap.name == SPEC_ERROR for gap in gaps):
        wanted.append(_not_proved(SPEC_ERROR, "built in", "The spec stays within its own bounds.", gaps))
    lemmas = tuple(_result(bound, p, induced, violated, gaps) for p in bound.lemmas)
    named = [p for p in bound.properties if p.kind not in (*DECIDED, *WITNESS_KINDS)]
    open_ = tuple(f"{p.name} is about progress, which induction does not decide" for p in named)
    return Proof(tuple(wanted), lemmas, induced, gaps, bounded, seen, open_, nowhere, unshown)


def _stopped(bound: BoundSpec, violated: dict[str, PropertyResult]) -> Proof:
    """What is known where a short search found a violation."""
    wanted = [
        violated.get(p.name) or PropertyResult(p.name, p.kind, p.declared.doc, Status.UNDETERMINED, None, STOPPED)
        for p in _wanted(bound)
    ]
    if SPEC_ERROR in violated:
        wanted.append(violated[SPEC_ERROR])
    return Proof(tuple(wanted), (), Induced((), (), (), (), {}, (), {}), (), None, None, (), stopped=True)


def _left(limits: Limits, begun: float) -> float:
    """Seconds until the limit."""
    return float("inf") if limits.max_seconds is None else max(0.0, limits.max_seconds - (time.monotonic() - begun))


def _wanted(bound: BoundSpec) -> list[Property]:
    """What can be proved of what is to be checked."""
    return [p for p in bound.properties if p.kind in DECIDED]


def _gaps(bound: BoundSpec, induced: Induced) -> tuple[Gap, ...]:
    """What is not proved: properties, lemmas, that the spec keeps its bounds, and invariants of loops."""
    every = [p.name for p in bound.every if p.kind in DECIDED] + [SPEC_ERROR]
    found: list[Gap] = []
    for name in every:
        missing = tuple(answer for answer in induced.missing if answer.fact == name)
        if missing or name not in (*induced.kept, *induced.stepped):
            found.append(Gap(name, missing, initially=name in induced.initially))
    for loop in bound.loops:
        missing = tuple(answer for answer in induced.missing if answer.fact == loop.name)
        if missing:
            found.append(Gap(loop.name, missing))
    return tuple(found)


def _searched(model: Model, limits: Limits, begun: float, gaps: tuple[Gap, ...], seen: Reached, told: Told) -> Bounded | None:
    """The search for counterexamples of wanted properties with gaps, and of steps out of the spec's bounds.

    Where all states were seen, paths need not be longer than the way to the last of them, and a transition.
    """
    bound, names = model.bound, {gap.name for gap in gaps}
    kept = bound.properties
    left = SEARCHED if limits.max_seconds is None else _left(limits, begun)
    wanted = tuple(p for p in _wanted(bound) if p.name in names)
    if left <= 0 or not (wanted or SPEC_ERROR in names):
        return None
    told.next("looking for a counterexample of what is not proved, path by path:")
    bound.properties = wanted
    deepest = seen.depth + 1 if seen.all else None
    try:
        return BoundedSearch(model, replace(limits, max_seconds=left, max_depth=deepest), told.depth).run()
    finally:
        bound.properties = kept


def _judged(gap: Gap, seen: Reached) -> Gap:
    unkept = gap.unkept
    return gap if unkept is None or unkept.inside else replace(gap, reachable=seen.has(unkept.before))


def _result(
    bound: BoundSpec, prop: Property, induced: Induced, violated: dict[str, PropertyResult], gaps: tuple[Gap, ...]
) -> PropertyResult:
    if prop.name in violated:
        return violated[prop.name]
    kind = "lemma" if prop.declared.declaration.lemma else prop.kind
    if prop.name in (*induced.kept, *induced.stepped):
        return PropertyResult(prop.name, kind, prop.declared.doc, Status.HOLDS)
    return _not_proved(prop.name, kind, prop.declared.doc, gaps)


def _not_proved(name: str, kind: str, statement: str, gaps: tuple[Gap, ...]) -> PropertyResult:
    gap = next(gap for gap in gaps if gap.name == name)
    return PropertyResult(name, kind, statement, Status.UNDETERMINED, None, gap.words)
