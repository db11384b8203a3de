"""Lockstep beyond what can be explored: long random runs at real sizes, the same ones for the same seed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ...spec.lang import Arguments, Rule, State
from ...traces.driver import Driver, Observation
from ..explore.findings import OnProgress, Progress
from ..explore.memory import resident_memory
from ..explore.native.stepper import Stepper
from ..model import Limits, Model
from .differences import differences
from .draw import After, Dice, Drawer
from .errors import ConformError
from .follow import RESET, Discord, Instance, Walk, confirm, try_quiet
from .follow import run as interpreted
from .observer import Observer
from .result import Agreement, Figures, Kind, Mismatch, Sampled
from .shrink import Failing, shrink

QUIET = 1 / 16
"""How often, after an event, one is tried that may be disabled and that the driver calls quiet."""
NOTE_SECONDS = 1.0
"""Between two reports of progress."""

OnEvent = Callable[[int, Rule, Arguments, Observation], None]
"""Is told the number of the run, from 1, each event that was taken on both sides, and what is shown after it."""


@dataclass(frozen=True)
class RandomOptions:
    """What is drawn: so many `transitions` in all, in runs of at most `length` of them, everything from the `seed`.

    A run that finds a difference is then shortened, for at most `shrink_seconds`.
    """

    transitions: int = 100_000
    seed: int = 0
    length: int = 2_000
    shrink_seconds: float = 60.0


def run(
    model: Model,
    driver: Driver,
    wanted: RandomOptions,
    limits: Limits,
    progress: OnProgress | None = None,
    on_event: OnEvent | None = None,
    after: After | None = None,
) -> Agreement:
    """Hold an implementation against a spec in random runs; `limits` are those of time and of the caller's cancelling.

    `after` takes the spec's steps (by default compiled). `ConformError` where the two do not fit each other, `SpecError`
    where the spec leaves its own bounds, `DriverUnstable` where a difference is not there when its run is repeated.
    """
    after = after or Stepper(model.bound, symmetry=False).after
    return _Runs(model, driver, wanted, limits, after, progress, on_event).compare()


class _Differs(Exception):
    """A difference: the event after which it shows (None: none was taken), and what it is."""

    def __init__(self, event: Instance | None, discord: Discord) -> None:
        super().__init__(discord.kind.value)
        self.event, self.discord = event, discord


class _Cut(Exception):
    """Why the runs end before everything wanted was compared."""


class _Runs:
    """One comparison; see the module."""

    def __init__(
        self,
        model: Model,
        driver: Driver,
        wanted: RandomOptions,
        limits: Limits,
        after: After,
        progress: OnProgress | None,
        on_event: OnEvent | None,
    ) -> None:
        self.model, self.bound, self.driver, self.wanted, self.limits = model, model.bound, driver, wanted, limits
        self.after, self.progress, self.on_event = after, progress, on_event
        self.observer = Observer(model.bound)
        starts = model.bound.initial()
        if len(starts) != 1:
            raise ConformError(f"{model.spec.name} has {len(starts)} initial states; an implementation starts in one")
        self.initial = starts[0][2]
        self.quiet = [rule for rule in model.bound.actions if rule.name in driver.quiet and rule.count]
        self.taken = {rule.name: 0 for rule in model.bound.actions}
        self.states: set[int] = set()
        self.path: list[Instance] = []
        self.compared = self.runs = self.ended = self.refusals = self.depth = 0
        self.started = self.noted = time.monotonic()

    def compare(self) -> Agreement:
        """Run again and again from the start, until enough was compared or something differs."""
        cut = found = None
        try:
            while self.compared < self.wanted.transitions:
                self._run()
        except _Cut as reason:
            cut = str(reason)
        except _Differs as differs:
            found = differs
        figures = self._figures()
        mismatch, events, shrinking = None, None, None
        if found is not None:
            events = len(self.path) + (found.event is not None)
            mismatch, shrinking = self._mismatch(found)
        unused = () if mismatch else tuple(f"action {name} is never taken" for name, times in self.taken.items() if not times)
        sampled = Sampled(self.wanted.seed, self.runs, self.ended, events, shrinking)
        return Agreement(self.driver.title, figures, mismatch, None, cut, unused, sampled)

    def _run(self) -> None:
        """One run from the initial state."""
        dice = Dice(self.wanted.seed * 2**32 + self.runs)
        drawer = Drawer(self.bound, self.after, dice)
        self.runs += 1
        self.path = []
        state = self.initial
        walk = Walk(self.driver)
        self._compare_start()
        while len(self.path) < self.wanted.length and self.compared < self.wanted.transitions:
            self._pause()
            drawn = drawer.draw(state)
            if drawn is None:
                self.ended += 1
                break
            self._take(walk, *drawn)
            state = drawn[2]
            if self.quiet and dice.chance(QUIET) and walk.last is None:
                self._try_quiet(state, *drawer.any_of(self.quiet))
        if not self.path:
            raise _Cut("no event was found enabled in the initial state")

    def _compare_start(self) -> None:
        self.states.add(hash(self.initial))
        found = differences(self.observer.expected(self.initial), self.driver.observe())
        if found:
            raise _Differs(None, Discord(Kind.OBSERVATION, found))

    def _take(self, walk: Walk, rule: Rule, args: Arguments, after: State) -> None:
        """Take an event on both sides."""
        discord = walk.take(rule.name, self.bound.arguments(rule, args), self.observer.expected(after))
        self.compared += 1
        self.taken[rule.name] += 1
        if discord is not None:
            if discord.kind is Kind.OBSERVATION and self.on_event is not None:
                self.on_event(self.runs, rule, args, self.driver.observe())
            raise _Differs((rule, args), discord)
        self.states.add(hash(after))
        self.path.append((rule, args))
        self.depth = max(self.depth, len(self.path))
        if self.on_event is not None:
            self.on_event(self.runs, rule, args, self.driver.observe())

    def _try_quiet(self, state: State, rule: Rule, args: Arguments) -> None:
        if self.after(state, rule, args) is None:
            self.refusals += 1
            discord = try_quiet(self.driver, rule.name, self.bound.arguments(rule, args), self.observer.expected(state))
            if discord is not None:
                raise _Differs((rule, args), discord)

    def _mismatch(self, differs: _Differs) -> tuple[Mismatch, str | None]:
        """The difference after a run made shorter, and why it could not be made as short as might be."""
        found = differs.discord
        if differs.event is None:
            return Mismatch(found.kind, interpreted(self.bound, ()), RESET, found.differences, found.message), None
        failing = Failing(tuple(self.path), differs.event, found)
        short, note = shrink(self.model, self.driver, self.after, failing, self.wanted.shrink_seconds, self.limits.cancelled)
        return confirm(self.driver, self.observer, self.bound, short.path, short.event, short.found), note

    def _pause(self) -> None:
        """Look at the limits, and report progress now and then."""
        now = time.monotonic()
        if self.limits.cancelled():
            raise _Cut(self.limits.reason("cancelled"))
        if self.limits.max_seconds is not None and now - self.started >= self.limits.max_seconds:
            raise _Cut(self.limits.reason("max-time"))
        if self.progress is not None and now - self.noted >= NOTE_SECONDS:
            self.noted = now
            left = self.wanted.transitions - self.compared
            rate = self.compared / (now - self.started)
            note = f"run {self.runs}, seed {self.wanted.seed}"
            self.progress(Progress(len(self.path), len(self.states), self.compared, left, rate, resident_memory(), note))

    def _figures(self) -> Figures:
        """What was compared; states of the implementation are not told apart here."""
        seconds = time.monotonic() - self.started
        states = len(self.states)
        return Figures(states, states, self.compared, dict(self.taken), self.refusals, self.depth, seconds)
