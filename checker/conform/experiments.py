"""Experiments on an implementation of unknown mechanisms: is it, at some bounds, the spec with these choices of switches?

What an experiment showed of the implementation is kept: a path on which it differed from one mix of choices is held against
every other mix before anything is searched.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

from ...spec.lang import Arguments, BoundSpec, Rule, Spec, SpecError, State
from ...traces.driver import Driver, Names, Observation, Refused
from ..explore.findings import OnProgress
from ..explore.native.stepper import lowered
from ..model import Limits, Model
from .differences import differences
from .follow import RESET, Discord, Instance, Walk, run, try_quiet
from .observer import Observer
from .product import Lockstep, conform
from .result import Agreement, Kind, Mismatch

Mix = Mapping[str, int | str]
"""The choice of each switch, by name."""

_Key = tuple[tuple[str, int | str], ...]

SHALLOW = 300
"""Product states up to which the spec is interpreted: most differences show earlier than it is compiled."""


@dataclass(frozen=True)
class Row:
    """Bounds at which an implementation is looked at, without the switches in question; paths of at most `longest` events.

    `tells` are the switches whose choices show soonest here: evidence for them is looked for here first.
    """

    name: str
    bounds: Mapping[str, int | str]
    longest: int | None = None
    tells: tuple[str, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """One mix held against the implementation at one row: where they differ first, or why it was not compared to the end.

    `transitions` that were compared for it; 0 where a path that was driven before settled it. `longest` is where the row ended
    paths that go on; None where it ended none.
    """

    row: Row
    model: Model
    mismatch: Mismatch | None
    cut: str | None
    transitions: int
    longest: int | None = None

    @property
    def agrees(self) -> bool:
        """Whether everything was compared, on paths as long as the row allows, and agrees."""
        return self.mismatch is None and self.cut is None


class Interpreted:
    """The transitions of a spec by its interpreter, every state its own representative: nothing has to be compiled."""

    def __init__(self, bound: BoundSpec) -> None:
        self.bound = bound
        self._same = {name: tuple(range(size)) for name, size in bound.permutable().items()}

    def successors(self, state: State) -> Sequence[tuple[Rule, Arguments, State]]:
        """Every enabled action instance with the state it leads to."""
        return list(self.bound.transitions(state))

    def canonical(self, state: State) -> tuple[State, Mapping[str, Sequence[int]]]:
        """The state itself, under the names it has."""
        return state, self._same


class Recording:
    """A path that an implementation was driven along, and what it showed; it can be driven again as often as wanted.

    Of the hidden state nothing is kept.
    """

    title = "a recording"

    def __init__(self, driver: Driver, row: Row, instances: Sequence[Instance], bound: BoundSpec) -> None:
        self.row, self.quiet = row, driver.quiet
        self.events = [(rule.name, args) for rule, args in instances]
        driver.reset()
        self._shown: list[Observation | BaseException] = [driver.observe()]
        self._errors: list[BaseException | None] = [None]
        for rule, args in instances:
            if isinstance(self._errors[-1], Refused | None):  # one that has stopped takes no more events
                self._let(driver, rule.name, bound.arguments(rule, args))
        self._at = 0

    def _let(self, driver: Driver, action: str, arguments: tuple[Any, ...]) -> None:
        error: BaseException | None = None
        shown: Observation | BaseException
        try:
            driver.take(action, arguments)
        except (MemoryError, KeyboardInterrupt):
            raise
        except BaseException as raised:
            error = raised
        try:
            shown = driver.observe()
        except (MemoryError, KeyboardInterrupt):
            raise
        except BaseException as raised:
            shown = raised
        self._shown.append(shown)
        self._errors.append(error)

    def reset(self) -> None:
        """Back to the beginning."""
        self._at = 0

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        """The next event, as it was; that it is asked for in order is the caller's business."""
        self._at += 1
        error = self._errors[self._at]
        if error is not None:
            raise error

    def observe(self) -> Observation:
        """What was shown then."""
        shown = self._shown[self._at]
        if isinstance(shown, BaseException):
            raise shown
        return shown

    def digest(self, names: Names | None = None) -> tuple[()]:
        """Nothing is kept of it."""
        return ()


