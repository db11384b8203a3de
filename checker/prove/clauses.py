"""Terms as clauses for a SAT solver: a truth value is a literal, a number its bits, a set one literal a member.

Numbers are as wide as their ranges need, as in `Bits`, the bit of least weight first; where a range begins below zero, the last
bit is the sign (two's complement). Literal 1 is true. Ranges of variables are clauses, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .bits import Span, hull, itself, span_of, width
from .terms import Term, reachable

TRUE, FALSE = 1, -1
Number = tuple[int, ...]


class Gates:
    """Literals that stand for what others are together, each made once; clauses that say so are handed to `emit`."""

    def __init__(self, emit: Callable[[list[int]], None]) -> None:
        self.emit, self.count = emit, TRUE
        self.gates: dict[tuple[Any, ...], int] = {}
        emit([TRUE])

    def fresh(self) -> int:
        """A new literal."""
        self.count += 1
        return self.count

    def both(self, a: int, b: int) -> int:
        """That two hold."""
        if FALSE in (a, b) or a == -b:
            return FALSE
        if a in (TRUE, b):
            return b
        if b == TRUE:
            return a
        key = ("and", min(a, b), max(a, b))
        if key not in self.gates:
            made = self.gates[key] = self.fresh()
            for clause in ([-made, a], [-made, b], [made, -a, -b]):
                self.emit(clause)
        return self.gates[key]

    def every(self, parts: Sequence[int]) -> int:
        """That all of these hold."""
        literals = {*parts} - {TRUE}
        if FALSE in literals or any(-one in literals for one in literals):
            return FALSE
        if len(literals) < 3:
            return self.both(*literals, *(TRUE,) * (2 - len(literals)))
        key = ("and", *sorted(literals))
        if key not in self.gates:
            made = self.gates[key] = self.fresh()
            for one in literals:
                self.emit([-made, one])
            self.emit([made, *(-one for one in literals)])
        return self.gates[key]

    def differ(self, a: int, b: int) -> int:
        """That exactly one of two holds."""
        sign = 1 if (a < 0) == (b < 0) else -1
        a, b = sorted((abs(a), abs(b)))
        if a == b:
            return FALSE * sign
        if a == TRUE:
            return -b * sign
        key = ("differ", a, b)
        if key not in self.gates:
            made = self.gates[key] = self.fresh()
            for clause in ([-made, a, b], [-made, -a, -b], [made, -a, b], [made, a, -b]):
                self.emit(clause)
        return self.gates[key] * sign

    def choose(self, test: int, then: int, otherwise: int) -> int:
        """The one where `test` holds, else the other."""
        if test < 0:
            test, then, otherwise = -test, otherwise, then
        if test == TRUE or then == otherwise:
            return then
        if then == -otherwise:
            return -self.differ(test, then)
        if abs(then) in (TRUE, test):
            return -self.both(-test, -otherwise) if then > 0 else self.both(-test, otherwise)
        if abs(otherwise) in (TRUE, test):
            return self.both(test, then) if otherwise in (FALSE, test) else -self.both(test, -then)
        if then < 0:
            return -self.choose(test, -then, -otherwise)
        key = ("choose", test, then, otherwise)
        if key not in self.gates:
            made = self.gates[key] = self.fresh()
            self._define(made, test, then, otherwise)
        return self.gates[key]

    def _define(self, made: int, test: int, then: int, otherwise: int) -> None:
        for clause in ([-test, -then, made], [-test, then, -made], [test, -otherwise, made], [test, otherwise, -made]):
            self.emit(clause)
        self.emit([-then, -otherwise, made])  # both follow from the others, not by propagation
        self.emit([then, otherwise, -made])

    # ---- numbers of as many bits

    def sum(self, one: Number, two: Number) -> Number:
        """The sum, without what does not fit."""
        found, carry = list[int](), FALSE
        for a, b in zip(one, two, strict=True):
            unlike = self.differ(a, b)
            found.append(self.differ(unlike, carry))
            carry = self.choose(unlike, carry, a)
        return tuple(found)

    def product(self, one: Number, two: Number) -> Number:
        """The product, without what does not fit."""
        found: Number = (FALSE,) * len(one)
        for i, bit in enumerate(two):
            found = self.sum(found, (*(FALSE,) * i, *(self.both(bit, a) for a in one[: len(one) - i])))
        return found

    def equal(self, one: Number, two: Number) -> int:
        """That two are the same."""
        return self.every([-self.differ(a, b) for a, b in zip(one, two, strict=True)])

    def less(self, one: Number, two: Number, *, signed: bool) -> int:
        """That the first is less than the second."""
        found = FALSE
        for place, (a, b) in enumerate(zip(one, two, strict=True), 1):
            found = self.choose(self.differ(a, b), a if signed and place == len(one) else b, found)
        return found


class Clauses:
    """Translates terms, each once. `emit` takes the clauses, which together allow every value that the variables may have."""

    def __init__(self, emit: Callable[[list[int]], None]) -> None:
        self.gates = Gates(emit)
        self.literals: dict[Term, int] = {}
        self.numbers: dict[Term, Number] = {}
        self.spans: dict[Term, Span] = {}
        self.variables: list[Term] = []
        self.divided: dict[tuple[Term, int], tuple[Number, Number]] = {}

    def of(self, term: Term) -> int:
        """A truth value as a literal."""
        self._make(term)
        return self.literals[term.core]

    def bits(self, term: Term) -> Number:
        """A number as its bits."""
        self._make(term)
        return self.numbers[term.core]

    def value(self, variable: Term, holds: Callable[[int], bool]) -> int:
        """What a variable is where these literals hold."""
        if variable.sort == "truth":
            return int(holds(self.literals[variable]))
        bits = self.numbers[variable]
        value = sum(holds(bit) << i for i, bit in enumerate(bits))
        return value - (1 << len(bits)) if variable.low < 0 and holds(bits[-1]) else value

    def _make(self, term: Term) -> None:
        if term.core in self.spans:
            return
        for part in reachable([term.core], self.spans):
            self.spans[part] = span_of(part, self.spans)
            if part.op == "variable":
                self.variables.append(part)
            if part.sort == "truth":
                self.literals[part] = self._truth(part)
            elif part.sort == "number":
                self.numbers[part] = self._number(part)

    def _truth(self, term: Term) -> int:
        gates, a = self.gates, [x.core for x in term.args]
        match term.op:
            case "constant":
                return TRUE if term.value else FALSE
            case "variable":
                return gates.fresh()
            case "and":
                return gates.both(self.literals[a[0]], self.literals[a[1]])
            case "not":
                return -self.literals[a[0]]
            case "choose":
                return gates.choose(*(self.literals[x] for x in a))
            case "equal" if a[0].sort == "truth":
                return -gates.differ(self.literals[a[0]], self.literals[a[1]])
            case _:
                low, high = hull([self.spans[x] for x in a])
                one, two = (self._fit(x, low, high) for x in a)
                return gates.equal(one, two) if term.op == "equal" else gates.less(one, two, signed=low < 0)

    def _number(self, term: Term) -> Number:
        gates, span = self.gates, self.spans[term]
        if term.op == "constant":
            return _constant(term.value, width(*span))
        if term.op == "variable":
            return self._any(*span)
        if term.op in ("quotient", "remainder"):
            return self._divided(term.args[0].core, term.value)[term.op == "remainder"]
        numbers = [x.core for x in term.args if x.sort == "number"]
        low, high = hull([span, *(self.spans[x] for x in numbers), *itself(term)])
        a = [self._fit(x, low, high) for x in numbers]
        match term.op:
            case "choose":
                test = self.literals[term.args[0].core]
                made = tuple(gates.choose(test, one, two) for one, two in zip(*a, strict=True))
            case "plus":
                made = gates.sum(a[0], _constant(term.value, len(a[0])))
            case "add":
                made = gates.sum(a[0], a[1])
            case "subtract":  # ~(~a + b)
                made = tuple(-bit for bit in gates.sum(tuple(-bit for bit in a[0]), a[1]))
            case _:
                made = gates.product(a[0], a[1])
        return made[: width(*span)]

    def _any(self, low: int, high: int) -> Number:
        """A number about which only its range is known."""
        made = tuple(self.gates.fresh() for _ in range(width(low, high)))
        for one, two in ((made, _constant(low, len(made))), (_constant(high, len(made)), made)):
            self.gates.emit([-self.gates.less(one, two, signed=low < 0)])
        return made

    def _divided(self, core: Term, by: int) -> tuple[Number, Number]:
        """Quotient and remainder as Python has them: the only ones of which the number is made."""
        if (core, by) not in self.divided:
            low, high = self.spans[core]
            least, most = low // by, high // by
            quotient, rest = self._any(least, most), self._any(0, by - 1)
            low, high = hull([(least * by, most * by + by - 1), (least, most), (0, by)])
            size = width(low, high)
            times = self.gates.product(_extended(quotient, size, signed=least < 0), _constant(by, size))
            whole = self.gates.sum(times, _extended(rest, size, signed=False))
            self.gates.emit([self.gates.equal(whole, self._fit(core, low, high))])
            self.divided[core, by] = quotient, rest
        return self.divided[core, by]

    def _fit(self, term: Term, low: int, high: int) -> Number:
        """A number with as many bits as a range needs that has its own in it."""
        return _extended(self.numbers[term], width(low, high), signed=self.spans[term][0] < 0)


def _constant(value: int, size: int) -> Number:
    return tuple(TRUE if value >> i & 1 else FALSE for i in range(size))


def _extended(made: Number, size: int, *, signed: bool) -> Number:
    return made + (made[-1] if signed else FALSE,) * (size - len(made))
