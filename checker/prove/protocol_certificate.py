"""A proof as SMT-LIB 2 text, so that another solver can check it: every obligation, each with the answer that it must get.

Written from the protocol itself, not from the solver's terms: what Z3 was asked is not what the other solver reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...spec.fence.declare import Protocol
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
    Quantified,
    Same,
    Sort,
    free_in,
)
from .protocol_obligations import Kind, Obligation, obligations


def certificate(*protocols: Protocol) -> str:
    """Every obligation of the protocols that must have no model, in one text for any solver of SMT-LIB 2.

    Obligations that must have a model (nothing is vacuous) are not in it: a solver may find none in unbounded sorts and still
    be right about the others.
    """
    return "\n(reset)\n\n".join("".join(f"{line}\n" for line in _lines(protocol)) for protocol in protocols)


def _lines(protocol: Protocol) -> Iterator[str]:
    yield f"; {protocol.name}: {protocol.sentence}"
    yield "; Every check-sat must answer unsat: the invariant is true at first, actions keep it, and it implies the claims."
    yield "(set-logic UF)"
    for sort in protocol.sorts():
        yield f"(declare-sort {sort.__name__} 0)"
        if sort.ordered:
            yield f"(declare-fun {_order(sort)} ({sort.__name__} {sort.__name__}) Bool)"
    for relation in protocol.relations.values():
        yield f"; {relation.name}: {relation.sentence}"
        yield _declared(relation)
    for obligation in obligations(protocol):
        if obligation.kind is not Kind.POSSIBLE:
            yield from _obligation(protocol, obligation)


def _obligation(protocol: Protocol, obligation: Obligation) -> Iterator[str]:
    yield ""
    yield f"; {obligation.name}: {obligation.kind.value}"
    yield "(push 1)"
    variables, chosen = free_in(obligation.formulas)
    for variable in variables:
        yield f"(declare-const {variable.name} {type(variable).__name__})"
    for relation in chosen:
        if relation.name not in protocol.relations:
            yield _declared(relation)
    for part in obligation.parts:
        yield f"; {part.origin}"
        yield f"(assert {_Text({v: v.name for v in variables}).of(part.formula)})"
    yield "(set-info :status unsat)"
    yield "(check-sat)"
    yield "(pop 1)"


def _declared(relation: AnyRelation) -> str:
    return f"(declare-fun {relation.name} ({' '.join(sort.__name__ for sort in relation.sorts)}) Bool)"


def _order(sort: type[Sort]) -> str:
    return f"{sort.__name__}-at-most"


class _Text:
    """Writes formulas; bound variables get a number, so that no two have one name."""

    def __init__(self, names: Mapping[Sort, str]) -> None:
        self.names = dict(names)

    def of(self, formula: Formula) -> str:
        """The text of a formula."""
        match formula:
            case Atom(relation, terms):
                return f"({relation.name} {' '.join(self.names[term] for term in terms)})"
            case Same(left, right):
                return f"(= {self.names[left]} {self.names[right]})"
            case AtMost(left, right):
                return f"({_order(type(left))} {self.names[left]} {self.names[right]})"
            case Not(body):
                return f"(not {self.of(body)})"
            case And(parts):
                return f"(and {' '.join(map(self.of, parts))})"
            case Or(parts):
                return f"(or {' '.join(map(self.of, parts))})"
            case Implies(left, right):
                return f"(=> {self.of(left)} {self.of(right)})"
            case Quantified(universal, variables, body):
                for v in variables:
                    self.names[v] = f"{v.name}_{len(self.names)}"
                bound = " ".join(f"({self.names[v]} {type(v).__name__})" for v in variables)
                return f"({'forall' if universal else 'exists'} ({bound}) {self.of(body)})"
            case _:
                raise LogicError(f"{formula!r} is no formula")
