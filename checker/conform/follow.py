"""One event on both sides; and whole paths, run again from the start."""

from __future__ import annotations

import marshal
import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol

from ...spec.lang import Arguments, BoundSpec, Rule, State
from ...traces.claims import LOCKSTEP
from ...traces.driver import Copyable, Driver, Handing, Observation, Refused, Stopped
from ...traces.trace import Step, Trace
from ..explore.walk import EngineDisagrees
from .differences import differences
from .errors import ConformError, DriverUnstable
from .observer import Observer
from .result import Difference, Kind, Mismatch

RESET = ("reset", ())
"""The event of a difference in the initial state."""
DIGEST_BYTES = 16

Instance = tuple[Rule, Arguments]
"""An action with its arguments."""


class Restorable(Driver, Copyable, Protocol):
    """A driver that can go back."""


@dataclass(frozen=True)
class Discord:
    """How the two sides differ after an event."""

    kind: Kind
    differences: tuple[Difference, ...] = ()
    message: str = ""


class Rerun(Handing):
    """Makes any driver restorable: it is run again from the start along the events that led to a state."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._path: Any = None

    def reset(self) -> None:
        """Begin again."""
        super().reset()
        self._path = None

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        """Let an event happen; one that is refused or stops the implementation is not run again."""
        super().take(action, arguments)
        self._path = (self._path, action, arguments)

    def save(self) -> Any:
        """The events so far: nested, so that paths share their beginnings."""
        return self._path

    def restore(self, saved: Any) -> None:
        """Take the saved events again; `DriverUnstable` where one of them fails now."""
        events: list[tuple[str, tuple[Any, ...]]] = []
        path = saved
        while path is not None:
            path, *event = path
            events.append((event[0], event[1]))
        self.driver.reset()
        for action, arguments in reversed(events):
            try:
                self.driver.take(action, arguments)
            except (MemoryError, KeyboardInterrupt):
                raise
            except BaseException as error:
                raise DriverUnstable(f"{action}{arguments} fails when it is run again ({said(error)})") from error
        self._path = saved


def restorable(driver: Driver) -> Restorable:
    """The driver itself where it can go back, else one that is run again."""
    return driver if isinstance(driver, Copyable) else Rerun(driver)


def fingerprint(digest: Hashable) -> bytes:
    """16 bytes that stand for a digest; `ConformError` for one that is not made of plain values.

    Version 2 of marshal writes equal values equally (no references), and tells 1 and True apart.
    """
    plain: Any = digest
    try:
        return blake2b(marshal.dumps(plain, 2), digest_size=DIGEST_BYTES).digest()
    except ValueError as error:
        raise ConformError(f"a digest is nested tuples of plain values, and this one is not ({error})") from error


def said(error: BaseException) -> str:
    """An exception of the implementation in one line; one that it did not mean with the place where it was raised."""
    text = " ".join(str(error).split())
    if isinstance(error, Stopped | Refused):
        return text
    name = type(error).__name__
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    at = f" ({os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno})" if trace is not None else ""
    return f"{name}: {text}{at}" if text else f"{name}{at}"


def take(driver: Driver, action: str, arguments: tuple[Any, ...], expected: Observation) -> tuple[bool, Discord | None]:
    """Let an event happen that the spec allows: whether it stopped the implementation, and how the two sides differ now."""
    stopped = None
    try:
        try:
            driver.take(action, arguments)
        except Stopped as error:
            stopped = error
        observed = driver.observe()
    except Refused as error:
        return False, Discord(Kind.REFUSED, message=said(error))
    except (MemoryError, KeyboardInterrupt):
        raise
    except BaseException as error:
        return True, Discord(Kind.STOPPED, message=said(error))
    if observed == expected:
        return stopped is not None, None
    found = differences(expected, observed)
    if stopped is not None:
        return True, Discord(Kind.STOPPED, found, said(stopped))
    return False, Discord(Kind.OBSERVATION, found)


class Walk:
    """An implementation on its way along a path of the spec, from the start; one that has stopped stays as it was."""

    def __init__(self, driver: Driver) -> None:
        driver.reset()
        self.driver = driver
        self.last: Observation | None = None
        """What is shown for good by an implementation that has stopped."""

    def take(self, action: str, arguments: tuple[Any, ...], expected: Observation) -> Discord | None:
        """Let the next event happen: how the two sides differ then."""
        if self.last is not None:
            return goes_on(expected, self.last)
        stopped, discord = take(self.driver, action, arguments, expected)
        if stopped:
            self.last = expected
        return discord


def goes_on(expected: Observation, last: Observation) -> Discord | None:
    """How a spec differs from an implementation that stopped and shows `last` for good; None while it shows the same."""
    if expected == last:
        return None
    return Discord(Kind.STOPPED, differences(expected, last), "stopped by an earlier event")


def try_quiet(driver: Driver, action: str, arguments: tuple[Any, ...], expected: Observation) -> Discord | None:
    """Try an event that the spec does not allow: how it is not quiet, or None."""
    before = driver.digest()
    message = ""
    try:
        driver.take(action, arguments)
    except Refused as error:
        message = said(error)
    except (MemoryError, KeyboardInterrupt):
        raise
    except BaseException as error:
        return Discord(Kind.NOT_QUIET, message=said(error))
    found = differences(expected, driver.observe()) or differences(before, driver.digest(), "digest")
    return Discord(Kind.NOT_QUIET, found, message) if found else None


def run(bound: BoundSpec, instances: Sequence[Instance]) -> Trace:
    """The concrete path of the interpreted spec; `EngineDisagrees` where it does not allow it."""
    rule, args, initial = bound.initial()[0]
    start = None if rule is None else (rule.name, args)
    steps: list[Step] = []
    state: State = initial
    for rule, args in instances:
        after = bound.after(state, rule, args)
        if after is None:
            raise EngineDisagrees(f"{rule.name}{args} is not enabled in the interpreted spec")
        steps.append(Step(rule.name, args, after))
        state = after
    return Trace(bound.spec.name, bound.values, LOCKSTEP, start, initial, tuple(steps))


def confirm(
    driver: Driver, observer: Observer, bound: BoundSpec, path: Sequence[Instance], event: Instance, found: Discord
) -> Mismatch:
    """Run a path and the event after it again from the start; `DriverUnstable` where they do not show the same."""
    quiet = found.kind is Kind.NOT_QUIET
    again, trace = retake(driver, observer, bound, path, event, quiet=quiet)
    if again is None or (again.kind, again.differences) != (found.kind, found.differences):
        name = f"{event[0].name}{event[1]}"
        raise DriverUnstable(f"{name} differs, but not in the same way when its path is run again")
    return Mismatch(found.kind, trace, (event[0].name, event[1]), found.differences, found.message)


def retake(
    driver: Driver, observer: Observer, bound: BoundSpec, path: Sequence[Instance], event: Instance, *, quiet: bool
) -> tuple[Discord | None, Trace]:
    """How the two sides differ at an event, `quiet` or not, after a path that is run from the start; the spec's trace."""
    trace = run(bound, path if quiet else (*path, event))
    walk = Walk(driver)
    for (rule, args), step in zip(path, trace.steps, strict=False):
        if walk.take(rule.name, bound.arguments(rule, args), observer.expected(step.state)) is not None:
            raise DriverUnstable(f"{rule.name}{args} agreed, and differs when its path is run again")
    rule, args = event
    last = rule.name, bound.arguments(rule, args), observer.expected(trace.last)
    return (try_quiet(driver, *last) if quiet else walk.take(*last)), trace
