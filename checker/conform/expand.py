"""Everything that can happen in one state of the product of a spec and an implementation, compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ...spec.lang import Arguments, BoundSpec, Rule, State
from ...spec.lang.types import SetOf
from ...traces.driver import Refused
from ..explore.native.pack import CellLayout
from ..explore.native.stepper import cell_struct
from .errors import ConformError, DriverUnstable
from .follow import Restorable, fingerprint, goes_on, take, try_quiet
from .graph import Decoded, Event
from .observer import Observer
from .result import Kind

Known = Callable[[bytes, bytes], bool]
"""Whether a product state was met before."""


STOPPED = b"stopped"
"""In place of the digest of an implementation that has stopped: what else is in it is of no consequence."""


class Steps(Protocol):
    """The transitions of a spec, and its states up to symmetry."""

    def successors(self, state: State) -> Sequence[tuple[Rule, Arguments, State]]:
        """Every enabled action instance with the state it leads to, in order."""
        ...

    def canonical(self, state: State) -> tuple[State, Mapping[str, Sequence[int]]]:
        """The state that stands for all relabellings of this one, and the new names that make it."""
        ...


class Node(NamedTuple):
    """A product state to be expanded: its number, its two halves, and what brings the driver back to it.

    `stopped` where the implementation has stopped there, with an error that the spec shows too.
    """

    number: int
    state: State
    digest: bytes
    saved: Any
    stopped: bool = False


class Arrival(NamedTuple):
    """A product state that was not known: the event that leads there, both its halves packed, and what a node needs."""

    event: Event
    canonical: bytes
    digest: bytes
    stopped: bool
    state: State
    saved: Any


class Visit(NamedTuple):
    """What came of expanding a product state: up to the first difference, if there is one.

    `taken` has the number of the action of each compared transition; `differs` the event and what kind of difference it is.
    """

    fresh: list[Arrival]
    taken: list[int]
    refusals: int
    differs: tuple[Event, Kind] | None

    @property
    def ends(self) -> bool:
        """Whether the search ends here."""
        return self.differs is not None


class Expander:
    """Compares all that happens in product states; what it finds in one depends on nothing that was done before."""

    def __init__(self, bound: BoundSpec, steps: Steps, driver: Restorable) -> None:
        self.bound, self.steps, self.driver = bound, steps, driver
        self.observer = Observer(bound)
        self._pack = cell_struct(CellLayout(bound.shape)).pack
        self.decoded = Decoded(bound)
        self._quiet = quiet_events(bound, driver.quiet)

    def identify(self, state: State, *, stopped: bool = False) -> tuple[bytes, bytes]:
        """The product state that the driver is in while the spec is in `state`: equal for all relabellings of it."""
        canonical, names = self.steps.canonical(state)
        return self._pack(*canonical), STOPPED if stopped else fingerprint(self.driver.digest(names))

    def visit(self, node: Node, known: Known) -> Visit:
        """Compare every transition out of a product state, then try the quiet events that the spec has disabled there."""
        if node.stopped:
            return self._visit_stopped(node, known)
        driver, restore, saved = self.driver, self.driver.restore, node.saved
        fresh: list[Arrival] = []
        taken: list[int] = []
        successors = self.steps.successors(node.state)
        enabled = {(rule.number, args) for rule, args, _ in successors} if self._quiet else ()
        tried = [event for event in self._quiet if event not in enabled]
        for left, (rule, args, after) in enumerate(successors, 1 - len(successors)):
            restore(saved)
            if left == 0 and not tried:
                self._verify(node)
            event = rule.number, args
            stopped, discord = take(driver, *self.decoded[event], self.observer.expected(after))
            if discord is not None:
                return Visit(fresh, taken, 0, (event, discord.kind))
            taken.append(rule.number)
            self._arrive(fresh, event, after, stopped, known)
        return Visit(fresh, taken, len(tried), self._disturbance(node, tried))

    def _visit_stopped(self, node: Node, known: Known) -> Visit:
        """Where an implementation has stopped, the spec shows nothing new, whatever else it lets happen."""
        fresh: list[Arrival] = []
        taken: list[int] = []
        last = self.observer.expected(node.state)
        for rule, args, after in self.steps.successors(node.state):
            event = rule.number, args
            discord = goes_on(self.observer.expected(after), last)
            if discord is not None:
                return Visit(fresh, taken, 0, (event, discord.kind))
            taken.append(rule.number)
            self._arrive(fresh, event, after, True, known)
        return Visit(fresh, taken, 0, None)

    def _arrive(self, fresh: list[Arrival], event: Event, after: State, stopped: bool, known: Known) -> None:
        """Note where a transition leads, unless that is known."""
        canonical, digest = self.identify(after, stopped=stopped)
        if not known(canonical, digest):
            fresh.append(Arrival(event, canonical, digest, stopped, after, None if stopped else self.driver.save()))

    def _disturbance(self, node: Node, tried: Sequence[Event]) -> tuple[Event, Kind] | None:
        """The first of these events, which the spec has disabled, that is not quiet."""
        if not tried or self._all_quiet(node, tried):
            return None
        expected = self.observer.expected(node.state)
        for event in tried:
            self.driver.restore(node.saved)
            self._verify(node)
            discord = try_quiet(self.driver, *self.decoded[event], expected)
            if discord is not None:
                return event, discord.kind
        raise DriverUnstable("events that change nothing one by one do so together")

    def _all_quiet(self, node: Node, tried: Sequence[Event]) -> bool:
        """Whether none of these events, one after another, changes anything; of those refused it is looked at in the end."""
        self.driver.restore(node.saved)
        for event in tried:
            try:
                self.driver.take(*self.decoded[event])
            except Refused:
                continue
            except (MemoryError, KeyboardInterrupt):
                raise
            except BaseException:
                return False
            if not self._is_at(node):
                return False  # seen at once: the next event may undo it
        return self._is_at(node)

    def _is_at(self, node: Node) -> bool:
        """Whether the driver shows what it showed in a product state, and hides the same."""
        return self.driver.observe() == self.observer.expected(node.state) and self.identify(node.state)[1] == node.digest

    def _verify(self, node: Node) -> None:
        """`DriverUnstable` where the driver was not brought back to the state that it was saved in."""
        if not self._is_at(node):
            raise DriverUnstable("a restored state shows something else, or has another digest, than when it was saved")


def quiet_events(bound: BoundSpec, quiet: frozenset[str]) -> list[Event]:
    """Every instance of the actions that a driver calls quiet; `ConformError` where they cannot be tried."""
    unknown = quiet - {declared.name for declared in bound.spec.actions}
    if unknown:
        raise ConformError(f"{bound.spec.name} has no action {', '.join(sorted(unknown))}, which the driver calls quiet")
    rules = [rule for rule in bound.actions if rule.name in quiet]
    for rule in rules:
        if any(isinstance(p.type, SetOf) for p in rule.declared.parameters):
            raise ConformError(f"{rule.name} takes a set: there are too many of them to try it where it is disabled")
    return [(rule.number, args) for rule in rules for args in rule.choices()]
