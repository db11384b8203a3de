"""Log validation: which states a spec may be in after each line of a log, and the first line that no state explains.

The set of possible states is tracked whole: a line keeps the successors by its event that show what was observed.
Events that happen without a line are any number of steps by the actions that are said to be unlogged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from math import inf
from typing import Any, NamedTuple

from ...spec.lang import Arguments, BoundsError, BoundSpec, Rule, SetOf, SpecError, State
from ...spec.lang.bind import MAX_INSTANCES
from ...traces.trace import Step, Trace
from ..explore.memory import resident_memory
from ..explore.native.stepper import Stepper
from ..model import Limits
from ..result import Verdict
from .log import Entry, Event, Gap, Log, Start, how_many
from .result import Difference

EVERY = 1024
"""Steps between two looks at the limits."""
WORTH_COMPILING = 3.0
"""Seconds after which the spec is compiled, which takes about as long."""


@dataclass(frozen=True)
class Unexplained:
    """The first line that no possible state explains, and what the spec allows there.

    `states` were possible before it, as known since line `since` (0: from the start); `allowed` are the events that some
    of them allow, in words. Where `candidates` is not 0, that many states follow from the event, and none shows what was
    observed; `differences` are those of the nearest one.
    """

    line: int
    event: str
    since: int
    states: int
    allowed: tuple[str, ...]
    candidates: int = 0
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class Validation:
    """What came out of a log: HOLDS means that the spec allows all of its events, in this order.

    `events` were checked and allowed, up to line `line`; `states` are possible after them, `most` were after any line.
    `cut` says why nothing is known of what follows, `unchecked` how many events do (None: the rest was not read). `trace`
    is one path of the spec that explains the events, where it was asked for.
    """

    events: int
    line: int
    states: int
    most: int
    unexplained: Unexplained | None = None
    cut: str | None = None
    unchecked: int | None = 0
    trace: Trace | None = None

    @property
    def verdict(self) -> Verdict:
        """HOLDS, VIOLATED or UNDETERMINED; a log without an event says nothing."""
        if self.unexplained is not None:
            return Verdict.VIOLATED
        return Verdict.HOLDS if self.cut is None and self.events else Verdict.UNDETERMINED

    @property
    def reason(self) -> str | None:
        """Why it is undetermined."""
        return self.cut if self.events or self.cut else "the log has no event"


def validate(log: Log, unlogged: Iterable[Rule] = (), limits: Limits | None = None, *, trace: bool = False) -> Validation:
    """Check a log; `LogError` where it cannot be understood, `SpecError` where the spec leaves its own bounds."""
    return _Run(log, tuple(unlogged), limits or Limits(), keep=trace).result()


class _Path(NamedTuple):
    """How a state was reached: kept only where a trace is wanted, and shared between states."""

    before: _Path | None
    name: str | None
    arguments: Arguments
    state: State


_Possible = dict[State, _Path | None]


class _Cut(Exception):
    """A limit was reached."""


class _Run:
    def __init__(self, log: Log, unlogged: tuple[Rule, ...], limits: Limits, *, keep: bool) -> None:
        self.log, self.bound, self.limits, self.keep = log, log.bound, limits, keep
        self.vocabulary = log.vocabulary
        self.unlogged = [(rule, args) for rule in unlogged for args in rule.choices()]
        self.possible: _Possible = {}
        for rule, args, state in self.bound.initial():
            self.possible.setdefault(state, _Path(None, None if rule is None else rule.name, args, state) if keep else None)
        self.events = self.line = self.most = self.steps = self.taken = 0
        self.compiling = time.monotonic() + WORTH_COMPILING
        self.after: Callable[[State, Rule, Arguments], State | None] = self.bound.after

    def result(self) -> Validation:
        """Read the log to its end, or to the first line that is not explained."""
        entries = iter(self.log)
        cut, unexplained = None, None
        unchecked: int | None = 0
        for entry in entries:
            if isinstance(entry, Gap):
                cut = self._gap(entry)
                break
            try:
                unexplained = self._line(entry)
            except _Cut as reached:
                cut = f"{self.log.path}:{entry.line}: {reached}"
                unchecked = 1
                break
            except SpecError as error:
                self.log.fail(entry.line, f"the spec leaves its own bounds ({error}); are the bounds too small for this log?")
            if unexplained is not None:
                break
        if cut is None and unexplained is None:
            self._refuse_misspelt()
        if cut is not None:
            unchecked = None if self.limits.cancelled() else unchecked + sum(isinstance(e, Event) for e in entries)
        trace = self._trace() if self.keep and self.possible else None
        return Validation(self.events, self.line, len(self.possible), self.most, unexplained, cut, unchecked, trace)

    def _refuse_misspelt(self) -> None:
        """HOLDS must not rest on a key that no state has."""
        found = self.vocabulary.misspelt()
        if found is not None:
            self.log.fail(*found)

    def _gap(self, gap: Gap) -> str:
        where = f"{self.log.path}:{gap.line}"
        return f"{where}: {gap.why}" if gap.cut_off else f"{where}: events may be missing here ({gap.why})"

    def _line(self, entry: Entry) -> Unexplained | None:
        """Take one line; the possible states stay those before it where it is not explained."""
        if isinstance(entry, Start):
            return self._start(entry)
        assert isinstance(entry, Event)
        possible = self._closed()
        after = self._after(entry, possible)
        shown = self._showing(entry, after)
        if not shown:
            self.possible = possible
            return self._unexplained(entry, after)
        self.possible = shown
        self._remember(entry.line, entry.after, "after")
        self.events, self.line, self.most = self.events + 1, entry.line, max(self.most, len(shown))
        return None

    def _start(self, start: Start) -> Unexplained | None:
        if self.line:
            self.log.fail(start.line, "'start' stands before the first event; after missing events write a 'gap'")
        kept = {s: p for s, p in self.possible.items() if self._agrees(start.shown, s)}
        if kept:
            self.possible = kept
            self._remember(start.line, start.shown, "start")
            return None
        nearest = self._nearest(start.line, start.shown, self.possible)
        return Unexplained(start.line, "start", 0, len(self.possible), (), len(self.possible), nearest)

    def _remember(self, line: int, said: Mapping[str, Any], key: str) -> None:
        """Remember of what a line spoke, and which names one state after it shows; others are learnt as they are compared."""
        if self.vocabulary.names is not None:
            self.vocabulary.names.say(line, said, key)
            self.vocabulary.names.see(self.vocabulary.shown(next(iter(self.possible))))

    def _closed(self) -> _Possible:
        """The possible states, and all that unlogged events lead to from them."""
        if not self.unlogged:
            return self.possible
        found = dict(self.possible)
        queue = list(found)
        for state in queue:  # it grows as states are found
            for rule, args in self.unlogged:
                if self._add(found, state, found[state], rule, args):
                    queue.append(next(reversed(found)))
        return found

    def _after(self, event: Event, possible: _Possible) -> _Possible:
        found: _Possible = {}
        for state, path in possible.items():
            for args in product(*event.choices):
                self._add(found, state, path, event.rule, args)
        return found

    def _add(self, found: _Possible, state: State, path: _Path | None, rule: Rule, args: Arguments) -> bool:
        """Take a step; whether it leads to a state that is new."""
        self._look()
        after = self._after_one(state, rule, args)
        if after is None or after in found:
            return False
        found[after] = _Path(path, rule.name, args, after) if self.keep else None
        if self.limits.max_states is not None and len(found) > self.limits.max_states:
            raise _Cut(self.limits.reason("max-states"))
        return True

    def _look(self) -> None:
        """Stop where it was asked for, or where memory ends."""
        self.steps += 1
        if self.steps % EVERY == 0:
            if self.limits.cancelled():
                raise _Cut(self.limits.reason("cancelled"))
            if self.limits.max_bytes is not None and resident_memory() > self.limits.max_bytes:
                raise _Cut(self.limits.reason("max-memory"))

    def _after_one(self, state: State, rule: Rule, args: Arguments) -> State | None:
        """One step of the spec, which is compiled once that is worth while."""
        self.taken += 1
        if self.taken % 64 == 0 and time.monotonic() > self.compiling:
            self.compiling = inf
            with suppress(BoundsError):  # too large for the compiler: the interpreter goes on
                self.after = Stepper(self.bound, symmetry=False).after
        return self.after(state, rule, args)

    def _showing(self, event: Event, after: _Possible) -> _Possible:
        """The states that show what was observed."""
        if not event.after:
            return after
        kept: _Possible = {}
        for state, path in after.items():
            self._look()
            if self._agrees(event.after, state):
                kept[state] = path
        return kept

    def _agrees(self, said: object, state: State) -> bool:
        shown = self.vocabulary.shown(state)
        if self.vocabulary.names is not None:
            self.vocabulary.names.see(shown)
        return self.vocabulary.matches(said, shown)

    def _nearest(self, line: int, said: object, states: Iterable[State]) -> tuple[Difference, ...]:
        """The differences from the first of the states that has the fewest."""
        shown = map(self.vocabulary.shown, states)
        try:
            return min((tuple(self.vocabulary.differences(said, each)) for each in shown), key=len, default=())
        except ValueError as error:
            self.log.fail(line, str(error))

    def _unexplained(self, event: Event, after: _Possible) -> Unexplained:
        states = len(self.possible)
        named = said(self.bound, event.rule, event.choices)
        nearest = self._nearest(event.line, event.after, after)
        return Unexplained(event.line, named, self.line, states, self._allowed(), len(after), nearest)

    def _allowed(self) -> tuple[str, ...]:
        """The events that some possible state allows, in words, in order of declaration."""
        words: list[str] = []
        for rule in self.bound.actions:
            if rule.count > MAX_INSTANCES:
                words.append(f"{rule.name}(…), perhaps: it has too many instances to try them")
                continue
            allowed = [args for args in rule.choices() if self._somewhere(rule, args)]
            words += [said(self.bound, rule, box) for box in boxes(allowed)]
        return (*words, "and maybe others (interrupted)") if self.limits.cancelled() else tuple(words)

    def _somewhere(self, rule: Rule, args: Arguments) -> bool:
        return any(self._enabled(state, rule, args) for state in self.possible if not self.limits.cancelled())

    def _enabled(self, state: State, rule: Rule, args: Arguments) -> bool:
        """Whether an event is allowed in a state; one that leaves the spec's bounds is."""
        try:
            return self._after_one(state, rule, args) is not None
        except SpecError:
            return True

    def _trace(self) -> Trace:
        """The path to the first of the possible states."""
        path = next(iter(self.possible.values()))
        steps: list[Step] = []
        assert path is not None
        while path.before is not None:
            assert path.name is not None
            steps.append(Step(path.name, path.arguments, path.state))
            path = path.before
        start = None if path.name is None else (path.name, path.arguments)
        return Trace(self.bound.spec.name, self.bound.values, "", start, path.state, tuple(reversed(steps)))


