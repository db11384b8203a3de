"""A shortest run of a protocol to a state in which a claim is false, with no bounds but the length of the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from ...spec.fence.declare import Protocol
from ...spec.fence.finite import Finite
from ...spec.fence.logic import Action, AnyRelation, Sort, negated, order_axioms
from ...spec.fence.runs import Run, Taken, judged
from .protocol_solver import (
    Answer,
    Members,
    Symbols,
    as_member,
    as_tuples,
    at_most_members,
    members_of,
    solve,
    solver_for,
)
from .solver import Disagreement, z3


@dataclass(frozen=True)
class Searched:
    """What a search found: a run, or None; `depth` is the greatest length that was decided, -1 if none was.

    `complete` says that every length up to the wanted one was decided, or a run found.
    """

    run: Run | None
    depth: int
    complete: bool
    seconds: float


def search(protocol: Protocol, depth: int, seconds: float = 60.0) -> Searched:
    """Look for a violation of any claim in runs of 0 to `depth` actions, shortest first, with so many seconds for all lengths.

    Raises `Disagreement` where the solver's run is none in finite evaluation.
    """
    begun = time.monotonic()
    unrolled = Unrolled(protocol)
    for length in range(depth + 1):
        left = seconds - (time.monotonic() - begun)
        wrong = unrolled.wrong()
        if wrong:
            assertions = [*unrolled.assertions, z3.Or(wrong)]
            solved = solve(assertions, protocol.sorts(), max(left, 0.001), large=True)
            if solved.members is not None:
                run = replayed(protocol, unrolled, _least(unrolled, assertions, solved.members, seconds))
                return Searched(run, length, True, time.monotonic() - begun)
            if solved.answer is Answer.UNKNOWN or left <= 0:
                return Searched(None, length - 1, False, time.monotonic() - begun)
        if length < depth:
            unrolled.extend()
    return Searched(None, depth, True, time.monotonic() - begun)


class Later(Symbols):
    """The symbols of a moment after an action: relations are written out as what they become of those before."""

    def __init__(self, at: str, before: Symbols, taken: Mapping[str, Any], protocol: Protocol) -> None:
        super().__init__(at)
        self.before, self.taken, self.protocol = before, taken, protocol

    def relation(self, relation: AnyRelation) -> Callable[..., Any]:
        """What a relation becomes; a relation that an action chooses is a symbol of its own."""
        if relation not in self.protocol.relations.values():
            return super().relation(relation)
        if relation not in self.known:
            self.known[relation] = cache(partial(self._becomes, relation))
        return self.known[relation]

    def _becomes(self, relation: AnyRelation, *members: Any) -> Any:
        value = self.before.relation(relation)(*members)
        for name, action in self.protocol.actions.items():
            if relation in action.updates:
                update = action.updates[relation]
                bound = dict(zip(update.variables, members, strict=True))
                value = z3.If(self.taken[name], self.before.within(update.formula, bound), value)
        return value


class Unrolled:
    """Runs of one length, as assertions: which action is taken between two moments, and with which arguments."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self.moments = [Symbols("@0")]
        self.choices: list[dict[str, Any]] = []
        orders = [axiom for sort in protocol.sorts() if sort.ordered for axiom in order_axioms(sort)]
        claims = [*protocol.axioms.values(), *protocol.initial_claims()]
        self.assertions = [self.moments[0].of(formula) for formula in (*orders, *(claim.formula for claim in claims))]

    def extend(self) -> None:
        """One more action, any one that is possible and keeps the axioms."""
        now, i = self.moments[-1], len(self.moments)
        taken = {name: z3.Bool(f"{name}@{i}") for name in self.protocol.actions}
        later = Later(f"@{i}", now, taken, self.protocol)
        self.assertions.append(z3.PbEq([(choice, 1) for choice in taken.values()], 1))
        self.assertions.extend(z3.Implies(taken[name], now.of(a.guard)) for name, a in self.protocol.actions.items())
        self.assertions.extend(later.of(axiom.formula) for axiom in self.protocol.axioms.values())
        self.moments.append(later)
        self.choices.append(taken)

    def taken(self, choice: Mapping[str, Any], members: Members) -> Action:
        """The action that a model takes between two moments."""
        return next(
            a for n, a in self.protocol.actions.items() if z3.is_true(members.model.eval(choice[n], model_completion=True))
        )

    def wrong(self) -> list[Any]:
        """Conditions under which a claim is false at the end."""
        found: list[Any] = []
        for claim in self.protocol.claims.values():
            if not claim.before:
                found.append(self.moments[-1].of(negated(claim.formula)))
            elif self.choices:
                for name in claim.before:
                    about = claim.of(self.protocol.actions[name])
                    found.append(z3.And(self.choices[-1][name], self.moments[-2].of(negated(about.formula))))
        return found


def _least(unrolled: Unrolled, assertions: Sequence[Any], found: Members, seconds: float) -> Members:
    """Of the runs with so many members, one whose actions come first in the order of declaration, from the first step on.

    Unordered members are numbered as they appear in it.
    """
    sized = [at_most_members(sort, size) for sort, size in found.sizes.items()]
    solver = solver_for([*assertions, *sized], seconds, large=True)
    model = found.model
    for choice in unrolled.choices:
        for taken in choice.values():
            if not z3.is_true(model.eval(taken)) and solver.check(taken) == z3.sat:
                model = solver.model()
            if z3.is_true(model.eval(taken)):
                solver.add(taken)
                break
    members = members_of(model, found.of)
    return Members(model, {sort: _in_order(sort, of, unrolled, members) for sort, of in members.of.items()})


def _in_order(sort: type[Sort], of: Sequence[Any], unrolled: Unrolled, members: Members) -> Sequence[Any]:
    if sort.ordered:
        return of
    seen: list[Any] = []
    for now, choice in zip(unrolled.moments, unrolled.choices, strict=False):
        for parameter in unrolled.taken(choice, members).parameters:
            if type(parameter) is sort:
                seen.append(of[as_member(members.value(now, parameter))])
    return sorted(of, key=lambda member: next((i for i, other in enumerate(seen) if other.eq(member)), len(seen)))


def replayed(protocol: Protocol, unrolled: Unrolled, members: Members) -> Run:
    """The solver's run, taken by evaluation: from its first state, with its actions and arguments."""
    finite = Finite(protocol, members.sizes)
    start = tuple(as_tuples(members.value(unrolled.moments[0], relation)) for relation in finite.relations)
    if not finite.assumed(start) or finite.violated(protocol.initial_claims(), start):
        raise Disagreement("the solver's run does not begin in an initial state; please report it")
    state, steps = start, list[Taken]()
    for now, choice in zip(unrolled.moments, unrolled.choices, strict=False):
        action = unrolled.taken(choice, members)
        arguments = tuple(members.value(now, parameter) for parameter in action.parameters)
        refused, state = finite.refused(action, state, arguments), finite.apply(action, state, arguments)
        if refused or not finite.assumed(state):
            raise Disagreement(f"step {len(steps) + 1} of the solver's run is no step of {action.name}; please report it")
        steps.append(Taken(action, arguments, state))
    run = judged(finite, start, steps)
    if run is None:
        raise Disagreement("the solver's run violates nothing; please report it")
    return run
