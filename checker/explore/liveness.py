"""Progress properties on the full graph of states: is there a fair path that never gets there?

A path is infinite; staying in a state for ever (stuttering) is a path too. It is fair if every action declared
`fair="weak"` that is enabled from some point on without interruption is taken again and again, and every action declared
`fair="strong"` that is enabled again and again is. As in TLA+, an action counts as enabled, and as taken, only by an instance
that changes the state, and fairness is about the action as a whole: some instance of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import networkx as nx

from ...spec.lang import Arguments, BoundSpec, Property, State
from ...traces.trace import Step, Trace, follow
from ..model import Limits
from .walk import EngineDisagrees

Edge = tuple[int, Arguments, int]
"""Number of the action, its arguments, number of the successor."""


@dataclass
class Graph:
    """Every state with its number, and every transition, in order; `initial` are the numbers of the initial states."""

    states: list[State] = field(default_factory=list[State])
    edges: list[list[Edge]] = field(default_factory=list[list[Edge]])
    initial: list[int] = field(default_factory=list[int])

    def enabled(self, number: int, action: int) -> bool:
        """Whether an action can change a state."""
        return any(a == action and after != number for a, _, after in self.edges[number])


@dataclass(frozen=True)
class Fairness:
    """Numbers of the weakly and of the strongly fair actions."""

    weak: tuple[int, ...]
    strong: tuple[int, ...]


def graph_of(bound: BoundSpec, limits: Limits) -> Graph | None:
    """The full graph, without symmetry; None if a limit is reached first."""
    graph, numbers = Graph(), dict[State, int]()

    def number(state: State) -> int:
        if state not in numbers:
            numbers[state] = len(graph.states)
            graph.states.append(state)
        return numbers[state]

    graph.initial = list(dict.fromkeys(number(state) for _, _, state in bound.initial()))
    while len(graph.edges) < len(graph.states):
        if limits.cancelled() or (limits.max_states is not None and len(graph.states) > limits.max_states):
            return None
        state = graph.states[len(graph.edges)]
        graph.edges.append([(rule.number, args, number(after)) for rule, args, after in bound.transitions(state)])
    return graph


def decide(bound: BoundSpec, limits: Limits) -> dict[str, Trace | None]:
    """For every progress property: a lasso that violates it, verified, or None where it holds; missing if undecided."""
    properties = [p for p in bound.properties if p.kind in ("eventually", "leads_to")]
    graph = graph_of(bound, limits) if properties else None
    if graph is None:
        return {}
    fairness = Fairness(*(tuple(r.number for r in bound.actions if _fair(r) == kind) for kind in ("weak", "strong")))
    decided: dict[str, Trace | None] = {}
    for prop in properties:
        goal = [bound.holds(prop, state) for state in graph.states]
        starts = graph.initial
        if prop.kind == "leads_to":
            starts = [n for n, state in enumerate(graph.states) if bound.condition_holds(prop, state)]
        lasso = find_lasso(graph, fairness, [n for n in starts if not goal[n]], lambda n, goal=goal: not goal[n])
        decided[prop.name] = None if lasso is None else _trace(bound, graph, prop, fairness, lasso)
    return decided


def _fair(rule: object) -> str | None:
    return rule.declared.declaration.fair  # pyright: ignore


@dataclass(frozen=True)
class Lasso:
    """A path as edges from a start state, then a cycle as edges back to its first state; an empty cycle is stuttering."""

    start: int
    stem: tuple[Edge, ...]
    cycle: tuple[Edge, ...]


def find_lasso(graph: Graph, fairness: Fairness, starts: list[int], stays: Callable[[int], bool]) -> Lasso | None:
    """A fair path from one of the starts through states that `stays` accepts only, or None if there is none."""
    paths = _paths(graph, starts, stays)
    fair = {number for component in _fair_components(graph, fairness, set(paths)) for number in component}
    entry = next((number for number in paths if number in fair), None)
    if entry is None:
        return None
    component = next(c for c in _fair_components(graph, fairness, set(paths)) if entry in c)
    start, stem = _path_to(paths, entry)
    return Lasso(start, stem, _cycle(graph, fairness, component, entry))


def _paths(graph: Graph, starts: list[int], stays: Callable[[int], bool]) -> dict[int, tuple[int, Edge] | None]:
    """For every state reached, nearest first: the state before it and the edge, or None for a start."""
    found: dict[int, tuple[int, Edge] | None] = {number: None for number in starts}
    queue = deque(found)
    while queue:
        number = queue.popleft()
        for edge in graph.edges[number]:
            if edge[2] not in found and stays(edge[2]):
                found[edge[2]] = (number, edge)
                queue.append(edge[2])
    return found


def _path_to(paths: dict[int, tuple[int, Edge] | None], number: int) -> tuple[int, tuple[Edge, ...]]:
    edges: list[Edge] = []
    while (before := paths[number]) is not None:
        number, edge = before
        edges.append(edge)
    return number, tuple(reversed(edges))


def _fair_components(graph: Graph, fairness: Fairness, inside: set[int]) -> Iterator[set[int]]:
    """Sets of states in which a path can go round for ever, fairly; every state can also stutter."""
    for component in _components(graph, inside):
        wanted = [a for a in fairness.strong if any(graph.enabled(n, a) for n in component)]
        missing = [a for a in wanted if not _taken(graph, a, component)]
        if missing:
            rest = {n for n in component if not any(graph.enabled(n, a) for a in missing)}
            yield from _fair_components(graph, fairness, rest)
        elif all(_taken(graph, a, component) or _off(graph, a, component) is not None for a in fairness.weak):
            yield component


def _components(graph: Graph, inside: set[int]) -> Iterable[set[int]]:
    part = nx.DiGraph()
    part.add_nodes_from(sorted(inside))
    part.add_edges_from((n, after) for n in sorted(inside) for _, _, after in graph.edges[n] if after in inside)
    return list(nx.strongly_connected_components(part))


def _taken(graph: Graph, action: int, component: set[int]) -> list[tuple[int, Edge]]:
    """The edges of an action within a component that change the state."""
    return [
        (n, edge)
        for n in sorted(component)
        for edge in graph.edges[n]
        if edge[0] == action and edge[2] in component and edge[2] != n
    ]


def _off(graph: Graph, action: int, component: set[int]) -> int | None:
    """A state of a component in which an action is not enabled."""
    return next((n for n in sorted(component) if not graph.enabled(n, action)), None)


def _cycle(graph: Graph, fairness: Fairness, component: set[int], entry: int) -> tuple[Edge, ...]:
    """A way round from the entry back to it that meets every demand of fairness; empty if it may stay where it is."""
    if not any(graph.enabled(entry, a) for a in (*fairness.weak, *fairness.strong)):
        return ()
    at, edges = entry, list[Edge]()
    for action in fairness.strong:
        if any(graph.enabled(n, action) for n in component):
            at = _visit(graph, component, at, edges, _taken(graph, action, component))
    for action in fairness.weak:
        met = any(e[0] == action for e in edges) or not graph.enabled(entry, action)
        if met or any(not graph.enabled(e[2], action) for e in edges):
            continue
        off = _off(graph, action, component)
        if off is not None:
            at = _go(graph, component, at, edges, {off})
        else:
            at = _visit(graph, component, at, edges, _taken(graph, action, component))
    if at != entry or not edges:
        _go(graph, component, at, edges, {entry}, leave=not edges)
    return tuple(edges)


def _visit(graph: Graph, component: set[int], at: int, edges: list[Edge], choices: list[tuple[int, Edge]]) -> int:
    """Go to the nearest of some edges and take it."""
    at = _go(graph, component, at, edges, {n for n, _ in choices})
    edge = next(edge for n, edge in choices if n == at)
    edges.append(edge)
    return edge[2]


def _go(graph: Graph, component: set[int], at: int, edges: list[Edge], goals: set[int], *, leave: bool = False) -> int:
    """Append the shortest way from a state to one of the goals within a component; with `leave`, at least one edge."""
    if at in goals and not leave:
        return at
    paths = _paths(graph, [at], lambda n: n in component)
    ways: list[tuple[Edge, ...]] = []
    for number in paths:
        _, way = _path_to(paths, number)
        ways += [(*way, edge) for edge in graph.edges[number] if edge[2] in goals and edge[2] in component]
        if ways:
            break
    edges += min(ways, key=len)
    return edges[-1][2]


def _trace(bound: BoundSpec, graph: Graph, prop: Property, fairness: Fairness, lasso: Lasso) -> Trace:
    """The lasso as a trace from an initial state, replayed and checked again from scratch."""
    start, edges = lasso.start, list(lasso.stem)
    if start not in graph.initial or prop.kind == "leads_to":
        first, before = _path_to(_paths(graph, graph.initial, lambda _: True), start)
        start, edges = first, [*before, *edges]
    loop = len(edges)
    steps = [Step(bound.actions[a].name, args, graph.states[after]) for a, args, after in (*edges, *lasso.cycle)]
    for rule, args, state in bound.initial():
        if state == graph.states[start]:
            named = None if rule is None else (rule.name, args)
            trace = follow(bound, Trace(bound.spec.name, bound.values, prop.name, named, state, tuple(steps), loop))
            verify(bound, prop, trace)
            return trace
    raise EngineDisagrees(f"{prop.name}: the lasso does not start in an initial state")


def verify(bound: BoundSpec, prop: Property, trace: Trace) -> None:
    """Check a lasso against the property and the declared fairness, by the interpreted spec alone; or `EngineDisagrees`."""
    assert trace.loop is not None
    states, cycle = trace.states, trace.states[trace.loop :]
    if states[trace.loop] != trace.last:
        raise EngineDisagrees(f"{prop.name}: the lasso does not close")
    first = 0
    if prop.kind == "leads_to":
        first = max(i for i, s in enumerate(states[: trace.loop + 1]) if bound.condition_holds(prop, s))
    if any(bound.holds(prop, state) for state in states[first:]):
        raise EngineDisagrees(f"{prop.name}: the lasso meets the property")
    taken = {
        step.action for before, step in zip(cycle, trace.steps[trace.loop :], strict=False) if before != step.state
    }
    able = [{r.name for r, _, after in bound.transitions(s) if after != s} for s in cycle]
    for rule in bound.actions:
        fair = _fair(rule)
        always, ever = all(rule.name in names for names in able), any(rule.name in names for names in able)
        if rule.name not in taken and ((fair == "weak" and always) or (fair == "strong" and ever)):
            raise EngineDisagrees(f"{prop.name}: the lasso is not fair to {rule.name}")