def against(recording: Recording, model: Model, observer: Observer) -> Mismatch | None:
    """Where a recording first shows something else than a spec expects; None where nothing in it contradicts the spec.

    An event that the spec does not allow, and that is not safe to try there, says nothing: what follows is not looked at.
    """
    bound = model.bound
    rules = {rule.name: rule for rule in bound.actions}
    state = bound.initial()[0][2]
    walk = Walk(recording)
    found = differences(observer.expected(state), recording.observe())
    if found:
        return Mismatch(Kind.OBSERVATION, run(bound, ()), RESET, found)
    path: list[Instance] = []
    for name, args in recording.events:
        rule = rules.get(name)
        after = None if rule is None else bound.after(state, rule, args)
        if rule is None or (after is None and name not in recording.quiet):
            return None
        if after is None:
            discord = _idle(walk, rule, bound.arguments(rule, args), observer.expected(state))
        else:
            discord = walk.take(name, bound.arguments(rule, args), observer.expected(after))
            state = after
            path.append((rule, args))
        if discord is not None:
            return Mismatch(discord.kind, run(bound, path), (name, args), discord.differences, discord.message)
    return None


def _idle(walk: Walk, rule: Rule, arguments: tuple[Any, ...], expected: Observation) -> Discord | None:
    """An event that the spec has disabled; of an implementation that has stopped nothing more is asked."""
    return None if walk.last is not None else try_quiet(walk.driver, rule.name, arguments, expected)


