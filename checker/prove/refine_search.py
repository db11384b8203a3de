"""`fencepost check --refines`: every transition of a spec at these bounds, held against a protocol of any size.

Breadth-first with compiled steps. From each state that is kept (one of those that differ only in the names of
interchangeable members) every transition is looked at as it is, before its successor is given its name in turn.
"""

from __future__ import annotations

import time
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ...spec.fence.finite import State as ProtocolState
from ...spec.lang import BoundSpec, State
from ...spec.lang.decoder import decoder
from ...traces.trace import Step, Trace, follow
from ..explore.findings import OnProgress, Progress
from ..explore.memory import peak_memory, resident_memory
from ..explore.native.pack import CellLayout
from ..explore.native.stepper import Stepper, cell_struct
from ..explore.walk import EngineDisagrees
from ..model import Limits, Model
from ..result import PropertyResult, Status, Verdict
from .refine import Against, RefinementError, Refusal

EVERY = 64
"""States between two looks at the limits."""


@dataclass(frozen=True)
class Refined:
    """What came of holding a spec against a protocol: how many states, transitions and actions of the protocol were seen.

    `taken` has every action of the protocol in order, with how often it was taken; `stutters` counts the transitions that
    are none of its actions. `trace` leads to the transition that `refusal` is about (of length 0: to the initial state).
    """

    protocol: str
    note: str
    distinct: int
    generated: int
    per_depth: tuple[int, ...]
    stutters: int
    taken: Mapping[str, int]
    symmetry: bool
    seconds: Mapping[str, float]
    peak_memory_bytes: int
    cut: str | None
    refusal: Refusal | None
    trace: Trace | None

    @property
    def depth(self) -> int:
        """The greatest distance from an initial state."""
        return len(self.per_depth) - 1

    @property
    def unused(self) -> tuple[str, ...]:
        """The protocol's actions that no transition takes: nothing is said of them."""
        return tuple(name for name, times in self.taken.items() if times == 0)

    @property
    def verdict(self) -> Verdict:
        """VIOLATED outranks a search that was cut; one that took no action at all says nothing."""
        if self.refusal is not None:
            return Verdict.VIOLATED
        return Verdict.UNDETERMINED if self.reason else Verdict.HOLDS

    @property
    def reason(self) -> str | None:
        """Why the verdict is UNDETERMINED."""
        if self.refusal is not None:
            return None
        return self.cut or (None if any(self.taken.values()) else "vacuous: no transition is an action of the protocol")

    @property
    def exit_code(self) -> int:
        """0 holds, 1 violated, 3 undetermined."""
        return {Verdict.HOLDS: 0, Verdict.VIOLATED: 1, Verdict.UNDETERMINED: 3}[self.verdict]

    @property
    def violation(self) -> PropertyResult | None:
        """The transition that is none of the protocol, as a violated property."""
        if self.refusal is None or self.trace is None:
            return None
        statement = f"A transition is a row of actions that {self.protocol} allows, or changes nothing that it knows of."
        name, reason = self.trace.property, self.refusal.reason
        return PropertyResult(name, "refinement", statement, Status.VIOLATED, len(self.trace), reason, self.trace)


def refined(
    model: Model, protocol: str, limits: Limits, progress: OnProgress | None = None, *, symmetry: bool = True
) -> Refined:
    """Hold every transition within the limits against a protocol, up to the first that is none of it.

    `RefinementError` where the spec's mapping is none, `SpecError` where the spec leaves its own bounds.
    """
    return Search(model.bound, protocol, limits, progress, symmetry=symmetry).run()


