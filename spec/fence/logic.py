"""A small language for protocols of any size: relations over unbounded sorts, actions that change them, claims about them.

There are no functions and no numbers, so a state is nothing but which relations hold of which members. That is what lets a
solver decide claims without bounds (fragment.py says when), and plain Python evaluate them on finite structures (finite.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar, TypeVarTuple, overload


class LogicError(Exception):
    """A protocol that is not well formed: which part, and what to do."""


class Sort:
    """A member of a sort, known only by name; a sort is a subclass and has any number of members, at least one."""

    ordered: ClassVar[bool] = False

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def shown(cls, number: int) -> str:
        """How traces name the member with this number (from 0, in order where there is one)."""
        return str(number)


class Ordered(Sort):
    """A member of a sort whose members have a total order."""

    ordered = True

    def __le__(self, other: Ordered) -> Formula:
        return AtMost(self, other)

    def __lt__(self, other: Ordered) -> Formula:
        return ~AtMost(other, self)


class Formula:
    """A statement about a state; `&`, `|` and `~` connect statements (put comparisons in parentheses)."""

    def __and__(self, other: Formula) -> Formula:
        return And((self, other))

    def __or__(self, other: Formula) -> Formula:
        return Or((self, other))

    def __invert__(self) -> Formula:
        return Not(self)


@dataclass(frozen=True, eq=False)
class Atom(Formula):
    """A relation holds of these members."""

    relation: Relation[*tuple[Any, ...]]
    terms: tuple[Sort, ...]


@dataclass(frozen=True, eq=False)
class Same(Formula):
    """Both are the same member."""

    left: Sort
    right: Sort


@dataclass(frozen=True, eq=False)
class AtMost(Formula):
    """The first is the second, or comes before it."""

    left: Sort
    right: Sort


@dataclass(frozen=True, eq=False)
class Not(Formula):
    """The statement is false."""

    body: Formula


@dataclass(frozen=True, eq=False)
class And(Formula):
    """All of the statements are true."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, eq=False)
class Or(Formula):
    """One of the statements is true."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, eq=False)
class Implies(Formula):
    """Where the first statement is true, so is the second."""

    left: Formula
    right: Formula


@dataclass(frozen=True, eq=False)
class Quantified(Formula):
    """The statement is true of all members (`universal`), or of some."""

    universal: bool
    variables: tuple[Sort, ...]
    body: Formula


Sorts = TypeVarTuple("Sorts")
A = TypeVar("A", bound=Sort)
B = TypeVar("B", bound=Sort)
C = TypeVar("C", bound=Sort)


class Relation(Generic[*Sorts]):
    """Which members stand in a relation; as an action's parameter, a choice of such members."""

    def __init__(self, name: str, sorts: tuple[type[Sort], ...], sentence: str = "") -> None:
        self.name, self.sorts, self.sentence = name, sorts, sentence

    def __call__(self, *terms: *Sorts) -> Atom:
        given: tuple[Any, ...] = terms
        if [type(term) for term in given] != list(self.sorts):
            wanted = ", ".join(sort.__name__ for sort in self.sorts)
            raise LogicError(f"{self.name} is used with other members than ({wanted}); give it one of each, in this order")
        return Atom(self, given)


AnyRelation = Relation[*tuple[Any, ...]]
Parameter = Sort | AnyRelation


def same(left: A, right: A) -> Formula:
    """Both are the same member."""
    return Same(left, right)


def implies(left: Formula, right: Formula) -> Formula:
    """Where the first statement is true, so is the second."""
    return Implies(left, right)


@overload
def every(sort: type[A], body: Callable[[A], Formula], /) -> Formula: ...
@overload
def every(one: type[A], two: type[B], body: Callable[[A, B], Formula], /) -> Formula: ...
@overload
def every(one: type[A], two: type[B], three: type[C], body: Callable[[A, B, C], Formula], /) -> Formula: ...
def every(*parts: Any) -> Formula:
    """The statement is true of all members of the sorts."""
    return _quantified(True, parts)


@overload
def some(sort: type[A], body: Callable[[A], Formula], /) -> Formula: ...
@overload
def some(one: type[A], two: type[B], body: Callable[[A, B], Formula], /) -> Formula: ...
@overload
def some(one: type[A], two: type[B], three: type[C], body: Callable[[A, B, C], Formula], /) -> Formula: ...
def some(*parts: Any) -> Formula:
    """The statement is true of at least one choice of members of the sorts."""
    return _quantified(False, parts)


def _quantified(universal: bool, parts: tuple[Any, ...]) -> Formula:
    *sorts, body = parts
    variables = _variables(sorts, body)
    return Quantified(universal, variables, body(*variables))


def _variables(sorts: Iterable[type[Sort]], body: Callable[..., Formula]) -> tuple[Sort, ...]:
    """Variables of these sorts, with the names that a function gives its parameters."""
    return tuple(sort(name) for sort, name in zip(sorts, body.__code__.co_varnames, strict=False))


def negated(formula: Formula) -> Formula:
    """The opposite of a statement, without a double negation."""
    return formula.body if isinstance(formula, Not) else Not(formula)


def closed(variables: tuple[Sort, ...], body: Formula) -> Formula:
    """The statement for all members; the statement itself where there are no variables."""
    return Quantified(True, variables, body) if variables else body


