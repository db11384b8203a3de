"""Exhaustive search of an implementation: breadth-first over its own states, with the properties of the spec judged in each.

A state of the implementation is what it shows, as a state of the spec, with the digest of what it does not show; states that
differ only in the names of interchangeable members count as one. The first level in which something fails is the last; the
path to it is run again from the start, and judged by the interpreted spec, before it is shown.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from ...spec.lang import SpecError
from ...traces.claims import shows
from ...traces.driver import Driver
from ...traces.trace import Trace, rerun
from ..explore.conclude import LIVENESS, result_of, shown
from ..explore.findings import Failure, Findings, OnProgress
from ..explore.memory import peak_memory, resident_memory
from ..explore.native.stepper import Stepper
from ..explore.walk import EngineDisagrees
from ..model import DEADLOCK, NO_ERROR, Model, Options
from ..result import PropertyResult, Result
from .abstract import NoState
from .budget import Budget, few_collections
from .counterexample import Otherwise, Ran, otherwise, run, trace_of
from .errors import ConformError, DriverUnstable
from .expand import Node
from .follow import Instance, restorable
from .graph import Event, Graph
from .parallel import Expansion
from .properties import fails, violated
from .transitions import Dead, Kind, Seen, Transitions

ENGINE = "implementation"
"""What a result calls a search whose transitions are those of an implementation."""
NO_LIVENESS = "a progress property, not decided for implementations"


class At(NamedTuple):
    """Where something was found: after an event in a state of the graph, or in the state itself."""

    number: int
    event: Event | None


@dataclass(frozen=True)
class Shown:
    """A path of the implementation that shows something: `message` is what the implementation said at its end, if it stopped,
    `dead` the kind of an end of which no state comes, `otherwise` where the spec does not go that way.

    Where the spec goes that way and shows the same at its end, `by_spec`, the states of the trace are the spec's: what the
    implementation shows is equal in them, and they say more. Else they are what the implementation shows.
    """

    trace: Trace
    message: str
    dead: Kind | None
    otherwise: Otherwise | None
    by_spec: bool


@dataclass(frozen=True)
class Ended:
    """A shortest path to where no property can be judged: it is the reason why a search is not complete."""

    kind: Kind
    message: str
    path: Shown


@dataclass(frozen=True)
class Searched:
    """What came of searching an implementation: `title` says what of it is real, `states` counts those that the spec tells
    apart, `refusals` are events without effect; `paths` go by the name of the property they violate."""

    result: Result
    title: str
    states: int
    refusals: int
    paths: dict[str, Shown]
    ended: Ended | None = None


def search(model: Model, driver: Driver, options: Options, progress: OnProgress | None = None, *, workers: int = 1) -> Searched:
    """Search every state of an implementation within the limits, and draw the result.

    The result is the same for any number of `workers`. `ConformError` where spec and driver do not fit each other,
    `DriverUnstable` where the driver does not show the same twice, `EngineDisagrees` where compiled and interpreted
    properties differ.
    """
    with few_collections():
        return Search(model, driver, options, progress, workers).run()


class Search:
    """One search; see the module."""

    def __init__(self, model: Model, driver: Driver, options: Options, progress: OnProgress | None, workers: int) -> None:
        begin = time.monotonic()
        self.bound, self.options = model.bound, options
        self.driver = restorable(driver)
        self.transitions = Transitions(model.bound, Stepper(model.bound, symmetry=options.symmetry), self.driver)
        self.graph = Graph()
        reduces = options.symmetry and any(size > 1 for size in model.bound.permutable().values())
        self.found = Findings(ENGINE, reduces, start_bytes=resident_memory())
        self.found.enabled, self.found.taken = ([0] * len(model.bound.actions) for _ in range(2))
        self.expansion = Expansion(self.transitions, self.graph.knows, workers)
        self.budget = Budget(options.limits, progress, self.graph, self.expansion.memory)
        self.refusals = 0
        self.places: dict[str, At] = {}
        self.ends: dict[Kind, tuple[At, str]] = {}
        self.found.seconds["compile"] = time.monotonic() - begin

    def run(self) -> Searched:
        """Search all levels, or until something fails or a limit is reached."""
        begin = time.monotonic()
        self.driver.reset()
        level, depth = [self._root()], 0
        with self.expansion:
            while level:
                self.found.per_depth.append(len(level))
                self.found.depth = depth
                if self._stops() or self._cut(depth):
                    break
                level = self._expand(level, depth)
                depth += 1
        self.found.distinct = sum(self.found.per_depth)
        self.found.seconds["search"] = time.monotonic() - begin
        self.found.peak_bytes = peak_memory()
        return self._searched()

    def _root(self) -> Node:
        try:
            state = self.transitions.abstraction.state(self.driver.observe())
            failed, reached = self.transitions.judge.state(state)
        except (NoState, SpecError) as error:
            name = self.bound.spec.name
            raise ConformError(f"what the driver shows at the start is no state of {name}: {error}") from None
        canonical, digest = self.transitions.identify(state)
        self.graph.add(canonical, digest, -1, None)
        for name in failed:
            self._fail(name, Failure(0, on_step=False), At(0, None))
        self.found.reached = dict.fromkeys(reached, 0)
        return Node(0, state, digest, self.driver.save())

    def _expand(self, level: list[Node], depth: int) -> list[Node]:
        """Try everything in each state of a level: the states that it leads to for the first time."""
        following: list[Node] = []
        before = copy.deepcopy(self.found)
        for node, seen in self.expansion.visits(level):
            self._add(node, seen, depth, following)
            if self._cut(None):
                break
            self.budget.tell(depth, self.found.generated, len(level) + len(following))
        if DEADLOCK in self.found.failures and self._stops():
            failures = {DEADLOCK: self.found.failures[DEADLOCK]}
            self.found = replace(before, failures=failures, deadlocks=1, cut=self.found.cut)
            return []
        return following

    def _add(self, node: Node, seen: Seen, depth: int, following: list[Node]) -> None:
        """Count what came of one state, and number the states that it was the first to lead to."""
        found = self.found
        for action in seen.taken:
            found.taken[action] += 1
        for action in set(seen.taken):
            found.enabled[action] += 1
        degree = len(seen.taken)
        found.generated += degree
        self.refusals += seen.refusals
        found.covered |= seen.covered
        if not node.stopped:
            found.degrees = (min(found.degrees[0], degree) if found.expanded else degree, max(found.degrees[1], degree))
            found.expanded += 1
            self._note_deadlock(node, seen, depth)
        for name, event in seen.failed:
            self._fail(name, Failure(depth + 1, on_step=False), At(node.number, event))
        for name in seen.reached:
            found.reached.setdefault(name, depth + 1)
        for dead in seen.dead:
            self._end(node, dead, depth)
        for event, canonical, digest, stopped, state, saved in seen.fresh:
            number = self.graph.add(canonical, digest, node.number, event)
            if number is not None:
                following.append(Node(number, state, digest, saved, stopped))

    def _note_deadlock(self, node: Node, seen: Seen, depth: int) -> None:
        if not seen.taken and not seen.dead:
            self.found.deadlocks += 1
            if self.options.deadlock:
                self._fail(DEADLOCK, Failure(depth, on_step=False), At(node.number, None))

    def _end(self, node: Node, dead: Dead, depth: int) -> None:
        """Note an event after which no state is known: an error of the implementation's own is a violation."""
        at = At(node.number, dead.event)
        if dead.kind is Kind.ERROR:
            self._fail(NO_ERROR, Failure(depth + 1, on_step=True), at)
        else:
            self.ends.setdefault(dead.kind, (at, dead.message))

    def _fail(self, name: str, failure: Failure, at: At) -> None:
        if name not in self.found.failures or failure.length < self.found.failures[name].length:
            self.found.failures[name] = failure
            self.places[name] = at

    def _stops(self) -> bool:
        return bool(self.found.failures) and not self.options.keep_going

    def _cut(self, depth: int | None) -> bool:
        """Whether a limit is reached."""
        if self.found.cut is None:
            self.found.cut = self.budget.reached(depth)
        return self.found.cut is not None

    # ---- what is shown

    def _searched(self) -> Searched:
        names = shown(self.found, self.options)
        paths = {name: self._path(name) for name in names}
        ended = self._ended()
        if ended is not None and self.found.cut is None:
            self.found.cut = f"{ended.kind.value}, after {len(ended.path.trace)} events: {ended.message}"
        decided = {p.name: NO_LIVENESS for p in self.bound.properties if p.kind in LIVENESS}
        traces = {name: path.trace for name, path in paths.items()}
        result = result_of(self.bound, self.found, self.options, decided, traces)
        result = replace(result, properties=tuple(_told(p, paths) for p in result.properties))
        return Searched(result, self.driver.title, self.graph.spec_states, self.refusals, paths, ended)

    def _path(self, name: str) -> Shown:
        """The path to what a property violates, run again and judged again."""
        ran = self._ran(self.places[name])
        states = ran.states
        prop = next((p for p in self.bound.properties if p.name == name), None)
        if name == DEADLOCK:
            holds = not self._is_deadlock(ran)
        elif ran.dead is Kind.ERROR:
            holds = name != NO_ERROR
        else:
            if prop is None:
                raise DriverUnstable("an event stops the implementation, and does not when its path is run again")
            holds = not fails(self.bound, prop, states[-1], states[-2] if len(states) > 1 else None)
        if holds:
            raise EngineDisagrees(f"{name}: the end of the path does not show it in the interpreted spec")
        return self._shown(name, ran)

    def _shown(self, name: str, ran: Ran) -> Shown:
        trace, differs = trace_of(self.bound, name, ran), otherwise(self.bound, ran)
        own = rerun(self.bound, trace) if differs is None else None
        by_spec = own is not None and shows(self.bound, own)
        return Shown(own if by_spec and own is not None else trace, ran.message, ran.dead, differs, by_spec)

    def _ran(self, at: At) -> Ran:
        path = [*self.graph.path(at.number), *([] if at.event is None else [at.event])]
        return run(self.driver, self.transitions.abstraction, self.bound, [self._instance(event) for event in path])

    def _instance(self, event: Event) -> Instance:
        return self.bound.actions[event[0]], event[1]

    def _is_deadlock(self, ran: Ran) -> bool:
        state = ran.states[-1]
        node = Node(0, state, self.transitions.identify(state)[1], self.driver.save())
        seen = self.transitions.visit(node, self.graph.knows)
        return not seen.taken and not seen.dead

    def _ended(self) -> Ended | None:
        """The first path to where no state is known, run again."""
        for kind, (at, message) in self.ends.items():
            ran = self._ran(at)
            if kind is Kind.UNJUDGED:
                same = ran.dead is None and _unjudged(lambda ran=ran: violated(self.bound, ran.states[-1], ran.states[-2]))
            else:
                same = ran.dead is kind
            if not same:
                raise DriverUnstable(f"{kind.value}, and not so when the path is run again")
            return Ended(kind, message, self._shown("", ran))
        return None


def _unjudged(judge: Callable[[], object]) -> bool:
    try:
        judge()
    except SpecError:
        return True
    return False


def _told(prop: PropertyResult, paths: dict[str, Shown]) -> PropertyResult:
    """The result of a property with what the implementation said where it stopped."""
    path = paths.get(prop.name)
    return prop if path is None or not path.message else replace(prop, reason=f"The implementation says: {path.message}")
