"""Facts that one transition may break, and that paths of several transitions keep: k-induction.

A path of k-1 transitions between states in which all facts hold, those that are to be shown among them, and then one
transition more: if the fact holds after it whatever the path is, and on all shorter paths from the initial states, it holds
for ever.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from ...spec.lang import Property
from ..model import SPEC_ERROR, Limits, Model
from .arbitrary import Arbitrary
from .bits import Bits
from .bmc import BoundedSearch
from .case import parts_of
from .solver import z3
from .terms import Term, Terms
from .unroll import Unrolled

LONGEST = 4
"""The greatest k that is tried."""


class Longer:
    """Paths of transitions from any state on in which `kept` facts hold, and for the time being `lost` ones.

    It takes so many `seconds` at most.
    """

    def __init__(
        self, model: Model, limits: Limits, kept: Sequence[Property], lost: Sequence[Property], seconds: float
    ) -> None:
        self.model, self.bound, self.limits = model, model.bound, limits
        self.kept, self.lost = kept, lost
        self.ends = time.monotonic() + seconds
        self.solver = z3.SolverFor("QF_FD")
        bits, terms = Bits(), Terms()
        state = Arbitrary(self.bound, terms, named={})
        self.unrolled = Unrolled(self.bound, self.solver.add, bits=bits, start=(terms, state.cells))
        self.assumed = {fact.name: terms.unknown(f"{fact.name} is assumed") for fact in lost}
        self.solver.add(*(bits.of(fact) for fact in state.facts))
        self.solver.add(*bits.ranges(terms))

    def closed(self) -> tuple[int, list[Property]]:
        """The facts that the least k closes, with k; none where no k that is tried closes any in time."""
        for k in range(1, LONGEST + 1):
            self._assume()
            self.unrolled.extend()
            if k > 1:
                found = self._kept_together(k)
                if found:
                    return k, found
            if self._left() <= 0:
                break
        return 0, []

    def _assume(self) -> None:
        """The facts hold at the end of the path, the lost ones as far as they are assumed."""
        bits = self.unrolled.bits
        for fact in (*self.kept, *self.lost):
            for part in self._parts(fact):
                known = bits.of(part)
                self.solver.add(z3.Implies(bits.of(self.assumed[fact.name]), known) if fact.name in self.assumed else known)

    def _parts(self, fact: Property) -> list[Term]:
        return parts_of(self.unrolled.evaluator, self.unrolled.terms, fact, self.unrolled.frames[-1])

    def _kept_together(self, k: int) -> list[Property]:
        """The most lost facts that keep one another on paths of k transitions, and hold on all shorter ones from the start."""
        bits, terms = self.unrolled.bits, self.unrolled.terms
        broken = {fact.name: terms.negation(terms.together(self._parts(fact))) for fact in self.lost}
        left: list[Property] = list(self.lost)
        again = True
        while left and again:
            gone: list[str] = []
            for fact in left:
                assumed = [bits.of(self.assumed[one.name]) for one in left]
                self.solver.set("timeout", max(1, int(self._left() * 1000)))
                if self.solver.check(*assumed, bits.of(broken[fact.name])) != z3.unsat:
                    gone.append(fact.name)
            gone += self._violated(k - 1, [fact for fact in left if fact.name not in gone])
            again = bool(gone)
            left = [fact for fact in left if fact.name not in gone]
        return left

    def _violated(self, depth: int, facts: Sequence[Property]) -> list[str]:
        """Those that a path of so many transitions from an initial state violates, or of which that is not known."""
        if not facts:
            return []
        kept, self.bound.properties = self.bound.properties, tuple(facts)
        try:
            limits = replace(self.limits, max_depth=depth, max_seconds=self._left())
            found = BoundedSearch(self.model, limits, keep_going=True).run()
        finally:
            self.bound.properties = kept
        if found.depth < depth and found.cut is not None:
            return [fact.name for fact in facts]
        violated = [p.name for p in found.violations]
        return [fact.name for fact in facts] if SPEC_ERROR in violated else violated

    def _left(self) -> float:
        return max(0.0, self.ends - time.monotonic())
