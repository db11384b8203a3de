"""A part of all states that satisfy the facts, and what an action does in it, as conditions for a solver."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...spec.lang import BoundSpec, Property, Rule, State
from ...spec.lang.bind import LoopInvariant
from ...spec.lang.evaluate import Evaluator, Obligation
from ...spec.lang.layout import Leaf, SeqShape
from ...spec.lang.types import Member
from .arbitrary import Arbitrary, any_value
from .deciders import Assignment, BySat, Decider
from .pruned import Possible, PrunedEvaluator
from .segment import Arrival, Ends, Head, Named, Segment, locals_of
from .terms import Term, Terms, conjuncts, evaluate
from .tracked import TrackedBound, TrackedEvaluator, TrackedSegment

PRUNING = 0.3
"""Seconds to find out that a branch cannot be taken; else it stays."""
PRUNED = 10.0
"""Seconds to find that out of all branches of a case."""
CONSTANTS = 10.0
"""Seconds for each query about which cells are constants; without an answer none is known."""
Lengths = Mapping[str, int]
"""Variables of the state that are sequences, with their lengths."""


@dataclass(frozen=True)
class Piece:
    """What of an action is looked at: all of it or, where these loops have invariants, from one head of a loop to the next.

    It begins at the head `start`, else where the action does. A `wide` piece knows the state in which the action began.
    """

    loops: tuple[LoopInvariant, ...] = ()
    start: Head | None = None
    wide: bool = False


WHOLE = Piece()


class Case:
    """The states that satisfy the facts, whose sequences have these lengths, and in which an action or a piece of it begins.

    `possible` says whether there is any. What is the same in all of them is a constant, so that most of what the action could
    do elsewhere is left out. `hypotheses` are the parts of the facts, `cells` the state, `named` the locals of the loop at
    whose head the piece begins, `before` the state in which the action began, `ends` where the piece ends, `known` what holds;
    it took `seconds` to find all this out.
    With `enabled` the end of a whole action is reached; without, the action may be disabled: one that leaves the bounds of
    the spec on its way to a requirement that fails is wrong all the same. A `plain` case has neither constants nor an order
    of names. Questions about it are put to a solver that `deciding` makes.
    """

    def __init__(
        self,
        bound: BoundSpec,
        facts: Sequence[Property],
        rule: Rule,
        lengths: Lengths,
        *,
        piece: Piece = WHOLE,
        enabled: bool = True,
        plain: bool = False,
        deciding: Callable[[], Decider] = BySat,
    ) -> None:
        self.deciding = deciding
        self.bound, self.facts, self.rule, self.lengths = bound, facts, rule, lengths
        self.piece, self.enabled, self.plain = piece, enabled and not piece.loops, plain
        begun, fields = time.monotonic(), {name: at for name, at, _ in bound.shape.fields}
        known = {fields[name]: length for name, length in lengths.items()}
        self._begin(known, prune=not plain and not lengths)
        if plain:
            self.possible = True
        elif not lengths:
            self.possible = self._satisfiable()
        else:
            constants = self._constants()
            self.possible = constants is not None
            if constants is not None:
                self._begin({**known, **constants}, prune=True)
        self.seconds = time.monotonic() - begun

    def _begin(self, known: Mapping[int, int], *, prune: bool = False) -> None:
        self.terms = Terms()
        self.evaluator = self._evaluator(None)
        self.arguments, named = self._arguments()
        self.state = Arbitrary(self.bound, self.terms, known, None if self.plain else named)
        self.cells = self.state.cells
        self.named: Named = {} if self.piece.start is None else locals_of(self.piece.start, self.terms, "at head: ")
        before = self._before()
        self.before = None if before is None else before.cells
        parts = [part for fact in self.facts for part in self.parts(fact, self.cells)]
        if self.piece.start is not None:
            parts += self.head_parts(self.piece.start, self.cells, self.named)
        self.hypotheses = dict.fromkeys(parts)
        self.known, self._decider = [*self.hypotheses, *self.state.facts, *(before.facts if before else ())], None
        self.ends = self._ends(prune=prune)
        if self.enabled:
            self.hypotheses |= dict.fromkeys(conjuncts(self.ends.arrivals[-1].condition))
            self.know(self.ends.arrivals[-1].condition)

    def _before(self) -> Arbitrary | None:
        """The state in which the action began, if anything is to be said of it; only invariants say what is known of it."""
        if self.piece.start is None:
            return self.state
        return Arbitrary(self.bound, self.terms, mark="b.") if self.piece.wide else None

    def _ends(self, *, prune: bool) -> Ends:
        """Where the piece ends; with `prune`, on paths that it can take in these states only."""
        possible = self._asking() if prune else _always
        if self.piece.loops:
            loops, start = self.piece.loops, self.piece.start
            kind = TrackedSegment if isinstance(self.bound, TrackedBound) else Segment
            segment = kind(self.bound, self.terms, self.cells, possible, loops, start, self.named, self.before)
            return segment.ends(self.rule, self.arguments)
        evaluator = self._evaluator(possible) if prune else self.evaluator
        outcome = evaluator.action(self.cells, self.rule, self.arguments)
        return Ends((Arrival(None, outcome.enabled, outcome.cells, {}),), outcome.obligations)

    def _evaluator(self, possible: Possible | None) -> Evaluator[Term]:
        if isinstance(self.bound, TrackedBound):
            return TrackedEvaluator(self.bound, self.terms, possible)
        return Evaluator(self.bound, self.terms) if possible is None else PrunedEvaluator(self.bound, self.terms, possible)

    def _asking(self) -> Possible:
        """Asks whether a condition can hold here, as long as there is time for that."""
        ends = time.monotonic() + PRUNED
        return lambda condition: time.monotonic() > ends or self.ask([condition], PRUNING)[0] != "unsat"

    def _arguments(self) -> tuple[tuple[Term, ...], dict[str, int]]:
        """Any arguments; members of an index that may be relabelled are named by the first argument that has them."""
        made: list[Term] = []
        named: dict[str, int] = {}
        for parameter, domain in zip(self.rule.declared.parameters, self.rule.domains, strict=True):
            name = f"{self.rule.name}/{parameter.name}"
            if self._names(parameter.type, named):
                made.append(self.terms.number(0))
            else:
                made.append(any_value(self.terms, parameter.type, domain, name))
        return tuple(made), named

    def _names(self, kind: Any, named: dict[str, int]) -> bool:
        """Whether an argument is the first of its index; it is member 0 then."""
        if (
            self.plain
            or self.piece.start is not None
            or not isinstance(kind, Member)
            or kind.index.name in named
            or kind.index.name not in self.bound.permutable()
        ):
            return False
        named[kind.index.name] = 1
        return True

    @property
    def decider(self) -> Decider:
        """A solver that knows what holds here."""
        if self._decider is None:
            self._decider = self.deciding()
            for condition in self.known:
                self._decider.add(condition)
        return self._decider

    def know(self, condition: Term) -> None:
        """From now on only states matter in which this holds."""
        self.known += conjuncts(condition)
        if self._decider is not None:
            self._decider.add(condition)

    def ask(self, conditions: Sequence[Term], seconds: float) -> tuple[str, Assignment | None]:
        """Whether these can hold here: unsat, sat with an assignment, or unknown where it takes so many seconds."""
        return self.decider.check(conditions, seconds)

    def _satisfiable(self) -> bool:
        """Whether there is such a state, or that is not known in time."""
        return self.ask([], CONSTANTS)[0] != "unsat"

    def _constants(self) -> dict[int, int] | None:
        """The cells that are the same in all states of this case, with their values; None where there is no state."""
        answer, model = self.ask([], CONSTANTS)
        if model is None:
            return None if answer == "unsat" else {}
        variables = self.state.variables()
        same = {at: model.get(cell.value, cell.low) for at, cell in variables.items()}
        while same:
            all_same = self.terms.together(self.terms.is_value(variables[at], value) for at, value in same.items())
            answer, model = self.ask([self.terms.negation(all_same)], CONSTANTS)
            if model is None:
                return same if answer == "unsat" else {}
            same = {at: value for at, value in same.items() if model.get(variables[at].value, variables[at].low) == value}
        return same

    # ---- what holds, and what is done

    def parts(self, prop: Property, cells: Sequence[Term], after: Sequence[Term] | None = None) -> list[Term]:
        """A property as what must hold together: the parts of its formula, and its obligations."""
        return parts_of(self.evaluator, self.terms, prop, cells, after)

    def head_parts(self, head: Head, cells: Sequence[Term], named: Named) -> list[Term]:
        """What holds at the head of a loop, besides the facts."""
        return [part for loop in head.invariants for part in self.invariant_parts(loop, cells, named)]

    def invariant_parts(self, loop: LoopInvariant, cells: Sequence[Term], named: Named) -> list[Term]:
        """An invariant of a loop as what must hold together, the ranges of the locals that it names among it.

        Nothing of one that is about the state in which the action began, where that is not known.
        """
        if loop.declared.states == 2 and not self.piece.wide:
            return []
        assert self.before is not None or loop.declared.states == 1
        states = [cells] if self.before is None or loop.declared.states == 1 else [self.before, cells]
        made = _both(self.evaluator.invariant(loop, states, named))
        for parameter, domain in zip(loop.declared.parameters, loop.domains, strict=True):
            if named[parameter.name].sort == "number":
                made.append(self._in_range(named[parameter.name], domain))
        return [part for term in made for part in conjuncts(term)]

    def _in_range(self, value: Term, domain: range) -> Term:
        terms = self.terms
        least, greatest = terms.number(domain.start), terms.number(domain.stop - 1)
        return terms.both(terms.at_most(least, value), terms.at_most(value, greatest))

    @property
    def met(self) -> Term:
        """That the piece stays within the bounds of the spec."""
        return self.terms.together(obligation.condition for obligation in self.ends.obligations)

    def some_fails(self, parts: Sequence[Term]) -> Term:
        """That not all of these hold."""
        return self.terms.negation(self.terms.together(parts))

    # ---- models

    def concrete(self, values: Iterable[Term], model: Assignment) -> State:
        """Cells or arguments as they are in a model, with the least values that it says nothing of; sets as bit masks."""
        least = {term.value: term.low for term in self.terms.made.values() if term.op == "variable"}
        return tuple(evaluate(list(values), {**least, **model}))

    def is_true(self, term: Term, model: Assignment) -> bool:
        """Whether a condition holds in a model."""
        return bool(self.concrete([term], model)[0])


def splitting(bound: BoundSpec) -> list[str]:
    """The sequences of a state by whose lengths cases are told apart.

    Those with the fewest lengths come first. Of sequences of members the order of names then says what is in them; a sequence
    of anything else counts double, since its length says less.
    """
    sequences = [(name, at, shape) for name, at, shape in bound.shape.fields if isinstance(shape, SeqShape) and shape.capacity]
    members = {name for name, _, shape in sequences if isinstance(shape.item, Leaf) and shape.item.index is not None}
    return [name for name, _, _ in sorted(sequences, key=lambda s: (s[2].capacity * (1 if s[0] in members else 2), s[1]))]


def capacity(bound: BoundSpec, name: str) -> int:
    """The greatest length of a sequence of the state."""
    found = bound.shape.field(name)
    assert found is not None
    assert isinstance(found[1], SeqShape)
    return found[1].capacity


def parts_of(
    evaluator: Evaluator[Term], terms: Terms, prop: Property, cells: Sequence[Term], after: Sequence[Term] | None = None
) -> list[Term]:
    """A property as what must hold together: the parts of its formula, and its obligations."""
    made = _both(evaluator.holds(prop, cells, after))
    if prop.condition is not None:
        quiet, *more = _both(evaluator.condition(prop, cells))
        made = [*(terms.either(terms.negation(quiet), one) for one in made), *more]
    return [part for term in made for part in conjuncts(term)]


def _both(made: tuple[Term, Sequence[Obligation[Term]]]) -> list[Term]:
    """A truth value and that it can be told."""
    return [made[0], *(obligation.condition for obligation in made[1])]


def _always(_: Term) -> bool:
    return True
