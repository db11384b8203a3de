"""Makes a run after which spec and implementation differ short: fewer events, then smaller arguments, again and again.

It is delta debugging (Zeller and Hildebrandt, IEEE Transactions on Software Engineering 28, 2002) over runs: every
candidate is taken on both sides from the start, and an event that the spec does not allow there is left out of it, so
that the effects of an event go with it. What remains fails in the same way, which is: with the same kind of difference,
and in no other top-level parts of what is shown than before (perhaps in fewer of them). It does not with one event fewer.
A breadth-first search over its own events then looks for a shorter one; still it need not be a shortest run.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...spec.lang import Arguments, Bool, Int, Rule, SetOf, SpecError, State
from ...spec.lang.types import Member, Type
from ...traces.driver import Driver
from ..model import Limits, Model
from .draw import After
from .follow import Discord, Instance, Restorable, Walk, restorable, try_quiet
from .observer import Observer
from .product import Lockstep
from .result import Difference, Kind

FEW = 40
"""Events up to which every two of them are left out together, and a search over them is worth its time."""
SEARCHED_CELLS = 8_000_000
"""Cells of all the states that such a search may keep."""

Events = tuple[Instance, ...]


@dataclass(frozen=True)
class Failing:
    """A run that fails: the events that go well, the event after which the two sides differ, and how they do."""

    path: Events
    event: Instance
    found: Discord

    @property
    def events(self) -> Events:
        """All of its events."""
        return (*self.path, self.event)


class _OutOfTime(Exception):
    """No time is left for another candidate."""


def shrink(
    model: Model,
    driver: Driver,
    after: After,
    failing: Failing,
    seconds: float,
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[Failing, str | None]:
    """A shorter run that fails in the same way, and why it may still be longer than need be (None: all was tried).

    A run that does not fail again when it is repeated is returned as it is.
    """
    shrinker = _Shrinker(_Replay(model, driver, after, failing.found), failing, seconds, cancelled)
    try:
        shrinker.shrink()
    except _OutOfTime:
        why = "interrupted" if cancelled() else f"time limit of {seconds:g} s"
        return shrinker.last(), f"{why} for making the run shorter"
    return shrinker.last(), None


class _Replay:
    """Runs of events on both sides, from the start; only those that fail in one way count."""

    def __init__(self, model: Model, driver: Driver, after: After, wanted: Discord) -> None:
        self.model, self.bound, self.driver, self._after = model, model.bound, driver, after
        self.kind, self._names = wanted.kind, _names(wanted.differences)
        self.initial = model.bound.initial()[0][2]
        self.observer = Observer(model.bound)

    def alike(self, kind: Kind, found: Sequence[Difference]) -> bool:
        """Whether a difference is of the same kind, and in no other top-level parts."""
        names = _names(found)
        return kind is self.kind and names <= self._names and bool(names) == bool(self._names)

    def fails(self, events: Events) -> Events | None:
        """The events that were taken up to one after which the two sides differ; None where they do not in this way.

        What is shown is compared at the end first, and on the way only where it differs there, or the implementation fails.
        """
        quiet = events[-1:] if self.kind is Kind.NOT_QUIET else ()
        state, taken, goes_well = self.initial, list[Instance](), True
        self.driver.reset()
        for rule, args in events[: len(events) - len(quiet)]:
            after = self.step(state, rule, args)
            if after is not None:
                state = after
                taken.append((rule, args))
                goes_well = goes_well and self._goes_well(rule, args)
        differs = self.kind is Kind.OBSERVATION and self.driver.observe() != self.observer.expected(state)
        found = self.first((*taken, *quiet)) if quiet or not goes_well or differs else None
        return None if found is None else found.events

    def _goes_well(self, rule: Rule, args: Arguments) -> bool:
        try:
            self.driver.take(rule.name, self.bound.arguments(rule, args))
        except (MemoryError, KeyboardInterrupt):
            raise
        except BaseException:
            return False
        return True

    def first(self, events: Events) -> Failing | None:
        """The first difference on a path of the spec, if it is alike; everything is compared."""
        state, walk = self.initial, Walk(self.driver)
        for number, (rule, args) in enumerate(events):
            after = self.step(state, rule, args)
            arguments = self.bound.arguments(rule, args)
            if after is not None:
                state = after
                found = walk.take(rule.name, arguments, self.observer.expected(state))
            elif number == len(events) - 1 and self.kind is Kind.NOT_QUIET and walk.last is None:
                found = try_quiet(self.driver, rule.name, arguments, self.observer.expected(state))
            else:
                return None
            if found is not None:
                return Failing(events[:number], (rule, args), found) if self.alike(found.kind, found.differences) else None
        return None

    def step(self, state: State, rule: Rule, args: Arguments) -> State | None:
        """The successor in the spec, or None where there is none."""
        try:
            return self._after(state, rule, args)
        except SpecError:
            return None


class _Shrinker:
    """The shortest failing run so far."""

    def __init__(self, replay: _Replay, failing: Failing, seconds: float, cancelled: Callable[[], bool]) -> None:
        self._replay, self._failing, self._cancelled = replay, failing, cancelled
        self._deadline = time.monotonic() + seconds
        self._events = failing.events

    def shrink(self) -> None:
        """Make it shorter and its arguments smaller until nothing helps; `_OutOfTime` where that takes too long."""
        before = None
        while before != self._events:
            before = self._events
            self._leave_out_chunks()
            self._leave_out_pairs()
            self._rename()
            self._lessen()
            self._events = self.last().events
            self._search()

    def last(self) -> Failing:
        """The first difference of the run as it is now; the run from before where it does not fail again."""
        return self._replay.first(self._events) or self._failing

    def _holds(self, candidate: Events) -> bool:
        """Take a candidate instead, if it fails too and what remains of it is shorter or has smaller arguments."""
        if self._cancelled() or time.monotonic() >= self._deadline:
            raise _OutOfTime
        found = self._replay.fails(candidate)
        if found is None or _size(found) >= _size(self._events):
            return False
        self._events = found
        return True

    def _without(self, *places: int) -> Events:
        return tuple(event for place, event in enumerate(self._events) if place not in places)

    def _leave_out_chunks(self) -> None:
        """Leave out neighbours, fewer and fewer of them; the last event stays."""
        size = len(self._events) // 2
        while size > 0:
            shorter = False
            end = len(self._events) - 1
            while end > 0:
                start = max(0, end - size)
                shorter |= self._holds(self._without(*range(start, end)))
                end = min(start, len(self._events) - 1)
            if size > 1 or not shorter:
                size //= 2

    def _leave_out_pairs(self) -> None:
        """Leave out any two events, as long as that helps."""
        found = len(self._events) <= FEW
        while found:
            places = itertools.combinations(range(len(self._events) - 1), 2)
            found = any(self._holds(self._without(*pair)) for pair in places)

    def _search(self) -> None:
        """Look for a shorter run of the same events, or of events like them."""
        replay = self._replay
        if len(self._events) > FEW:
            return
        if replay.kind is Kind.NOT_QUIET:
            *path, last = self._events
            likely = _like((last,), replay.bound.indices())
            any(self._holds((*path[:length], like)) for length in range(len(path)) for like in likely)
            return
        limits = Limits(
            max_states=SEARCHED_CELLS // replay.bound.shape.size,
            max_depth=len(self._events) - 1,
            max_seconds=(self._deadline - time.monotonic()) / 2,
            cancelled=self._cancelled,
        )
        steps = _Few(replay, _like(self._events, replay.bound.indices()))
        found = Lockstep(replay.model, _Loud(restorable(replay.driver)), limits, steps).run().mismatch
        if found is not None and replay.alike(found.kind, found.differences):
            rules = {rule.name: rule for rule in replay.bound.actions}
            self._events = tuple((rules[step.action], step.arguments) for step in found.trace.steps)

    def _rename(self) -> None:
        """Number the members of each index in the order in which they come."""
        for index in self._replay.bound.indices():
            names: dict[int, int] = {}
            for member in _members(self._events, index):
                names.setdefault(member, len(names))
            self._holds(tuple((rule, _renamed(rule, args, index, names)) for rule, args in self._events))

    def _lessen(self) -> None:
        """Make the arguments of one event after the other smaller."""
        place = 0
        while place < len(self._events):
            if not any(map(self._holds, self._with_less(place))):
                place += 1

    def _with_less(self, place: int) -> Iterator[Events]:
        events = self._events
        rule, args = events[place]
        for at, (parameter, value) in enumerate(zip(rule.declared.parameters, args, strict=True)):
            for less in _less(parameter.type, value, rule.domains[at].start):
                smaller = (*args[:at], less, *args[at + 1 :])
                yield (*events[:place], (rule, smaller), *events[place + 1 :])


class _Few:
    """The steps of a spec with a few events only, and its states as they are."""

    def __init__(self, replay: _Replay, events: Events) -> None:
        self._replay, self._events = replay, events
        self._names = {index: range(size) for index, size in replay.bound.permutable().items()}

    def successors(self, state: State) -> list[tuple[Rule, Arguments, State]]:
        """Those of the events that are enabled, with where they lead."""
        found = [(rule, args, self._replay.step(state, rule, args)) for rule, args in self._events]
        return [(rule, args, after) for rule, args, after in found if after is not None]

    def canonical(self, state: State) -> tuple[State, dict[str, range]]:
        """The state itself."""
        return state, self._names


class _Loud:
    """A driver of which no disabled event is tried."""

    quiet: frozenset[str] = frozenset()

    def __init__(self, driver: Restorable) -> None:
        self.title = driver.title
        self.reset, self.take, self.observe, self.digest = driver.reset, driver.take, driver.observe, driver.digest
        self.save, self.restore = driver.save, driver.restore


def _names(found: Sequence[Difference]) -> frozenset[str]:
    """The top-level names of the places of differences."""
    return frozenset(one.path.partition(".")[0].partition("[")[0] for one in found)


def _like(events: Events, members: Mapping[str, int]) -> Events:
    """The events, each once, and their like: with another member, the greatest number, more or fewer in a set."""
    used = {index: set(_members(events, index)) for index in members}
    found = list(events)
    for rule, args in events:
        choices = [
            _others(parameter.type, value, domain, used)
            for parameter, value, domain in zip(rule.declared.parameters, args, rule.domains, strict=True)
        ]
        found += [(rule, like) for like in itertools.product(*choices)]
    return tuple({(rule.number, args): (rule, args) for rule, args in found}.values())


def _others(kind: Type, value: int, domain: range, used: Mapping[str, set[int]]) -> list[int]:
    match kind:
        case Bool():
            return [value, 1 - value]
        case Int():
            return [value, domain[-1]]
        case Member(index):
            unused = [member for member in domain if member not in used[index.name]]
            return [value, *unused[:1]]
        case SetOf(index):
            singles = [1 << member for member in sorted(used[index.name])]
            return [value, 0, *singles, sum(singles)]
        case _:
            return [value]


def _size(events: Events) -> tuple[int, list[Arguments]]:
    return len(events), [args for _, args in events]


def _less(kind: Type, value: int, least: int) -> Iterator[int]:
    """Smaller values of a parameter, the least first: numbers nearer and nearer, sets with one member fewer."""
    if value > least:
        yield least
    if isinstance(kind, SetOf):
        members = [1 << member for member in range(value.bit_length()) if value >> member & 1]
        if len(members) > 1:
            yield from (value - member for member in reversed(members))
        return
    step = (value - least) // 2
    while step > 0:
        yield value - step
        step //= 2


def _members(events: Sequence[Instance], index: str) -> Iterator[int]:
    """The members of an index in arguments, in order."""
    for rule, args in events:
        for parameter, value in zip(rule.declared.parameters, args, strict=True):
            match parameter.type:
                case Member(of) if of.name == index:
                    yield value
                case SetOf(of) if of.name == index:
                    yield from (member for member in range(value.bit_length()) if value >> member & 1)
                case _:
                    pass


def _renamed(rule: Rule, args: Arguments, index: str, names: dict[int, int]) -> Arguments:
    made: list[int] = []
    for parameter, value in zip(rule.declared.parameters, args, strict=True):
        match parameter.type:
            case Member(of) if of.name == index:
                made.append(names[value])
            case SetOf(of) if of.name == index:
                made.append(sum(1 << new for old, new in names.items() if value >> old & 1))
            case _:
                made.append(value)
    return tuple(made)
