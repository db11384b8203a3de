"""An action in pieces: from its start or the head of a loop that has an invariant, to the next such head or its end.

A piece is evaluated by running the action from its start. Until control comes to the head where the piece starts, nothing
counts and every value may be anything; there the state and the locals of the loop are given. Where control comes to a head
later, the piece ends. So the pieces are parts of one text, and whatever runs of the action there are go through them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from ...spec.lang import BoundSpec, Rule
from ...spec.lang import tree as t
from ...spec.lang.bind import LoopInvariant
from ...spec.lang.evaluate_base import Obligation
from ...spec.lang.evaluate_expressions import Trip
from ...spec.lang.evaluate_memory import Location
from ...spec.lang.evaluate_statements import Left
from ...spec.lang.loops import called_by, loop_of
from .arbitrary import any_value
from .pruned import Possible, PrunedRun
from .terms import Term, Terms, symbolic_cells

Named = Mapping[str, Term]
"""Locals by name, as the invariants of a loop name them."""


@dataclass(frozen=True)
class Head:
    """The head of the loop of a function, come to by these calls; `invariants` are those of the loop."""

    function: str
    calls: tuple[int, ...]
    invariants: tuple[LoopInvariant, ...]

    def __str__(self) -> str:
        return f"the loop of {self.function}"


@dataclass(frozen=True)
class Arrival:
    """Where a piece ends: at a head or, without one, where the action does; the condition, the state, the locals named."""

    head: Head | None
    condition: Term
    cells: tuple[Term, ...]
    named: Named


@dataclass(frozen=True)
class Ends:
    """Where a piece can end, and what must hold for it to keep the bounds of the spec."""

    arrivals: tuple[Arrival, ...]
    obligations: tuple[Obligation[Term], ...]


class Began(Exception):
    """The piece started on one side of a branch, and this is how control left that side."""

    def __init__(self, left: Left[Term]) -> None:
        super().__init__()
        self.left = left


def reached_by(bound: BoundSpec, rule: Rule) -> tuple[LoopInvariant, ...]:
    """The invariants of the loops that an action comes to."""
    assert bound.spec.elaborated is not None
    called = {function.original for function in called_by(bound.spec.elaborated.of(rule.declared.function))}
    return tuple(loop for loop in bound.loops if loop.declared.declaration.of in called)


def heads_of(bound: BoundSpec, rule: Rule, loops: Sequence[LoopInvariant]) -> list[Head]:
    """The heads that an action may come to, whatever the state is."""
    found: dict[Head, None] = {}
    todo: list[Head | None] = [None]
    while todo:
        terms, start = Terms(), todo.pop()
        args = [
            any_value(terms, p.type, d, f"{rule.name}/{p.name}")
            for p, d in zip(rule.declared.parameters, rule.domains, strict=True)
        ]
        named = {} if start is None else locals_of(start, terms, "at head: ")
        piece = Segment(bound, terms, symbolic_cells(bound, terms), lambda _: True, loops, start, named)
        fresh = [at.head for at in piece.ends(rule, args).arrivals if at.head is not None and at.head not in found]
        found |= dict.fromkeys(fresh)
        todo += fresh
    return list(found)


def locals_of(head: Head, terms: Terms, mark: str) -> dict[str, Term]:
    """Any values of the locals that the invariants of a loop name, within the narrowest ranges given for each."""
    return {name: any_value(terms, kind, domain, f"{mark}{name}") for name, (kind, domain) in domains_of(head).items()}


def domains_of(head: Head) -> dict[str, tuple[Any, range]]:
    """The type and the values of each local that the invariants of a loop name."""
    found: dict[str, tuple[Any, range]] = {}
    for loop in head.invariants:
        for parameter, domain in zip(loop.declared.parameters, loop.domains, strict=True):
            _, known = found.get(parameter.name, (None, domain))
            both = range(max(known.start, domain.start), min(known.stop, domain.stop))
            found[parameter.name] = (parameter.type, both)
    return found


class Segment(PrunedRun):
    """One piece: from `start` with `cells` and `named`, or from the start of the action with `cells`.

    `before` is the state in which the action began, if anything is known of it.
    """

    def __init__(
        self,
        bound: BoundSpec,
        terms: Terms,
        cells: Sequence[Term],
        possible: Possible,
        loops: Iterable[LoopInvariant],
        start: Head | None,
        named: Named,
        before: Sequence[Term] | None = None,
    ) -> None:
        if start is None:
            before = cells
        elif before is None:
            before = symbolic_cells(bound, terms, "before.")
        super().__init__(bound, terms, before, possible)
        self.terms, self.given, self.start, self.named = terms, cells, start, named
        self.started = start is None
        self.arrivals: list[Arrival] = []
        self.inside: list[t.Function] = []
        self.calls: list[int] = []
        self.anything = 0
        self.by_function: dict[Any, list[LoopInvariant]] = {}
        for loop in loops:
            self.by_function.setdefault(loop.declared.declaration.of, []).append(loop)

    def ends(self, rule: Rule, args: Sequence[Term]) -> Ends:
        """Run the action, and tell where this piece of it can end: nowhere, where control surely never comes to its start."""
        assert self.bound.spec.elaborated is not None
        self.function(self.bound.spec.elaborated.of(rule.declared.function), args)
        if not self.started:
            return Ends((), ())
        self._arrive(None)
        return Ends(tuple(self.arrivals), tuple(self.obligations))

    # ---- where control is

    def function(self, function: t.Function, arguments: Sequence[Term | Location]) -> Term | None:
        self.inside.append(function)
        result = super().function(function, arguments)
        self.inside.pop()
        return result

    def call(self, node: t.Call) -> Term | None:
        self.calls.append(id(node))
        result = super().call(node)
        self.calls.pop()
        return result

    # ---- before the piece starts: whatever could be the case

    def _sequence(self, steps: Iterable[Callable[[], Left[Term]]]) -> Left[Term]:
        """Take steps; where the piece starts in one, the others follow on what that one left."""
        if self.started:
            return super()._sequence(steps)
        rest, last = iter(steps), list[Left[Term]]()

        def until() -> Iterable[Callable[[], Left[Term]]]:
            for step in rest:
                yield partial(_noted, step, last)
                if self.started:
                    return

        total = super()._sequence(until())
        if not self.started:
            return total
        self.path = self.true
        return super()._sequence(chain([last.pop], rest))

    def _branch(self, condition: Term, then: Callable[[], Left[Term]], otherwise: Callable[[], Left[Term]]) -> Left[Term]:
        """Go both ways; where the piece starts on one of them, there is no other."""
        if self.started or self.surely(condition) or self.never(condition):
            return super()._branch(condition, then, otherwise)
        depth = len(self.absent)
        try:
            return super(PrunedRun, self)._branch(condition, partial(self._side, then), partial(self._side, otherwise))
        except Began as began:
            del self.absent[depth:]
            self.path = self.true
            return began.left

    def _side(self, side: Callable[[], Left[Term]]) -> Left[Term]:
        left = side()
        if self.started:
            raise Began(left)
        return left

    # ---- heads

    def _do_for(self, node: t.For) -> Left[Term]:
        function = self.inside[-1]
        invariants = self.by_function.get(function.original)
        if not invariants or node is not loop_of(function):
            return super()._do_for(node)
        head = Head(function.name, tuple(self.calls), tuple(invariants))
        if self.started:
            return self._stop(head)
        if head != self.start:
            self.anything += 1
            mark = f"any{self.anything}."
            self._give(symbolic_cells(self.bound, self.terms, mark), locals_of(head, self.terms, f"{mark}/"))
            return Left()
        self._begin()
        return self._round(node, head)

    def _give(self, cells: Sequence[Term], named: Named) -> None:
        for at, cell in enumerate(cells):
            self.memory.write(at, cell)
        for name, value in named.items():
            self._bind(name, value)

    def _begin(self) -> None:
        """The piece starts here: what would have been done instead is for other pieces."""
        self._give(self.given, self.named)
        self.started = True
        self.path, self.enabled, self.aborted = self.true, self.true, False
        self.obligations.clear()
        for scope in self.scopes:
            scope.exits.clear()
        self.absent[:] = [{} for _ in self.absent]

    def _round(self, node: t.For, head: Head) -> Left[Term]:
        """The loop ends at its head, or goes once round."""
        level, more = self._open(), self.terms.unknown("another round")
        steps: list[Callable[[], Left[Term]]] = [
            partial(self._branch, more, Left, partial(self._jump, level)),
            partial(self._iteration, node, level, Trip(self.true, more, self.terms.number(0))),
            partial(self._stop, head),
        ]
        return self._close(self._sequence(steps))

    def _stop(self, head: Head) -> Left[Term]:
        """The piece ends here."""
        self._arrive(head)
        self.demand(self.false)
        return Left()

    def _arrive(self, head: Head | None) -> None:
        memory = self.memory
        condition = self.domain.both(self.path, self.enabled)
        if self.never(condition):
            return
        names = () if head is None else domains_of(head)
        named = {name: memory.cells[self.frame.slots[name]] for name in names}
        self.arrivals.append(Arrival(head, condition, tuple(memory.cells[: self.bound.shape.size]), named))


def _noted(step: Callable[[], Left[Term]], last: list[Left[Term]]) -> Left[Term]:
    left = step()
    last[:] = [left]
    return left
