"""Evaluation along paths that can be taken only: a solver is asked of each branch whether control can come there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ...spec.lang import BoundSpec, Rule
from ...spec.lang import tree as t
from ...spec.lang.evaluate import Evaluator, Outcome
from ...spec.lang.evaluate_statements import Left, Run
from .terms import Term, Terms

Possible = Callable[[Term], bool]
"""Whether a condition can hold."""
Side = Callable[[], Left[Term]]


class PrunedRun(Run[Term]):
    """A run that leaves out the side of a branch on which control cannot be: loops end where nothing can be left to do."""

    def __init__(self, bound: BoundSpec, terms: Terms, cells: Sequence[Term], possible: Possible) -> None:
        super().__init__(bound, terms, cells)
        self.possible = possible

    def _do_if(self, node: t.If) -> Left[Term]:
        if not all(isinstance(statement, t.Store) for statement in (*node.then, *node.otherwise)):
            return super()._do_if(node)
        condition = self.value(node.condition)  # what a side stores is cheaper than the question
        return super()._branch(condition, partial(self._block, node.then), partial(self._block, node.otherwise))

    def _branch(self, condition: Term, then: Side, otherwise: Side) -> Left[Term]:
        if not (self.surely(condition) or self.never(condition)):
            domain, alive = self.domain, self.domain.both(self.path, self.enabled)
            if not self.possible(domain.both(alive, condition)):
                return otherwise()
            if not self.possible(domain.both(alive, domain.negation(condition))):
                return then()
        return super()._branch(condition, then, otherwise)


class PrunedEvaluator(Evaluator[Term]):
    """Evaluates actions in states of which more is known than their ranges; properties like any evaluator."""

    def __init__(self, bound: BoundSpec, terms: Terms, possible: Possible) -> None:
        super().__init__(bound, terms)
        self.terms, self.possible = terms, possible

    def action(self, cells: Sequence[Term], rule: Rule, args: Sequence[Term]) -> Outcome[Term]:
        run = PrunedRun(self.bound, self.terms, cells, self.possible)
        run.function(self.functions.of(rule.declared.function), args)
        return Outcome(run.enabled, tuple(run.memory.cells[: len(cells)]), tuple(run.obligations))
