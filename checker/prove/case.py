"""A part of all states that satisfy the facts, and what an action does in it, as constraints for Z3."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...spec.lang import BoundSpec, Property, Rule, State
from ...spec.lang.evaluate import Evaluator, Outcome
from ...spec.lang.layout import Leaf, SeqShape
from ...spec.lang.types import Bool, Member, SetOf
from .arbitrary import Arbitrary
from .bits import Bits
from .pruned import PrunedEvaluator
from .solver import z3
from .terms import Term, Terms

PRUNING = 300
"""Milliseconds to find out that a branch cannot be taken; else it stays."""
PRUNED = 10.0
"""Seconds to find that out of all branches of a case."""
CONSTANTS = 10_000
"""Milliseconds for each query about which cells are constants; without an answer none is known."""
Lengths = Mapping[str, int]
"""Variables of the state that are sequences, with their lengths."""


class Case:
    """The states that satisfy the facts, whose sequences have these lengths, and in which an action is enabled.

    `possible` says whether there is any. What is the same in all of them is a constant, so that most of what the action could
    do elsewhere is left out. `hypotheses` are the parts of the facts, `cells` the state, `outcome` what the action does.
    Without `enabled` the action may be disabled: an action that leaves the bounds of the spec on its way to a requirement that
    fails is wrong all the same. A `plain` case has neither such constants nor an order of names.
    """

    def __init__(
        self,
        bound: BoundSpec,
        facts: Sequence[Property],
        rule: Rule,
        lengths: Lengths,
        *,
        enabled: bool = True,
        plain: bool = False,
    ) -> None:
        self.bound, self.facts, self.rule, self.lengths = bound, facts, rule, lengths
        self.enabled, self.plain = enabled, plain
        fields = {name: at for name, at, _ in bound.shape.fields}
        known = {fields[name]: length for name, length in lengths.items()}
        self._begin(known)
        constants = {} if plain else self._constants()
        self.possible = constants is not None
        if constants is not None and not plain:
            self._begin({**known, **constants}, prune=True)

    def _begin(self, known: Mapping[int, int], *, prune: bool = False) -> None:
        self.terms, self.bits = Terms(), Bits()
        self.evaluator = Evaluator(self.bound, self.terms)
        self.arguments, named = self._arguments()
        self.state = Arbitrary(self.bound, self.terms, known, None if self.plain else named)
        self.cells = self.state.cells
        self.hypotheses = dict.fromkeys(part for fact in self.facts for part in self.parts(fact, self.cells))
        self.base = [self.bits.of(term) for term in (*self.hypotheses, *self.state.facts)]
        self.base += [fact for cell in _flat((*self.cells, *self.arguments)) for fact in self._within(cell)]
        self.outcome = self._outcome(prune=prune)
        if self.enabled:
            self.hypotheses |= dict.fromkeys(self.split(self.outcome.enabled))
            self.base += [self.bits.of(part) for part in self.split(self.outcome.enabled)]

    def _outcome(self, *, prune: bool) -> Outcome[Term]:
        """What the action does; with `prune`, on paths that it can take in these states only."""
        if not prune:
            return self.evaluator.action(self.cells, self.rule, self.arguments)
        solver = self.solver()
        solver.set("timeout", PRUNING)
        ends = time.monotonic() + PRUNED

        def possible(condition: Term) -> bool:
            if time.monotonic() > ends:
                return True
            solver.push()
            solver.add(self.bits.of(condition))
            answer = solver.check()
            solver.pop()
            return answer != z3.unsat

        return PrunedEvaluator(self.bound, self.terms, possible).action(self.cells, self.rule, self.arguments)

    def _arguments(self) -> tuple[tuple[Term, ...], dict[str, int]]:
        """Any arguments; members of an index that may be relabelled are named by the first argument that has them."""
        made: list[Term] = []
        named: dict[str, int] = {}
        for parameter, domain in zip(self.rule.declared.parameters, self.rule.domains, strict=True):
            name = f"{self.rule.name}.{parameter.name}"
            if isinstance(parameter.type, Bool):
                made.append(self.terms.unknown(name))
            elif isinstance(parameter.type, SetOf):
                members = (domain.stop - 1).bit_length()
                made.append(self.terms.set_of([self.terms.unknown(f"{name}.{i}") for i in range(members)]))
            elif self._names(parameter.type, named):
                made.append(self.terms.number(0))
            else:
                made.append(self.terms.variable(name, domain.start, domain.stop - 1))
        return tuple(made), named

    def _names(self, kind: Any, named: dict[str, int]) -> bool:
        """Whether an argument is the first of its index; it is member 0 then."""
        if (
            self.plain
            or not isinstance(kind, Member)
            or kind.index.name in named
            or kind.index.name not in self.bound.permutable()
        ):
            return False
        named[kind.index.name] = 1
        return True

    def solver(self) -> Any:
        """A solver that knows what holds here."""
        made = z3.SolverFor("QF_FD")
        for constraint in self.base:
            made.add(constraint)
        return made

    def _constants(self) -> dict[int, int] | None:
        """The cells that are the same in all states of this case, with their values; None where there is no state."""
        solver = self.solver()
        solver.set("timeout", CONSTANTS)
        answer = solver.check()
        if answer != z3.sat:
            return None if answer == z3.unsat else {}
        variables = self.state.variables()
        model = solver.model()
        same = {at: self.bits.value(cell, model) for at, cell in variables.items()}
        while same:
            solver.push()
            solver.add(z3.Or(*[z3.Not(self.bits.of(self.is_value(variables[at], value))) for at, value in same.items()]))
            answer = solver.check()
            model = solver.model() if answer == z3.sat else None
            solver.pop()
            if model is None:
                return same if answer == z3.unsat else {}
            same = {at: value for at, value in same.items() if self.bits.value(variables[at], model) == value}
        return same

    def is_value(self, cell: Term, value: int) -> Term:
        """That a cell has a value."""
        if cell.sort == "truth":
            return cell if value else self.terms.negation(cell)
        return self.terms.equal(cell, self.terms.number(value))

    # ---- what holds, and what is done

    def parts(self, prop: Property, cells: Sequence[Term], after: Sequence[Term] | None = None) -> list[Term]:
        """A property as what must hold together: the parts of its formula, and its obligations."""
        holds, obligations = self.evaluator.holds(prop, cells, after)
        made = [holds, *(obligation.condition for obligation in obligations)]
        if prop.condition is not None:
            quiet, more = self.evaluator.condition(prop, cells)
            unless = self.terms.negation(quiet)
            made = [*(self.terms.either(unless, one) for one in made), *(obligation.condition for obligation in more)]
        return [part for term in made for part in self.split(term)]

    def split(self, term: Term) -> list[Term]:
        """The parts of a conjunction."""
        found: dict[Term, None] = {}
        stack, done = [term.core], set[Term]()
        while stack:
            one = stack.pop()
            if one in done or one is self.terms.yes:
                continue
            done.add(one)
            if one.op == "and":
                stack += one.args
            else:
                found[one] = None
        return list(found)

    def some_fails(self, parts: Sequence[Term]) -> Term:
        """That not all of these hold."""
        together = self.terms.yes
        for part in parts:
            together = self.terms.both(together, part)
        return self.terms.negation(together)

    def _within(self, term: Term) -> list[Any]:
        return self.bits.within(term) if term.op == "variable" and term.sort == "number" else []

    # ---- models

    def concrete(self, values: Iterable[Term], model: Any) -> State:
        """Cells or arguments as they are in a model."""
        return tuple(self.bits.concrete(value, model) for value in values)

    def is_true(self, term: Term, model: Any) -> bool:
        """Whether a condition holds in a model."""
        return z3.is_true(model.eval(self.bits.of(term), model_completion=True))


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


def _flat(values: Iterable[Term]) -> Iterable[Term]:
    for value in values:
        if value.sort == "set":
            yield from value.args
        else:
            yield value
