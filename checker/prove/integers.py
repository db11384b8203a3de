"""Terms as whole numbers for Z3: the other way to say what `Bits` says, to be measured against it."""

from __future__ import annotations

from typing import Any

from .bits import Bits, Span
from .solver import z3
from .terms import Term


class Integers(Bits):
    """Translates terms, each once; numbers have no width, so a variable needs its range said."""

    def within(self, variable: Term) -> list[Any]:
        made = self.of(variable)
        return [made >= variable.low, made <= variable.high]

    def value(self, variable: Term, model: Any) -> int:
        found = model.eval(self.of(variable))
        if variable.sort == "truth":
            return int(z3.is_true(found))
        return found.as_long() if z3.is_int_value(found) else variable.low

    def _variable(self, term: Term) -> Any:
        return z3.Int(term.value)

    def _constant(self, term: Term) -> Any:
        return z3.IntVal(term.value)

    def _fit(self, term: Term, low: int, high: int) -> Any:
        return self.made[term]

    def _less(self, left: Any, right: Any, low: int) -> Any:
        return left < right

    def _number(self, term: Term, span: Span) -> Any:
        a = [self.made[x.core] for x in term.args]
        match term.op:
            case "choose":
                return z3.If(a[0], a[1], a[2])
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
            case _:
                return a[0] % term.value
