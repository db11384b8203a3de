"""Terms as bit-vectors for Z3: each number as wide as its range needs, a set as one truth value a member.

The range of a term is worked out from what it is made of, without the narrower ranges that obligations promise: nothing wraps
around, whether these hold or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .solver import z3
from .terms import Term, Terms, reachable

Span = tuple[int, int]


class Bits:
    """Translates terms, each once."""

    def __init__(self) -> None:
        self.made: dict[Term, Any] = {}
        self.spans: dict[Term, Span] = {}

    def of(self, term: Term) -> Any:
        """A number as a bit-vector, a truth value as a Boolean, a set as the list of those of its members."""
        core = term.core
        if core not in self.made:
            for part in reachable([core], self.made):
                self.spans[part] = span_of(part, self.spans)
                self.made[part] = self._made(part)
        return self.made[core]

    def same(self, left: Term, right: Term) -> Any:
        """That two numbers or truth values are equal."""
        one, other = self.of(left), self.of(right)
        if left.sort == "truth":
            return one == other
        return self._equal(left.core, right.core)

    def within(self, variable: Term) -> list[Any]:
        """What the range of a variable says that its bits do not."""
        made = self.of(variable)
        low, high = variable.low, variable.high
        found = [] if low in (0, *_least(made, low)) and low <= 0 else [_at_least(made, low)]
        return found if high == _greatest(made, low) else [*found, _at_most(made, high, low)]

    def ranges(self, terms: Terms) -> list[Any]:
        """What the ranges of all variables that there are say that their bits do not."""
        numbers = [term for term in terms.made.values() if term.op == "variable" and term.sort == "number"]
        return [fact for number in numbers for fact in self.within(number)]

    def value(self, variable: Term, model: Any) -> int:
        """What a variable is in a model; its least value where the model does not say."""
        found = model.eval(self.of(variable))
        if variable.sort == "truth":
            return int(z3.is_true(found))
        if not z3.is_bv_value(found):
            return variable.low
        return found.as_long() if variable.low >= 0 else found.as_signed_long()

    def concrete(self, value: Term, model: Any) -> int:
        """What a constant, a variable or a set of such is in a model; a set as a bit mask."""
        if value.sort == "set":
            return sum(self.concrete(member, model) << i for i, member in enumerate(value.args))
        return value.value if value.op == "constant" else self.value(value, model)

    # ---- expressions

    def _made(self, term: Term) -> Any:
        if term.sort == "set":
            return [self.made[a.core] for a in term.args]
        if term.sort == "truth":
            return self._truth(term)
        if term.op == "constant":
            return self._constant(term)
        return self._variable(term) if term.op == "variable" else self._number(term, self.spans[term])

    def _constant(self, term: Term) -> Any:
        return z3.BitVecVal(term.value, width(*self.spans[term]))

    def _variable(self, term: Term) -> Any:
        return z3.BitVec(term.value, width(*self.spans[term]))

    def _less(self, left: Any, right: Any, low: int) -> Any:
        return left < right if low < 0 else z3.ULT(left, right)

    def _truth(self, term: Term) -> Any:
        a = [x.core for x in term.args]
        match term.op:
            case "constant":
                return z3.BoolVal(bool(term.value))
            case "variable":
                return z3.Bool(term.value)
            case "and":
                return z3.And(self.made[a[0]], self.made[a[1]])
            case "not":
                return z3.Not(self.made[a[0]])
            case "choose":
                return z3.If(self.made[a[0]], self.made[a[1]], self.made[a[2]])
            case "equal" if a[0].sort == "truth":
                return self.made[a[0]] == self.made[a[1]]
            case "equal":
                return self._equal(a[0], a[1])
            case _:
                low, high = hull([self.spans[x] for x in a])
                left, right = (self._fit(x, low, high) for x in a)
                return self._less(left, right, low)

    def _equal(self, left: Term, right: Term) -> Any:
        low, high = hull([self.spans[left], self.spans[right]])
        return self._fit(left, low, high) == self._fit(right, low, high)

    def _number(self, term: Term, span: Span) -> Any:
        a = [x.core for x in term.args]
        low, high = hull([span, *[self.spans[x] for x in a if x.sort == "number"], *itself(term)])
        made = [self._fit(x, low, high) if x.sort == "number" else self.made[x] for x in a]
        match term.op:
            case "choose":
                return z3.If(made[0], made[1], made[2])
            case "plus":
                found = made[0] + z3.BitVecVal(term.value, made[0].size())
            case "add":
                found = made[0] + made[1]
            case "subtract":
                found = made[0] - made[1]
            case "multiply":
                found = made[0] * made[1]
            case _:
                found = _divided(term.op, made[0], term.value, low)
        return z3.Extract(width(*span) - 1, 0, found) if width(*span) < found.size() else found

    def _fit(self, term: Term, low: int, high: int) -> Any:
        """A number with as many bits as a range needs that has its own in it."""
        made, more = self.made[term], width(low, high) - self.made[term].size()
        if more <= 0:
            return made
        return z3.SignExt(more, made) if self.spans[term][0] < 0 else z3.ZeroExt(more, made)


def span_of(term: Term, spans: Mapping[Term, Span]) -> Span:
    """The range of a term, from those of its parts."""
    if term.sort != "number":
        return 0, 1
    parts = [spans[a.core] for a in term.args]
    match term.op:
        case "constant":
            return term.value, term.value
        case "variable":
            return term.low, term.high
        case "choose":
            return hull(parts[1:])
        case "plus":
            return parts[0][0] + term.value, parts[0][1] + term.value
        case "quotient":
            return parts[0][0] // term.value, parts[0][1] // term.value
        case "remainder":
            return 0, term.value - 1
        case _:
            (low, high), (least, most) = parts
            ends = {
                "add": (low + least, high + most),
                "subtract": (low - most, high - least),
                "multiply": (low * least, low * most, high * least, high * most),
            }[term.op]
            return min(ends), max(ends)


def itself(term: Term) -> list[Span]:
    """The range of the number that is part of an operation."""
    return [(min(term.value, 0), max(term.value, 0))] if term.op in ("plus", "quotient", "remainder") else []


def _divided(op: str, made: Any, by: int, low: int) -> Any:
    """Quotient or remainder as Python has it: rounded down, and of the sign of the divisor, which is above zero."""
    divisor = z3.BitVecVal(by, made.size())
    if low >= 0:
        return z3.UDiv(made, divisor) if op == "quotient" else z3.URem(made, divisor)
    rest = z3.SRem(made, divisor)
    down = z3.If(rest < 0, z3.BitVecVal(1, made.size()), z3.BitVecVal(0, made.size()))
    return made / divisor - down if op == "quotient" else z3.If(rest < 0, rest + divisor, rest)


def hull(spans: Sequence[Span]) -> Span:
    """The least range that these lie in."""
    return min(low for low, _ in spans), max(high for _, high in spans)


def width(low: int, high: int) -> int:
    """Bits for every number of a range: with a sign where some are below zero."""
    return max(1, high.bit_length()) if low >= 0 else max((-low - 1).bit_length(), max(high, 0).bit_length()) + 1


def _least(made: Any, low: int) -> Iterable[int]:
    return () if low >= 0 else (-(1 << (made.size() - 1)),)


def _greatest(made: Any, low: int) -> int:
    return (1 << made.size()) - 1 if low >= 0 else (1 << (made.size() - 1)) - 1


def _at_least(made: Any, low: int) -> Any:
    return z3.UGE(made, low) if low >= 0 else made >= low


def _at_most(made: Any, high: int, low: int) -> Any:
    return z3.ULE(made, high) if low >= 0 else made <= high
