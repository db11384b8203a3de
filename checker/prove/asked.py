"""The questions of an induction about one action, put to a solver: what it keeps, and what is not so."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from ...spec.lang import Arguments, BoundSpec, Property, Rule, SpecError, State
from ...spec.lang.evaluate import UnboundedLoop
from ..explore.watch import condition_number
from ..model import SPEC_ERROR
from .case import WHOLE, Case, Lengths, Piece, capacity
from .deciders import Assignment
from .reached import Side
from .segment import Arrival, Head
from .solver import Disagreement
from .terms import Term, conjuncts
from .tracked import TrackedBound, Untracked

if TYPE_CHECKING:
    from .induction import Induction

SHORT = 3.0
"""Least seconds for a query whose states can still be split; it has as long as it took to come to ask it."""
TRACKED = 60.0
"""The same where few members are told apart: to split states helps little there."""
PATIENCE = 2
"""So many queries may run out of time before all that are left are split."""


@dataclass(frozen=True)
class Unkept:
    """A counterexample to induction: a state in which all facts hold, and an action after which one does not.

    `after` is None where the action leaves the spec's own bounds, or a property cannot be told. Where the action is looked at
    in pieces, `begins` and `ends` name the loops between whose heads this one lies, `named` the locals at the first; it begins
    `inside` the action, or where that does. `began` is the state in which the action began, where that matters.
    """

    before: State
    action: str
    arguments: Arguments
    after: State | None
    begins: str | None = None
    ends: str | None = None
    named: tuple[tuple[str, int], ...] = ()
    inside: bool = False
    began: State | None = None


@dataclass(frozen=True)
class Answer:
    """What is known of one fact and one action: proved, unkept or unknown; in how many parts, and after how many seconds."""

    fact: str
    action: str
    answer: str
    seconds: float = 0.0
    cases: int = 0
    unkept: Unkept | None = None

    def along(self, other: Answer) -> Answer:
        """This with what another question about the same says."""
        worst = max(self, other, key=lambda one: ("proved", "unknown", "unkept").index(one.answer))
        return replace(worst, seconds=self.seconds + other.seconds, cases=self.cases + other.cases)


Goal = tuple[Term, list[Term]]
"""Where something is to be shown, and the parts of it."""


@dataclass(frozen=True)
class Question:
    """What of an action is asked about, and which facts, invariants of loops and properties of steps, by name."""

    rule: Rule
    names: tuple[str, ...]
    piece: Piece = WHOLE


@dataclass
class Reply:
    """What came of a question, in so many seconds.

    `answers` by name, `seen` the left sides of properties that hold somewhere, whether the action is `possible` where the facts
    hold, whether the place where the piece begins is `never` come to. `cut` says why not all was asked.
    """

    answers: dict[str, Answer]
    seen: list[Side]
    possible: bool = False
    never: bool = False
    seconds: float = 0.0
    cut: str | None = None


class Asked:
    """A question about an action. `sides` are left sides of properties that were not seen to hold so far."""

    def __init__(self, induction: Induction, facts: Sequence[Property], question: Question, sides: Sequence[Side]) -> None:
        self.induction, self.facts, self.question, self.sides = induction, facts, question, list(sides)
        self.rule, self.loops = question.rule, question.piece.loops
        self.answers = {name: Answer(name, self.rule.name, "proved") for name in question.names}
        self.possible = self.never = False

    def reply(self) -> Reply:
        """Ask, and tell what came of it."""
        begun, wanted = time.monotonic(), list(self.sides)
        self.possible = self.rule.name in self.induction.taken
        names = self.not_shown_of_tracked(self.question.names)
        errors = [] if self.loops else [name for name in names if name == SPEC_ERROR]
        others = [name for name in names if name not in errors]
        if others or self.sides or not (self.possible or self.loops):
            self.decide({}, others)
        if errors:
            self.decide({}, errors)
        seen = [side for side in wanted if side not in self.sides]
        return Reply(self.answers, seen, self.possible, self.never, time.monotonic() - begun, self.induction.cut())

    def decide(self, lengths: Lengths, names: Sequence[str]) -> None:
        """Ask in a case, and where that takes long in its parts; that bounds are kept, also where the action is disabled."""
        if self.induction.cut() is not None:
            for name in names:
                self._note(name, "unknown", 0.0)
            return
        piece, enabled = self.question.piece, SPEC_ERROR not in names
        case = self._case(self.induction.bound, lengths, enabled=enabled)
        if not case.possible:
            self.never = self.never or not lengths
            return
        if piece.loops and not lengths and case.ends.arrivals:
            self._see(case)
        elif case.enabled and not self.possible:
            self._confirm_enabled(case)
        where = [name for name in self.induction.order if name not in lengths]
        most = min(max(SHORT, case.seconds), self.induction.each) if where else self.induction.each
        still = self._undecided(case, names, most, split=bool(where))
        if not still:
            return
        if not where or self.induction.cut() is not None:
            for name in still:
                self._note(name, "unknown", 0.0)
            return
        for length in range(capacity(case.bound, where[0]) + 1):
            pending = [name for name in still if self.answers[name].answer == "proved"]
            self.decide({**lengths, where[0]: length}, pending)

    def _case(self, bound: BoundSpec, lengths: Lengths, *, enabled: bool) -> Case:
        rule = bound.rule(self.rule) if isinstance(bound, TrackedBound) else self.rule
        deciding = partial(self.induction.decider, lambda: self.induction.cut() is not None)
        return Case(bound, self.facts, rule, lengths, piece=self.question.piece, enabled=enabled, deciding=deciding)

    # ---- one arbitrary member

    def not_shown_of_tracked(self, names: Sequence[str]) -> list[str]:
        """The facts that are not shown where only a few members of an index are told apart."""
        left, kept = list(names), [fact for fact in self.facts if fact.name not in self.induction.longer]
        for bound in self.induction.tracked:
            asked = [name for name in left if self._is_about_tracked(bound, name)]
            shown = {*asked} - {*self._not_shown(bound.knowing(kept), {}, asked)}
            left = [name for name in left if name not in shown]
        return left

    def _is_about_tracked(self, bound: TrackedBound, name: str) -> bool:
        """Whether a fact is about no more arbitrary members than are told apart."""
        loop = next((loop for loop in self.loops if loop.name == name), None)
        return name == SPEC_ERROR or bound.tracks(loop or self._property(name))

    def _comes_first(self, bound: TrackedBound, name: str) -> bool:
        """Whether something is shown for itself, so that all else can be shown of runs in which it holds."""
        return name == SPEC_ERROR or name in bound.guards

    def _not_shown(self, bound: TrackedBound, lengths: Lengths, names: Sequence[str]) -> list[str]:
        """The facts that are not shown in a case; what takes long there is asked about in its parts."""
        if not names or self.induction.cut() is not None:
            return list(names)
        try:
            case = self._case(bound, lengths, enabled=False)
        except (Untracked, UnboundedLoop):
            return list(names)
        if not case.possible:
            self.never = self.never or not lengths
            return []
        where = [name for name in self.induction.order if name not in lengths]
        most = min(max(TRACKED, 4 * case.seconds), self.induction.each) if where else self.induction.each
        first = [name for name in names if self._comes_first(bound, name)]
        failed, late = self._tried(case, first, most)
        case.know(case.met)
        broken, slow = self._tried(case, [name for name in names if name not in first], most)
        failed, late = [*failed, *broken], [*late, *slow]
        if not where:
            failed, late = [*failed, *late], []
        for length in range(capacity(case.bound, where[0]) + 1 if late else 0):
            missed = self._not_shown(bound, {**lengths, where[0]: length}, late)
            failed += missed
            late = [name for name in late if name not in missed]
        return failed

    def _tried(self, case: Case, names: Sequence[str], most: float) -> tuple[list[str], list[str]]:
        """The facts that are broken in a case, and those that it is not known of.

        What takes long is put off until all else is known, which often makes it short.
        """
        failed, late = list[str](), [*names]
        for patience in (min(SHORT, most), most):
            asked, late = late, list[str]()
            for name in asked:
                begun = time.monotonic()
                said = self._said_of_tracked(case, name, patience)
                if said == "unsat":
                    self._note(name, "proved", time.monotonic() - begun)
                else:
                    (late if said == "unknown" else failed).append(name)
        return failed, late

    def _said_of_tracked(self, case: Case, name: str, most: float) -> str:
        """Whether a fact can be broken where few members are told apart; each part that cannot be helps with those after it."""
        for where, parts in self._goals(case, name):
            for part in parts:
                said, _ = self.query(case, (where, [part]), most)
                if said != "unsat":
                    return said
                case.know(case.terms.either(case.terms.negation(where), part))
        return "unsat"

    def _undecided(self, case: Case, names: Sequence[str], most: float, *, split: bool) -> list[str]:
        """The facts about which it is not decided here whether the action keeps them; after some, the others are not tried."""
        still: list[str] = []
        for number, name in enumerate(names):
            if self.induction.cut() is not None or (len(still) == PATIENCE and split):
                return [*still, *names[number:]]
            if not self._decided(case, name, most):
                still.append(name)
        return still

    def _goals(self, case: Case, name: str) -> list[Goal]:
        """What is to be shown of a fact, where: the parts of it that are not known already."""
        arrivals = case.ends.arrivals
        if name == SPEC_ERROR:
            made = [(case.terms.yes, [p for one in case.ends.obligations for p in conjuncts(one.condition)])]
        elif any(loop.name == name for loop in self.loops):
            made = [(at.condition, self._at_head(case, at, at.head, name)) for at in arrivals if at.head is not None]
        else:
            prop = self._property(name)
            made = [(at.condition, self._after(case, prop, at)) for at in arrivals if prop.kind != "step" or at.head is None]
        known = {*case.hypotheses}
        left = [(where, [part for part in dict.fromkeys(parts) if part not in known]) for where, parts in made]
        return [(where, parts) for where, parts in left if parts]

    def _after(self, case: Case, prop: Property, arrival: Arrival) -> list[Term]:
        """A property where a piece ends."""
        if prop.kind != "step":
            return case.parts(prop, arrival.cells)
        assert case.before is not None
        return case.parts(prop, case.before, arrival.cells)

    def _at_head(self, case: Case, arrival: Arrival, head: Head, name: str) -> list[Term]:
        """An invariant where a piece ends, if it is one of the loop there."""
        found: list[Term] = []
        for loop in head.invariants:
            if loop.name == name:
                found += case.invariant_parts(loop, arrival.cells, arrival.named)
        return found

    def _property(self, name: str) -> Property:
        return next(p for p in (*self.induction.facts, *self.induction.steps) if p.name == name)

    def _decided(self, case: Case, name: str, most: float) -> bool:
        """Whether it is decided in this case whether the action keeps a fact."""
        begun = time.monotonic()
        for where, parts in self._goals(case, name):
            goal: Goal = where, parts
            answer, model = self.query(case, goal, most)
            if model is not None and case.piece.loops and name != SPEC_ERROR:
                goal = case.terms.both(where, case.met), parts  # what leaves the bounds of the spec is a matter of its own
                answer, model = self.query(case, goal, most)
            if model is not None:
                self._refuted(case, name, model, goal)
                return True
            if answer != "unsat":
                return False
        self._note(name, "proved", time.monotonic() - begun)
        return True

    def query(self, case: Case, goal: Goal, most: float) -> tuple[str, Assignment | None]:
        """Whether one of these parts can be false there: unsat, sat with a model, or unknown."""
        where, parts = goal
        return case.ask([where, case.some_fails(parts)], min(most, self.induction.left()))

    def _note(self, name: str, answer: str, seconds: float, unkept: Unkept | None = None) -> None:
        old = self.answers[name]
        if old.answer == "unkept":
            return
        worse = answer if answer != "proved" else old.answer
        made = Answer(name, self.rule.name, worse, old.seconds + seconds, old.cases + 1, unkept)
        self.answers[name] = made

    # ---- counterexamples

    def _refuted(self, case: Case, name: str, model: Assignment, goal: Goal) -> None:
        """Note a counterexample, as small as it quickly gets, once the interpreter says the same."""
        model = self._smaller(case, goal, model)
        unkept = self._piece_confirmed(case, name, model) if case.piece.loops else self._confirmed(case, name, model)
        self._note(name, "unkept", 0.0, unkept)

    def _smaller(self, case: Case, goal: Goal, model: Assignment) -> Assignment:
        """A model of the same with fewer things in sequences, as long as there is one."""
        terms = case.terms
        lengths = [case.cells[at] for name, at, _ in case.bound.shape.fields if name in self.induction.order]
        total, (where, parts) = terms.number(0), goal
        for length in lengths:
            total = terms.add(total, length)
        broken = terms.both(where, case.some_fails(parts))
        while True:
            fewer = terms.less(total, terms.number(sum(case.concrete(lengths, model))))
            _, found = self.query(case, (terms.both(broken, fewer), [terms.no]), SHORT)
            if found is None:
                return model
            model = found

    def _confirm_enabled(self, case: Case) -> None:
        """The action can be taken here; the interpreter must say so, too."""
        _, model = case.ask([], self.induction.each)
        if model is None:
            return
        state, arguments = case.concrete(case.cells, model), case.concrete(case.arguments, model)
        with contextlib.suppress(SpecError):
            if case.bound.after(state, self.rule, arguments) is None:
                raise Disagreement(f"the solver takes {self.rule.name}{arguments} where the interpreter does not allow it")
        self.possible = True
        self._see(case)

    def _see(self, case: Case) -> None:
        """Find out which left sides hold in states from which the action, or this piece of it, can be taken."""
        after, terms = case.ends.arrivals[-1], case.terms
        for name, number in list(self.sides):
            prop = self._property(name)
            if prop.kind != "step":
                where, sides = terms.yes, case.evaluator.sides(prop, case.cells)
            elif case.before is not None and after.head is None:
                where, sides = after.condition, case.evaluator.sides(prop, case.before, after.cells)
            else:
                continue
            if prop.condition is not None:
                sides[condition_number(prop)] = case.evaluator.condition(prop, case.cells)[0]
            seen = terms.both(where, sides.get(number, terms.no))
            _, model = self.query(case, (seen, [terms.no]), self.induction.each)
            if model is not None:
                self.sides.remove((name, number))

    def _confirmed(self, case: Case, name: str, model: Assignment) -> Unkept:
        """The counterexample, run in the interpreter."""
        before, arguments = case.concrete(case.cells, model), case.concrete(case.arguments, model)
        bound = self.induction.bound
        self._satisfies(before)
        try:
            after = bound.after(before, self.rule, arguments)
        except SpecError:
            return Unkept(before, self.rule.name, arguments, None)
        if after is None or name == SPEC_ERROR:
            does = "takes" if after is None else "leaves the bounds of the spec with"
            raise Disagreement(f"the solver {does} {self.rule.name}{arguments}, the interpreter does not allow that")
        try:
            if not self._broken(name, before, after):
                raise Disagreement(f"{self.rule.name}{arguments} breaks {name} for the solver, and not in the interpreter")
        except SpecError:
            return Unkept(before, self.rule.name, arguments, None)
        return Unkept(before, self.rule.name, arguments, after)

    def _piece_confirmed(self, case: Case, name: str, model: Assignment) -> Unkept:
        """The counterexample of a piece: its states, of which the interpreter says whether the facts hold."""
        before, arguments = case.concrete(case.cells, model), case.concrete(case.arguments, model)
        there = (at for at in case.ends.arrivals if case.is_true(at.condition, model))
        arrival = None if name == SPEC_ERROR else next(there)
        self._satisfies(before)
        after = None if arrival is None else case.concrete(arrival.cells, model)
        if after is not None and any(fact.name == name for fact in self.facts):
            with contextlib.suppress(SpecError):
                if not self._broken(name, before, after):
                    raise Disagreement(f"a piece of {self.rule.name} breaks {name} for the solver, not in the interpreter")
        start, named = case.piece.start, zip(case.named, case.concrete(case.named.values(), model), strict=True)
        ends = None if arrival is None else str(arrival.head or f"the end of {self.rule.name}")
        begins = str(start or f"the start of {self.rule.name}")
        began = case.concrete(case.before, model) if case.piece.wide and case.before is not None else None
        return Unkept(before, self.rule.name, arguments, after, begins, ends, tuple(named), start is not None, began)

    def _satisfies(self, state: State) -> None:
        for fact in self.facts:
            if not self.induction.holds(fact, state):
                raise Disagreement(f"the solver's state satisfies {fact.name}, the interpreter says that it does not")

    def _broken(self, name: str, before: State, after: State) -> bool:
        for prop in self.induction.steps:
            if prop.name == name:
                return not self.induction.bound.holds(prop, before, after)
        return not self.induction.holds(next(fact for fact in self.facts if fact.name == name), after)
