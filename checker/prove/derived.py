"""Facts that follow from the others in the same state, so that no action needs to be asked about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...spec.lang import BoundSpec, Property
from ...spec.lang.evaluate import Evaluator
from .arbitrary import Arbitrary
from .case import parts_of
from .deciders import BySat
from .terms import Terms

PATIENT = 5.0
"""Most seconds to find out whether a fact follows."""


def derived(
    bound: BoundSpec, facts: Sequence[Property], candidates: Sequence[Property], time_left: Callable[[], float]
) -> set[str]:
    """Those of the candidates that follow from the facts that are left, the last ones first.

    One may follow from another that follows from the rest: so all of them follow from those that are none of them.
    """
    terms, decider = Terms(), BySat()
    evaluator, state = Evaluator(bound, terms), Arbitrary(bound, terms, named={})
    for fact in state.facts:
        decider.add(fact)
    holds = {fact.name: terms.together(parts_of(evaluator, terms, fact, state.cells)) for fact in facts}
    found: set[str] = set()
    for fact in reversed(candidates):
        others = [condition for name, condition in holds.items() if name != fact.name and name not in found]
        if decider.check([*others, terms.negation(holds[fact.name])], min(PATIENT, time_left()))[0] == "unsat":
            found.add(fact.name)
    return found
