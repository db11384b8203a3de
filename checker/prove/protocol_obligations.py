"""What is to be shown of a protocol, one question each: sets of formulas that must have no model, or must have one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ...spec.fence.declare import Protocol
from ...spec.fence.fragment import undecidable
from ...spec.fence.logic import (
    Action,
    Atom,
    Claim,
    Formula,
    Implies,
    LogicError,
    Or,
    Quantified,
    free_in,
    negated,
    order_axioms,
)


class Kind(Enum):
    """What an obligation shows."""

    INITIAL = "the invariant is true at first"
    PRESERVED = "an action keeps the invariant"
    SAFE = "the invariant implies what is claimed"
    POSSIBLE = "it can be the case at all"


@dataclass(frozen=True)
class Part:
    """One formula of an obligation, and where it comes from."""

    origin: str
    formula: Formula


@dataclass(frozen=True)
class Obligation:
    """Formulas that must have no model (of kind POSSIBLE: that must have one).

    `name` is unique; `action` and `claim` say what it is about; `outside` is why it is outside the decidable fragment, None if
    it is inside.
    """

    kind: Kind
    name: str
    parts: tuple[Part, ...]
    action: Action | None = None
    claim: Claim | None = None

    def __post_init__(self) -> None:
        names = [symbol.name for symbols in free_in(self.formulas) for symbol in symbols]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise LogicError(
                f"{self.name} has two things called {', '.join(twice)}, which a solver would take for one; rename one"
            )

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """The formulas alone."""
        return tuple(part.formula for part in self.parts)

    @property
    def outside(self) -> str | None:
        """Which sorts make one another exist in a circle; None where there is none, so that the solver must answer."""
        return undecidable(self.formulas)


def obligations(protocol: Protocol) -> Iterator[Obligation]:
    """Everything that is to be shown: the invariant, what it implies, and that nothing of it is empty talk."""
    known = Known(protocol)
    for claim in protocol.conjuncts.values():
        yield Obligation(Kind.INITIAL, f"init/{claim.name}", (*known.start, fails(claim)), claim=claim)
    for action in protocol.actions.values():
        for claim in protocol.conjuncts.values():
            broken = Part(f"not {claim.name} afterwards", negated(action.after(claim.formula)))
            parts = (*known.invariant, *known.taken(action), broken)
            yield Obligation(Kind.PRESERVED, f"{action.name}/{claim.name}", parts, action, claim)
    for claim, action in known.cases():
        parts = (*known.invariant, *(guards(action) if action else ()), fails(claim))
        yield Obligation(Kind.SAFE, f"{action.name if action else 'safe'}/{claim.name}", parts, action, claim)
    yield from _possible(protocol, known)


def _possible(protocol: Protocol, known: Known) -> Iterator[Obligation]:
    yield Obligation(Kind.POSSIBLE, "possible/init", known.start)
    for action in protocol.actions.values():
        parts = (*known.invariant, *known.taken(action), Part(f"{action.name} changes something", changes(action)))
        yield Obligation(Kind.POSSIBLE, f"possible/{action.name}", parts, action)
    claimed = [(claim, action) for claim, action in known.cases() if claim.name not in protocol.conjuncts]
    for claim, action in [*((claim, None) for claim in protocol.conjuncts.values()), *claimed]:
        if isinstance(claim.body, Implies):
            left = Part(f"left side of {claim.name}", claim.body.left)
            name = f"possible/{action.name}/{claim.name}" if action else f"possible/{claim.name}"
            yield Obligation(Kind.POSSIBLE, name, (*known.invariant, *(guards(action) if action else ()), left), action, claim)


class Known:
    """What obligations about a protocol take for granted."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        orders = [(sort, axiom) for sort in protocol.sorts() if sort.ordered for axiom in order_axioms(sort)]
        axioms = [Part(f"axiom {axiom.name}", axiom.formula) for axiom in protocol.axioms.values()]
        always = (*(Part(f"order of {sort.__name__}", axiom) for sort, axiom in orders), *axioms)
        self.start = (*always, *(Part(claim.name, claim.formula) for claim in protocol.initial_claims()))
        self.invariant = (*always, *(Part(claim.name, claim.formula) for claim in protocol.conjuncts.values()))

    def taken(self, action: Action) -> tuple[Part, ...]:
        """The action is taken: its guards are true, and the axioms afterwards."""
        axioms = self.protocol.axioms.values()
        after = tuple(Part(f"axiom {axiom.name} afterwards", action.after(axiom.formula)) for axiom in axioms)
        return (*guards(action), *after)

    def cases(self) -> list[tuple[Claim, Action | None]]:
        """Every claim to prove: of all states, or of those in which an action is taken."""
        found: list[tuple[Claim, Action | None]] = []
        for claim in self.protocol.claims.values():
            if not claim.before:
                found.append((claim, None))
            for name in claim.before:
                action = self.protocol.actions[name]
                found.append((claim.of(action), action))
        return found


def guards(action: Action) -> tuple[Part, ...]:
    """The guards of an action, about its parameters as free variables."""
    return tuple(Part(f"guard {name} of {action.name}", guard) for name, guard in action.guards.items())


def fails(claim: Claim) -> Part:
    """The claim is not true."""
    return Part(f"not {claim.name}", negated(claim.formula))


def changes(action: Action) -> Formula:
    """An action changes some relation somewhere."""
    parts: list[Formula] = []
    for relation, update in action.updates.items():
        before = Atom(relation, update.variables)
        parts.append(Quantified(False, update.variables, (before & ~update.formula) | (~before & update.formula)))
    return Or(tuple(parts))
