"""Everything that can happen in one state of an implementation: its own transitions, with the properties judged on each.

The spec says only what its environment may do: which of the events that a driver does not call quiet are possible. Quiet
events are tried everywhere. Where an event leads, the implementation alone decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from ...spec.lang import Arguments, BoundSpec, Rule, SpecError, State
from ...traces.driver import Refused, Stopped
from ..explore.native.judge import Judge, Sides
from ..explore.native.pack import CellLayout
from ..explore.native.stepper import cell_struct
from .abstract import Abstraction, NoState
from .errors import DriverUnstable
from .expand import STOPPED, Arrival, Known, Node, Steps, quiet_events
from .follow import Restorable, fingerprint, said
from .graph import Decoded, Event


class Kind(Enum):
    """Where an event leads that does not lead to a state of the spec."""

    ERROR = "the implementation stops with an error that the spec does not know"
    BEYOND = "the implementation shows what is no state of the spec"
    UNJUDGED = "a property of the spec cannot be evaluated"


class Dead(NamedTuple):
    """An event after which no state of the spec is known."""

    event: Event
    kind: Kind
    message: str


class Seen(NamedTuple):
    """What came of trying everything in a state.

    `fresh` states, `taken` the number of the action of each transition, `refusals` events without effect; `failed` the
    properties that are violated with the event that does it, `reached` the witnesses; `covered` the left sides of properties
    that held in any state so far; `dead` ends.
    """

    fresh: list[Arrival]
    taken: list[int]
    refusals: int
    failed: list[tuple[str, Event]]
    reached: list[str]
    covered: Sides
    dead: list[Dead]

    @property
    def ends(self) -> bool:
        """Never: a level is always finished, so that everything that fails at one depth is known."""
        return False


class Transitions:
    """Tries all that can happen in states of an implementation; what it finds in one depends on nothing done before."""

    def __init__(self, bound: BoundSpec, steps: Steps, driver: Restorable) -> None:
        self.bound, self.steps, self.driver = bound, steps, driver
        self.abstraction, self.judge = Abstraction(bound), Judge(bound)
        self._pack = cell_struct(CellLayout(bound.shape)).pack
        self._quiet = quiet_events(bound, driver.quiet)
        self.decoded = Decoded(bound)

    def identify(self, state: State, *, stopped: bool = False) -> tuple[bytes, bytes]:
        """What identifies the state that the driver is in, while it shows `state`: equal for all relabellings of it."""
        canonical, names = self.steps.canonical(state)
        return self._pack(*canonical), STOPPED if stopped else fingerprint(self.driver.digest(names))

    def visit(self, node: Node, known: Known) -> Seen:
        """Try everything in a state that the driver was saved in."""
        seen = Seen([], [], 0, [], [], frozenset(), [])
        if node.stopped:
            return seen
        possible = self._possible(node.state)
        tried = [event for event in self._quiet if event not in possible]
        effective = self._effective(node, tried)
        refusals = len(tried) - len(effective)
        for number, event in enumerate(sorted([*possible, *effective])):
            self.driver.restore(node.saved)
            if not tried and number == 0:
                self._verify(node)
            refusals += self._take(node, event, known, seen)
        return seen._replace(refusals=refusals, covered=self.judge.covered())

    def _possible(self, state: State) -> set[Event]:
        """The events that the spec has enabled in a state, those included at which it leaves its own bounds."""
        try:
            return {(rule.number, args) for rule, args, _ in self.steps.successors(state)}
        except SpecError:
            instances = [(rule, args) for rule in self.bound.actions for args in rule.choices()]
            return {(rule.number, args) for rule, args in instances if self._enabled(state, rule, args)}

    def _enabled(self, state: State, rule: Rule, args: Arguments) -> bool:
        try:
            return self.bound.after(state, rule, args) is not None
        except SpecError:
            return True

    def _effective(self, node: Node, tried: Sequence[Event]) -> list[Event]:
        """Those of the events, all of them quiet, that are not refused; the others must leave everything as it was."""
        if not tried:
            return []
        found: list[Event] = []
        self.driver.restore(node.saved)
        for event in tried:
            if not self._refuses(event):
                found.append(event)
                self.driver.restore(node.saved)
        if found:
            self.driver.restore(node.saved)
            if not all(self._refuses(event) for event in tried if event not in found):
                raise DriverUnstable("an event is refused, and taken when it is tried again")
        self._verify(node)
        return found

    def _refuses(self, event: Event) -> bool:
        try:
            self.driver.take(*self.decoded[event])
        except Refused:
            return True
        except (MemoryError, KeyboardInterrupt):
            raise
        except BaseException:
            return False
        return False

    def _verify(self, node: Node) -> None:
        """`DriverUnstable` where the driver is not in the state that it was saved in, or refusing changed something."""
        try:
            there = self.abstraction.state(self.driver.observe())
        except NoState:
            there = None
        if there != node.state or self.identify(node.state)[1] != node.digest:
            raise DriverUnstable("a state that was restored, and in which events were refused, is not the one that was saved")

    def _take(self, node: Node, event: Event, known: Known, seen: Seen) -> bool:
        """Let an event happen and judge where it leads; whether it was refused."""
        stopped = None
        try:
            try:
                self.driver.take(*self.decoded[event])
            except Stopped as error:
                stopped = error
            shown = self.driver.observe()
        except Refused:
            return True
        except (MemoryError, KeyboardInterrupt):
            raise
        except BaseException as error:
            seen.dead.append(Dead(event, Kind.ERROR, said(error)))
            return False
        try:
            state = self.abstraction.state(shown) if stopped is None else self.abstraction.stopped(shown, node.state, stopped)
        except NoState as error:
            dead = Dead(event, Kind.BEYOND, str(error)) if stopped is None else Dead(event, Kind.ERROR, said(stopped))
            seen.dead.append(dead)
            return False
        self._arrive(node, event, state, stopped is not None, known, seen)
        return False

    def _arrive(self, node: Node, event: Event, state: State, stopped: bool, known: Known, seen: Seen) -> None:
        """Judge a transition, and the state that it leads to unless that is known."""
        canonical, digest = self.identify(state, stopped=stopped)
        if state == node.state and digest == node.digest and self.bound.actions[event[0]].name in self.driver.quiet:
            return
        seen.taken.append(event[0])
        try:
            seen.failed.extend([(name, event) for name in self.judge.step(node.state, state)])
            if not known(canonical, digest):
                failed, reached = self.judge.state(state)
                seen.failed.extend([(name, event) for name in failed])
                seen.reached.extend(reached)
        except SpecError as error:
            seen.dead.append(Dead(event, Kind.UNJUDGED, str(error)))
            return
        if not known(canonical, digest):
            seen.fresh.append(Arrival(event, canonical, digest, stopped, state, None if stopped else self.driver.save()))
