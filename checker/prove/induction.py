"""Proof by induction: facts that hold initially, and that no action breaks where all of them hold, hold for ever.

Nothing but the facts is known of the state before an action. Where a query takes long, its states are split by the lengths of
their sequences and the parts are asked about one by one. Facts that are not kept are left out, and the others proved without.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...spec.lang import Arguments, BoundSpec, Property, Rule, SpecError, State
from ..explore.watch import condition_number, left_side_places
from ..model import SPEC_ERROR, Limits, Model
from .case import Case, Lengths, capacity, splitting
from .solver import Disagreement, z3
from .terms import Term

SHORT = 3.0
"""Seconds for a query whose states can still be split."""
PATIENCE = 2
"""So many queries may run out of time before all that are left are split."""


@dataclass(frozen=True)
class Unkept:
    """A counterexample to induction: a state in which all facts hold, and an action after which one does not.

    `after` is None where the action leaves the spec's own bounds, or a property cannot be told.
    """

    before: State
    rule: Rule
    arguments: Arguments
    after: State | None


@dataclass(frozen=True)
class Answer:
    """What is known of one fact and one action: proved, unkept or unknown; in how many parts, and after how many seconds."""

    fact: str
    action: str
    answer: str
    seconds: float = 0.0
    cases: int = 0
    unkept: Unkept | None = None


@dataclass(frozen=True)
class Induced:
    """What came out of the rounds.

    `kept` are the facts that hold initially and are kept together by all actions, `stepped` the step properties (and that the
    spec keeps its bounds) that hold of every transition between states in which the facts hold. `answers` are those of the
    last round, `missing` those of any round that were not `proved`; `initially` names a state for each fact that does not hold
    at the start. `vacuous` says what holds or happens nowhere, `cut` why it stopped.
    """

    kept: tuple[str, ...]
    stepped: tuple[str, ...]
    answers: tuple[Answer, ...]
    missing: tuple[Answer, ...]
    initially: dict[str, State]
    vacuous: tuple[str, ...]
    cut: str | None = None


Tell = Callable[[str, Sequence[Answer], float], None]
"""Told of an action: its name, its answers, the seconds that it took."""


def _silent(name: str, answers: Sequence[Answer], seconds: float) -> None:
    pass


class Induction:
    """Proves the lemmas and properties of a model; `each` is the most seconds for a query that cannot be split."""

    def __init__(
        self,
        model: Model,
        limits: Limits,
        tell: Tell | None = None,
        *,
        each: float = 60.0,
        next: Callable[[str], None] | None = None,
    ) -> None:
        self.bound: BoundSpec = model.bound
        self.limits, self.tell, self.each = limits, tell or _silent, each
        self.next = next
        self.facts = [p for p in self.bound.every if p.kind in ("always", "quiescent")]
        self.steps = [p for p in self.bound.every if p.kind == "step"]
        self.order = splitting(self.bound)
        self.started = time.monotonic()
        self.answers: dict[tuple[str, str], Answer] = {}

    def run(self) -> Induced:
        """Leave facts out until all that are left are kept."""
        initially = self._initially()
        facts = [fact for fact in self.facts if fact.name not in initially]
        missing: list[Answer] = []
        again, vacuous, cut = True, list[str](), self.cut()
        while again and cut is None:
            self.answers.clear()
            vacuous = self._round(facts)
            missing += [answer for answer in self.answers.values() if answer.answer != "proved"]
            lost = {answer.fact for answer in missing}
            left = [fact for fact in facts if fact.name not in lost]
            again, cut = len(left) < len(facts), self.cut()
            if again and cut is None and self.next is not None:
                self.next(f"again without {', '.join(fact.name for fact in facts if fact.name in lost)}:")
            facts = left
        done = cut is None
        kept = tuple(fact.name for fact in facts) if done else ()
        names = [*(prop.name for prop in self.steps), SPEC_ERROR]
        last = {answer.fact for answer in self.answers.values() if answer.answer != "proved"}
        stepped = tuple(name for name in names if name not in last) if done else ()
        missing = [answer for answer in missing if answer.fact in last or answer.fact not in names]
        answers = tuple(self.answers.values())
        return Induced(kept, stepped, answers, tuple(missing), initially, tuple(vacuous), cut)

    def _initially(self) -> dict[str, State]:
        """The facts that do not hold in an initial state, with the state."""
        found: dict[str, State] = {}
        for _, _, state in self.bound.initial():
            for fact in self.facts:
                if not self.holds(fact, state):
                    found.setdefault(fact.name, state)
        return found

    def holds(self, fact: Property, state: State) -> bool:
        """Whether a fact holds in a state, in the interpreter."""
        if fact.condition is not None and not self.bound.condition_holds(fact, state):
            return True
        return self.bound.holds(fact, state)

    def cut(self) -> str | None:
        """Why no more is asked; None where there is time."""
        if self.limits.cancelled():
            return self.limits.reason("cancelled")
        if self.limits.max_seconds is not None and self.left() <= 0:
            return self.limits.reason("max-time")
        return None

    def left(self) -> float:
        """Seconds until the limit."""
        most = self.limits.max_seconds
        return float("inf") if most is None else most - (time.monotonic() - self.started)

    # ---- one round

    def _round(self, facts: Sequence[Property]) -> list[str]:
        """Ask about every fact and action; returns what is vacuous."""
        vacuous: list[str] = []
        sides = self._sides(facts)
        for rule in self.bound.actions:
            if self.cut() is not None:
                break
            begun = time.monotonic()
            names = [fact.name for fact in (*facts, *self.steps)]
            asked = Asked(self, rule, facts, sides)
            self.answers.update({(name, rule.name): Answer(name, rule.name, "proved") for name in (*names, SPEC_ERROR)})
            asked.decide({}, names)
            asked.decide({}, [SPEC_ERROR], enabled=False)
            if not asked.possible:
                vacuous.append(f"action {rule.name} is never enabled where the facts hold")
            self.tell(rule.name, [self.answers[name, rule.name] for name in (*names, SPEC_ERROR)], time.monotonic() - begun)
        return vacuous + [f"{name}: {place} where the facts hold" for (name, _), place in sides.items()]

    def _sides(self, facts: Sequence[Property]) -> dict[tuple[str, int], str]:
        """The left sides of properties, which are still to be seen to hold."""
        properties = [prop for prop in (*facts, *self.steps) if not prop.declared.declaration.lemma]
        return {(p.name, n): f"{place} never holds" for p in properties for n, place in enumerate(left_side_places(p))}


class Asked:
    """The questions about one action: which facts it keeps. `sides` loses the left sides that hold somewhere."""

    def __init__(self, induction: Induction, rule: Rule, facts: Sequence[Property], sides: dict[tuple[str, int], str]) -> None:
        self.induction, self.rule, self.facts, self.sides = induction, rule, facts, sides
        self.possible = False

    def decide(self, lengths: Lengths, names: Sequence[str], *, enabled: bool = True) -> None:
        """Ask in a case, and where that takes long in its parts; without `enabled`, also where the action is disabled."""
        case = Case(self.induction.bound, self.facts, self.rule, lengths, enabled=enabled)
        if not case.possible:
            return
        if enabled and not self.possible:
            self._confirm_enabled(case)
        where = [name for name in self.induction.order if name not in lengths]
        most = SHORT if where else self.induction.each
        solver = case.solver()
        still = self._undecided(case, solver, names, most)
        if not still:
            return
        if not where or self.induction.cut() is not None:
            for name in still:
                self._note(name, "unknown", 0.0)
            return
        for length in range(capacity(case.bound, where[0]) + 1):
            pending = [name for name in still if self.induction.answers[name, self.rule.name].answer == "proved"]
            self.decide({**lengths, where[0]: length}, pending, enabled=enabled)

    def _undecided(self, case: Case, solver: Any, names: Sequence[str], most: float) -> list[str]:
        """The facts about which it is not decided here whether the action keeps them; after some, the others are not tried."""
        still: list[str] = []
        for number, name in enumerate(names):
            if self.induction.cut() is not None or (len(still) == PATIENCE and most == SHORT):
                return [*still, *names[number:]]
            if not self._decided(case, solver, name, most):
                still.append(name)
        return still

    def _goal(self, case: Case, name: str) -> list[Term]:
        """What is to be shown of a fact: the parts of it that are not known already."""
        if name == SPEC_ERROR:
            parts = [part for obligation in case.outcome.obligations for part in case.split(obligation.condition)]
        else:
            prop = self._property(name)
            after = case.outcome.cells
            parts = case.parts(prop, case.cells, after) if prop.kind == "step" else case.parts(prop, after)
        return [part for part in dict.fromkeys(parts) if part not in case.hypotheses]

    def _property(self, name: str) -> Property:
        return next(p for p in (*self.facts, *self.induction.steps) if p.name == name)

    def _decided(self, case: Case, solver: Any, name: str, most: float) -> bool:
        """Whether it is decided in this case whether the action keeps a fact."""
        begun = time.monotonic()
        goal = self._goal(case, name)
        answer, model = self.query(case, solver, goal, most) if goal else ("unsat", None)
        if answer == "unsat":
            self._note(name, "proved", time.monotonic() - begun)
        elif model is not None:
            self._refuted(case, name, model, goal, solver)
        return answer != "unknown"

    def query(self, case: Case, solver: Any, parts: Sequence[Term], most: float) -> tuple[str, Any]:
        """Whether one of these can be false: unsat, sat with a model, or unknown."""
        solver.push()
        solver.add(case.bits.of(case.some_fails(parts)))
        solver.set("timeout", max(1, int(min(most, self.induction.left()) * 1000)))
        answer = solver.check()
        model = solver.model() if answer == z3.sat else None
        solver.pop()
        return str(answer), model

    def _note(self, name: str, answer: str, seconds: float, unkept: Unkept | None = None) -> None:
        old = self.induction.answers[name, self.rule.name]
        if old.answer == "unkept":
            return
        worse = answer if answer != "proved" else old.answer
        made = Answer(name, self.rule.name, worse, old.seconds + seconds, old.cases + 1, unkept)
        self.induction.answers[name, self.rule.name] = made

    # ---- counterexamples

    def _refuted(self, case: Case, name: str, model: Any, goal: list[Term], solver: Any) -> None:
        """Note a counterexample, as small as it quickly gets, once the interpreter says the same."""
        model = self._smaller(case, solver, goal, model)
        before, arguments = case.concrete(case.cells, model), case.concrete(case.arguments, model)
        self._note(name, "unkept", 0.0, self._confirmed(name, before, arguments))

    def _smaller(self, case: Case, solver: Any, goal: list[Term], model: Any) -> Any:
        """A model of the same with fewer things in sequences, as long as there is one."""
        terms = case.terms
        lengths = [case.cells[at] for name, at, _ in case.bound.shape.fields if name in self.induction.order]
        total, kept = terms.number(0), terms.negation(case.some_fails(goal))
        for length in lengths:
            total = terms.add(total, length)
        while True:
            fewer = terms.less(total, terms.number(sum(case.concrete(lengths, model))))
            _, found = self.query(case, solver, [terms.either(kept, terms.negation(fewer))], SHORT)
            if found is None:
                return model
            model = found

    def _confirm_enabled(self, case: Case) -> None:
        """The action can be taken here; the interpreter must say so, too."""
        solver = case.solver()
        solver.set("timeout", int(self.induction.each * 1000))
        if solver.check() != z3.sat:
            return
        model = solver.model()
        state, arguments = case.concrete(case.cells, model), case.concrete(case.arguments, model)
        with contextlib.suppress(SpecError):
            if case.bound.after(state, self.rule, arguments) is None:
                raise Disagreement(f"the solver takes {self.rule.name}{arguments} where the interpreter does not allow it")
        self.possible = True
        self._see(case, solver)

    def _see(self, case: Case, solver: Any) -> None:
        """Find out which left sides hold in states from which the action can be taken."""
        for name, number in list(self.sides):
            prop = self._property(name)
            sides = case.evaluator.sides(prop, case.cells, case.outcome.cells if prop.kind == "step" else None)
            if prop.condition is not None:
                sides[condition_number(prop)] = case.evaluator.condition(prop, case.cells)[0]
            _, model = self.query(case, solver, [case.terms.negation(sides.get(number, case.terms.no))], self.induction.each)
            if model is not None:
                del self.sides[name, number]

    def _confirmed(self, name: str, before: State, arguments: Arguments) -> Unkept:
        """The counterexample, run in the interpreter."""
        bound = self.induction.bound
        for fact in self.facts:
            if not self.induction.holds(fact, before):
                raise Disagreement(f"the solver's state satisfies {fact.name}, the interpreter says that it does not")
        try:
            after = bound.after(before, self.rule, arguments)
        except SpecError:
            return Unkept(before, self.rule, arguments, None)
        if after is None or name == SPEC_ERROR:
            does = "takes" if after is None else "leaves the bounds of the spec with"
            raise Disagreement(f"the solver {does} {self.rule.name}{arguments}, the interpreter does not allow that")
        try:
            if not self._broken(name, before, after):
                raise Disagreement(f"{self.rule.name}{arguments} breaks {name} for the solver, and not in the interpreter")
        except SpecError:
            return Unkept(before, self.rule, arguments, None)
        return Unkept(before, self.rule, arguments, after)

    def _broken(self, name: str, before: State, after: State) -> bool:
        for prop in self.induction.steps:
            if prop.name == name:
                return not self.induction.bound.holds(prop, before, after)
        return not self.induction.holds(next(fact for fact in self.facts if fact.name == name), after)
