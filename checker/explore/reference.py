"""The reference engine: breadth-first search over exact states with the spec's own functions, run as Python.

It is the documentation of every other engine. Level by level: check each state, then expand each state. A level in which a
state fails is the last one; a level out of which a transition fails is followed by one that is only checked.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...spec.lang import Arguments, Rule, SpecError, State
from ..model import DEADLOCK, SPEC_ERROR, Model, Options
from .findings import Failure, Findings, OnProgress, Progress
from .memory import peak_memory, resident_memory
from .walk import failing_step
from .watch import Watch

if TYPE_CHECKING:
    from ...spec.lang.symmetry import Symmetry


class ReferenceEngine:
    """Searches a model; see the module."""

    def __init__(self, model: Model) -> None:
        self.bound = model.bound
        self.levels: list[list[State]] = []
        self.marked: dict[int, set[State]] = {}

    def run(self, options: Options, on_progress: OnProgress | None = None) -> Findings:
        """Search all levels, or until something fails or a limit is reached."""
        self.options, self.on_progress = options, on_progress
        self.symmetry = self._symmetry(options)
        self.found = Findings("reference", self.symmetry is not None, start_bytes=resident_memory())
        self.found.enabled, self.found.taken = ([0] * len(self.bound.actions) for _ in range(2))
        self.watch = Watch(self.bound, self.found.covered)
        self.started = self.last_note = time.monotonic()
        self.seen: set[State] = set()
        level = self._fresh(state for _, _, state in self.bound.initial())
        while level and not self.found.cut:
            self.levels.append(level)
            self._check(level)
            if self._stops() or self._cut(expanding=False):
                break
            level = self._expand(level)
        self.found.distinct = sum(map(len, self.levels))
        self.found.per_depth = [len(level) for level in self.levels]
        self.found.depth = max(0, len(self.levels) - 1)
        self.found.seconds["search"] = time.monotonic() - self.started
        self.found.peak_bytes = peak_memory()
        return self.found

    def _symmetry(self, options: Options) -> Symmetry | None:
        permutable = self.bound.permutable() if options.symmetry else {}
        if not permutable:
            return None
        from ...spec.lang.symmetry import Symmetry

        return Symmetry(self.bound.shape, permutable)

    def canonical(self, state: State) -> State:
        """The state that stands for all relabellings of this one."""
        return state if self.symmetry is None else self.symmetry.canonical(state)

    def _fresh(self, states: Iterator[State]) -> list[State]:
        """Those of the states, in canonical form, that were not seen before; they are now."""
        new: list[State] = []
        for state in map(self.canonical, states):
            if state not in self.seen:
                self.seen.add(state)
                new.append(state)
        return new

    def _check(self, level: list[State]) -> None:
        depth = len(self.levels) - 1
        for state in level:
            try:
                failed, reached = self.watch.check(state)
            except SpecError:
                failed, reached = [SPEC_ERROR], []
            for name in failed:
                self.found.failures.setdefault(name, Failure(depth, on_step=False))
            for name in reached:
                self.found.reached.setdefault(name, depth)

    def _expand(self, level: list[State]) -> list[State]:
        depth = len(self.levels) - 1
        found = self.found
        before = (found.generated, found.enabled[:], found.taken[:], found.degrees, found.expanded, found.deadlocks)
        failures = dict(found.failures)
        new: list[State] = []
        for state in level:
            new += self._fresh(after for _, _, after in self._transitions(state, depth))
            self._tell(len(level), len(new))
            if self.found.cut or self._cut(expanding=True):
                self.levels.append(new)
                return new
        if DEADLOCK in self.found.failures and self._stops():
            found = self.found
            found.generated, found.enabled, found.taken, found.degrees, found.expanded, found.deadlocks = before
            found.failures = {**failures, DEADLOCK: found.failures[DEADLOCK]}
            found.deadlocks = 1
            return []
        return new

    def _transitions(self, state: State, depth: int) -> Iterator[tuple[Rule, Arguments, State]]:
        """Every transition out of a state, counted, with its step properties checked."""
        found, degree, erred = self.found, 0, False
        for rule in self.bound.actions:
            taken = 0
            for args in rule.choices():
                try:
                    after = self.bound.after(state, rule, args)
                    if after is None:
                        continue
                    failed = self.watch.check_step(state, after)
                except SpecError:
                    erred = True
                    found.failures.setdefault(SPEC_ERROR, Failure(depth + 1, on_step=True))
                    continue
                for name in failed:
                    found.failures.setdefault(name, Failure(depth + 1, on_step=True))
                taken += 1
                yield rule, args, after
            found.enabled[rule.number] += taken > 0
            found.taken[rule.number] += taken
            degree += taken
        found.generated += degree
        found.degrees = (min(found.degrees[0], degree) if found.expanded else degree, max(found.degrees[1], degree))
        found.expanded += 1
        if degree == 0 and not erred:
            found.deadlocks += 1
            if self.options.deadlock:
                found.failures.setdefault(DEADLOCK, Failure(depth, on_step=False))

    def _stops(self) -> bool:
        return bool(self.found.failures) and not self.options.keep_going

    def _cut(self, *, expanding: bool) -> bool:
        limits, depth = self.options.limits, len(self.levels) - 1
        seconds = time.monotonic() - self.started
        reached = None
        if limits.cancelled():
            reached = "cancelled"
        elif limits.max_states is not None and len(self.seen) > limits.max_states:
            reached = "max-states"
        elif limits.max_seconds is not None and seconds > limits.max_seconds:
            reached = "max-time"
        elif limits.max_bytes is not None and self._memory_over(limits.max_bytes, expanding):
            reached = "max-memory"
        elif not expanding and limits.max_depth is not None and depth >= limits.max_depth:
            reached = "max-depth"
        if reached is not None:
            self.found.cut = limits.reason(reached)
        return reached is not None

    def _memory_over(self, limit: int, expanding: bool) -> bool:
        """Whether the process is larger than the limit; looked at for each level, and now and then within one."""
        return (not expanding or len(self.seen) & 1023 == 0) and resident_memory() > limit

    def _tell(self, queue: int, new: int) -> None:
        now = time.monotonic()
        if self.on_progress is not None and now - self.last_note >= 1:
            self.last_note = now
            rate = len(self.seen) / (now - self.started)
            self.on_progress(
                Progress(len(self.levels) - 1, len(self.seen), self.found.generated, queue + new, rate, resident_memory())
            )

    def mark(self, name: str, failure: Failure) -> None:
        """Go backwards from the failing states, keeping those with a kept successor."""
        last = failure.length - failure.on_step
        kept = {state for state in self.levels[last] if self._fails(state, name, failure)}
        self.marked = {last: kept}
        for depth in range(last - 1, -1, -1):
            kept = {s for s in self.levels[depth] if any(a in kept for a in self._successors(s))}
            self.marked[depth] = kept

    def is_marked(self, state: State, level: int) -> bool:
        """Whether a concrete state at this distance lies on a shortest trace to what was marked."""
        return self.canonical(state) in self.marked[level]

    def _successors(self, state: State) -> Iterator[State]:
        for rule in self.bound.actions:
            for args in rule.choices():
                try:
                    after = self.bound.after(state, rule, args)
                except SpecError:
                    continue
                if after is not None:
                    yield self.canonical(after)

    def _fails(self, state: State, name: str, failure: Failure) -> bool:
        if failure.on_step:
            return failing_step(self.bound, state, name) is not None
        if name == DEADLOCK:
            return next(self._successors(state), None) is None
        try:
            failed, reached = self.watch.check(state)
        except SpecError:
            return name == SPEC_ERROR
        return name in failed or name in reached
