"""A path of an implementation, run again from the start: the trace of its states, and what the spec says of the same events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...spec.lang import Arguments, BoundSpec, SpecError, State
from ...traces.driver import Driver, Observation, Refused, Stopped
from ...traces.trace import Step, Trace
from .abstract import Abstraction, NoState
from .differences import differences
from .errors import DriverUnstable
from .follow import Instance, said
from .observer import Observer
from .result import Difference
from .transitions import Kind


@dataclass(frozen=True)
class Otherwise:
    """Where the spec does not go the way of an implementation: at which transition (0: the initial state), why, and how."""

    step: int
    why: str
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class Ran:
    """A path that was run: the states that the implementation showed, and what it showed; it ends early where it is `dead`.

    `message` is what the implementation said where the last event stopped it.
    """

    instances: tuple[Instance, ...]
    states: tuple[State, ...]
    shown: tuple[Observation, ...]
    dead: Kind | None = None
    message: str = ""


def run(driver: Driver, abstraction: Abstraction, bound: BoundSpec, instances: Sequence[Instance]) -> Ran:
    """Run a path on an implementation that is reset first; `DriverUnstable` where it does not go its way to the end."""
    driver.reset()
    shown = [driver.observe()]
    states = [abstraction.state(shown[0])]
    dead, message = None, ""
    for number, (rule, args) in enumerate(instances, 1):
        dead, message = _take(driver, abstraction, (rule.name, bound.arguments(rule, args)), states, shown)
        if (dead or message) and number < len(instances):
            raise DriverUnstable(f"{rule.name}{args} was taken, and ends when its path is run again ({message})")
    return Ran(tuple(instances), tuple(states), tuple(shown), dead, message)


def _take(
    driver: Driver,
    abstraction: Abstraction,
    event: tuple[str, tuple[Any, ...]],
    states: list[State],
    shown: list[Observation],
) -> tuple[Kind | None, str]:
    """Let an event happen, and add what is shown then; how and with what words it ended, where it did."""
    stopped = None
    try:
        try:
            driver.take(*event)
        except Stopped as error:
            stopped = error
        observed = driver.observe()
    except Refused as error:
        raise DriverUnstable(f"{event[0]}{event[1]} was taken, and is refused when its path is run again") from error
    except (MemoryError, KeyboardInterrupt):
        raise
    except BaseException as error:
        return Kind.ERROR, said(error)
    try:
        if stopped is not None:
            states.append(abstraction.stopped(observed, states[-1], stopped))
        else:
            states.append(abstraction.state(observed))
    except NoState as error:
        if stopped is not None:
            return Kind.ERROR, said(stopped)
        shown.append(observed)
        return Kind.BEYOND, str(error)
    shown.append(observed)
    return None, "" if stopped is None else said(stopped)


def trace_of(bound: BoundSpec, name: str, ran: Ran) -> Trace:
    """The trace of a path; after an event with no state of its own, the state is the one before it."""
    states = [*ran.states[1:], *[ran.states[-1]] * (len(ran.instances) + 1 - len(ran.states))]
    steps = tuple(Step(rule.name, args, state) for (rule, args), state in zip(ran.instances, states, strict=True))
    start = _start(bound, ran)[0]
    return Trace(bound.spec.name, bound.values, name, start, ran.states[0], steps)


def _start(bound: BoundSpec, ran: Ran) -> tuple[tuple[str, Arguments] | None, State]:
    """The initial state of the spec that the implementation shows, else its first, with what makes it."""
    starts = bound.initial()
    rule, args, state = next((start for start in starts if start[2] == ran.states[0]), starts[0])
    return None if rule is None else (rule.name, args), state


def otherwise(bound: BoundSpec, ran: Ran) -> Otherwise | None:
    """Where the spec, run along the same events, first goes another way than the implementation; None if nowhere."""
    observer = Observer(bound)
    state = _start(bound, ran)[1]
    for number in range(len(ran.instances) + 1):
        if number:
            try:
                after = bound.after(state, *ran.instances[number - 1])
            except SpecError as error:
                return Otherwise(number, f"it leaves its own bounds there ({error})")
            if after is None:
                return Otherwise(number, "it does not allow this event there")
            state = after
        if number == len(ran.shown):
            return Otherwise(number, "it goes on")
        expected, shown = observer.expected(state), ran.shown[number]
        if expected != shown:
            return Otherwise(number, "it leads to another state", differences(expected, shown))
    return None
