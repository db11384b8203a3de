"""A protocol on finite structures, in plain Python: so many members of each sort, and sets of tuples for relations.

The second opinion on everything a solver says. Formulas are written out as Python expressions and compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, combinations, product
from typing import Any

from .declare import Protocol
from .logic import (
    Action,
    And,
    AnyRelation,
    AtMost,
    Atom,
    Claim,
    Formula,
    Implies,
    LogicError,
    Not,
    Or,
    Parameter,
    Quantified,
    Same,
    Sort,
    relations_in,
)

Tuples = frozenset[tuple[int, ...]]
State = tuple[Tuples, ...]
"""What each relation holds of, in the order of declaration; members are numbers from 0, in order where there is one."""
Argument = int | Tuples
Arguments = tuple[Argument, ...]


class Finite:
    """A protocol with so many members of each sort."""

    def __init__(self, protocol: Protocol, sizes: Mapping[type[Sort], int]) -> None:
        for sort in protocol.sorts():
            if sizes.get(sort, 0) < 1:
                raise LogicError(f"{protocol.name} has no members of {sort.__name__}; give it at least one")
        self.protocol, self.sizes = protocol, sizes
        self.relations = list(protocol.relations.values())
        self._known = {relation: f"state[{i}]" for i, relation in enumerate(self.relations)}
        self._tests: dict[tuple[Any, ...], Callable[..., bool]] = {}
        claims = protocol.claims.values()
        self.about = {a.name: [claim.of(a) for claim in claims if a.name in claim.before] for a in protocol.actions.values()}
        """The claims about each action, in its own parameters."""
        self._effects = {action.name: self._effect(action) for action in protocol.actions.values()}

    def holds(self, formula: Formula, state: State, values: Mapping[Parameter, Argument] | None = None) -> bool:
        """Whether a formula is true in a state, given the values of its free variables and chosen relations."""
        values = values or {}
        key = (formula, *values)
        if key not in self._tests:
            self._tests[key] = self._compiled(formula, tuple(values))
        return self._tests[key](state, *values.values())

    def violated(self, claims: Iterable[Claim], state: State) -> list[str]:
        """The names of the claims (about states) that are not true in a state."""
        return [claim.name for claim in claims if not claim.before and not self.holds(claim.formula, state)]

    def refused(self, action: Action, state: State, arguments: Arguments) -> list[str]:
        """The names of the guards that are not true; the action is possible where there is none."""
        values = dict(zip(action.parameters, arguments, strict=True))
        return [name for name, guard in action.guards.items() if not self.holds(guard, state, values)]

    def apply(self, action: Action, state: State, arguments: Arguments) -> State:
        """The state after an action, whether or not its guards are true."""
        changed = self._effects[action.name](state, *arguments)
        return tuple(changed.get(i, before) for i, before in enumerate(state))

    def transitions(self, state: State) -> Iterator[tuple[Action, Arguments, State]]:
        """Every action that is possible in a state and keeps the axioms, with its arguments and the state after it."""
        for action in self.protocol.actions.values():
            for arguments in product(*(self._choices(parameter) for parameter in action.parameters)):
                if not self.refused(action, state, arguments):
                    after = self.apply(action, state, arguments)
                    if self.assumed(after):
                        yield action, arguments, after

    def assumed(self, state: State) -> bool:
        """Whether a state keeps the axioms."""
        return all(self.holds(axiom.formula, state) for axiom in self.protocol.axioms.values())

    def initial(self) -> Iterator[State]:
        """Every state that is initial and keeps the axioms."""
        spoken = {relation for claim in self.protocol.start.values() for relation in relations_in(claim.body)}
        nothing: list[Tuples] = [frozenset()]
        for state in product(*(self._subsets(r) if r in spoken else nothing for r in self.relations)):
            if self.assumed(state) and all(self.holds(claim.formula, state) for claim in self.protocol.start.values()):
                yield state

    def reachable(self) -> Iterator[tuple[State, list[tuple[Action, Arguments, State]]]]:
        """Every state that can be reached, nearest first, with the transitions out of it."""
        waiting = list(self.initial())
        seen = set(waiting)
        for state in waiting:
            out = list(self.transitions(state))
            yield state, out
            new = dict.fromkeys(after for _, _, after in out if after not in seen)
            seen.update(new)
            waiting.extend(new)

    def tuples(self, relation: AnyRelation) -> list[tuple[int, ...]]:
        """Everything that a relation could hold of."""
        return list(product(*(range(self.sizes[sort]) for sort in relation.sorts)))

    def _choices(self, parameter: Parameter) -> Iterable[Argument]:
        return range(self.sizes[type(parameter)]) if isinstance(parameter, Sort) else self._subsets(parameter)

    def _subsets(self, relation: AnyRelation) -> Iterator[Tuples]:
        every = self.tuples(relation)
        return map(frozenset, chain.from_iterable(combinations(every, n) for n in range(len(every) + 1)))

    def _compiled(self, formula: Formula, parameters: tuple[Parameter, ...]) -> Callable[..., bool]:
        written = _Written(self.sizes, self._known, parameters)
        return eval(f"lambda {written.signature}: {written.of(formula)}", {})

    def _effect(self, action: Action) -> Callable[..., dict[int, Tuples]]:
        """A function of the state and arguments that returns the relations that change, by their place in the state."""
        written = _Written(self.sizes, self._known, action.parameters)
        changed: list[str] = []
        for relation, update in action.updates.items():
            loops = written.loops(update.variables)
            members = "".join(f"{written.names[v]}, " for v in update.variables)
            changed.append(f"{self.relations.index(relation)}: frozenset(({members}) {loops} if {written.of(update.formula)})")
        return eval(f"lambda {written.signature}: {{{', '.join(changed)}}}", {})


class _Written:
    """Writes formulas as Python expressions over `state` and parameters."""

    def __init__(self, sizes: Mapping[type[Sort], int], known: Mapping[AnyRelation, str], parameters: tuple[Parameter, ...]):
        self.sizes = sizes
        self.names: dict[Any, str] = dict(known)
        own = [self.named(parameter) for parameter in parameters]
        self.signature = ", ".join(["state", *own])

    def named(self, parameter: Parameter) -> str:
        """A name of its own for a variable or a chosen relation."""
        return self.names.setdefault(parameter, f"v{len(self.names)}")

    def loops(self, variables: Iterable[Sort]) -> str:
        """Loops over all values of the variables."""
        return " ".join(f"for {self.named(v)} in range({self.sizes[type(v)]})" for v in variables)

    def of(self, formula: Formula) -> str:
        """The expression for a formula."""
        match formula:
            case Atom(relation, terms):
                return f"(({''.join(f'{self._term(term)}, ' for term in terms)}) in {self.names[relation]})"
            case Same(left, right):
                return f"({self._term(left)} == {self._term(right)})"
            case AtMost(left, right):
                return f"({self._term(left)} <= {self._term(right)})"
            case Not(body):
                return f"(not {self.of(body)})"
            case And(parts):
                return f"({' and '.join(map(self.of, parts)) or 'True'})"
            case Or(parts):
                return f"({' or '.join(map(self.of, parts)) or 'False'})"
            case Implies(left, right):
                return f"(not {self.of(left)} or {self.of(right)})"
            case Quantified(universal, variables, body):
                loops = self.loops(variables)
                return f"{'all' if universal else 'any'}({self.of(body)} {loops})"
            case _:
                raise LogicError(f"{formula!r} is no formula")

    def _term(self, term: Sort) -> str:
        if term not in self.names:
            raise LogicError(f"variable {term.name} has no value; give it one, or quantify over it")
        return self.names[term]
