"""Formulas of protocols as Z3 sees them, over uninterpreted sorts; and what it found, as a finite structure."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Any

from ...spec.fence.finite import Argument, Tuples
from ...spec.fence.logic import (
    And,
    AnyRelation,
    AtMost,
    Atom,
    Formula,
    Implies,
    LogicError,
    Not,
    Or,
    Parameter,
    Quantified,
    Same,
    Sort,
)
from .solver import z3

LARGEST = 4
"""Counterexamples with at most so many members of each sort are looked for first, the smallest before the others."""


class Answer(Enum):
    """What a solver says of a set of formulas; it may give up."""

    SATISFIABLE = "satisfiable"
    UNSATISFIABLE = "unsatisfiable"
    UNKNOWN = "unknown"


class Symbols:
    """The solver's symbols for relations and free variables, at one moment (`at`); sorts and orders are of all moments."""

    def __init__(self, at: str = "") -> None:
        self.at = at
        self.known: dict[Any, Any] = {}
        self.made: dict[Formula, Any] = {}

    def relation(self, relation: AnyRelation) -> Any:
        """The function of a relation, from members to truth values."""
        if relation not in self.known:
            name = relation.name + self.at
            self.known[relation] = z3.Function(name, *(sort_of(sort) for sort in relation.sorts), z3.BoolSort())
        return self.known[relation]

    def term(self, term: Sort, bound: Mapping[Sort, Any]) -> Any:
        """What a variable stands for: what it is bound to, or else a constant."""
        if term in bound:
            return bound[term]
        if term not in self.known:
            self.known[term] = z3.Const(f"{term.name}{self.at}", sort_of(type(term)))
        return self.known[term]

    def of(self, formula: Formula) -> Any:
        """The solver's formula for a formula; made once."""
        if formula not in self.made:
            self.made[formula] = self.within(formula, {})
        return self.made[formula]

    def within(self, formula: Formula, bound: Mapping[Sort, Any]) -> Any:
        """The same where some variables stand for terms of the solver."""
        match formula:
            case Atom(relation, terms):
                return self.relation(relation)(*(self.term(term, bound) for term in terms))
            case Same(left, right):
                return self.term(left, bound) == self.term(right, bound)
            case AtMost(left, right):
                return at_most(type(left))(self.term(left, bound), self.term(right, bound))
            case Not(body):
                return z3.Not(self.within(body, bound))
            case And(parts):
                return z3.And([self.within(part, bound) for part in parts])
            case Or(parts):
                return z3.Or([self.within(part, bound) for part in parts])
            case Implies(left, right):
                return z3.Implies(self.within(left, bound), self.within(right, bound))
            case Quantified(universal, variables, body):
                own = {v: z3.FreshConst(sort_of(type(v)), v.name) for v in variables}
                quantify = z3.ForAll if universal else z3.Exists
                return quantify(list(own.values()), self.within(body, {**bound, **own}))
            case _:
                raise LogicError(f"{formula!r} is no formula")


def sort_of(sort: type[Sort]) -> Any:
    """The solver's uninterpreted sort."""
    return z3.DeclareSort(sort.__name__)


def at_most(sort: type[Sort]) -> Any:
    """The solver's order of a sort."""
    return z3.Function(f"{sort.__name__}-at-most", sort_of(sort), sort_of(sort), z3.BoolSort())


