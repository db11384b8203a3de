"""How a protocol is declared: relations, then functions with decorators for actions, invariants, safety and axioms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, get_args, get_origin, get_type_hints, overload

from .logic import (
    A,
    Action,
    And,
    AnyRelation,
    Atom,
    B,
    C,
    Claim,
    Formula,
    LogicError,
    Or,
    Parameter,
    Relation,
    Same,
    Sort,
    Update,
    relations_in,
)

K = TypeVar("K")
Statement = Callable[..., Formula] | Claim
"""A function that returns a formula about its parameters; or such a claim, to be declared once more as something else."""


class Do:
    """What an action needs and changes; formulas speak of the state before it."""

    def __init__(self) -> None:
        self.guards: dict[str, Formula] = {}
        self.updates: dict[AnyRelation, Update] = {}

    def require(self, name: str, condition: Formula) -> None:
        """The action is possible only where the condition is true."""
        if name in self.guards:
            raise LogicError(f"two guards are called {name!r}; give each its own name")
        self.guards[name] = condition

    def insert(self, atom: Atom) -> None:
        """The relation now holds of these members, too."""
        self._update(atom, lambda before, here: Or((before, here)))

    def remove(self, atom: Atom) -> None:
        """The relation holds of these members no more."""
        self._update(atom, lambda before, here: And((before, ~here)))

    @overload
    def becomes(self, relation: Relation[A], formula: Callable[[A], Formula]) -> None: ...
    @overload
    def becomes(self, relation: Relation[A, B], formula: Callable[[A, B], Formula]) -> None: ...
    @overload
    def becomes(self, relation: Relation[A, B, C], formula: Callable[[A, B, C], Formula]) -> None: ...
    def becomes(self, relation: AnyRelation, formula: Callable[..., Formula]) -> None:
        """The relation now holds of the members of which the formula was true."""
        names = formula.__code__.co_varnames
        variables = tuple(sort(name) for sort, name in zip(relation.sorts, names, strict=False))
        self._set(relation, Update(variables, formula(*variables)))

    def _update(self, atom: Atom, change: Callable[[Formula, Formula], Formula]) -> None:
        variables = tuple(sort(f"{sort.__name__[0].lower()}{i}") for i, sort in enumerate(atom.relation.sorts))
        here = And(tuple(Same(v, term) for v, term in zip(variables, atom.terms, strict=True)))
        self._set(atom.relation, Update(variables, change(Atom(atom.relation, variables), here)))

    def _set(self, relation: AnyRelation, update: Update) -> None:
        if relation in self.updates:
            raise LogicError(f"{relation.name} is changed twice; say in one formula what it becomes")
        self.updates[relation] = update


class Protocol:
    """A protocol: what a state consists of, how it starts, what may happen, what is always true, what is assumed.

    Relations are empty at first, except those that an `initially` speaks of.
    """

    def __init__(self, name: str, sentence: str) -> None:
        self.name, self.sentence = name, sentence
        self.relations: dict[str, AnyRelation] = {}
        self.start: dict[str, Claim] = {}
        self.actions: dict[str, Action] = {}
        self.conjuncts: dict[str, Claim] = {}
        self.claims: dict[str, Claim] = {}
        self.axioms: dict[str, Claim] = {}

    @overload
    def relation(self, name: str, one: type[A], /, *, sentence: str) -> Relation[A]: ...
    @overload
    def relation(self, name: str, one: type[A], two: type[B], /, *, sentence: str) -> Relation[A, B]: ...
    @overload
    def relation(self, name: str, one: type[A], two: type[B], three: type[C], /, *, sentence: str) -> Relation[A, B, C]: ...
    def relation(self, name: str, *sorts: type[Sort], sentence: str) -> Any:
        """Declare a part of the state."""
        if name in self.relations:
            raise LogicError(f"two relations are called {name}; rename one")
        self.relations[name] = Relation[*tuple[Any, ...]](name, sorts, sentence)
        return self.relations[name]

    def action(self, function: Callable[..., None]) -> Action:
        """Declare what may happen: a function of a `Do` and of the parameters, which are members or chosen relations."""
        return _added(self.actions, self._action(_name(function), function))

    def initially(self, function: Statement) -> Claim:
        """Declare what is true at first."""
        return _added(self.start, claim(function))

    def invariant(self, function: Statement) -> Claim:
        """Declare a conjunct of the invariant: it is true at first, and every action keeps it, given the others."""
        return _added(self.conjuncts, claim(function))

    def axiom(self, function: Statement) -> Claim:
        """Declare what is assumed of every state, because something outside the protocol sees to it."""
        return _added(self.axioms, claim(function))

    def safety(self, *actions: Action) -> Callable[[Statement], Claim]:
        """Declare what is to be proved of every state; given actions, of every state in which one of them is taken."""

        def declare(function: Statement) -> Claim:
            made = claim(function)
            before = tuple(action.name for action in actions)
            return _added(self.claims, Claim(made.name, made.sentence, made.variables, made.body, before))

        return declare

    def initial_claims(self) -> list[Claim]:
        """What is true at first, with a claim for each relation that is empty."""
        spoken = {relation for made in self.start.values() for relation in relations_in(made.body)}
        empty = [r for r in self.relations.values() if r not in spoken]
        return [*self.start.values(), *(_empty(relation) for relation in empty)]

    def sorts(self) -> list[type[Sort]]:
        """The sorts, in the order in which relations first have them."""
        return list(dict.fromkeys(sort for relation in self.relations.values() for sort in relation.sorts))

    def without_guard(self, action: str, guard: str) -> Protocol:
        """The same protocol, in which an action is possible without one of its guards."""
        old = self._known(self.actions, "action", action)
        self._known(old.guards, f"guard of {action}", guard)
        kept = {name: formula for name, formula in old.guards.items() if name != guard}
        changed = Action(old.name, old.sentence, old.parameters, kept, old.updates)
        return self._changed(actions={**self.actions, action: changed})

    def without_invariant(self, conjunct: str) -> Protocol:
        """The same protocol, proved without one conjunct of its invariant."""
        self._known(self.conjuncts, "conjunct", conjunct)
        return self._changed(conjuncts={name: made for name, made in self.conjuncts.items() if name != conjunct})

    def claiming(self, *claims: str) -> Protocol:
        """The same protocol with only some of its claims."""
        return self._changed(claims={name: self._known(self.claims, "claim", name) for name in claims})

    def without_claims(self, *claims: Claim) -> Protocol:
        """The same protocol without some of its claims."""
        gone = {claim.name for claim in claims}
        return self.claiming(*(name for name in self.claims if name not in gone))

    def replacing(self, action: Action, function: Callable[..., None]) -> Protocol:
        """The same protocol in which an action does something else."""
        return self._changed(actions={**self.actions, action.name: self._action(action.name, function)})

    def assuming(self, *axioms: Claim) -> Protocol:
        """The same protocol with other axioms, or none."""
        return self._changed(axioms={axiom.name: axiom for axiom in axioms})

    def _changed(self, **parts: Any) -> Protocol:
        made = Protocol(self.name, self.sentence)
        made.__dict__.update(self.__dict__ | parts)
        return made

    def _known(self, there: Mapping[str, K], kind: str, name: str) -> K:
        if name not in there:
            raise LogicError(f"{self.name} has no {kind} {name!r}; it has {', '.join(there)}")
        return there[name]

    def _action(self, name: str, function: Callable[..., None]) -> Action:
        parameters = tuple(_parameters(function, skip=1))
        do = Do()
        function(do, *parameters)
        for relation in do.updates:
            if self.relations.get(relation.name) is not relation:
                raise LogicError(f"{name} changes {relation.name}, which is no relation of {self.name}; declare it there")
        return Action(name, _sentence(function), parameters, do.guards, do.updates)


def claim(function: Statement) -> Claim:
    """A claim of its own: the statement that a function returns, for all members of its parameters' sorts."""
    if isinstance(function, Claim):
        return function
    parameters = tuple(_parameters(function))
    variables = tuple(p for p in parameters if isinstance(p, Sort))
    if len(variables) < len(parameters):
        raise LogicError(f"{function.__name__} has a parameter that is no member of a sort; a claim is about members only")
    return Claim(_name(function), _sentence(function), variables, function(*variables))