def order_axioms(sort: type[Sort]) -> tuple[Formula, ...]:
    """What makes an order total: any two members compare, both ways only where they are the same, and it carries on."""
    x, y, z = sort("x"), sort("y"), sort("z")
    return (
        closed((x, y), Or((AtMost(x, y), AtMost(y, x)))),
        closed((x, y), Implies(And((AtMost(x, y), AtMost(y, x))), Same(x, y))),
        closed((x, y, z), Implies(And((AtMost(x, y), AtMost(y, z))), AtMost(x, z))),
    )


@dataclass(frozen=True)
class Update:
    """A relation after an action: it holds of the variables where the formula was true before."""

    variables: tuple[Sort, ...]
    formula: Formula


@dataclass(frozen=True)
class Action:
    """What may happen: parameters, named guards (all must be true), the relations it changes; the others stay as they are.

    `sentence` tells it, with the parameters' names in braces.
    """

    name: str
    sentence: str
    parameters: tuple[Parameter, ...]
    guards: Mapping[str, Formula]
    updates: Mapping[AnyRelation, Update]

    @cached_property
    def guard(self) -> Formula:
        """All guards at once."""
        return And(tuple(self.guards.values()))

    def after(self, formula: Formula) -> Formula:
        """What must be true before the action for the formula to be true after it."""
        return rewritten(formula, {}, self.updates)


@dataclass(frozen=True)
class Claim:
    """A named statement about all members of its variables' sorts; `before` the actions that it is about, if it is.

    A claim about actions is made of the state in which one of them is taken. Variables that have the name of a parameter
    of the action are that parameter.
    """

    name: str
    sentence: str
    variables: tuple[Sort, ...]
    body: Formula
    before: tuple[str, ...] = ()

    @cached_property
    def formula(self) -> Formula:
        """The statement, for all members."""
        return closed(self.variables, self.body)

    def of(self, action: Action) -> Claim:
        """The claim about one action, in the action's own parameters."""
        own = {term.name: term for term in action.parameters if isinstance(term, Sort)}
        bound: dict[Sort, Sort] = {v: own[v.name] for v in self.variables if v.name in own}
        rest = tuple(v for v in self.variables if v not in bound)
        return Claim(self.name, self.sentence, rest, rewritten(self.body, bound, {}), (action.name,))


def rewritten(formula: Formula, terms: Mapping[Sort, Sort], updates: Mapping[AnyRelation, Update]) -> Formula:
    """A formula with other variables, and with what relations become in place of the relations.

    Bound variables are objects of their own, so that none can be mistaken for another.
    """
    match formula:
        case Atom(relation, arguments):
            given = tuple(terms.get(term, term) for term in arguments)
            if relation not in updates:
                return Atom(relation, given)
            update = updates[relation]
            return rewritten(update.formula, dict(zip(update.variables, given, strict=True)), {})
        case Same(left, right):
            return Same(terms.get(left, left), terms.get(right, right))
        case AtMost(left, right):
            return AtMost(terms.get(left, left), terms.get(right, right))
        case Not(body):
            return Not(rewritten(body, terms, updates))
        case And(parts):
            return And(tuple(rewritten(part, terms, updates) for part in parts))
        case Or(parts):
            return Or(tuple(rewritten(part, terms, updates) for part in parts))
        case Implies(left, right):
            return Implies(rewritten(left, terms, updates), rewritten(right, terms, updates))
        case Quantified(universal, variables, body):
            fresh = tuple(type(v)(v.name) for v in variables)
            inner = {**terms, **dict(zip(variables, fresh, strict=True))}
            return Quantified(universal, fresh, rewritten(body, inner, updates))
        case _:
            raise LogicError(f"{formula!r} is no formula; build formulas with relations, same, implies, every, some, & | ~")


def parts_of(formula: Formula) -> tuple[Formula, ...]:
    """The formulas that a formula is made of directly."""
    match formula:
        case Not(body) | Quantified(body=body):
            return (body,)
        case And(parts) | Or(parts):
            return parts
        case Implies(left, right):
            return (left, right)
        case _:
            return ()


def relations_in(formula: Formula) -> set[AnyRelation]:
    """The relations that a formula speaks of."""
    found: set[AnyRelation] = {formula.relation} if isinstance(formula, Atom) else set()
    return found.union(*(relations_in(part) for part in parts_of(formula)))


def free_in(formulas: Iterable[Formula]) -> tuple[list[Sort], list[AnyRelation]]:
    """The variables that formulas use without a quantifier, and the relations that they speak of, as they first appear."""
    variables: dict[Sort, None] = {}
    relations: dict[AnyRelation, None] = {}

    def visit(formula: Formula, bound: frozenset[Sort]) -> None:
        match formula:
            case Atom(relation, terms):
                relations[relation] = None
                variables.update(dict.fromkeys(term for term in terms if term not in bound))
            case Same(left, right) | AtMost(left, right):
                variables.update(dict.fromkeys(term for term in (left, right) if term not in bound))
            case Quantified(_, own, body):
                visit(body, bound.union(own))
            case _:
                for part in parts_of(formula):
                    visit(part, bound)

    for formula in formulas:
        visit(formula, frozenset())
    return list(variables), list(relations)
