"""Graphs of states, and paths through them that go on for ever and are fair.

A path may stay in a state for ever (stuttering). It is fair if every weakly fair action that is enabled from some
point on without interruption is taken again and again, and so is every strongly fair action that is enabled again and
again. As in TLA+, an action is enabled, and taken, only by an instance that changes the state, and fairness is about
the action as a whole: some instance of it.

A fair path within a finite set of states exists exactly if some strongly connected part of the set meets every demand,
once the states that enable a strongly fair action which their part never takes are removed.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...spec.lang import Arguments, State

Tick = Callable[[], None]
"""Called once for every state that is visited; may raise to stop."""
Demand = Callable[[int], bool]


def no_tick() -> None:
    """Never stops."""


@dataclass
class Graph:
    """States by number, nearest first, with every transition that changes the state as an edge; both are numbered.

    The edges out of state n are first[n] to first[n + 1] - 1; edge e leads from `source[e]` to `to[e]` by the action
    and arguments `instances[what[e]]`. `able[n]` has a bit for each action that can change state n; `found_by[n]` is
    the edge by which n was found (-1: an initial state), at distance `depth[n]`.
    """

    states: list[State] = field(default_factory=list[State])
    instances: list[tuple[int, Arguments]] = field(default_factory=list[tuple[int, Arguments]])
    first: array[int] = field(default_factory=lambda: array("q", [0]))
    source: array[int] = field(default_factory=lambda: array("i"))
    what: array[int] = field(default_factory=lambda: array("i"))
    to: array[int] = field(default_factory=lambda: array("i"))
    able: list[int] = field(default_factory=list[int])
    found_by: array[int] = field(default_factory=lambda: array("q"))
    depth: array[int] = field(default_factory=lambda: array("i"))
    initial: int = 0
    _numbers: dict[State, int] = field(default_factory=dict[State, int])
    _instances: dict[tuple[int, Arguments], int] = field(default_factory=dict[tuple[int, Arguments], int])

    @classmethod
    def starting(cls, initial: Iterable[State]) -> Graph:
        """A graph of initial states; `initial` of it is how many there are."""
        graph = cls()
        for state in initial:
            graph._number(state, -1, 0)
        graph.initial = len(graph.states)
        return graph

    def waiting(self) -> State | None:
        """The next state that has no edges yet."""
        return self.states[len(self.able)] if len(self.able) < len(self.states) else None

    def expand(self, transitions: Iterable[tuple[int, Arguments, State]]) -> None:
        """Give the next state its edges: number of the action, arguments, successor."""
        number, able = len(self.able), 0
        for action, args, after in transitions:
            to = self._number(after, len(self.to), self.depth[number] + 1)
            if to != number:
                able |= 1 << action
                instance = (action, args)
                self.source.append(number)
                self.what.append(self._instances.setdefault(instance, len(self.instances)))
                self.to.append(to)
                if len(self._instances) > len(self.instances):
                    self.instances.append(instance)
        self.able.append(able)
        self.first.append(len(self.to))

    def _number(self, state: State, edge: int, depth: int) -> int:
        number = self._numbers.setdefault(state, len(self.states))
        if number == len(self.states):
            self.states.append(state)
            self.found_by.append(edge)
            self.depth.append(depth)
        return number

    def edges(self, number: int) -> range:
        """The edges out of a state."""
        return range(self.first[number], self.first[number + 1])

    def action(self, edge: int) -> int:
        """The number of an edge's action."""
        return self.instances[self.what[edge]][0]

    def trail(self, found_by: Mapping[int, int] | Sequence[int], number: int) -> list[int]:
        """The edges that lead to a state, given for each state the edge by which it was found (-1 where that began)."""
        edges: list[int] = []
        while (edge := found_by[number]) >= 0:
            edges.append(edge)
            number = self.source[edge]
        return edges[::-1]


@dataclass(frozen=True)
class Fairness:
    """The weakly and the strongly fair actions, as bits."""

    weak: int = 0
    strong: int = 0

    def neglects(self, graph: Graph, states: Iterable[int], taken: int) -> int:
        """The fair actions, as bits, that are neglected by visiting these states and taking these actions for ever."""
        ever, always = 0, -1
        for number in states:
            ever |= graph.able[number]
            always &= graph.able[number]
        return (self.strong & ever | self.weak & always) & ~taken


@dataclass(frozen=True)
class Lasso:
    """Edges from an initial state to one on the cycle, and the edges of the cycle; no edges in it are stuttering."""

    start: int
    stem: tuple[int, ...]
    cycle: tuple[int, ...]


def find_lasso(
    graph: Graph, fairness: Fairness, starts: Iterable[int], stays: Sequence[int], tick: Tick = no_tick
) -> Lasso | None:
    """A fair path that from some start on stays for ever in states n with stays[n], or None; `starts` are in order.

    No other way to such a path is shorter than its stem.
    """
    found_by = _reach(graph, starts, stays, tick)
    part_of: dict[int, Collection[int]] = {}
    for part in fair_parts(graph, fairness, found_by, tick):
        part_of.update(dict.fromkeys(part, part))
    entry = next((number for number in found_by if number in part_of), None)
    if entry is None:
        return None
    cycle = _cycle(graph, fairness, part_of[entry], entry)
    after = graph.trail(found_by, entry)
    start = graph.source[after[0]] if after else entry
    before = graph.trail(graph.found_by, start)
    return Lasso(graph.source[before[0]] if before else start, (*before, *after), cycle)