def _empty(relation: AnyRelation) -> Claim:
    variables = tuple(sort(f"{sort.__name__[0].lower()}{i}") for i, sort in enumerate(relation.sorts))
    return Claim(f"{relation.name}-is-empty", f"At first `{relation.name}` holds of nothing.", variables, ~relation(*variables))


def _parameters(function: Callable[..., Any], skip: int = 0) -> Iterator[Parameter]:
    hints = get_type_hints(function)
    for name in function.__code__.co_varnames[skip : function.__code__.co_argcount]:
        kind = hints.get(name)
        if get_origin(kind) is Relation:
            yield Relation[*tuple[Any, ...]](name, get_args(kind))
        elif isinstance(kind, type) and issubclass(kind, Sort):
            yield kind(name)
        else:
            raise LogicError(
                f"{function.__name__}: {name} is no member of a sort; annotate it with a sort or a Relation of sorts"
            )


M = TypeVar("M", Action, Claim)


def _added(to: dict[str, M], made: M) -> M:
    if made.name in to:
        raise LogicError(f"two declarations are called {made.name}; rename one")
    to[made.name] = made
    return made


def _name(function: Callable[..., Any]) -> str:
    return function.__name__.replace("_", "-")


def _sentence(function: Callable[..., Any]) -> str:
    if not function.__doc__:
        raise LogicError(f"{function.__name__} has no docstring; say in a sentence what it means")
    return " ".join(function.__doc__.split())
