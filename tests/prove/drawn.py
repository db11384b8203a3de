"""Random terms over a few variables."""

from __future__ import annotations

from dataclasses import dataclass

from fencepost.checker.prove.terms import Term, Terms
from hypothesis import strategies as st

RANGES = [(0, 1), (0, 7), (-3, 4), (-8, -1), (5, 9), (0, 200), (-1, 300)]
NUMBERS = ("add", "subtract", "multiply")
BY = (1, 2, 3, 7)


@dataclass(frozen=True)
class Drawn:
    """Numbers and conditions over variables, which are among them."""

    terms: Terms
    variables: list[Term]
    numbers: list[Term]
    conditions: list[Term]

    def values(self, data: st.DataObject) -> dict[str, int]:
        """Any values of the variables."""
        return {v.value: data.draw(st.integers(v.low, v.high)) for v in self.variables}


def drawn(data: st.DataObject) -> Drawn:
    """A few terms, each made of those before it."""
    terms = Terms()
    variables = [terms.variable(f"v{i}", *ends) for i, ends in enumerate(RANGES)]
    truths = [terms.unknown(f"t{i}") for i in range(3)]
    numbers, conditions = [*variables, *map(terms.number, (-2, 0, 1, 6))], list(truths)
    for _ in range(data.draw(st.integers(1, 8))):
        kind = data.draw(st.sampled_from((*NUMBERS, "quotient", "remainder", "choose", "less", "equal", "both", "not")))
        one, two = (data.draw(st.sampled_from(numbers)) for _ in range(2))
        if kind in NUMBERS:
            numbers.append(getattr(terms, kind)(one, two))
        elif kind in ("quotient", "remainder"):
            numbers.append(getattr(terms, kind)(one, data.draw(st.sampled_from(BY))))
        elif kind == "choose":
            numbers.append(terms.choose(data.draw(st.sampled_from(conditions)), one, two))
        elif kind in ("less", "equal"):
            conditions.append(getattr(terms, kind)(one, two))
        elif kind == "both":
            conditions.append(terms.both(*(data.draw(st.sampled_from(conditions)) for _ in range(2))))
        else:
            conditions.append(terms.negation(data.draw(st.sampled_from(conditions))))
    return Drawn(terms, [*variables, *truths], numbers, conditions)
