"""Progress properties on the full graph of states: is there a fair path that never gets there?

What a fair path is says `lasso`. An @eventually property fails if such a path stays, from an initial state on, where it
does not hold; a @leads_to property if one does so from a reachable state on in which its condition holds. A lasso that
is found is run again in the interpreted spec, and checked again there, before it is shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ...spec.lang import BoundSpec, Property, SpecError
from ...traces.lasso import objection
from ...traces.trace import Step, Trace, follow
from ..model import Limits
from .findings import OnProgress, Progress
from .lasso import Fairness, Graph, Lasso, find_lasso
from .memory import resident_memory
from .walk import EngineDisagrees

LIVENESS = ("eventually", "leads_to")
Outcome = Trace | str | None
"""A lasso that violates a property; or why it was not decided, in words; or None where it holds."""


class Stopped(Exception):
    """A limit was reached: which, in words."""


class Guard:
    """Raises `Stopped` at a limit; called once for each piece of work, it looks at clock and memory now and then."""

    EVERY = 256

    def __init__(self, limits: Limits, spent: float, tell: Callable[[], None] | None = None) -> None:
        self.limits, self.began, self.tell, self.calls = limits, time.monotonic() - spent, tell, 0
        self.told = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the search began."""
        return time.monotonic() - self.began

    def __call__(self) -> None:
        """Count one piece of work."""
        self.calls += 1
        if self.calls % self.EVERY == 1:
            self.look()

    def look(self) -> None:
        """Compare with the limits at once."""
        limits, now = self.limits, time.monotonic()
        if limits.cancelled():
            raise Stopped(limits.reason("cancelled"))
        if limits.max_seconds is not None and self.seconds > limits.max_seconds:
            raise Stopped(limits.reason("max-time"))
        if limits.max_bytes is not None and resident_memory() > limits.max_bytes:
            raise Stopped(limits.reason("max-memory"))
        if self.tell is not None and now - self.told >= 1:
            self.told = now
            self.tell()


def decide(bound: BoundSpec, limits: Limits, spent: float = 0.0, on_progress: OnProgress | None = None) -> dict[str, Outcome]:
    """For every progress property, what is found; `spent` is how many seconds of the time limit are gone."""
    properties = [prop for prop in bound.properties if prop.kind in LIVENESS]
    if not properties:
        return {}
    graph = Graph.starting(state for _, _, state in bound.initial())
    guard = Guard(limits, spent)
    guard.tell = None if on_progress is None else lambda: on_progress(_progress(graph, guard))
    try:
        complete(graph, bound, limits, guard)
    except (Stopped, SpecError) as error:
        return {prop.name: str(error) for prop in properties}
    fairness = fairness_of(bound)
    decided: dict[str, Outcome] = {}
    for prop in properties:
        try:
            lasso = _lasso(graph, bound, prop, fairness, guard)
            decided[prop.name] = None if lasso is None else _trace(graph, bound, prop, lasso)
        except (Stopped, SpecError) as error:
            decided[prop.name] = str(error)
    return decided


def complete(graph: Graph, bound: BoundSpec, limits: Limits, guard: Guard) -> None:
    """Add every reachable state and transition to a graph, without symmetry; `Stopped` if a limit is reached first."""
    while (state := graph.waiting()) is not None:
        guard()
        graph.expand((rule.number, args, after) for rule, args, after in bound.transitions(state))
        if limits.max_states is not None and len(graph.states) > limits.max_states:
            raise Stopped(f"more than {limits.max_states:,} states without symmetry (--max-states)")


def fairness_of(bound: BoundSpec) -> Fairness:
    """The declared fairness of the actions."""
    weak, strong = (
        sum(1 << rule.number for rule in bound.actions if rule.declared.declaration.fair == kind) for kind in ("weak", "strong")
    )
    return Fairness(weak, strong)


def _progress(graph: Graph, guard: Guard) -> Progress:
    expanded, states = len(graph.able), len(graph.states)
    depth = graph.depth[max(0, expanded - 1)]
    rate = expanded / max(guard.seconds, 1e-9)
    note = "progress properties: every state without symmetry"
    return Progress(depth, states, len(graph.to), states - expanded, rate, resident_memory(), note)


def _lasso(graph: Graph, bound: BoundSpec, prop: Property, fairness: Fairness, guard: Guard) -> Lasso | None:
    unmet = bytearray(len(graph.states))
    for number, state in enumerate(graph.states):
        guard()
        unmet[number] = not bound.holds(prop, state)
    starts = (number for number in range(graph.initial) if unmet[number])
    if prop.kind == "leads_to":
        starts = (n for n, state in enumerate(graph.states) if unmet[n] and bound.condition_holds(prop, state))
    return find_lasso(graph, fairness, starts, unmet, guard)


def _trace(graph: Graph, bound: BoundSpec, prop: Property, lasso: Lasso) -> Trace:
    """The lasso as a trace, run and checked from scratch; `EngineDisagrees` if it does not violate the property."""
    steps: list[Step] = []
    for edge in (*lasso.stem, *lasso.cycle):
        action, args = graph.instances[graph.what[edge]]
        steps.append(Step(bound.actions[action].name, args, graph.states[graph.to[edge]]))
    initial = graph.states[lasso.start]
    if not lasso.cycle:
        steps += _idle(bound, steps[-1] if steps else Step("", (), initial))
    named = next(
        (None if rule is None else (rule.name, args) for rule, args, state in bound.initial() if state == initial), None
    )
    made = Trace(bound.spec.name, bound.values, prop.name, named, initial, tuple(steps), len(lasso.stem))
    trace = follow(bound, made)
    wrong = objection(bound, prop, trace)
    if wrong is not None:
        raise EngineDisagrees(f"{prop.name}: the lasso does not violate it: {wrong}")
    return trace


def _idle(bound: BoundSpec, last: Step) -> list[Step]:
    """An action instance that is enabled in the last state and leaves it as it is, which tells more than stuttering."""
    found = ((rule, args) for rule, args, after in bound.transitions(last.state) if after == last.state)
    return [Step(rule.name, args, last.state) for rule, args in found][:1]