class Search:
    """One search; see the module."""

    def __init__(self, bound: BoundSpec, protocol: str, limits: Limits, progress: OnProgress | None, *, symmetry: bool) -> None:
        begun = time.monotonic()
        self.bound, self.limits, self.progress = bound, limits, progress
        self.against = Against(bound, protocol)
        self.stepper = Stepper(bound, symmetry=symmetry)
        self.symmetry = symmetry and any(size > 1 for size in bound.permutable().values())
        self.decode = decoder(bound.shape)
        self.pack = cell_struct(CellLayout(bound.shape)).pack
        self.numbers: dict[bytes, int] = {}
        self.parents, self.said = array("q"), array("q")
        self.generated = self.stutters = 0
        self.taken: Counter[str] = Counter(dict.fromkeys(self.against.protocol.actions, 0))
        self.cut: str | None = None
        self.refusal: Refusal | None = None
        self.trace: Trace | None = None
        self.started = self.noted = time.monotonic()
        self.compiling = self.started - begun

    def run(self) -> Refined:
        """Search all levels, or until a transition is none of the protocol or a limit is reached."""
        per_depth: list[int] = []
        level = self._roots()
        while level:
            per_depth.append(len(level))
            depth = len(per_depth) - 1
            if self.refusal is not None or self._cut(depth):
                break
            level = self._expanded(level, depth)
        spent = {"compile": self.compiling, "search": time.monotonic() - self.started}
        return Refined(
            self.against.name,
            self.against.mapping.note,
            len(self.numbers),
            self.generated,
            tuple(per_depth),
            self.stutters,
            dict(self.taken),
            self.symmetry,
            spent,
            peak_memory(),
            self.cut,
            self.refusal,
            self.trace,
        )

    def _roots(self) -> list[State]:
        roots: list[State] = []
        for rule, args, state in self.bound.initial():
            refusal = self.against.begin(self.decode(state))
            if refusal is not None and self.refusal is None:
                start = None if rule is None else (rule.name, args)
                self.refusal = refusal
                self.trace = Trace(self.bound.spec.name, self.bound.values, self._property, start, state, ())
            self._meet(state, self.against.state(self.decode(state)), -1, roots)
        return roots

    @property
    def _property(self) -> str:
        return f"refines-{self.against.name}"

    def _meet(self, state: State, said: ProtocolState, parent: int, new: list[State]) -> None:
        """Number the representative of a state, if it was not met.

        What is said of the two must differ in names alone: then what is checked of the one holds of all that it stands for.
        """
        canonical, names = self.stepper.canonical(state)
        number = self.numbers.setdefault(self.pack(*canonical), len(self.numbers))
        if number == len(self.parents):
            self.parents.append(parent)
            new.append(canonical)
            if self.symmetry:
                self.said.append(hash(self.against.state(self.decode(canonical))))
        if self.symmetry and hash(renamed := self.against.renamed(said, names)) != self.said[number]:
            should, does = self.against.first_apart(renamed, self.against.state(self.decode(canonical)))
            raise self._unlike(f"state() should say {should} where members have other names, and says {does}")

    def _unlike(self, what: str) -> RefinementError:
        indices = ", ".join(self.bound.permutable())
        return RefinementError(
            f"@refines {self.against.name} tells members of {indices} apart that nothing else does: {what}; make it treat them "
            "alike, let `members` say which sorts have them, or search with --symmetry off"
        )

    def _expanded(self, level: list[State], depth: int) -> list[State]:
        """The states that a level leads to for the first time; stops at the first transition that is none of the protocol."""
        new: list[State] = []
        first = len(self.numbers) - len(level)
        for place, state in enumerate(level):
            if place % EVERY == 0 and self._stopped(depth, len(level) - place + len(new)):
                break
            if not self._expand(state, first + place, new):
                break
        return new

    def _expand(self, state: State, number: int, new: list[State]) -> bool:
        """Look at every transition out of a state; false where one is none of the protocol."""
        left = self.decode(state)
        before = self.against.state(left)
        for rule, args, after in self.stepper.successors(state):
            self.generated += 1
            said, row, refusal = self.against.check(before, left, self.decode(after), rule, args)
            if refusal is not None:
                self.trace, self.refusal = self._shown(number)
                return False
            for name, _ in row:
                self.taken[name] += 1
            self.stutters += not row
            self._meet(after, said, number, new)
        return True

    def _stopped(self, depth: int, queue: int) -> bool:
        now = time.monotonic()
        if self.progress is not None and now - self.noted >= 1:
            self.noted = now
            rate = len(self.numbers) / (now - self.started)
            self.progress(Progress(depth, len(self.numbers), self.generated, queue, rate, resident_memory()))
        return self._cut(None)

    def _cut(self, depth: int | None) -> bool:
        """Whether a limit is reached; that of the depth is looked at before a level."""
        limits, reached = self.limits, None
        if limits.cancelled():
            reached = "cancelled"
        elif limits.max_states is not None and len(self.numbers) > limits.max_states:
            reached = "max-states"
        elif limits.max_seconds is not None and time.monotonic() - self.started > limits.max_seconds:
            reached = "max-time"
        elif limits.max_bytes is not None and resident_memory() > limits.max_bytes:
            reached = "max-memory"
        elif depth is not None and limits.max_depth is not None and depth >= limits.max_depth:
            reached = "max-depth"
        self.cut = self.cut or (None if reached is None else limits.reason(reached))
        return self.cut is not None

    def _shown(self, number: int) -> tuple[Trace, Refusal]:
        """The transition that is none of the protocol as a shortest trace from the start, run in the interpreter."""
        path = [number]
        while self.parents[path[-1]] >= 0:
            path.append(self.parents[path[-1]])
        packed = list(self.numbers)
        wanted = [packed[at] for at in reversed(path)]
        rule, args, initial = next(one for one in self.bound.initial() if self._packed(one[2]) == wanted[0])
        state, steps = initial, list[Step]()
        for key in wanted[1:]:
            step = next((s for s in self._steps(state) if self._packed(s.state) == key), None)
            if step is None:
                raise EngineDisagrees(f"after {len(steps)} transitions the interpreted spec goes another way")
            steps.append(step)
            state = step.state
        last, refusal = self._last(state)
        start = None if rule is None else (rule.name, args)
        trace = Trace(self.bound.spec.name, self.bound.values, self._property, start, initial, (*steps, last))
        return follow(self.bound, trace), refusal

    def _packed(self, state: State) -> bytes:
        return self.pack(*self.stepper.canonical(state)[0])

    def _steps(self, state: State) -> list[Step]:
        return [Step(rule.name, args, after) for rule, args, after in self.bound.transitions(state)]

    def _last(self, state: State) -> tuple[Step, Refusal]:
        """The first transition out of a state that is none of the protocol."""
        left = self.decode(state)
        for rule, args, after in self.bound.transitions(state):
            refusal = self.against.check(self.against.state(left), left, self.decode(after), rule, args).refusal
            if refusal is not None:
                return Step(rule.name, args, after), refusal
        raise self._unlike("it allows a transition of one state and not that of another with other names")
