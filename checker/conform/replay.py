"""A trace of a spec, taken event by event on an implementation: as far as both show the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...spec.lang import BoundSpec
from ...spec.lang.reasons import Members, changed, judge
from ...traces.claims import LOCKSTEP
from ...traces.driver import Driver, Handing, Observation, Refused, Stopped
from ...traces.trace import Step, Trace
from .differences import differences
from .follow import Discord, Walk, said, try_quiet
from .observer import Observer
from .result import Kind


class Listening(Handing):
    """Hands on, and remembers what the implementation said last, and everything that it showed."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self.said = ""
        self.shown: list[Observation] = []

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        """Let an event happen."""
        self.said = ""
        try:
            super().take(action, arguments)
        except (Stopped, Refused) as error:
            self.said = said(error)
            raise

    def observe(self) -> Observation:
        """What the implementation shows now."""
        self.shown.append(super().observe())
        return self.shown[-1]


@dataclass(frozen=True)
class Replayed:
    """How far an implementation went along with a trace.

    `events` are those that it was given; with a `discord` the last of them is where it differs (none: it differs in the
    initial state). `shown` is what it showed, the initial state first, and after the last event if it showed anything there;
    `message` what it said when it refused or stopped.
    """

    trace: Trace
    events: tuple[Step, ...]
    discord: Discord | None
    shown: tuple[Observation, ...]
    message: str = ""

    @property
    def to_the_end(self) -> bool:
        """Whether it did all that the trace says."""
        return self.discord is None

    @property
    def event(self) -> Step | None:
        """The last event; None where there is none."""
        return self.events[-1] if self.events else None

    @property
    def refused(self) -> bool:
        """Whether the implementation refused the last event."""
        return self.discord is not None and self.discord.kind is Kind.REFUSED

    @property
    def answered(self) -> bool:
        """Whether the implementation answered the event at which it differs: it refused it, or showed something after it."""
        return self.discord is not None and (self.refused or len(self.shown) > len(self.events))

    @property
    def unchanged(self) -> bool:
        """Whether the last event changed nothing that the implementation shows."""
        return len(self.shown) > len(self.events) > 0 and self.shown[-1] == self.shown[-2]


def replay(bound: BoundSpec, trace: Trace, driver: Driver) -> Replayed:
    """Take the events of a trace on an implementation, from the start, as long as both show the same.

    A lasso goes round once more. After a trace of lockstep, whose difference may be an event that the spec does not allow,
    the implementation's quiet events are tried.
    """
    observer, listening = Observer(bound), Listening(driver)
    walk = Walk(listening)
    first = differences(observer.expected(trace.initial), listening.observe())
    if first:
        return Replayed(trace, (), Discord(Kind.OBSERVATION, first), tuple(listening.shown))
    steps = trace.steps if trace.loop is None else (*trace.steps, *trace.steps[trace.loop :])
    for number, step in enumerate(steps, 1):
        discord = walk.take(step.action, _arguments(bound, step), observer.expected(step.state))
        if discord is not None:
            return Replayed(trace, steps[:number], discord, tuple(listening.shown), discord.message)
    done = Replayed(trace, steps, None, tuple(listening.shown), listening.said)
    return _quiet(bound, done, listening, observer) if trace.property == LOCKSTEP and walk.last is None else done


def _arguments(bound: BoundSpec, step: Step) -> tuple[Any, ...]:
    rule = next(rule for rule in bound.actions if rule.name == step.action)
    return bound.arguments(rule, step.arguments)


def _quiet(bound: BoundSpec, done: Replayed, listening: Listening, observer: Observer) -> Replayed:
    """Try every quiet event that the spec does not allow at the end of a trace, each after running the trace again."""
    last = done.trace.last
    for rule in (rule for rule in bound.actions if rule.name in listening.quiet):
        for args in rule.choices():
            if bound.after(last, rule, args) is not None:
                continue
            listening.reset()
            for step in done.events:
                listening.take(step.action, _arguments(bound, step))
            listening.shown.clear()
            discord = try_quiet(listening, rule.name, bound.arguments(rule, args), observer.expected(last))
            if discord is not None:
                events = (*done.events, Step(rule.name, args, last))
                return Replayed(done.trace, events, discord, (*done.shown, *listening.shown), discord.message)
    return done


def concerned(bound: BoundSpec, trace: Trace) -> Members:
    """The members that what a trace shows is about: those that decide its property, else those of its last transition."""
    prop = next((p for p in bound.properties if p.name == trace.property), None)
    found: Members = frozenset()
    if prop is not None and prop.kind == "step" and trace.steps:
        found = judge(bound, prop, *trace.states[-2:]).members
    elif prop is not None and prop.kind != "step":
        found = judge(bound, prop, trace.last).members
    if found or not trace.steps:
        return found
    return changed(bound, *trace.states[-2:])
