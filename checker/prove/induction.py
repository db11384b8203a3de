"""Proof by induction: facts that hold initially, and that no action breaks where all of them hold, hold for ever.

Nothing but the facts is known of the state before an action. Where a query takes long, its states are split by the lengths of
their sequences and the parts are asked about one by one. Facts that are not kept are left out, and the others proved without.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ...spec.lang import Property, Rule, SpecError, State
from ...spec.lang.bind import LoopInvariant
from ..explore.memory import resident_memory
from ..explore.watch import left_side_places
from ..model import SPEC_ERROR, Limits, Model
from .alarms import alarms_of
from .apart import Ended, in_order
from .asked import Answer, Asked, Question, Reply
from .case import Piece, splitting
from .deciders import BySat, Making
from .derived import derived
from .longer import Longer
from .reached import Near, Side, near_start
from .segment import heads_of, reached_by
from .tracked import tracked_bounds, tracked_by

WHOLE_CELLS = 120
"""Up to so many cells of a state an action is looked at whole, and the invariants of its loops are not needed."""
ENDED = "a process was ended from outside, perhaps for lack of memory (fewer --workers need less)"


@dataclass(frozen=True)
class Induced:
    """What came out of the rounds.

    `kept` are the facts that hold initially and are kept together by all actions, `stepped` the step properties (and that the
    spec keeps its bounds) that hold of every transition between states in which the facts hold. `answers` are those of the
    last round, `missing` those of any round that were not `proved`; `initially` names a state for each fact that does not hold
    at the start. `vacuous` says what holds or happens nowhere, `cut` why it stopped. `longer` are those kept facts that one
    transition may break and paths of so many transitions keep.
    """

    kept: tuple[str, ...]
    stepped: tuple[str, ...]
    answers: tuple[Answer, ...]
    missing: tuple[Answer, ...]
    initially: dict[str, State]
    vacuous: tuple[str, ...]
    longer: dict[str, int]
    cut: str | None = None


Tell = Callable[[str, Sequence[Answer], float], None]
"""Told of an action: its name, its answers, the seconds that it took."""


def _silent(name: str, answers: Sequence[Answer], seconds: float) -> None:
    pass


class Induction:
    """Proves the lemmas and properties of a model.

    `each` is the most seconds for a query that cannot be split; several `workers` answer questions at the same time. Questions
    about actions are put to a `decider`. What a search saw `near` the initial states need not be shown again, and what it found
    violated is no fact.
    """

    def __init__(
        self,
        model: Model,
        limits: Limits,
        tell: Tell | None = None,
        *,
        each: float = 60.0,
        next: Callable[[str], None] | None = None,
        workers: int = 1,
        decider: Making = BySat,
        near: Near | None = None,
    ) -> None:
        self.near = near
        self.model, self.bound = model, model.bound
        self.limits, self.tell, self.each = limits, tell or _silent, each
        self.next, self.workers, self.decider = next, workers, decider
        self.facts = [p for p in self.bound.every if p.kind in ("always", "quiescent")]
        self.steps = [p for p in self.bound.every if p.kind == "step"]
        self.order = splitting(self.bound)
        self.large = self.bound.shape.size > WHOLE_CELLS
        self.tracked = tracked_bounds(self.bound, (*self.facts, *self.steps)) if self.large else []
        self.started = time.monotonic()
        self.answers: dict[tuple[str, str], Answer] = {}
        self.longer: dict[str, int] = {}
        self.stopped: str | None = None
        self.taken, self.seen = set[str](), set[Side]()

    def run(self) -> Induced:
        """Leave facts out until all that are left are kept, and see whether longer paths keep others, as long as that helps."""
        initially = self._initially()
        if self.large:
            found = self.near or near_start(self.model, self.limits, self.left())
            self.taken, self.seen = {*found.taken}, {*found.seen}
        violated = () if self.near is None else [p.name for p in self.near.violations]
        wanted = [fact for fact in self.facts if fact.name not in initially and fact.name not in violated]
        while True:
            facts, missing, vacuous = self._together(wanted)
            lost = [fact for fact in wanted if fact not in facts and self._refuted(fact, missing)]
            if not lost or self.cut() is not None:
                break
            if self.next is not None:
                self.next(f"longer paths, for {', '.join(fact.name for fact in lost)}")
            k, found = Longer(self.model, self.limits, facts, lost, min(self.each, self.left())).closed()
            if not found:
                break
            self.longer |= {fact.name: k for fact in found}
        cut = self.cut()
        kept = tuple(fact.name for fact in facts) if cut is None else ()
        names = [*(prop.name for prop in self.steps), SPEC_ERROR]
        last = {answer.fact for answer in self.answers.values() if answer.answer != "proved"}
        stepped = tuple(name for name in names if name not in last) if cut is None else ()
        missing = [answer for answer in missing if answer.fact in last or answer.fact not in names]
        answers = tuple(self.answers.values())
        return Induced(kept, stepped, answers, tuple(missing), initially, tuple(vacuous), dict(self.longer), cut)

    def _refuted(self, fact: Property, missing: Sequence[Answer]) -> bool:
        return any(answer.fact == fact.name and answer.answer == "unkept" for answer in missing)

    def _together(self, facts: Sequence[Property]) -> tuple[list[Property], list[Answer], list[str]]:
        """The most facts that keep one another, the answers that are missing of others, and what is vacuous."""
        facts, loops = list(facts), self.bound.loops
        missing: list[Answer] = []
        again, vacuous = True, list[str]()
        while again and self.cut() is None:
            self.answers.clear()
            vacuous = self._round(facts, loops)
            missing += [answer for answer in self.answers.values() if answer.answer != "proved"]
            lost = {answer.fact for answer in missing}
            left = [fact for fact in facts if fact.name not in lost]
            inside = tuple(loop for loop in loops if loop.name not in lost)
            again = (len(left), len(inside)) < (len(facts), len(loops))
            if again and self.cut() is None and self.next is not None:
                self.next(f"again without {', '.join(one.name for one in (*facts, *loops) if one.name in lost)}:")
            facts, loops = left, inside
        return facts, missing, vacuous

    def _initially(self) -> dict[str, State]:
        """The facts that do not hold in an initial state, with the state."""
        found: dict[str, State] = {}
        for _, _, state in self.bound.initial():
            for fact in self.facts:
                holds = False
                with suppress(SpecError):  # one that cannot be told does not hold
                    holds = self.holds(fact, state)
                if not holds:
                    found.setdefault(fact.name, state)
        return found

    def holds(self, fact: Property, state: State) -> bool:
        """Whether a fact holds in a state, in the interpreter."""
        if fact.condition is not None and not self.bound.condition_holds(fact, state):
            return True
        return self.bound.holds(fact, state)

    def cut(self) -> str | None:
        """Why no more is asked; None where there is time and memory."""
        most = self.limits.max_bytes
        if self.stopped is not None:
            return self.stopped
        if self.limits.cancelled():
            return self.limits.reason("cancelled")
        if most is not None and resident_memory() > most:
            return self.limits.reason("max-memory")
        if self.limits.max_seconds is not None and self.left() <= 0:
            return self.limits.reason("max-time")
        return None

    def left(self) -> float:
        """Seconds until the limit."""
        most = self.limits.max_seconds
        return float("inf") if most is None else most - (time.monotonic() - self.started)

    # ---- one round

    def _round(self, facts: Sequence[Property], loops: Sequence[LoopInvariant]) -> list[str]:
        """Ask about every fact and action; returns what is vacuous."""
        sides, vacuous = self._sides(facts), list[str]()
        followed = self._derived(facts)
        asked = {rule.name: self._questions(rule, facts, loops, followed) for rule in self.bound.actions}
        questions = [question for some in asked.values() for question in some]

        def reply(number: int) -> Reply:
            question = questions[number]
            known = facts if question.piece.start is None else [fact for fact in facts if fact.name not in self.longer]
            return Asked(self, known, question, list(sides)).reply()

        replies = in_order(len(questions), reply, self.workers)
        for name, some in asked.items():
            if self.cut() is not None:
                break
            try:
                told = [next(replies) for _ in some]
            except Ended:
                self.stopped = ENDED
                break
            self.stopped = next((reply.cut for reply in told if reply.cut is not None), None)
            vacuous += self._told(name, some, told, sides, followed)
        return vacuous + [f"{name}: {place} where the facts hold" for (name, _), place in sides.items()]

    def _derived(self, facts: Sequence[Property]) -> set[str]:
        """The facts that follow from the others, of those that are about no arbitrary member; in large states only.

        That an alarm is not raised is shown by itself, as the other facts rest on it within an action.
        """
        if not self.tracked or self.longer or self.cut() is not None:
            return set()
        index = self.tracked[0].index
        candidates = [f for f in facts if tracked_by(self.bound, f, index) == 0 and not alarms_of(self.bound, [f])]
        return derived(self.bound, facts, candidates, self.left)

    def _questions(
        self, rule: Rule, facts: Sequence[Property], loops: Sequence[LoopInvariant], derived: Collection[str] = ()
    ) -> list[Question]:
        """What is to be asked about an action: whole or, where its loops have invariants and states are large, in pieces."""
        kept = tuple(fact.name for fact in facts if fact.name not in self.longer and fact.name not in derived)
        steps = tuple(prop.name for prop in self.steps)
        if not rule.count:  # an index has no members
            return []
        here = tuple(loop for loop in reached_by(self.bound, rule) if loop in loops)
        if not here or not self.large:
            return [Question(rule, (*kept, *steps, SPEC_ERROR))]
        since = tuple(loop.name for loop in here if loop.declared.states == 2)
        now = tuple(loop.name for loop in here if loop.declared.states == 1)
        starts = (None, *heads_of(self.bound, rule, here))
        found = [Question(rule, (*kept, *now, SPEC_ERROR), Piece(here, start)) for start in starts]
        if not since:
            return [*found, Question(rule, steps)] if steps else found
        return [*found, *(Question(rule, (*since, *steps), Piece(here, start, wide=True)) for start in starts)]

    def _told(
        self,
        action: str,
        questions: Sequence[Question],
        replies: Sequence[Reply],
        sides: dict[Side, str],
        derived: Collection[str],
    ) -> list[str]:
        """Note and tell what came of the questions about an action; returns what is vacuous.

        What follows from the other facts is kept as long as they all are; else another round is made without those lost.
        """
        answers = {name: Answer(name, action, "proved") for name in derived}
        for reply in replies:
            for name, answer in reply.answers.items():
                answers[name] = answer if name not in answers else answers[name].along(answer)
            for side in reply.seen:
                sides.pop(side, None)
        self.answers.update({(name, action): answer for name, answer in answers.items()})
        self.tell(action, list(answers.values()), sum(reply.seconds for reply in replies))
        never = [question.piece.start for question, reply in zip(questions, replies, strict=True) if reply.never]
        vacuous = [f"{head} is never come to where the facts hold" for head in dict.fromkeys(never) if head is not None]
        if not any(reply.possible for reply in replies):
            vacuous.append(f"action {action} is never enabled where the facts hold")
        return vacuous

    def _sides(self, facts: Sequence[Property]) -> dict[Side, str]:
        """The left sides of properties, which are still to be seen to hold."""
        properties = [prop for prop in (*facts, *self.steps) if not prop.declared.declaration.lemma]
        sides = {(p.name, n): f"{place} never holds" for p in properties for n, place in enumerate(left_side_places(p))}
        return {side: words for side, words in sides.items() if side not in self.seen}
