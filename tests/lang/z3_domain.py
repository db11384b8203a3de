"""Terms for Z3: whole numbers, truth values, and a set as one truth value a member."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from fencepost.checker.prove.terms import Term, Terms, reachable

z3: Any = importlib.import_module("z3")


class Z3Terms(Terms):
    """A domain whose terms can be handed to Z3."""

    def __init__(self) -> None:
        super().__init__()
        self.translated: dict[Term, Any] = {}

    def to_z3(self, term: Term) -> Any:
        """The term for Z3: an expression, or for a set the list of those of its members."""
        if term.core not in self.translated:
            for part in reachable([term]):
                if part not in self.translated:
                    self.translated[part] = _translate(part, [self.translated[a.core] for a in part.args])
        return self.translated[term.core]

    def ranges(self, term: Sequence[Term]) -> list[Any]:
        """What the declared ranges say of the variables in terms."""
        numbers = [t for t in reachable(term) if t.op == "variable" and t.sort == "number"]
        return [z3.And(self.to_z3(t) >= t.low, self.to_z3(t) <= t.high) for t in numbers]


def _translate(term: Term, a: list[Any]) -> Any:
    match term.op:
        case "constant":
            return z3.BoolVal(bool(term.value)) if term.sort == "truth" else z3.IntVal(term.value)
        case "variable":
            return z3.Bool(term.value) if term.sort == "truth" else z3.Int(term.value)
        case "plus":
            return a[0] + term.value
        case "add":
            return a[0] + a[1]
        case "subtract":
            return a[0] - a[1]
        case "multiply":
            return a[0] * a[1]
        case "quotient":
            return a[0] / term.value
        case "remainder":
            return a[0] % term.value
        case "less":
            return a[0] < a[1]
        case "equal":
            return a[0] == a[1]
        case "choose":
            return z3.If(a[0], a[1], a[2])
        case "and":
            return z3.And(a[0], a[1])
        case "not":
            return z3.Not(a[0])
        case _:
            return a
