"""Formulas and states of a protocol in words, with the members that a run is about."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from .finite import Argument, Finite, State
from .logic import And, AtMost, Atom, Formula, Implies, LogicError, Not, Or, Parameter, Quantified, Same, Sort
from .runs import shown


def in_words(formula: Formula, values: Mapping[Parameter, Argument] | None = None) -> str:
    """A formula in words; variables that have a value are shown by it."""
    values = values or {}

    def term(of: Sort) -> str:
        return shown(of, values[of]) if of in values else of.name

    def told(part: Formula, *, inside: bool = True) -> str:
        match part:
            case Atom(relation, terms):
                return f"{relation.name}({', '.join(map(term, terms))})"
            case Same(left, right):
                return f"{term(left)} is {term(right)}"
            case AtMost(left, right):
                return f"{term(left)} is not after {term(right)}"
            case Not(AtMost(left, right)):
                return f"{term(left)} is after {term(right)}"
            case Not(body):
                return f"not {told(body)}"
            case And(parts) | Or(parts):
                text = f" {'and' if isinstance(part, And) else 'or'} ".join(map(told, parts))
            case Implies(left, right):
                text = f"if {told(left, inside=False)}, then {told(right, inside=False)}"
            case Quantified(universal, variables, body):
                names = ", ".join(v.name for v in variables)
                text = f"{'every' if universal else 'some'} {names}: {told(body, inside=False)}"
            case _:
                raise LogicError(f"{part!r} is no formula")
        return f"({text})" if inside else text

    return told(formula, inside=False)


def why_false(finite: Finite, formula: Formula, state: State, values: Mapping[Parameter, Argument]) -> str:
    """A formula that is false in a state, in words: of a statement about all members, for some of which it is false."""
    if not isinstance(formula, Quantified) or not formula.universal:
        return in_words(formula, values)
    for choice in product(*(range(finite.sizes[type(v)]) for v in formula.variables)):
        example = {**values, **dict(zip(formula.variables, choice, strict=True))}
        if not finite.holds(formula.body, state, example):
            return in_words(formula.body, example)
    return in_words(formula, values)
