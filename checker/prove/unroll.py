"""A spec unrolled from its initial states or from any state, one transition a frame, as constraints for Z3.

Each frame has the cells of a state as terms. What is the same after whatever can happen stays the term that it was, constants
above all; everything else is a variable whose range is that of what it can be. So the first frames, in which hardly anything
can have happened, are small.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ...spec.lang import Arguments, BoundSpec, Rule, State
from ...spec.lang.domain import GREATEST
from ...spec.lang.evaluate import Outcome
from ...spec.lang.layout import SetShape
from ...spec.lang.symmetry import Symmetry
from ...spec.lang.types import Member, SetOf, Type
from .arbitrary import any_value
from .bits import Bits
from .pruned import Possible, PrunedEvaluator
from .solver import z3
from .terms import Term, Terms

Assert = Callable[[Any], None]


@dataclass(frozen=True, eq=False)
class Move:
    """One action in one frame: whether it is the one that is taken, its arguments, and what it does."""

    rule: Rule
    taken: Term
    arguments: tuple[Term, ...]
    outcome: Outcome[Term]


class Unrolled:
    """Frames from the initial states on; `add` is told what holds of them.

    `possible` says whether a condition can hold together with all of that: what cannot be is left out of the next frame.
    With `symmetry` only one of several paths is left that differ in the names of members that nothing tells apart. With
    `start`, terms and the cells of a state among them, paths begin there instead.
    """

    def __init__(
        self,
        bound: BoundSpec,
        add: Assert,
        possible: Possible = lambda _: True,
        bits: Bits | None = None,
        *,
        symmetry: bool = True,
        start: tuple[Terms, Sequence[Term]] | None = None,
    ) -> None:
        self.bound, self.add = bound, add
        self.terms, self.bits = Terms() if start is None else start[0], bits or Bits()
        self.evaluator = PrunedEvaluator(bound, self.terms, possible)
        self.starts = bound.initial()
        self.frames: list[tuple[Term, ...]] = []
        self.moves: list[list[Move]] = []
        self._start: list[Term] = []
        self._named: dict[str, list[Term]] = {}
        if start is not None:
            self.frames.append(tuple(start[1]))
        else:
            if symmetry:
                self._named = {name: [self.terms.no] * size for name, size in self._interchangeable().items()}
            self._begin()

    def _begin(self) -> None:
        cells = [self.evaluator.cells(state) for _, _, state in self.starts]
        self._start = [self.terms.unknown(f"start.{i}") for i in range(len(cells))] if len(cells) > 1 else [self.terms.yes]
        self._one_of(self._start)
        self.frames.append(self._merged(0, list(zip(self._start, cells, strict=True))))

    def extend(self) -> None:
        """One frame more: any one action, with any arguments, of those that are enabled."""
        self.leave()
        self.arrive()

    def leave(self) -> list[Move]:
        """Begin a frame more with the transitions out of the last one, of which one is taken; returns them."""
        at, cells = len(self.moves), self.frames[-1]
        moves: list[Move] = []
        rules = [rule for rule in self.bound.actions if rule.count]
        chosen = [self._arguments(rule, at) for rule in rules]
        for argument in (argument for arguments in chosen for argument in arguments):
            self._ranged(argument)
        for rule, arguments in zip(rules, chosen, strict=True):
            outcome = self.evaluator.action(cells, rule, arguments)
            if outcome.enabled is not self.terms.no or outcome.obligations:
                moves.append(Move(rule, self.terms.unknown(f"{rule.name}/@{at}"), arguments, outcome))
        self.moves.append(moves)
        self._one_of([move.taken for move in moves])
        for move in moves:
            allowed = self.terms.either(move.outcome.enabled, self.terms.negation(self._met(move)))
            self.add(z3.Implies(self.bits.of(move.taken), self.bits.of(allowed)))
        self._in_order(moves)
        return moves

    def arrive(self, impossible: Collection[Move] = ()) -> None:
        """End the frame: no transition leaves the spec's own bounds from here on, nor is one of these taken."""
        moves = self.moves[-1]
        for move in impossible:
            self.add(z3.Not(self.bits.of(move.taken)))
        moves[:] = [move for move in moves if move not in impossible]
        for move in moves:
            self.add(z3.Implies(self.bits.of(move.taken), self.bits.of(self.terms.both(move.outcome.enabled, self._met(move)))))
        ways = [(move.taken, move.outcome.cells) for move in moves]
        self.frames.append(self._merged(len(self.moves), ways) if moves else self.frames[-1])

    def erring(self) -> Term:
        """That the last transition leaves the spec's own bounds; to be asked before the frame is ended."""
        terms, found = self.terms, self.terms.no
        for move in self.moves[-1] if self.moves else ():
            found = terms.either(found, terms.both(move.taken, terms.negation(self._met(move))))
        return found

    def _met(self, move: Move) -> Term:
        return self.terms.together(obligation.condition for obligation in move.outcome.obligations)

    def path(self, model: Any) -> tuple[int, list[tuple[Rule, Arguments]]]:
        """Which initial state a model begins with, and the action instances that it takes."""
        value = self.bits.value
        start = next(i for i, term in enumerate(self._start) if term is self.terms.yes or value(term, model))
        taken: list[tuple[Rule, Arguments]] = []
        for moves in self.moves:
            move = next(move for move in moves if value(move.taken, model))
            taken.append((move.rule, tuple(self.bits.concrete(argument, model) for argument in move.arguments)))
        return start, taken

    def initial(self, number: int) -> tuple[Rule | None, Arguments, State]:
        """An initial state, and the function that made it."""
        return self.starts[number]

    # ---- parts of a frame

    def _arguments(self, rule: Rule, at: int) -> tuple[Term, ...]:
        made: list[Term] = []
        for parameter, domain in zip(rule.declared.parameters, rule.domains, strict=True):
            named = range(domain.start, min(domain.stop, self._last(rule, parameter.type) + 1))
            made.append(any_value(self.terms, parameter.type, named, f"{rule.name}/{parameter.name}@{at}"))
        return tuple(made)

    def _last(self, rule: Rule, kind: Type) -> int:
        """The last member that a parameter can name: a member is named after those before it."""
        index = kind.index if isinstance(kind, Member) else None
        if index is None or index.name not in self._named:
            return GREATEST
        kinds = [parameter.type for parameter in rule.declared.parameters]
        if any(isinstance(other, SetOf) and other.index is index for other in kinds):
            return GREATEST
        named = sum(term is not self.terms.no for term in self._named[index.name])
        return named + sum(isinstance(other, Member) and other.index is index for other in kinds) - 1

    def _one_of(self, choices: Sequence[Term]) -> None:
        """Exactly one."""
        made = [self.bits.of(choice) for choice in choices]
        self.add(z3.Or(z3.BoolVal(False), *made))
        if len(made) > 1:
            self.add(z3.AtMost(*made, 1))

    def _ranged(self, argument: Term) -> None:
        if argument.sort == "number" and argument.op == "variable":
            for fact in self.bits.within(argument):
                self.add(fact)

    def _merged(self, at: int, ways: Sequence[tuple[Term, Sequence[Term]]]) -> tuple[Term, ...]:
        """The cells of a frame, which is reached in one of several ways."""
        made: list[Term] = []
        for (number, leaf), *values in zip(self.bound.cells(), *[cells for _, cells in ways], strict=True):
            name = f"c{number}@{at}"
            if isinstance(leaf, SetShape):
                width = max(self.terms.width(value) for value in values)
                columns = [[self.terms.has(value, i) for value in values] for i in range(width)]
                made.append(self.terms.set_of([self._cell(f"{name}.{i}", (0, 1), ways, one) for i, one in enumerate(columns)]))
            else:
                made.append(self._cell(name, (leaf.low, max(leaf.low, leaf.high)), ways, values))
        return tuple(made)

    def _cell(
        self, name: str, declared: tuple[int, int], ways: Sequence[tuple[Term, Sequence[Term]]], values: Sequence[Term]
    ) -> Term:
        """One cell; it is in its declared range where the obligations of what led here are met."""
        first = values[0]
        low, high = min(v.low for v in values), max(v.high for v in values)
        if all(value.core is first.core for value in values):
            return first if first.sort == "truth" else self.terms.within(first.core, low, high)
        if first.sort == "truth":
            cell = self.terms.unknown(name)
        else:
            cell = self.terms.variable(name, max(low, declared[0]), min(high, declared[1]))
            self._ranged(cell)
        for (taken, _), value in zip(ways, values, strict=True):
            self.add(z3.Implies(self.bits.of(taken), self.bits.same(cell, value)))
        return cell

    # ---- symmetry

    def _interchangeable(self) -> dict[str, int]:
        """The indices whose members nothing tells apart in the initial states, with their sizes."""
        symmetry = Symmetry(self.bound.shape, self.bound.permutable())
        starts = {state for _, _, state in self.starts}

        def closed(name: str, size: int) -> bool:
            swaps = ([*range(i), i + 1, i, *range(i + 2, size)] for i in range(size - 1))
            return all(symmetry.permute(state, {name: swap}) in starts for swap in swaps for state in starts)

        return {name: size for name, size in self.bound.permutable().items() if closed(name, size)}

    def _in_order(self, moves: Sequence[Move]) -> None:
        """Members that nothing tells apart are named in order: of paths that differ in names only, one is enough."""
        terms = self.terms
        for name, before in self._named.items():
            now = list(before)
            for move in moves:
                named = [self._names(move, name, member) for member in range(len(before))]
                for member in range(1, len(before)):
                    earlier = terms.either(before[member - 1], named[member - 1])
                    self.add(self.bits.of(terms.either(terms.negation(terms.both(move.taken, named[member])), earlier)))
                now = [terms.either(old, terms.both(move.taken, new)) for old, new in zip(now, named, strict=True)]
            self._named[name] = now

    def _names(self, move: Move, name: str, member: int) -> Term:
        """Whether an argument of a move is this member, or has it."""
        terms, found = self.terms, self.terms.no
        for parameter, argument in zip(move.rule.declared.parameters, move.arguments, strict=True):
            if isinstance(parameter.type, Member) and parameter.type.index.name == name:
                found = terms.either(found, terms.equal(argument, terms.number(member)))
            elif isinstance(parameter.type, SetOf) and parameter.type.index.name == name:
                found = terms.either(found, terms.has(argument, member))
        return found
