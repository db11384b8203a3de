"""A symbolic value domain: shared terms that know their ranges and are simplified where they are made.

Equal terms are one object. A number that is known to be within a range because something obliges it to be is the same
term with a narrower range around it; `core` is the term itself.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...spec.lang import BoundSpec
from ...spec.lang.domain import Domain
from ...spec.lang.layout import SetShape

LEAST, GREATEST = -(1 << 10_000), 1 << 10_000
"""The range of a number of which none is known; spec numbers come nowhere near it."""
MOST_FACTS = 48
"""Conjunctions remember at most so many of their parts."""


class Term:
    """A constant, a variable or an operation; `sort` is number, truth or set."""

    __slots__ = ("args", "core", "facts", "high", "low", "number", "op", "opposite", "sort", "value")

    def __init__(self, op: str, sort: str, args: tuple[Term, ...], value: Any, low: int, high: int) -> None:
        self.op, self.sort, self.args, self.value, self.low, self.high = op, sort, args, value, low, high
        self.core = args[0] if op == "within" else self
        self.facts: frozenset[Term] = frozenset((self,))
        self.opposite: Term | None = None
        self.number = 0

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.args))
        return f"{self.op}({inner})" if self.args else f"{self.value}"


def _is_at_most(term: Term, most: Term, depth: int = 12) -> bool:
    """Whether a number is surely no more than another one, as what is taken of something is no more than that."""
    if term is most.core or term.high <= most.low:
        return True
    if term.op != "choose" or depth == 0:
        return False
    condition, then, otherwise = term.args
    least = condition.op == "less" and condition.args == (then, otherwise)  # the lesser of the two
    of = any if least else all
    return of(_is_at_most(one, most, depth - 1) for one in (then, otherwise))


def _number(term: Term) -> int:
    return term.number


class Terms(Domain[Term]):
    """Makes terms."""

    def __init__(self) -> None:
        self.made: dict[tuple[Any, ...], Term] = {}
        self.known: dict[tuple[str, Term, Term], Term] = {}
        self.yes, self.no = (self._make("constant", "truth", (), value, value, value) for value in (1, 0))

    def _make(
        self, op: str, sort: str, args: tuple[Term, ...], value: Any = None, low: int = LEAST, high: int = GREATEST
    ) -> Term:
        key = (op, sort, args, value)
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = Term(op, sort, args, value, low, high)
            found.number = len(self.made)
        return found

    def _core(self, op: str, args: tuple[Term, ...], low: int, high: int, value: Any = None) -> Term:
        """A number of the cores of other numbers; `low` and `high` may come from ranges narrower than theirs."""
        made = self._make(op, "number", tuple(a.core for a in args), value)
        return self.within(made, low, high)

    def variable(self, name: str, low: int, high: int) -> Term:
        """A number about which only its range is known. One name is one variable, of one range."""
        if low == high:
            return self.number(low)
        made = self._make("variable", "number", (), name, low, high)
        assert (made.low, made.high) == (low, high), f"two variables are called {name}"
        return made

    def unknown(self, name: str) -> Term:
        """A truth value about which nothing is known."""
        return self._make("variable", "truth", (), name, 0, 1)

    # ---- what is known of a value

    def constant(self, value: Term) -> int | None:
        if value.sort == "set":
            if all(member.op == "constant" for member in value.args):
                return sum(member.value << i for i, member in enumerate(value.args))
            return None
        return value.value if value.op == "constant" else None

    def range(self, value: Term) -> tuple[int, int]:
        return value.low, value.high

    def within(self, value: Term, low: int, high: int) -> Term:
        low, high = max(low, value.low), min(high, value.high)
        if (low, high) == (value.low, value.high) or low > high:
            return value
        if low == high:
            return self.number(low)
        return self._make("within", "number", (value.core,), (low, high), low, high)

    # ---- numbers

    def number(self, value: int) -> Term:
        return self._make("constant", "number", (), value, value, value)

    def add(self, left: Term, right: Term) -> Term:
        if left.op == "constant":
            left, right = right, left
        if right.op == "constant":
            if right.value == 0:
                return left
            if left.op == "constant":
                return self.number(left.value + right.value)
            core = left.core
            if core.op == "plus":
                shift = self.number(core.value + right.value)
                inner = self.within(core.args[0], left.low - core.value, left.high - core.value)
                return self.add(inner, shift)
            return self._core("plus", (left,), left.low + right.value, left.high + right.value, right.value)
        left, right = sorted((left, right), key=_number)
        return self._core("add", (left, right), left.low + right.low, left.high + right.high)

    def subtract(self, left: Term, right: Term) -> Term:
        if right.op == "constant":
            return self.add(left, self.number(-right.value))
        if left.core is right.core:
            return self.number(0)
        low = left.low - right.high
        if low < 0 and _is_at_most(right.core, left):
            low = 0
        return self._core("subtract", (left, right), low, left.high - right.low)

    def multiply(self, left: Term, right: Term) -> Term:
        if left.op == "constant":
            left, right = right, left
        if right.op == "constant" and right.value in (0, 1):
            return left if right.value else right
        ends = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
        return self._core("multiply", (left, right), min(ends), max(ends))

    def quotient(self, left: Term, by: int) -> Term:
        if by == 1:
            return left
        return self._core("quotient", (left,), left.low // by, left.high // by, by)

    def remainder(self, left: Term, by: int) -> Term:
        if left.low >= 0 and left.high < by:
            return left
        if left.op == "constant":
            return self.number(left.value % by)
        return self._core("remainder", (left,), 0, by - 1, by)

    def less(self, left: Term, right: Term) -> Term:
        if left.high < right.low:
            return self.yes
        if left.low >= right.high or left.core is right.core:
            return self.no
        if left.op == "constant":
            return self.negation(self.less(right, self.number(left.value + 1)))
        return self._memo("less", left, right, self._less)

    def _less(self, left: Term, right: Term) -> Term:
        if right.op == "constant":
            if right.value == left.low + 1:
                return self.equal(left, self.number(left.low))
            if right.value == left.high:
                return self.negation(self.equal(left, right))
        pushed = self._through(self.less, left, right)
        return pushed or self._make("less", "truth", (left.core, right.core), None, 0, 1)

    def _memo(self, op: str, left: Term, right: Term, make: Callable[[Term, Term], Term]) -> Term:
        key = (op, left, right)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = make(left, right)
        return found

    def _through(self, relation: Callable[[Term, Term], Term], left: Term, right: Term) -> Term | None:
        """A comparison with a constant, moved inside a sum with a constant or a choice that has a constant."""
        core = left.core
        if right.op != "constant":
            return None
        if core.op == "plus":
            inner = self.within(core.args[0], left.low - core.value, left.high - core.value)
            return relation(inner, self.number(right.value - core.value))
        if core.op == "choose" and "constant" in (core.args[1].op, core.args[2].op):
            then, otherwise = (relation(self.within(a, left.low, left.high), right) for a in core.args[1:])
            return self.choose(core.args[0], then, otherwise)
        return None

    # ---- every sort

    def equal(self, left: Term, right: Term) -> Term:
        if left.sort == "set":
            same = self.yes
            for i in range(max(len(left.args), len(right.args))):
                same = self.both(same, self.equal(self.has(left, i), self.has(right, i)))
            return same
        if left.core is right.core:
            return self.yes
        if left.op == "constant":
            left, right = right, left
        if left.sort == "truth":
            if right.op == "constant":
                return left if right.value else self.negation(left)
            return self._make("equal", "truth", tuple(sorted((left, right), key=_number)), None, 0, 1)
        if left.high < right.low or right.high < left.low:
            return self.no
        if left.low == left.high == right.low == right.high:
            return self.yes
        return self._memo("equal", left, right, self._equal)

    def _equal(self, left: Term, right: Term) -> Term:
        pushed = self._through(self.equal, left, right)
        one, two = (left.core, right) if right.op == "constant" else sorted((left.core, right.core), key=_number)
        return pushed or self._make("equal", "truth", (one, two), None, 0, 1)

    def choose(self, condition: Term, then: Term, otherwise: Term) -> Term:
        if condition.op == "constant":
            return then if condition.value else otherwise
        if then is otherwise:
            return then
        if condition.op == "not":
            return self.choose(condition.args[0], otherwise, then)
        if then.sort == "set":
            count = max(len(then.args), len(otherwise.args))
            return self.set_of([self.choose(condition, self.has(then, i), self.has(otherwise, i)) for i in range(count)])
        if then.sort == "truth":
            return self._choose_truth(condition, then, otherwise)
        low, high = min(then.low, otherwise.low), max(then.high, otherwise.high)
        if then.core.op == "choose" and then.core.args[0] is condition:
            then = then.core.args[1]
        if otherwise.core.op == "choose":
            test, first, second = otherwise.core.args
            if test is condition:
                otherwise = second
            elif first.core is then.core:
                condition, otherwise = self.either(condition, test), second
        if then.core is otherwise.core:
            return self.within(then.core, low, high)
        if condition.op == "equal" and condition.args == (otherwise.core, then.core):
            return self.within(otherwise.core, low, high)
        own = min(then.core.low, otherwise.core.low), max(then.core.high, otherwise.core.high)
        made = self._make("choose", "number", (condition, then.core, otherwise.core), None, *own)
        return self.within(made, low, high)

    def _choose_truth(self, condition: Term, then: Term, otherwise: Term) -> Term:
        if self.negation(then) is otherwise:
            return self.equal(condition, then)
        if then.op == "constant":
            return self.either(condition, otherwise) if then.value else self.both(self.negation(condition), otherwise)
        if otherwise.op == "constant":
            return self.either(self.negation(condition), then) if otherwise.value else self.both(condition, then)
        if then in (condition, otherwise):
            return self.both(condition, then) if then is not condition else self.either(condition, otherwise)
        return self._make("choose", "truth", (condition, then, otherwise), None, 0, 1)

    # ---- truth values

    def truth(self, value: bool) -> Term:
        return self.yes if value else self.no

    def negation(self, value: Term) -> Term:
        if value.opposite is None:
            if value.op == "constant":
                return self.no if value.value else self.yes
            value.opposite = self._make("not", "truth", (value,), None, 0, 1)
            value.opposite.opposite = value
        return value.opposite

    def both(self, left: Term, right: Term) -> Term:
        for one, other in ((left, right), (right, left)):
            if one.op == "constant":
                return other if one.value else one
            if one.facts <= other.facts:
                return other
            if one.op == "not" and one.args[0].op == "and":
                shorter = self._resolve(one.args[0], other)
                if shorter is not None:
                    return shorter
        few, many = sorted((left.facts, right.facts), key=len)
        if any(fact.opposite in many for fact in few):
            return self.no
        facts = left.facts | right.facts
        made = self.made.get(("and", facts))
        if made is None:
            made = self.made["and", facts] = Term("and", "truth", (left, right), None, 0, 1)
            made.number = len(self.made)
            made.facts = facts if len(facts) <= MOST_FACTS else made.facts
        return made

    def is_value(self, cell: Term, value: int) -> Term:
        """That a cell has a value."""
        if cell.sort == "truth":
            return cell if value else self.negation(cell)
        return self.equal(cell, self.number(value))

    def together(self, parts: Iterable[Term]) -> Term:
        """That all of these hold."""
        found = self.yes
        for part in parts:
            found = self.both(found, part)
        return found

    def _resolve(self, conjunction: Term, other: Term) -> Term | None:
        """`other` and not (a and b): with a in `other`, not b is left; with not a, nothing."""
        for one, rest in (conjunction.args, conjunction.args[::-1]):
            if one.facts <= other.facts:
                return self.both(other, self.negation(rest))
            if self.negation(one).facts <= other.facts:
                return other
        return None

    # ---- sets

    def set_of(self, members: Sequence[Term]) -> Term:
        count = len(members)
        while count and members[count - 1] is self.no:
            count -= 1
        return self._make("set", "set", tuple(members[:count]))

    def width(self, chosen: Term) -> int:
        return len(chosen.args)

    def has(self, chosen: Term, member: int) -> Term:
        return chosen.args[member] if member < len(chosen.args) else self.no


def conjuncts(term: Term) -> list[Term]:
    """The parts of a conjunction; none of what is always true."""
    found: dict[Term, None] = {}
    stack, done = [term.core], set[Term]()
    while stack:
        one = stack.pop()
        if one in done or (one.op == "constant" and one.value):
            continue
        done.add(one)
        if one.op == "and":
            stack += one.args
        else:
            found[one] = None
    return list(found)


def reachable(roots: Sequence[Term], known: Container[Term] = ()) -> Iterator[Term]:
    """Every term that the roots are made of, parts before wholes, ranges around a term left out, and what is known already."""
    done: set[Term] = set()
    stack = [(root.core, False) for root in reversed(roots)]
    while stack:
        term, expanded = stack.pop()
        if term in done or term in known:
            continue
        if expanded:
            done.add(term)
            yield term
        else:
            stack.append((term, True))
            stack += [(a.core, False) for a in term.args]


def evaluate(roots: Sequence[Term], at: Mapping[str, int]) -> list[int]:
    """The values of terms where their variables have these values; sets as bit masks."""
    values: dict[Term, int] = {}
    for term in reachable(roots):
        a = [values[arg.core] for arg in term.args]
        values[term] = _apply(term, a, at)
    return [values[root.core] for root in roots]


def _apply(term: Term, a: Sequence[int], at: Mapping[str, int]) -> int:
    simple: dict[str, Callable[[], int]] = {
        "constant": lambda: term.value,
        "variable": lambda: at[term.value],
        "plus": lambda: a[0] + term.value,
        "add": lambda: a[0] + a[1],
        "subtract": lambda: a[0] - a[1],
        "multiply": lambda: a[0] * a[1],
        "quotient": lambda: a[0] // term.value,
        "remainder": lambda: a[0] % term.value,
        "less": lambda: int(a[0] < a[1]),
        "equal": lambda: int(a[0] == a[1]),
        "choose": lambda: a[1] if a[0] else a[2],
        "and": lambda: a[0] & a[1],
        "not": lambda: 1 - a[0],
        "set": lambda: sum(bit << i for i, bit in enumerate(a)),
    }
    return simple[term.op]()


def symbolic_cells(bound: BoundSpec, domain: Terms, mark: str = "") -> list[Term]:
    """A state of which only the ranges are known; the variable of cell 3 is `c3`, that of member 1 of a set in it `c3_1`."""
    cells: list[Term] = []
    for at, leaf in bound.cells():
        if isinstance(leaf, SetShape):
            cells.append(domain.set_of([domain.unknown(f"{mark}c{at}_{i}") for i in range(leaf.count)]))
        elif leaf.kind == "bool":
            cells.append(domain.unknown(f"{mark}c{at}"))
        else:
            high = max(leaf.low, leaf.high)  # of an index without members a cell is blank
            cells.append(domain.variable(f"{mark}c{at}", leaf.low, high))
    return cells


def assignment(bound: BoundSpec, state: Sequence[int], mark: str = "") -> dict[str, int]:
    """A concrete state as values of the variables of `symbolic_cells`."""
    values: dict[str, int] = {}
    for at, leaf in bound.cells():
        if isinstance(leaf, SetShape):
            values |= {f"{mark}c{at}_{i}": state[at] >> i & 1 for i in range(leaf.count)}
        else:
            values[f"{mark}c{at}"] = state[at]
    return values