@dataclass(frozen=True)
class Members:
    """What a model has for members of each sort, in order where there is one."""

    model: Any
    of: Mapping[type[Sort], Sequence[Any]]

    @property
    def sizes(self) -> dict[type[Sort], int]:
        """How many members each sort has."""
        return {sort: len(members) for sort, members in self.of.items()}

    def value(self, symbols: Symbols, parameter: Parameter) -> Argument:
        """What the model says of a free variable, or of a relation."""
        if isinstance(parameter, Sort):
            value = self.model.eval(symbols.term(parameter, {}), model_completion=True)
            return next(i for i, member in enumerate(self.of[type(parameter)]) if member.eq(value))
        return self._tuples(symbols.relation(parameter), parameter.sorts)

    def _tuples(self, function: Any, sorts: Sequence[type[Sort]]) -> Tuples:
        places = product(*(range(len(self.of[sort])) for sort in sorts))
        return frozenset(
            place
            for place in places
            if z3.is_true(
                self.model.eval(
                    function(*(self.of[sort][i] for sort, i in zip(sorts, place, strict=True))), model_completion=True
                )
            )
        )


@dataclass(frozen=True)
class Solved:
    """An answer, the seconds it took, and the members of a smallest structure if there is one."""

    answer: Answer
    seconds: float
    members: Members | None = None


def solve(assertions: Iterable[Any], sorts: Iterable[type[Sort]], seconds: float, *, large: bool = False) -> Solved:
    """Decide whether the assertions are satisfiable, with so many seconds, and about as many to find a small structure.

    `large` is for many assertions: they are simplified first, which takes longer than a small question does without.
    """
    begun = time.monotonic()
    solver = solver_for(assertions, seconds, large=large)
    result = solver.check()
    if result == z3.unsat:
        return Solved(Answer.UNSATISFIABLE, time.monotonic() - begun)
    if result != z3.sat:
        return Solved(Answer.UNKNOWN, time.monotonic() - begun)
    members = _smallest(solver, list(sorts), begun + seconds)
    return Solved(Answer.SATISFIABLE, time.monotonic() - begun, members)


def solver_for(assertions: Iterable[Any], seconds: float, *, large: bool = False) -> Any:
    """A solver that knows the assertions and takes at most so many seconds for an answer."""
    solver = z3.Solver() if large else z3.SimpleSolver()
    solver.set("timeout", max(1, int(seconds * 1000)))
    solver.add(*assertions)
    return solver


def _smallest(solver: Any, sorts: list[type[Sort]], end: float) -> Members:
    """The members of a smallest structure, as far as one is found before the end; else of the one that was found."""
    model = solver.model()
    for sizes in sorted(product(range(1, LARGEST + 1), repeat=len(sorts)), key=lambda sizes: (sum(sizes), sizes)):
        solver.push()
        for sort, size in zip(sorts, sizes, strict=True):
            solver.add(at_most_members(sort, size))
        small = solver.model() if solver.check() == z3.sat else None
        solver.pop()
        model = small or model
        if small or time.monotonic() > end:
            break
    return members_of(model, sorts)


def members_of(model: Any, sorts: Iterable[type[Sort]]) -> Members:
    """The members that a model has."""
    return Members(model, {sort: _universe(model, sort) for sort in sorts})


def at_most_members(sort: type[Sort], size: int) -> Any:
    """The assertion that a sort has at most so many members."""
    every = z3.Const("member", sort_of(sort))
    return z3.ForAll([every], z3.Or([every == z3.Const(f"{sort.__name__}-{i}", sort_of(sort)) for i in range(size)]))


def _universe(model: Any, sort: type[Sort]) -> list[Any]:
    universe: list[Any] = list(model.get_universe(sort_of(sort)) or [])
    if not universe:
        return [model.eval(z3.Const("anybody", sort_of(sort)), model_completion=True)]
    if not sort.ordered:
        return universe
    before = {m: sum(z3.is_true(model.eval(at_most(sort)(n, m), model_completion=True)) for n in universe) for m in universe}
    return sorted(universe, key=lambda member: before[member])


def as_tuples(value: Argument) -> frozenset[tuple[int, ...]]:
    """The value of a relation."""
    if isinstance(value, int):
        raise TypeError("a member is no relation")
    return value


def as_member(value: Argument) -> int:
    """The value of a variable."""
    if not isinstance(value, int):
        raise TypeError("a relation is no member")
    return value
