"""Bounded model checking: the shortest path to a violation, or none up to a depth."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...spec.lang import BoundSpec, Property
from ...spec.lang.declare import WITNESS_KINDS
from ..explore.memory import resident_memory
from ..model import DEADLOCK, SPEC_ERROR, Limits, Model
from ..result import PropertyResult, Status, Verdict
from .bits import Bits
from .confirm import confirmed
from .formulas import Formulas
from .integers import Integers
from .solver import z3
from .terms import Term
from .unroll import Move, Unrolled

REMEMBERED = 8
"""So many paths that were found last are looked at before the solver is asked for another one."""
DECIDED = ("always", "quiescent", "step")
"""The kinds of properties that a path of some length violates."""


@dataclass(frozen=True)
class Depth:
    """What was found out about paths of one length, and the seconds it took.

    `violated` are the properties that such a path violates and no shorter one does, `reached` the witnesses likewise,
    `possible` the actions that can be the last of such a path and of no shorter one.
    """

    depth: int
    violated: tuple[str, ...]
    reached: tuple[str, ...]
    possible: tuple[str, ...]
    seconds: float


OnDepth = Callable[[Depth], None]


@dataclass(frozen=True)
class Bounded:
    """The result: what is known of every property, up to which length of path, and why not further.

    `depth` is the greatest length that was decided (-1: none was); `cut` says why longer paths were not looked at, None where
    a violation was found or there are none; `open` lists what this method does not decide. `possible` says at which length of
    path each action can first be the last one; what is not in it was never enabled.
    """

    depths: tuple[Depth, ...]
    properties: tuple[PropertyResult, ...]
    cut: str | None
    possible: Mapping[str, int]
    never: tuple[str, ...]
    open: tuple[str, ...]
    seconds: Mapping[str, float]

    @property
    def depth(self) -> int:
        """The greatest length of path of which everything is decided; -1 where there is none."""
        return self.depths[-1].depth if self.depths else -1

    @property
    def engine(self) -> str:
        """What found the violations."""
        return "z3"

    @property
    def violations(self) -> tuple[PropertyResult, ...]:
        """The violated properties, shortest trace first."""
        return tuple(sorted((p for p in self.properties if p.status is Status.VIOLATED), key=lambda p: p.depth or 0))

    @property
    def verdict(self) -> Verdict:
        """VIOLATED, or UNDETERMINED: that there are no longer paths is for a search of all states to say."""
        return Verdict.VIOLATED if self.violations else Verdict.UNDETERMINED

    @property
    def reason(self) -> str | None:
        """Why the verdict is UNDETERMINED."""
        if self.verdict is Verdict.VIOLATED:
            return None
        found = "nothing was decided" if self.depth < 0 else f"no violation within {_transitions(self.depth)}"
        return f"{found}: {self.cut or 'longer paths do not exist, which a search of every state can confirm'}"

    @property
    def exit_code(self) -> int:
        """1 violated, 3 undetermined; 2 if the spec itself is at fault."""
        if any(p.name == SPEC_ERROR for p in self.violations):
            return 2
        return 1 if self.violations else 3


@dataclass
class Cut(Exception):
    """The search stops here, for this reason."""

    reason: str


@dataclass
class _Found:
    """What was found of one length so far."""

    violated: list[str] = field(default_factory=list[str])
    reached: list[str] = field(default_factory=list[str])
    possible: list[str] = field(default_factory=list[str])


class BoundedSearch:
    """Looks for violations of always, quiescent and step properties and of the spec's own bounds, length by length.

    With `keep_going` the search goes on past violations, for the other properties. Numbers are bit-vectors, or `integers`.
    """

    def __init__(
        self, model: Model, limits: Limits, tell: OnDepth | None = None, *, keep_going: bool = False, integers: bool = False
    ) -> None:
        self.bound: BoundSpec = model.bound
        self.limits, self.tell, self.keep_going = limits, tell, keep_going
        self.solver = z3.SimpleSolver() if integers else z3.SolverFor("QF_FD")
        self.known: dict[Term, bool] = {}
        self.models: deque[Any] = deque(maxlen=REMEMBERED)
        self.unrolled = Unrolled(self.bound, self.solver.add, self._can_be, Integers() if integers else Bits())
        self.formulas = Formulas(self.unrolled)
        self.started = time.monotonic()
        self.violations: dict[str, PropertyResult] = {}
        self.reached: dict[str, int] = {}
        self.possible: dict[str, int] = {}
        self.depths: list[Depth] = []
        self.seconds = {"translate": 0.0, "solve": 0.0}

    def run(self) -> Bounded:
        """Decide one length after the other, until something is violated, a limit is reached or no path is longer."""
        cut: str | None = None
        try:
            goes_on = True
            while goes_on and not self._is_over():
                goes_on = self._level(len(self.depths))
        except Cut as stopped:
            cut = stopped.reason
        return self._result(cut)

    def _level(self, depth: int) -> bool:
        """Decide paths of one length; false where there are none."""
        begun, found = time.monotonic(), _Found()
        if depth and not self._leave(depth, found):
            return False
        self._properties(depth, found)
        self._witnesses(depth, found)
        self.solver.add(self.unrolled.bits.of(self.formulas.judged()))
        seconds = time.monotonic() - begun
        self.depths.append(Depth(depth, tuple(found.violated), tuple(found.reached), tuple(found.possible), seconds))
        if self.tell is not None:
            self.tell(self.depths[-1])
        if self.limits.max_depth is not None and depth >= self.limits.max_depth and not self._is_over():
            raise Cut(self.limits.reason("max-depth"))
        return True

    def _is_over(self) -> bool:
        return bool(self.violations) and not self.keep_going

    def _leave(self, depth: int, found: _Found) -> bool:
        """Take one transition more: which actions can be it, and can it leave the spec's own bounds?"""
        self.known.clear()
        self.models.clear()
        moves = self._translated(self.unrolled.leave)
        possible = self._possible(moves)
        for move in possible:
            if move.rule.name not in self.possible:
                self.possible[move.rule.name] = depth
                found.possible.append(move.rule.name)
        erring = self._translated(self.unrolled.erring)
        model = self._solve([erring]) if possible and SPEC_ERROR not in self.violations else None
        if model is not None:
            self._violated(SPEC_ERROR, depth, model, found)
        self._translated(lambda: self.unrolled.arrive([move for move in moves if move not in possible]))
        return bool(possible)

    def _possible(self, moves: Iterable[Move]) -> list[Move]:
        """The moves that some path ends with."""
        left, possible = list(moves), list[Move]()
        while left:
            model = self._solve([move.taken for move in left])
            if model is None:
                break
            taken = [move for move in left if self.unrolled.bits.value(move.taken, model)]
            possible += taken
            left = [move for move in left if move not in taken]
        return possible

    def _properties(self, depth: int, found: _Found) -> None:
        """Look for violations at the end of paths of this length."""
        wanted = [p for p in self.bound.properties if p.kind in DECIDED and p.name not in self.violations]
        bad = self._translated(lambda: {prop.name: self.formulas.violated(prop) for prop in wanted})
        if SPEC_ERROR not in self.violations:
            bad[SPEC_ERROR] = self._translated(self.formulas.undefined)
        while bad:
            model = self._solve(bad.values())
            if model is None:
                break
            for name in [name for name, term in bad.items() if self._is_true(term, model)]:
                self._violated(name, depth, model, found)
                del bad[name]

    def _witnesses(self, depth: int, found: _Found) -> None:
        """Look for witnesses at the end of paths of this length."""
        wanted = [p for p in self.bound.properties if p.kind in WITNESS_KINDS and p.name not in self.reached]
        good = self._translated(lambda: {prop.name: self.formulas.witnessed(prop) for prop in wanted})
        while good and not self._is_over():
            model = self._solve(good.values())
            if model is None:
                break
            for name in [name for name, term in good.items() if self._is_true(term, model)]:
                confirmed(self.unrolled, name, model)
                self.reached[name] = depth
                found.reached.append(name)
                del good[name]

    def _violated(self, name: str, depth: int, model: Any, found: _Found) -> None:
        trace, reason = confirmed(self.unrolled, name, model)
        prop = next((p for p in self.bound.properties if p.name == name), None)
        kind, text = ("built in", "The spec stays within its own bounds.") if prop is None else (prop.kind, prop.declared.doc)
        self.violations[name] = PropertyResult(name, kind, text, Status.VIOLATED, depth, reason, trace)
        found.violated.append(name)

    # ---- the solver

    def _translated(self, make: Callable[[], Any]) -> Any:
        begun, solved = time.monotonic(), self.seconds["solve"]
        made = make()
        self.seconds["translate"] += time.monotonic() - begun - (self.seconds["solve"] - solved)
        self._check_limits()
        return made

    def _check_limits(self) -> None:
        limits = self.limits
        if limits.cancelled():
            raise Cut(limits.reason("cancelled"))
        if limits.max_seconds is not None and time.monotonic() - self.started >= limits.max_seconds:
            raise Cut(limits.reason("max-time"))
        if limits.max_bytes is not None and resident_memory() > limits.max_bytes:
            raise Cut(limits.reason("max-memory"))

    def _solve(self, wanted: Iterable[Term]) -> Any:
        """A model of a path at whose end one of these is true; None where there is none, `Cut` where it is not known."""
        some = [self.unrolled.bits.of(term) for term in wanted if term is not self.unrolled.terms.no]
        if not some:
            return None
        self._check_limits()
        if self.limits.max_seconds is not None:
            left = self.limits.max_seconds - (time.monotonic() - self.started)
            self.solver.set("timeout", math.ceil(left * 1000) + 1)  # not before the limit is reached
        begun = time.monotonic()
        self.solver.push()
        self.solver.add(z3.Or(*some))
        answer = self.solver.check()
        model = self.solver.model() if answer == z3.sat else None
        why = self.solver.reason_unknown() if answer == z3.unknown else ""
        self.solver.pop()
        self.seconds["solve"] += time.monotonic() - begun
        if answer == z3.unknown:
            self._gave_up(why)
        return model

    def _can_be(self, condition: Term) -> bool:
        """Whether a condition can hold in the last frame: in a path that is known already, or in any."""
        if condition.op == "constant":
            return bool(condition.value)
        if condition not in self.known:
            seen = any(self._is_true(condition, model) for model in self.models)
            model = None if seen else self._solve([condition])
            if model is not None:
                self.models.appendleft(model)
            self.known[condition] = seen or model is not None
        return self.known[condition]

    def _gave_up(self, why: str) -> None:
        if "interrupted" in why:
            raise Cut(self.limits.reason("cancelled"))
        self._check_limits()
        raise Cut(f"the solver gave up: {why}")

    def _is_true(self, term: Term, model: Any) -> bool:
        return z3.is_true(model.eval(self.unrolled.bits.of(term), model_completion=True))

    # ---- the result

    def _result(self, cut: str | None) -> Bounded:
        found = [self._property(prop, cut) for prop in self.bound.properties]
        if SPEC_ERROR in self.violations:
            found.append(self.violations[SPEC_ERROR])
        names = set(self.bound.not_applicable)
        found += [
            PropertyResult(d.name, d.declaration.kind, d.doc, Status.NOT_APPLICABLE, None, "its when= is false at these bounds")
            for d in self.bound.spec.properties
            if d.name in names
        ]
        never = tuple(rule.name for rule in self.bound.actions if rule.name not in self.possible)
        progress = [p.name for p in self.bound.properties if p.kind not in (*DECIDED, *WITNESS_KINDS)]
        left = tuple(f"{name} is not decided by bounded search" for name in (*progress, DEADLOCK))
        return Bounded(tuple(self.depths), tuple(found), cut, self.possible, never, left, self.seconds)

    def _property(self, prop: Property, cut: str | None) -> PropertyResult:
        name, kind, text = prop.name, prop.kind, prop.declared.doc
        if name in self.violations:
            return self.violations[name]
        if name in self.reached:
            status = Status.LATENT if kind == "latent" else Status.REACHED
            return PropertyResult(name, kind, text, status, self.reached[name])
        if kind not in (*DECIDED, *WITNESS_KINDS):
            return PropertyResult(name, kind, text, Status.UNDETERMINED, None, "not decided by bounded search")
        why = cut or ("the search stopped at a violation" if self.violations else "no path is longer")
        what = "not reached" if kind in WITNESS_KINDS else "no violation"
        decided = len(self.depths) - 1
        reason = f"{what} within {_transitions(decided)}; {why}" if decided >= 0 else why
        return PropertyResult(name, kind, text, Status.UNDETERMINED, None, reason)


def _transitions(count: int) -> str:
    return "1 transition" if count == 1 else f"{count} transitions"


__all__ = ["Bounded", "BoundedSearch", "Depth"]
