"""Exhaustive lockstep: breadth-first over the product of the states of a spec and those of an implementation.

A product state is a state of the spec with a digest of the implementation, up to the names of interchangeable members. In each
of them every transition of the spec is compared. The first difference, at the least depth, ends the search; its path is run
again from the start before it is shown.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import cast

from ...spec.lang import SpecError
from ...traces.driver import Driver
from ...traces.trace import Trace
from ..explore.findings import OnProgress
from ..explore.native.stepper import Stepper
from ..model import Limits, Model
from .budget import Budget, few_collections
from .differences import differences
from .errors import ConformError, DriverUnstable
from .expand import Expander, Node, Steps, Visit
from .follow import RESET, Instance, Walk, confirm, restorable, retake, run
from .graph import Event, Graph
from .parallel import Expansion
from .result import Agreement, Figures, Hidden, Kind, Mismatch


def conform(
    model: Model,
    driver: Driver,
    limits: Limits,
    progress: OnProgress | None = None,
    *,
    symmetry: bool = True,
    workers: int = 1,
) -> Agreement:
    """Hold an implementation against a spec on every transition within the limits.

    With `symmetry` members that the spec does not tell apart stand for each other, in the implementation too: without it
    nothing is taken for granted, and there is more to compare. The result is the same for any number of `workers`.
    `ConformError` where the two do not fit each other, `DriverUnstable` where the driver does not show the same twice.
    """
    with few_collections():
        return Lockstep(model, driver, limits, Stepper(model.bound, symmetry=symmetry), progress, workers).run()


class Lockstep:
    """One comparison; see the module."""

    def __init__(
        self,
        model: Model,
        driver: Driver,
        limits: Limits,
        steps: Steps,
        progress: OnProgress | None = None,
        workers: int = 1,
    ) -> None:
        self.bound = model.bound
        self.driver = restorable(driver)
        self.steps = steps
        self.expander = Expander(model.bound, steps, self.driver)
        self.graph = Graph()
        self.expansion = Expansion(self.expander, self.graph.knows, workers)
        self.budget = Budget(limits, progress, self.graph, self.expansion.memory)
        self.taken = [0] * len(model.bound.actions)
        self.refusals = self.after_stop = self.depth = 0
        self.cut: str | None = None

    def run(self) -> Agreement:
        """Compare everything, or until something differs or a limit is reached."""
        self.driver.reset()
        with self.expansion:
            return self._agreement(self._compare())

    def _compare(self) -> Mismatch | None:
        mismatch = self._begin()
        level = [] if mismatch is not None else [self._root()]
        while level and mismatch is None and not self._cut(self.depth):
            following: list[Node] = []
            try:
                for node, visit in self.expansion.visits(level):
                    self._add(node, visit, following)
                    if visit.differs is not None:
                        mismatch = self._confirm(node, *visit.differs)
                    if mismatch is not None or self._cut(None):
                        break
                    self.budget.tell(self.depth, sum(self.taken), len(level) + len(following))
            except SpecError as error:
                self.cut = f"the spec leaves its own bounds: {error}"
            self.depth += bool(following)
            level = [] if self.cut else following
        return mismatch

    def _begin(self) -> Mismatch | None:
        """How the implementation differs from the spec before anything happened."""
        starts = self.bound.initial()
        if len(starts) != 1:
            raise ConformError(f"{self.bound.spec.name} has {len(starts)} initial states; an implementation starts in one")
        shown = self.driver.observe()
        if not isinstance(cast("object", shown), Mapping):
            raise ConformError(f"observe() of the driver gives {shown!r}; it has to be a dict of what is to be compared")
        found = differences(self.expander.observer.expected(starts[0][2]), shown)
        return Mismatch(Kind.OBSERVATION, run(self.bound, ()), RESET, found) if found else None

    def _root(self) -> Node:
        state = self.bound.initial()[0][2]
        canonical, digest = self.expander.identify(state)
        self.graph.add(canonical, digest, -1, None)
        return Node(0, state, digest, self.driver.save())

    def _add(self, node: Node, visit: Visit, following: list[Node]) -> None:
        """Count a visit, and number the product states that it was the first to meet."""
        for event, canonical, digest, stopped, state, saved in visit.fresh:
            number = self.graph.add(canonical, digest, node.number, event)
            if number is not None:
                following.append(Node(number, state, digest, saved, stopped))
        if node.stopped:
            self.after_stop += len(visit.taken)
        else:
            for action in visit.taken:
                self.taken[action] += 1
        self.refusals += visit.refusals

    def _confirm(self, node: Node, event: Event, kind: Kind) -> Mismatch:
        """A difference that two runs from the start show alike."""
        *path, last = self._instances([*self.graph.path(node.number), event])
        of = self.driver, self.expander.observer, self.bound, path, last
        found, _ = retake(*of, quiet=kind is Kind.NOT_QUIET)
        if found is None or found.kind is not kind:
            raise DriverUnstable(f"{last[0].name}{last[1]} differs, and not so when its path is run again")
        return confirm(*of, found)

    def _instances(self, events: Sequence[Event]) -> list[Instance]:
        return [(self.bound.actions[number], args) for number, args in events]

    def _cut(self, depth: int | None) -> bool:
        """Whether a limit is reached."""
        self.cut = self.budget.reached(depth) or self.cut
        return self.cut is not None

    def _agreement(self, mismatch: Mismatch | None) -> Agreement:
        complete = mismatch is None and self.cut is None
        never = [rule.name for rule in self.bound.actions if not self.taken[rule.number]]
        vacuous = [f"action {name} is never taken" for name in never]
        if not self.bound.actions:
            vacuous.append("no action applies at these bounds")
        return Agreement(
            target=self.driver.title,
            figures=Figures(
                spec_states=self.graph.spec_states,
                product_states=len(self.graph),
                transitions=sum(self.taken),
                taken={rule.name: self.taken[rule.number] for rule in self.bound.actions},
                refusals=self.refusals,
                depth=self.depth,
                seconds=time.monotonic() - self.budget.started,
                after_stop=self.after_stop,
            ),
            mismatch=mismatch,
            hidden=self._hidden(),
            cut=None if mismatch is not None else self.cut,
            vacuous=tuple(vacuous) if complete else (),
        )

    def _hidden(self) -> Hidden | None:
        """The spec states that hide something, and two paths that show it: the first ones, or what a cut may come of."""
        pair = self.graph.pair if self.cut is None else self.graph.crowded
        if pair is None:
            return None
        (one, first), (other, second) = map(self._digest_after, pair)
        found = differences(first, second)
        if not found:
            raise DriverUnstable("two paths led to different digests, and lead to the same when they are run again")
        many = [count for count in self.graph.counts if count > 1]
        return Hidden(len(many), max(many), (one, other), found)

    def _digest_after(self, number: int) -> tuple[Trace, object]:
        """The path to a product state, and the digest of the implementation that was run along it again."""
        path = self.graph.path(number)
        trace = run(self.bound, self._instances(path))
        walk = Walk(self.driver)
        for event, step in zip(path, trace.steps, strict=True):
            if walk.take(*self.expander.decoded[event], self.expander.observer.expected(step.state)) is not None:
                raise DriverUnstable(f"{step.action}{step.arguments} agreed, and differs when its path is run again")
        return trace, "stopped" if walk.last is not None else self.driver.digest(self.steps.canonical(trace.last)[1])