def _reach(graph: Graph, starts: Iterable[int], stays: Sequence[int], tick: Tick) -> dict[int, int]:
    """The states that starts lead to within `stays`, nearest first, each with the edge that found it (-1: a start)."""
    pending = deque(number for number in starts if stays[number])
    found_by: dict[int, int] = {}
    queue: deque[tuple[int, int]] = deque()
    ordered: dict[int, int] = {}
    while pending or queue:
        if pending and (not queue or graph.depth[pending[0]] <= queue[0][0]):
            number = pending.popleft()
            distance = graph.depth[number]
            found_by[number] = -1
        else:
            distance, number = queue.popleft()
        if number in ordered:
            continue
        tick()
        ordered[number] = found_by[number]
        for edge in graph.edges(number):
            after = graph.to[edge]
            if stays[after] and after not in found_by:
                found_by[after] = edge
                queue.append((distance + 1, after))
    return ordered


def fair_parts(graph: Graph, fairness: Fairness, inside: Collection[int], tick: Tick = no_tick) -> Iterator[set[int]]:
    """The largest sets of states, strongly connected within `inside`, in which a fair path can visit all for ever."""
    for part in components(graph, inside, tick):
        taken = 0
        if len(part) > 1:
            for number in part:
                tick()
                for edge in graph.edges(number):
                    if graph.to[edge] in part:
                        taken |= 1 << graph.action(edge)
        neglected = fairness.neglects(graph, part, taken)
        if neglected & fairness.strong:
            rest = {number for number in part if not graph.able[number] & neglected & fairness.strong}
            yield from fair_parts(graph, fairness, rest, tick)
        elif not neglected:
            yield part


def components(graph: Graph, inside: Collection[int], tick: Tick = no_tick) -> Iterator[set[int]]:
    """The strongly connected components of a part of a graph (Tarjan's algorithm, without recursion)."""
    place: dict[int, int] = {}
    low: dict[int, int] = {}
    position: dict[int, int] = {}
    stack: list[int] = []
    for root in inside:
        work = [] if root in place else [root]
        while work:
            number = work[-1]
            if number not in place:
                tick()
                place[number] = low[number] = len(place)
                position[number] = graph.first[number]
                stack.append(number)
            for edge in range(position[number], graph.first[number + 1]):
                after = graph.to[edge]
                if after in inside and after not in place:
                    position[number] = edge
                    work.append(after)
                    break
                if after in low:
                    low[number] = min(low[number], low[after])
            else:
                work.pop()
                if low[number] == place[number]:
                    yield _cut_off(stack, low, number)


def _cut_off(stack: list[int], low: dict[int, int], root: int) -> set[int]:
    """The component that begins at a root; its states are finished: they leave the stack, and `low`."""
    part: set[int] = set()
    while root not in part:
        part.add(stack.pop())
    for number in part:
        del low[number]
    return part


def _cycle(graph: Graph, fairness: Fairness, part: Collection[int], entry: int) -> tuple[int, ...]:
    """A way round from the entry back to it within a fair part, that neglects nothing; empty where it may stay."""
    demands: list[int] = []
    while True:
        edges: list[int] = []
        for action in demands:
            _meet(graph, part, entry, edges, action, weak=bool(fairness.weak >> action & 1))
        at = graph.to[edges[-1]] if edges else entry
        edges += _way(graph, part, at, lambda number: number == entry)
        taken = 0
        for edge in edges:
            taken |= 1 << graph.action(edge)
        neglected = fairness.neglects(graph, [entry, *(graph.to[edge] for edge in edges)], taken)
        if not neglected:
            return tuple(edges)
        demands.append((neglected & -neglected).bit_length() - 1)


def _meet(graph: Graph, part: Collection[int], entry: int, edges: list[int], action: int, *, weak: bool) -> None:
    """Go on to where an action is taken (then take it) or, if that will do, to where it is not enabled."""

    def taking(number: int) -> int | None:
        return next((e for e in graph.edges(number) if graph.action(e) == action and graph.to[e] in part), None)

    def meets(number: int) -> bool:
        return taking(number) is not None or (weak and not graph.able[number] >> action & 1)

    at = graph.to[edges[-1]] if edges else entry
    edges += _way(graph, part, at, meets)
    at = graph.to[edges[-1]] if edges else entry
    edge = taking(at)
    if edge is not None:
        edges.append(edge)


def _way(graph: Graph, part: Collection[int], start: int, wanted: Demand) -> list[int]:
    """A shortest way within a part from a state to the first one that is wanted; it is known to be there."""
    found_by = {start: -1}
    queue = deque([start])
    while True:
        number = queue.popleft()
        if wanted(number):
            return graph.trail(found_by, number)
        for edge in graph.edges(number):
            after = graph.to[edge]
            if after in part and after not in found_by:
                found_by[after] = edge
                queue.append(after)
