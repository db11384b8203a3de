"""Solvers that decide whether conditions can hold together: a SAT solver, which proofs ask, and Z3, the second road.

Both are told terms. What they find is an assignment: values of variables, by name, which anything else can be evaluated at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import islice
from typing import Any, Protocol

from .bits import Bits
from .clauses import Clauses
from .integers import Integers
from .solver import z3
from .terms import Term, conjuncts

SLICE = 2_000
"""Conflicts of a SAT solver until it is seen whether there is still time."""
Assignment = Mapping[str, int]


class Decider(Protocol):
    """Knows some conditions, and is asked about others."""

    def add(self, condition: Term) -> None:
        """Know that this holds from now on."""
        ...

    def check(self, conditions: Sequence[Term], seconds: float) -> tuple[str, Assignment | None]:
        """Whether these can hold as well: unsat, sat with an assignment, or unknown where it takes so many seconds."""
        ...


Making = Callable[[Callable[[], bool]], Decider]
"""Makes one; the function says whether to stop."""


def _never() -> bool:
    return False


class BySat:
    """Asks Glucose, by way of python-sat; what it learned is kept from one question to the next."""

    def __init__(self, stopped: Callable[[], bool] = _never) -> None:
        self.stopped = stopped
        self.solver: Any = import_module("pysat.solvers").Glucose4()
        self.clauses = Clauses(self.solver.add_clause)

    def add(self, condition: Term) -> None:
        for part in conjuncts(condition):
            self.solver.add_clause([self.clauses.of(part)])

    def check(self, conditions: Sequence[Term], seconds: float) -> tuple[str, Assignment | None]:
        ends, taken = time.monotonic() + seconds, [self.clauses.of(condition) for condition in conditions]
        while True:
            self.solver.conf_budget(SLICE)
            answer = self.solver.solve_limited(assumptions=taken, expect_interrupt=True)
            if answer is not None:
                return ("sat", self._assignment()) if answer else ("unsat", None)
            if self.stopped() or time.monotonic() > ends:
                return "unknown", None

    def _assignment(self) -> Assignment:
        model: Sequence[int] = self.solver.get_model()

        def holds(literal: int) -> bool:
            return (abs(literal) <= len(model) and model[abs(literal) - 1] > 0) == (literal > 0)

        return {term.value: self.clauses.value(term, holds) for term in self.clauses.variables}


class ByZ3:
    """Asks Z3, by bit-vectors or by whole numbers."""

    def __init__(self, stopped: Callable[[], bool] = _never, bits: Bits | None = None) -> None:
        self.stopped, self.bits = stopped, bits or Bits()
        self.variables, self.seen = list[Term](), 0
        self.solver = z3.SolverFor("QF_FD") if bits is None else z3.Solver()

    def add(self, condition: Term) -> None:
        self.solver.add(*self._made([condition]))

    def check(self, conditions: Sequence[Term], seconds: float) -> tuple[str, Assignment | None]:
        made = self._made(conditions)
        self.solver.push()
        self.solver.add(*made)
        self.solver.set("timeout", max(1, int(seconds * 1000)))
        answer = self.solver.check()
        model = self.solver.model() if answer == z3.sat else None
        self.solver.pop()
        return str(answer), None if model is None else {term.value: self.bits.value(term, model) for term in self.variables}

    def _made(self, conditions: Sequence[Term]) -> list[Any]:
        """Conditions as Z3 has them; the ranges of their variables are known from now on."""
        made = [self.bits.of(condition) for condition in conditions]
        new = [term for term in islice(self.bits.made, self.seen, None) if term.op == "variable"]
        self.seen = len(self.bits.made)
        self.variables += new
        self.solver.add(*(fact for term in new if term.sort == "number" for fact in self.bits.within(term)))
        return made


def by_integers(stopped: Callable[[], bool] = _never) -> Decider:
    """Asks Z3 by whole numbers."""
    return ByZ3(stopped, Integers())


DECIDERS: Mapping[str, Making] = {"sat": BySat, "bit-vectors": ByZ3, "integers": by_integers}
"""By name. Proofs ask the first, which takes least time by far: see `benchmarks/proofs.py --solver`."""
