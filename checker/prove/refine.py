"""A transition of a spec held against a protocol: the protocol's actions that make it up, each of them allowed, and no more.

The mapping is the spec's own: which state of the protocol a state is, and which actions a transition is made up of. What
is checked is that every action is allowed where it is taken, and that they lead to the very state that the successor is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

from ...spec.fence import declare
from ...spec.fence.finite import Argument, Arguments, Finite, State, Tuples
from ...spec.fence.logic import Action, Parameter, Sort
from ...spec.fence.protocol import fence
from ...spec.fence.runs import Taken, shown
from ...spec.fence.settled import settled
from ...spec.fence.words import why_false
from ...spec.lang import BoundSpec, FencepostSpecError, Rule
from ...spec.lang.spec import place_of

_KEPT = 20_000
"""Answers kept at most."""
Micro = tuple[str, tuple[Any, ...]]
"""An action of a protocol, by name, with its arguments: members by number, and frozensets of tuples of such."""
Row = tuple[Micro, ...]


class RefinementError(FencepostSpecError):
    """A mapping that is none: where it is declared, what it says, and what it should."""


class Refinement(Protocol):
    """How a spec is an instance of a protocol: made by its `@refines` function, for given bounds.

    `sizes` has how many members each sort of the protocol has, by its name; `members` the index of the spec whose members
    those of a sort are, where they are; `start` the actions that lead from the protocol's initial state to the spec's;
    `note` what a reader must know of how members are named. `state` says what each relation holds of in a decoded state;
    `steps` which actions a transition between two is made up of, in order.
    """

    @property
    def sizes(self) -> Mapping[str, int]: ...
    @property
    def members(self) -> Mapping[str, str]: ...
    @property
    def start(self) -> Sequence[Micro]: ...
    @property
    def note(self) -> str: ...
    def state(self, s: Any, /) -> Mapping[str, Collection[tuple[int, ...]]]: ...
    def steps(self, before: Any, after: Any, action: str, arguments: Mapping[str, Any], /) -> Sequence[Micro]: ...


@dataclass(frozen=True)
class Known:
    """A protocol that specs can be held against; `same` gives states one form that differ in nothing that matters."""

    protocol: declare.Protocol
    same: Callable[[State], State]


PROTOCOLS = {"fence": Known(fence, settled)}
"""The protocols, by the names that specs and commands call them."""


@dataclass(frozen=True)
class Refusal:
    """Why a transition is none of the protocol: the actions taken before, the one that is not allowed, and why, in words.

    Where all actions are allowed and lead to another state than the successor is, `action` is None.
    """

    before: State
    taken: tuple[Taken, ...]
    action: str | None
    call: str
    guards: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Followed:
    """Where the actions lead from a state, and what is wrong with them, if anything."""

    after: State
    refusal: Refusal | None


class Checked(NamedTuple):
    """A transition: the state of the protocol that it should lead to, the actions that make it up, what is wrong with them."""

    after: State
    row: Row
    refusal: Refusal | None


class Against:
    """A bound spec held against a protocol, by the mapping that the spec declares.

    `RefinementError` where there is no such mapping, or where what it says is nothing that can be said of the protocol.
    """

    def __init__(self, bound: BoundSpec, name: str) -> None:
        if name not in PROTOCOLS:
            raise RefinementError(f"there is no protocol {name!r}; there is {', '.join(PROTOCOLS)}")
        if name not in bound.spec.refines:
            raise RefinementError(f'{bound.spec.name} does not say how it refines {name}; declare it with @refines("{name}")')
        self.function = bound.spec.refines[name]
        self.known, self.name = PROTOCOLS[name], name
        self.protocol = self.known.protocol
        self.mapping: Refinement = self._call(lambda: self.function(bound.values))
        self.finite = Finite(self.protocol, self._sizes())
        self._relations = tuple(self.protocol.relations)
        self._indices = self._members(bound)
        self._whole = [frozenset(self.finite.tuples(relation)) for relation in self.finite.relations]
        self._states: dict[State, State] = {}
        self._answers: dict[tuple[State, Row], Followed] = {}
        self._renamed: dict[tuple[State, tuple[tuple[int, ...], ...]], State] = {}
        self._names = {rule.number: tuple(p.name for p in rule.declared.parameters) for rule in bound.actions}
        self._decoded = bound.arguments

    def _sizes(self) -> dict[type[Sort], int]:
        sorts = {sort.__name__: sort for sort in self.protocol.sorts()}
        given: Mapping[str, int] = self._call(lambda: dict(self.mapping.sizes))
        if set(given) != set(sorts) or min(given.values()) < 1:
            raise self._error(f"sizes are {dict(given)}", f"give a size of at least 1 to {', '.join(sorts)}")
        return {sorts[name]: size for name, size in given.items()}

    def _members(self, bound: BoundSpec) -> list[list[str | None]]:
        """The index that each place of each relation has a member of."""
        given: Mapping[str, str] = self._call(lambda: dict(self.mapping.members))
        sizes, indices = {sort.__name__: size for sort, size in self.finite.sizes.items()}, bound.indices()
        wrong = {sort: index for sort, index in given.items() if sort not in sizes or sizes[sort] != indices.get(index)}
        if wrong:
            had = ", ".join(f"{index} of {size}" for index, size in indices.items())
            raise self._error(f"members says {wrong}", f"a sort's members are those of an index as large as it: {had}")
        return [[given.get(sort.__name__) for sort in relation.sorts] for relation in self.finite.relations]

    def renamed(self, state: State, names: Mapping[str, tuple[int, ...]]) -> State:
        """A state of the protocol when members of the spec's indices get other names: x becomes `names[index][x]`."""
        key = state, tuple(names.values())
        found = self._renamed.get(key)
        if found is None:
            if len(self._renamed) >= _KEPT:
                self._renamed.clear()
            made = zip(state, self._indices, strict=True)
            found = self._renamed[key] = tuple(_with_names(tuples, indices, names) for tuples, indices in made)
        return found

    def state(self, decoded: Any) -> State:
        """The protocol's state that a decoded state of the spec is."""
        said = self._call(lambda: self.mapping.state(decoded))
        try:
            made = tuple(frozenset(said[name]) for name in self._relations)
        except (KeyError, TypeError) as error:
            raise self._error(f"state() says {error} of a relation", f"it gives tuples for each of {self._all()}") from None
        if made in self._states:
            return self._states[made]
        if len(said) != len(made):
            raise self._error(f"state() has the relations {', '.join(said)}", f"the protocol has {self._all()}")
        for name, tuples, whole in zip(self._relations, made, self._whole, strict=True):
            if not tuples <= whole:
                raise self._error(f"{name} holds of {sorted(tuples - whole, key=repr)}", "sizes say how many members there are")
        if len(self._states) >= _KEPT:
            self._states.clear()
        return self._states.setdefault(made, self.known.same(made))

    def begin(self, decoded: Any) -> Refusal | None:
        """Whether an initial state is one that the mapping's `start` leads to from the protocol's initial state."""
        before = next(iter(self.finite.initial()))
        return self._held(before, self._call(lambda: tuple(self.mapping.start)), decoded).refusal

    def check(self, before: State, left: Any, after: Any, rule: Rule, args: tuple[int, ...]) -> Checked:
        """What a transition from `left` to `after`, decoded states, is made up of."""
        named = dict(zip(self._names[rule.number], self._decoded(rule, args), strict=True))
        row = self._call(lambda: tuple(self.mapping.steps(left, after, rule.name, named)))
        return self._held(before, row, after)

    def _held(self, before: State, row: Row, after: Any) -> Checked:
        wanted = self.state(after)
        if not row and before == wanted:
            return Checked(wanted, row, None)
        followed = self._follow(before, row)
        if followed.refusal is not None or followed.after == wanted:
            return Checked(wanted, row, followed.refusal)
        return Checked(wanted, row, self._apart(before, row, followed.after, wanted))

    def _follow(self, before: State, row: Row) -> Followed:
        try:
            found = self._answers.get((before, row))
        except TypeError:
            raise self._error(f"steps() gives {row}", "an action is a name and a tuple of members and frozensets") from None
        if found is None:
            if len(self._answers) >= _KEPT:
                self._answers.clear()
            taken, refusal = self._taken(before, row)
            after = self.known.same(taken[-1].after) if taken else before
            found = self._answers[before, row] = Followed(after, refusal)
        return found

    def _taken(self, before: State, row: Row) -> tuple[tuple[Taken, ...], Refusal | None]:
        """Take actions one by one, up to one that is not allowed."""
        state, taken = before, list[Taken]()
        for micro in row:
            action, arguments = self._action(micro)
            one = Taken(action, arguments, self.finite.apply(action, state, arguments))
            if self.finite.refused(action, state, arguments) or not self.finite.assumed(one.after):
                return tuple(taken), self._refusal(before, taken, one, state)
            taken.append(one)
            state = one.after
        return tuple(taken), None

    def _refusal(self, before: State, taken: list[Taken], one: Taken, state: State) -> Refusal:
        """Which guards of an action are false, or else which axioms after it."""
        action, names = one.action, self.finite.refused(one.action, state, one.arguments)
        values: dict[Parameter, Argument] = dict(zip(action.parameters, one.arguments, strict=True))
        false = [f"guard {name}: {why_false(self.finite, action.guards[name], state, values)}" for name in names]
        if not names:
            axioms = self.protocol.axioms.values()
            broken = [axiom for axiom in axioms if not self.finite.holds(axiom.formula, one.after)]
            names = [axiom.name for axiom in broken]
            false = [f"axiom {axiom.name}: {why_false(self.finite, axiom.formula, one.after, {})}" for axiom in broken]
        reason = f"{action.name} is not allowed by {self.name}: false is {'; '.join(false)}"
        return Refusal(before, tuple(taken), action.name, one.told(), tuple(names), reason)

    def _action(self, micro: Any) -> tuple[Action, Arguments]:
        """An action of the protocol with its arguments, where the mapping names one."""
        try:
            name, arguments = micro
            action = self.protocol.actions[name]
            fits = len(arguments) == len(action.parameters) and all(map(self._fits, action.parameters, arguments))
        except (TypeError, ValueError, KeyError):
            raise self._error(f"steps() gives {micro!r}", f"actions are {', '.join(self.protocol.actions)}") from None
        if not fits:
            names = ", ".join(parameter.name for parameter in action.parameters)
            raise self._error(f"steps() gives {micro!r}", f"{name} takes {names}, members of their sorts by number")
        return action, tuple(arguments)

    def _fits(self, parameter: Parameter, value: Any) -> bool:
        if isinstance(parameter, Sort):
            return _within((value,), [range(self.finite.sizes[type(parameter)])])
        ranges = [range(self.finite.sizes[sort]) for sort in parameter.sorts]
        return isinstance(value, frozenset) and all(_within(one, ranges) for one in value)  # pyright: ignore[reportUnknownVariableType]

    def first_apart(self, one: State, other: State) -> tuple[str, str]:
        """What the first relation in which two states differ holds of in each."""
        pairs = zip(self.finite.relations, one, other, strict=True)
        relation, had, has = next((relation, had, has) for relation, had, has in pairs if had != has)
        return f"{relation.name} of {shown(relation, had)}", f"{relation.name} of {shown(relation, has)}"

    def _apart(self, before: State, row: Row, led: State, wanted: State) -> Refusal:
        """The actions are allowed and lead elsewhere than the spec goes."""
        told: list[str] = []
        for relation, one, other in zip(self.finite.relations, led, wanted, strict=True):
            told += [f"{relation.name} of {shown(relation, one - other)} in the protocol only"] if one - other else []
            told += [f"{relation.name} of {shown(relation, other - one)} in the spec only"] if other - one else []
        how = f"{len(row)} action{'s' if len(row) != 1 else ''} of {self.name}" if row else "no action"
        reason = f"{how} should lead to the same state, but it differs: {'; '.join(told)}"
        return Refusal(before, self._taken(before, row)[0], None, "", (), reason)

    def _call(self, ask: Callable[[], Any]) -> Any:
        """What the spec's mapping says; `RefinementError` where it fails."""
        try:
            return ask()
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise RefinementError(f"{place_of(self.function)}: @refines {self.name} failed: {why}") from error

    def _error(self, what: str, rule: str) -> RefinementError:
        return RefinementError(f"{place_of(self.function)}: @refines {self.name}: {what}; {rule}")

    def _all(self) -> str:
        return ", ".join(self._relations)


def _with_names(tuples: Tuples, indices: Sequence[str | None], names: Mapping[str, tuple[int, ...]]) -> Tuples:
    """Tuples whose members of these indices have other names."""
    if not tuples or not any(index in names for index in indices):
        return tuples
    maps = [names.get(index or "") for index in indices]
    return frozenset(tuple(x if new is None else new[x] for x, new in zip(one, maps, strict=True)) for one in tuples)


def _within(one: Any, ranges: Sequence[range]) -> bool:
    """Whether a value is a tuple of members, of which there are so many."""
    members = cast("tuple[Any, ...]", one)
    if not isinstance(one, tuple) or len(members) != len(ranges):
        return False
    return all(type(i) is int and i in r for i, r in zip(members, ranges, strict=True))