Box = tuple[tuple[int, ...], ...]
"""Values for each parameter: every combination of them is meant."""


def boxes(instances: Iterable[Arguments]) -> list[Box]:
    """Choices of arguments, put together: all of them, and no other, are combinations of one of the boxes."""
    made: list[Box] = [tuple((value,) for value in args) for args in instances]
    for position in reversed(range(len(made[0]) if made else 0)):
        grouped: dict[Box, tuple[int, ...]] = {}
        for box in made:
            others = (*box[:position], *box[position + 1 :])
            grouped[others] = (*grouped.get(others, ()), *box[position])
        made = [(*others[:position], values, *others[position:]) for others, values in grouped.items()]
    return made


def said(bound: BoundSpec, rule: Rule, box: Sequence[Sequence[int]]) -> str:
    """An action with several choices of its arguments, such as `abort(r=A or B)`."""
    parts: list[str] = []
    for position, (parameter, values) in enumerate(zip(rule.declared.parameters, box, strict=True)):
        if how_many(values) == how_many(rule.domains[position]) > 1:
            word = "any"
        else:
            word = " or ".join(_word(bound, rule, position, value) for value in values)
        parts.append(f"{parameter.name}={word}")
    return f"{rule.name}({', '.join(parts)})"


def _word(bound: BoundSpec, rule: Rule, position: int, value: int) -> str:
    args = [domain.start for domain in rule.domains]
    args[position] = value
    shown = bound.show_arguments(rule, tuple(args))[rule.declared.parameters[position].name]
    if isinstance(rule.declared.parameters[position].type, SetOf):
        return "{" + ", ".join(shown) + "}"
    return {True: "yes", False: "no"}[shown] if isinstance(shown, bool) else str(shown)
