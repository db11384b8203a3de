"""Which configurations need the fence: each combination of features is decided twice, freed at once and as a release does.

*Unsafe* means what no order of the compute stream saves. A block that is freed under a step in flight and given to a later
step of the same stream does no harm: the later step writes after the earlier one. A load is in no such order, so it must not
be given a block that a step in flight may still use (`no-unordered-write-in-flight`); and whatever the reason, nobody whose
result is kept may read what is not his own (`read-freshness`), nor find a block in the prefix cache that nobody has written
(`no-hit-on-unwritten`). `no-reuse-in-flight` and `write-ownership` are left out: they ask for more, and only of a release that
has a fence. Every reachable state is looked at; each trace is run again in the interpreted spec.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from typing import Any

from ...spec.kv.state import Job
from ...spec.lang import BoundSpec, Spec, SpecError, State
from ...spec.lang.views import Cells, read
from ...traces.claims import shows
from ...traces.trace import Trace, follow
from ..explore.conclude import conclude
from ..explore.memory import default_budget
from ..explore.native.engine import NativeEngine
from ..explore.reference import ReferenceEngine
from ..explore.walk import EngineDisagrees
from ..model import SPEC_ERROR, Limits, Model, Options
from ..result import PropertyResult, Result, Verdict
from .condition import Combination, Condition, Feature, Value, minimal

Values = Mapping[str, Value]
GRID: Mapping[str, tuple[Value, ...]] = {
    "kv-role": ("none", "kv_consumer", "kv_both", "kv_producer"),
    "remote-tokens": (0, 1),
    "steps-in-flight": (1, 2, 3),
    "enable-prefix-caching": (0, 1),
    "async-scheduling": (0, 1),
}
"""The features that are combined, with their values; what is given for one takes their place."""
SIZES: Mapping[str, Value] = {"requests": 2, "blocks": 3, "prompt-tokens": 2, "max-tokens": 2}
"""The bounds of every combination, unless others are given: two requests can share a block, and one can be preempted."""
PATHS = ("finish-free", "abort-free", "preemption-free")
"""The switches that say which frees wait behind the fence: of requests that ended, were aborted, were preempted."""
CORRUPTION = ("no-unordered-write-in-flight", "read-freshness", "no-hit-on-unwritten")
"""The properties that count, see above."""
STAKES = (
    "a-request-ends-in-flight",
    "preemption-with-a-step-in-flight",
    "a-load-lands-while-a-step-is-in-flight",
    "two-requests-share-a-block",
    "a-free-is-parked",
)
"""Witnesses without which `safe` says nothing, where they apply; the last one where frees are deferred."""
FEW = 300
"""States that the interpreted search looks at before the model is compiled."""
WALK = 20_000
"""Transitions of the walk that looks for a load into a block that was freed."""


class Need(Enum):
    """What a release makes of a configuration."""

    HAS = "needed, on"
    OFF = "needed, OFF"
    FAILS = "needed, on, FAILS"
    IDLE = "for nothing"
    NONE = "not needed"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Decision:
    """Whether anything is corrupted at some bounds: what and how (`found`), or in how many states nothing is."""

    verdict: Verdict
    distinct: int = 0
    found: PropertyResult | None = None
    reason: str | None = None

    @property
    def trace(self) -> Trace | None:
        """The shortest counterexample."""
        return None if self.found is None else self.found.trace


@dataclass(frozen=True)
class Row:
    """One combination in one release: freed at once, and as it is; `deferred` are the frees that wait for the fence."""

    combination: Combination
    model: Model
    deferred: tuple[str, ...]
    at_once: Decision
    as_is: Decision

    @property
    def need(self) -> Need:
        """Whether the gate is needed, and on."""
        if self.as_is.verdict is Verdict.VIOLATED:
            return Need.FAILS if self.deferred else Need.OFF
        if Verdict.UNDETERMINED in (self.at_once.verdict, self.as_is.verdict):
            return Need.UNDECIDED
        if self.at_once.verdict is Verdict.VIOLATED:
            return Need.HAS
        return Need.IDLE if self.deferred else Need.NONE


@dataclass(frozen=True)
class Release:
    """A profile with its rows. The conditions are None while a combination is undecided: they would not be exact."""

    name: str
    switches: Values
    rows: tuple[Row, ...]
    unsafe: Condition | None
    gate: Condition
    exposed: Condition | None
    idle: Condition | None

    def having(self, *needs: Need) -> list[Row]:
        """The rows of which one of these is true."""
        return [row for row in self.rows if row.need in needs]

    @property
    def open(self) -> list[Row]:
        """The rows in which something is corrupted in the release as it is, shortest trace first."""
        return sorted(self.having(Need.OFF, Need.FAILS), key=lambda row: len(row.as_is.trace or ()))


@dataclass(frozen=True)
class Answer:
    """Which configurations need the fence and have it, for some releases, at these sizes."""

    features: tuple[Feature, ...]
    sizes: Values
    releases: tuple[Release, ...]

    @property
    def verdict(self) -> Verdict:
        """VIOLATED where the gate is missing somewhere; UNDETERMINED where a combination is; else HOLDS."""
        if any(release.open for release in self.releases):
            return Verdict.VIOLATED
        undecided = any(release.having(Need.UNDECIDED) for release in self.releases)
        return Verdict.UNDETERMINED if undecided else Verdict.HOLDS

    @property
    def exit_code(self) -> int:
        """0 what needs the gate has it, 1 not everything has, 3 undetermined."""
        return {Verdict.HOLDS: 0, Verdict.VIOLATED: 1, Verdict.UNDETERMINED: 3}[self.verdict]

    @property
    def notes(self) -> list[str]:
        """What makes a table say less than it seems to."""
        rows = [row for release in self.releases for row in release.rows]
        told: list[str] = []
        undecided = [row for row in rows if row.need is Need.UNDECIDED]
        if undecided and self.verdict is Verdict.VIOLATED:
            why = next(w for row in undecided for w in (row.at_once.reason, row.as_is.reason) if w)
            told.append(f"{len(undecided)} of {len(rows)} combinations are undecided: {why}")
        if all(row.at_once.verdict is Verdict.HOLDS for row in rows):
            told.append("freeing at once is unsafe nowhere in this grid: it shows no gate to be needed, nor to be right")
        return told


def grid(spec: Spec, given: Values) -> tuple[tuple[Feature, ...], list[Combination]]:
    """The features with the values that occur, and their combinations; a feature that is given has this one value.

    `BoundsError` where it cannot have it.
    """
    values = {name: (spec.bounds[name].parse(given[name]),) if name in given else some for name, some in GRID.items()}
    found = [c for c in itertools.product(*values.values()) if _occurs(dict(zip(values, c, strict=True)))]
    had = [set(one) for one in zip(*found, strict=True)] or [set[Value]() for _ in values]
    features = (Feature(n, tuple(v for v in some if v in h)) for (n, some), h in zip(values.items(), had, strict=True))
    return tuple(features), found


def _occurs(values: dict[str, Value]) -> bool:
    """Whether an engine can be so: loads need a connector, and asynchronous scheduling has at least two steps in flight.

    The latter is `VllmConfig.max_concurrent_batches` (0.23 to 0.33). Every role can load: of a producer's,
    `NixlConnector` does with `bidirectional_kv_xfer`.
    """
    loads, steps = int(values["remote-tokens"]) > 0, int(values["steps-in-flight"])
    return not (loads and values["kv-role"] == "none") and not (values["async-scheduling"] == 1 and steps < 2)


Told = Callable[[str, int, int], None]


def find_configs(
    spec: Spec, profiles: Mapping[str, Values], given: Values, limits: Limits, told: Told, engine: str = "native"
) -> Answer:
    """Decide every combination for every profile; `told` hears of each before it begins: profile, number, how many."""
    features, combinations = grid(spec, given)
    fixed = {**SIZES, **{name: value for name, value in given.items() if name not in GRID}}
    decider, releases = Decider(limits, engine), list[Release]()
    for name, switches in profiles.items():
        rows: list[Row] = []
        for number, combination in enumerate(combinations, 1):
            told(name, number, len(combinations))
            chosen = {f.name: v for f, v in zip(features, combination, strict=True)}
            rows.append(_row(Model.of(spec, {**switches, **fixed, **chosen}, profile=name), combination, decider))
        releases.append(_release(name, switches, features, rows))
    values = {n: v for n, v in releases[0].rows[0].model.bound.values.items() if n in fixed}
    return Answer(features, values, tuple(releases))


def _row(model: Model, combination: Combination, decider: Decider) -> Row:
    bound = model.bound
    once = BoundSpec(model.spec, {**bound.values, **dict.fromkeys(PATHS, "at-once")})
    waits = deferred(bound)
    at_once = decider.decide(replace(model, bound=once), fenced=False)
    as_is = decider.decide(model, fenced=True) if waits else _at_home(at_once, bound)
    return Row(combination, model, waits, at_once, as_is)


def deferred(bound: BoundSpec) -> tuple[str, ...]:
    """Which frees the release defers at these bounds: its gate is on, and the switch says so (`deferred` of the spec)."""
    on = bound.rebind(_gate(bound.spec))()
    return tuple(path for path in PATHS if bound.values[path] == "fenced") if on else ()


@cache
def _gate(spec: Spec) -> Callable[[], bool]:
    return next(names["gate"] for module in spec.modules if "gate" in (names := vars(module)))


def _release(name: str, switches: Values, features: tuple[Feature, ...], rows: list[Row]) -> Release:
    def condition(true: Callable[[Row], bool], asked: Callable[[Row], Decision] | None = None) -> Condition | None:
        if asked is not None and any(asked(row).verdict is Verdict.UNDETERMINED for row in rows):
            return None
        truth = {row.combination: true(row) for row in rows}
        made = minimal(features, truth)
        if any(made.holds(c) != expected for c, expected in truth.items()):
            raise RuntimeError(f"{name}: {made.words} does not agree with the table that it was computed from")
        return made

    gate = condition(lambda row: bool(row.deferred))
    assert gate is not None
    unsafe = condition(lambda row: row.at_once.verdict is Verdict.VIOLATED, lambda row: row.at_once)
    exposed = condition(lambda row: row.need in (Need.OFF, Need.FAILS), lambda row: row.as_is)
    idle = condition(lambda row: row.need is Need.IDLE, lambda row: row.as_is) if unsafe is not None else None
    return Release(name, switches, tuple(rows), unsafe, gate, exposed, idle)


class Decider:
    """Decides models one after the other, within limits of all of them together.

    Two models whose lowered programs and initial states are the same have the same states: they are searched once.
    """

    def __init__(self, limits: Limits, engine: str = "native") -> None:
        self.limits, self.engine = limits, engine
        self.ends = None if limits.max_seconds is None else time.monotonic() + limits.max_seconds
        self.known: dict[Any, Result] = {}
        self.searches = 0

    def decide(self, model: Model, *, fenced: bool) -> Decision:
        """Whether anything is corrupted; `fenced` says that frees must be seen behind the fence."""
        bound = model.bound
        wanted = {*CORRUPTION, *(STAKES if fenced else STAKES[:-1])}
        bound.properties = tuple(p for p in bound.every if p.name in wanted)
        left = None if self.ends is None else self.ends - time.monotonic()
        if self.limits.cancelled() or (left is not None and left <= 0):
            reason = self.limits.reason("cancelled" if self.limits.cancelled() else "max-time")
            return Decision(Verdict.UNDETERMINED, reason=reason)
        result = self._searched(model, replace(self.limits, max_seconds=left))
        if result.verdict is Verdict.HOLDS and bound.values["remote-tokens"] and not reuses(bound):
            reason = f"vacuous: no load into a block that was freed, in {WALK:,} transitions at random"
            return Decision(Verdict.UNDETERMINED, result.figures.distinct, reason=reason)
        found = result.violations[0] if result.violations else None
        made = Decision(result.verdict, result.figures.distinct, found, result.reason)
        if result.cut and left is not None and result.cut.endswith("(--max-time)"):
            made = replace(made, reason=self.limits.reason("max-time"))
        return _at_home(made, bound)

    def _searched(self, model: Model, limits: Limits) -> Result:
        bound = model.bound
        limits = replace(limits, max_bytes=limits.max_bytes or default_budget())
        options, native = Options(deadlock=False, limits=limits), NativeEngine(model)
        compiled = native.load(options)
        program = native.program
        names = tuple(item.name for item in (*bound.actions, *bound.properties))
        key = (program.text, tuple(program.constants.items()), names, tuple(state for _, _, state in bound.initial()))
        if key not in self.known:
            result = self._explored(model, options, native, compiled=compiled)
            self.searches += 1
            if any(p.name == SPEC_ERROR for p in result.violations):
                raise SpecError(f"the spec leaves its own bounds: {result.violations[0].reason}")
            if result.cut is not None:
                return result
            self.known[key] = result
        return self.known[key]

    def _explored(self, model: Model, options: Options, native: NativeEngine, *, compiled: bool) -> Result:
        """Search a model: a few states are faster interpreted than compiled, unless its code is there."""
        reference, limits = ReferenceEngine(model), options.limits
        if self.engine == "reference":
            return conclude(model, reference, reference.run(options), options, {})
        if not compiled:
            few = replace(limits, max_states=FEW)
            found = reference.run(replace(options, limits=few))
            if found.cut != few.reason("max-states"):
                return conclude(model, reference, found, options, {})
        return conclude(model, native, native.run(options), options, {})


def _at_home(decision: Decision, bound: BoundSpec) -> Decision:
    """The decision with its trace run at these bounds, in the interpreted spec; `EngineDisagrees` if it is no trace there."""
    found, trace = decision.found, decision.trace
    if found is None or trace is None:
        return decision
    moved = follow(bound, replace(trace, values=bound.values))
    if not shows(bound, moved):
        raise EngineDisagrees(f"{trace.property}: the trace does not show it in the interpreted spec")
    return replace(decision, found=replace(found, trace=moved))


def reuses(bound: BoundSpec) -> bool:
    """Whether a walk at random meets a load into a block that a request gave back before."""
    pick, given_back = random.Random(1), set[int]()
    instances = [(rule, args) for rule in bound.actions for args in rule.choices()]
    state = bound.initial()[0][2]
    for _ in range(WALK):
        after = next(_taken(bound, state, pick.sample(instances, len(instances))), None)
        if after is None:
            given_back, after = set[int](), bound.initial()[0][2]
        was, now = (read(Cells(one), 0, bound.shape) for one in (state, after))
        for r in range(int(bound.values["requests"])):
            begins = was.job[r] == Job.NONE and now.job[r] == Job.MOVING
            if begins and any(now.key[b] == 0 for b in given_back & set(now.table[r])):
                return True
            given_back |= {b for b in was.table[r] if b in now.free}
        state = after
    return False


def _taken(bound: BoundSpec, state: State, instances: Sequence[tuple[Any, Any]]) -> Iterator[State]:
    for rule, args in instances:
        after = bound.after(state, rule, args)
        if after is not None:
            yield after
