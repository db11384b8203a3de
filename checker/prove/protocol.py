"""Proves a protocol for any size: its invariant is inductive and implies what is claimed, and none of it is empty talk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...spec.fence.declare import Protocol
from ...spec.fence.finite import Argument, Finite, State
from ...spec.fence.logic import Parameter, Sort, free_in
from ..result import Verdict
from .protocol_obligations import Kind, Obligation, obligations
from .protocol_solver import Answer, Members, Symbols, as_tuples, solve
from .solver import Disagreement


@dataclass(frozen=True)
class Counterexample:
    """A finite structure in which an obligation's formulas are all true: sizes, relations, and the action's arguments.

    Of an action that breaks the invariant, `after` is the state that it leads to.
    """

    sizes: Mapping[type[Sort], int]
    state: State
    arguments: Mapping[Parameter, Argument]
    after: State | None = None


@dataclass(frozen=True)
class Query:
    """One obligation and its outcome: `verdict` HOLDS as it should be, VIOLATED with a counterexample, or UNDETERMINED.

    A POSSIBLE obligation is VIOLATED without a counterexample: there is no such state. `outside` says why the solver was not
    bound to answer (None: it was).
    """

    kind: Kind
    name: str
    action: str | None
    claim: str | None
    verdict: Verdict
    seconds: float
    outside: str | None
    counterexample: Counterexample | None = None


@dataclass(frozen=True)
class Proof:
    """All queries about a protocol; it HOLDS if all of them do."""

    protocol: Protocol
    queries: tuple[Query, ...]

    @property
    def verdict(self) -> Verdict:
        """VIOLATED if any query is, else UNDETERMINED if any is."""
        return worst({query.verdict for query in self.queries})

    @property
    def seconds(self) -> float:
        """The time of all queries together."""
        return sum(query.seconds for query in self.queries)


def worst(verdicts: set[Verdict]) -> Verdict:
    """VIOLATED if any verdict is, else UNDETERMINED if any is, else HOLDS."""
    return next((verdict for verdict in (Verdict.VIOLATED, Verdict.UNDETERMINED) if verdict in verdicts), Verdict.HOLDS)


def prove(
    protocol: Protocol, seconds: float = 10.0, tell: Callable[[Query], None] | None = None, *, first: bool = False
) -> Proof:
    """Decide every obligation of a protocol, with so many seconds for each; `first` stops at the first that fails."""
    found: list[Query] = []
    symbols = Symbols()
    for obligation in obligations(protocol):
        found.append(decide(protocol, obligation, seconds, symbols))
        if tell:
            tell(found[-1])
        if first and found[-1].verdict is not Verdict.HOLDS:
            break
    return Proof(protocol, tuple(found))


def decide(protocol: Protocol, obligation: Obligation, seconds: float, symbols: Symbols | None = None) -> Query:
    """Decide one obligation; a counterexample is evaluated before anybody sees it.

    Raises `Disagreement` where the solver's structure is no counterexample.
    """
    symbols = symbols or Symbols()
    wanted = Answer.SATISFIABLE if obligation.kind is Kind.POSSIBLE else Answer.UNSATISFIABLE
    solved = solve(map(symbols.of, obligation.formulas), protocol.sorts(), seconds)
    shown = replayed(protocol, obligation, symbols, solved.members) if solved.members else None
    verdict = Verdict.HOLDS if solved.answer is wanted else Verdict.VIOLATED
    if solved.answer is Answer.UNKNOWN:
        verdict = Verdict.UNDETERMINED
    return Query(
        obligation.kind,
        obligation.name,
        obligation.action.name if obligation.action else None,
        obligation.claim.name if obligation.claim else None,
        verdict,
        solved.seconds,
        obligation.outside,
        shown,
    )


def replayed(protocol: Protocol, obligation: Obligation, symbols: Symbols, members: Members) -> Counterexample:
    """The solver's structure, once every formula of the obligation was found true in it by evaluation."""
    finite = Finite(protocol, members.sizes)
    state = tuple(as_tuples(members.value(symbols, relation)) for relation in finite.relations)
    variables, spoken = free_in(obligation.formulas)
    chosen = [relation for relation in spoken if relation not in finite.relations]
    values: dict[Parameter, Argument] = {symbol: members.value(symbols, symbol) for symbol in (*variables, *chosen)}
    for part in obligation.parts:
        if not finite.holds(part.formula, state, values):
            raise Disagreement(f"{obligation.name}: the solver's structure does not satisfy {part.origin!r}; please report it")
    after = None
    action = obligation.action
    if action is not None and obligation.claim is not None and obligation.kind is Kind.PRESERVED:
        arguments = tuple(members.value(symbols, parameter) for parameter in action.parameters)
        after = finite.apply(action, state, arguments)
        if finite.refused(action, state, arguments) or finite.holds(obligation.claim.formula, after):
            raise Disagreement(f"{obligation.name}: {action.name} does not break the claim in the solver's structure")
    return Counterexample(members.sizes, state, values, after)
