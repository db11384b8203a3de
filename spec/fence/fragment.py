"""When the solver is bound to answer: formulas without functions whose quantifiers alternate without a circle (EPR).

"For every block there is a step" makes a step out of a block. As long as no chain of such dependences leads from a sort back to
itself, only so many members can be made, and it is enough to look at structures of that size: satisfiability is decidable.
The language has no functions, so quantifiers are all that there is to look at.
"""

from __future__ import annotations

from collections.abc import Iterable

from .logic import And, Formula, Implies, Not, Or, Quantified, Sort

Dependence = tuple[type[Sort], type[Sort]]


def dependences(formulas: Iterable[Formula]) -> set[Dependence]:
    """Pairs of sorts such that, where the formulas are all true, members of the first make members of the second exist."""
    return set[Dependence]().union(*(_dependences(formula, True, ()) for formula in formulas))


def _dependences(formula: Formula, positive: bool, outer: tuple[type[Sort], ...]) -> set[Dependence]:
    match formula:
        case Not(body):
            return _dependences(body, not positive, outer)
        case Implies(left, right):
            return _dependences(left, not positive, outer) | _dependences(right, positive, outer)
        case And(parts) | Or(parts):
            return set[Dependence]().union(*(_dependences(part, positive, outer) for part in parts))
        case Quantified(universal, variables, body):
            sorts = tuple(type(v) for v in variables)
            if universal == positive:
                return _dependences(body, positive, (*outer, *sorts))
            return {(a, b) for a in outer for b in sorts} | _dependences(body, positive, outer)
        case _:
            return set()


def circle(edges: set[Dependence]) -> tuple[type[Sort], ...] | None:
    """Sorts that make one another exist in a circle, in its order; None where there is none."""
    paths: list[tuple[type[Sort], ...]] = sorted(edges, key=str)
    for path in paths:
        if path[0] is path[-1]:
            return path
        paths.extend((*path, b) for a, b in edges if a is path[-1] and b not in path[1:])
    return None


def undecidable(formulas: Iterable[Formula]) -> str | None:
    """Why a set of formulas is outside the decidable fragment, in words; None where it is inside."""
    found = circle(dependences(formulas))
    return None if found is None else " -> ".join(sort.__name__ for sort in found)
