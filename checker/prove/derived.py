"""Facts that follow from the others in the same state, so that no action needs to be asked about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...spec.lang import BoundSpec, Property
from ...spec.lang.evaluate import Evaluator
from .arbitrary import Arbitrary
from .bits import Bits
from .case import parts_of
from .solver import z3
from .terms import Terms

PATIENT = 5.0
"""Most seconds to find out whether a fact follows."""


def derived(
    bound: BoundSpec, facts: Sequence[Property], candidates: Sequence[Property], time_left: Callable[[], float]
) -> set[str]:
    """Those of the candidates that follow from the facts that are left, the last ones first.

    One may follow from another that follows from the rest: so all of them follow from those that are none of them.
    """
    terms, bits = Terms(), Bits()
    evaluator, state = Evaluator(bound, terms), Arbitrary(bound, terms, named={})
    solver = z3.SolverFor("QF_FD")
    parts = {fact.name: terms.together(parts_of(evaluator, terms, fact, state.cells)) for fact in facts}
    holds = {name: z3.Bool(f"{name} holds") for name in parts}
    for name, part in parts.items():
        solver.add(z3.Implies(holds[name], bits.of(part)))
    solver.add(*[bits.of(fact) for fact in state.facts], *bits.ranges(terms))
    found: set[str] = set()
    for fact in reversed(candidates):
        others = [holds[name] for name in parts if name != fact.name and name not in found]
        solver.set("timeout", max(1, int(min(PATIENT, time_left()) * 1000)))
        solver.push()
        solver.add(z3.Not(bits.of(parts[fact.name])))
        if solver.check(*others) == z3.unsat:
            found.add(fact.name)
        solver.pop()
    return found