class Experiments:
    """Compares mixes with an implementation, row by row; `make` makes its driver from values of bounds and switches.

    `limits` are those of one experiment, but for the seconds, which are those of all of them together.
    """

    def __init__(
        self,
        spec: Spec,
        rows: Sequence[Row],
        make: Callable[[Mapping[str, int | str]], Driver],
        limits: Limits,
        progress: OnProgress | None = None,
        workers: int = 1,
    ) -> None:
        self.spec, self.rows, self.limits = spec, tuple(rows), limits
        self.progress, self.workers = progress, workers
        self.recordings: list[Recording] = []
        self._differed: list[_Key] = []
        self.transitions = 0
        self._drivers = {row.name: make(spec.values(row.bounds)) for row in rows}
        self._known: dict[tuple[str, str], Experiment] = {}
        self._started = time.monotonic()
        self._bound = lru_cache(maxsize=256)(self._bind)
        self._steps = lru_cache(maxsize=256)(self._lowered)
        self._said = cache(self._contradiction)

    def model(self, mix: Mix, row: Row) -> Model:
        """The spec with these choices at these bounds."""
        return self._bound(_key(mix), row.name)[0]

    def steps(self, mix: Mix, row: Row) -> str:
        """What stands for the transitions of a mix at a row: where two are equal, the mixes cannot be told apart there."""
        return self._steps(_key(mix), row.name)

    def recorded(self, mix: Mix, row: Row | None = None) -> Experiment | None:
        """The first recording (at a row, or at any) that contradicts a mix."""
        for number, recording in enumerate(self.recordings):
            if row is None or recording.row == row:
                found = self._said(number, _key(mix))
                if found is not None:
                    return Experiment(recording.row, self.model(mix, recording.row), found, None, 0)
        return None

    def agreeing(self, mix: Mix) -> int:
        """The number of recordings that do not contradict a mix."""
        return sum(self._said(number, _key(mix)) is None for number in range(len(self.recordings)))

    def agrees_until(self, mix: Mix) -> float:
        """The number of the event at which a recording contradicts a mix soonest; infinite where none does."""
        return min((self._place(number, _key(mix)) for number in range(len(self.recordings))), default=math.inf)

    def concerned(self, switches: Mapping[str, Sequence[int | str]]) -> list[str]:
        """The switches of which another choice goes further along a recording than the mix that differed there."""
        return [name for name, choices in switches.items() if any(self._goes_further(name, choice) for choice in choices)]

    def compare(self, mix: Mix, row: Row, *, shortest: bool = False) -> Experiment:
        """Hold a mix against the implementation at a row; where it is `shortest`, no shorter path shows a difference."""
        if not shortest and (told := self.recorded(mix, row)) is not None:
            return told
        model = self.model(mix, row)
        key = row.name, self.steps(mix, row)
        if key not in self._known:
            agreement = self._search(model, row)
            self.transitions += agreement.figures.transitions
            ended = agreement.cut == Limits(max_depth=row.longest).reason("max-depth")
            cut = None if ended or agreement.cut is None else self.over or agreement.cut
            longest = row.longest if ended else None
            self._known[key] = Experiment(row, model, agreement.mismatch, cut, agreement.figures.transitions, longest)
            if agreement.mismatch is not None:
                self._differed.append(_key(mix))
                self._record(self._known[key])
        return replace(self._known[key], model=model)

    @property
    def over(self) -> str | None:
        """Why no more experiments can be made: the time is up, or somebody wants to stop."""
        if self.limits.cancelled():
            return self.limits.reason("cancelled")
        return self.limits.reason("max-time") if self._late() else None

    def _bind(self, mix: _Key, row: str) -> tuple[Model, Observer]:
        at = next(one for one in self.rows if one.name == row)
        model = Model.of(self.spec, {**at.bounds, **dict(mix)})
        return model, Observer(model.bound)

    def _lowered(self, mix: _Key, row: str) -> str:
        return lowered(self._bound(mix, row)[0].bound)

    def _goes_further(self, switch: str, choice: int | str) -> bool:
        flipped = ((number, key, _key({**dict(key), switch: choice})) for number, key in enumerate(self._differed))
        return any(self._place(number, other) > self._place(number, key) for number, key, other in flipped)

    def _place(self, number: int, mix: _Key) -> float:
        """The number of the event at which a recording contradicts a mix; infinite where it does not."""
        found = self._said(number, mix)
        return math.inf if found is None else len(found.trace) + (found.kind is Kind.NOT_QUIET)

    def _contradiction(self, number: int, mix: _Key) -> Mismatch | None:
        """Where a recording contradicts a mix; None where it does not."""
        recording = self.recordings[number]
        try:
            return against(recording, *self._bound(mix, recording.row.name))
        except SpecError:  # it leaves its own bounds: a search will say so
            return None

    def _search(self, model: Model, row: Row) -> Agreement:
        driver = self._drivers[row.name]
        limits = replace(
            self.limits,
            max_depth=row.longest,
            max_seconds=None,
            cancelled=lambda: self.over is not None,
        )
        few = replace(limits, max_states=min(SHALLOW, limits.max_states or SHALLOW))
        found = Lockstep(model, driver, few, Interpreted(model.bound)).run()
        if found.cut != few.reason("max-states") or few.max_states == limits.max_states:
            return found
        return conform(model, driver, limits, self.progress, workers=self.workers)

    def _late(self) -> bool:
        limit = self.limits.max_seconds
        return limit is not None and time.monotonic() - self._started > limit

    def _record(self, experiment: Experiment) -> None:
        """Drive the implementation along the path to a difference again, and keep what it shows."""
        found = experiment.mismatch
        assert found is not None
        bound = experiment.model.bound
        rules = {rule.name: rule for rule in bound.actions}
        path = [(step.action, step.arguments) for step in found.trace.steps]
        if found.kind is Kind.NOT_QUIET:
            path.append(found.event)
        instances = [(rules[name], args) for name, args in path]
        self.recordings.append(Recording(self._drivers[experiment.row.name], experiment.row, instances, bound))


def _key(mix: Mix) -> _Key:
    return tuple(sorted(mix.items()))
