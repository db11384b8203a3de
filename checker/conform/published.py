"""Recordings of published events against a spec: is there a run that publishes exactly these events, in these batches?

Which actions happened is not recorded, nor which members they were about: the search tries all of them, depth first and from
what has explained most events so far, so that a run that explains the recording is found soon; only where there is none,
all is searched. States that differ only in the names of members count as one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from types import FunctionType
from typing import Any, NamedTuple, Protocol

from ...spec.lang import Arguments, BoundsError, BoundSpec, Rule, SpecError, State
from ...spec.lang.layout import ArrayShape, SeqShape
from ...spec.lang.views import Cells, read
from ...traces.trace import Step, Trace
from ..explore.memory import resident_memory
from ..explore.native.stepper import Stepper
from ..model import Limits
from ..result import Verdict
from .errors import ConformError
from .kv_events import Batch, KVEvent, Recording
from .log import LogError

EVERY = 1024
"""States between two looks at the limits."""
KEPT = 50_000
"""Transitions whose notes are kept."""
WORTH = 2
"""How many decisions from outside one explained event is worth."""


class Outcome(Protocol):
    """How far events agree with what a transition publishes: the next event, and what it publishes instead of that one."""

    @property
    def memory(self) -> Hashable: ...
    @property
    def at(self) -> int: ...
    @property
    def instead(self) -> str | None: ...


class Published(Protocol):
    """What a spec says of published events: made by its `@published` function.

    A note is what a helper of the spec did, made by the function that `watched` has for it, `(call, state, *arguments)`. The
    memory is what the events so far have made known of a state, beside the state itself.
    """

    @property
    def watched(self) -> Mapping[Callable[..., Any], Callable[..., Any]]: ...
    @property
    def changed(self) -> Sequence[str]: ...
    @property
    def grown(self) -> Sequence[str]: ...
    @property
    def ghosts(self) -> Sequence[str]: ...
    @property
    def eager(self) -> Sequence[str]: ...
    @property
    def late(self) -> Mapping[str, Sequence[str]]: ...
    @property
    def unseen(self) -> str: ...
    def refuse(self, event: KVEvent | None) -> str | None: ...
    def read(self, events: Sequence[KVEvent]) -> None: ...
    def start(self) -> Hashable: ...
    def renamed(self, memory: Any, names: Mapping[str, Sequence[int]]) -> Hashable: ...
    def idle(self, state: Any) -> Sequence[Any]: ...
    def flushes(self, action: str) -> bool: ...
    def choices(self, action: str, arguments: Sequence[int]) -> int: ...
    def match(self, memory: Any, notes: Sequence[Any], after: Any, at: int, end: int) -> Outcome: ...
    def tell(self, number: int) -> str: ...


class Watched(BoundSpec):
    """A bound spec that notes what calls of some of its helpers do."""

    def __init__(self, bound: BoundSpec, watched: Mapping[Callable[..., Any], Callable[..., Any]]) -> None:
        self._hooks = watched
        self._notes: list[Any] = []
        super().__init__(bound.spec, bound.values, enumerable=bound.enumerable)

    def rebind(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with this spec's bounds, and with its note if it is one of the watched."""
        assert isinstance(function, FunctionType)
        if function in self._functions:
            return self._functions[function]
        made = super().rebind(function)
        hook = self._hooks.get(function)
        if hook is None:
            return made

        def noted(s: Any, *arguments: Any) -> None:
            note = hook(made, s, *arguments)
            if note is not None:
                self._notes.append(note)

        self._functions[function] = noted
        return noted

    def notes(self, state: State, rule: Rule, args: Arguments) -> tuple[Any, ...]:
        """What an enabled action notes, in order."""
        self._notes.clear()
        self.after(state, self.actions[rule.number], args)
        return tuple(self._notes)


@dataclass(frozen=True)
class Unpublished:
    """The first event that no run of the spec publishes: its batch and place in it (from 1), in words, and what else may come.

    The place is behind the last event, and `words` is None, where the batch itself ends too soon. `states` are possible after
    all before it.
    """

    batch: int
    event: int
    words: str | None
    states: int
    allowed: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """What came out of a recording: HOLDS means that some run of the spec publishes exactly these events, in these batches.

    `events` were explained, in `batches` whole ones, after a look at `states` states; `unseen` is what of them is not checked.
    `cut` says why nothing is known of the rest. `trace` is a run that explains the events, where it was asked for.
    """

    events: int
    batches: int
    states: int
    unseen: str
    unpublished: Unpublished | None = None
    cut: str | None = None
    trace: Trace | None = None

    @property
    def verdict(self) -> Verdict:
        """HOLDS, VIOLATED or UNDETERMINED; a recording without an event says nothing."""
        if self.unpublished is not None:
            return Verdict.VIOLATED
        return Verdict.HOLDS if self.cut is None and self.events else Verdict.UNDETERMINED

    @property
    def reason(self) -> str | None:
        """Why it is undetermined."""
        return self.cut if self.events or self.cut else "the recording has no event of the prefix cache"


def explain(recording: Recording, bound: BoundSpec, limits: Limits | None = None, *, trace: bool = False) -> Explanation:
    """Look for a run of the spec; `LogError` where an event is none that the spec can have at these bounds."""
    if bound.spec.published is None:
        raise ConformError(f"{bound.spec.name} does not say what its runs publish; KV events are read with --spec kv")
    published: Published = bound.spec.published(bound.values)
    refuse_foreign(recording, published)
    published.read(recording.events)
    return _Search(recording, bound, published, limits or Limits(), keep=trace).result()


def refuse_foreign(recording: Recording, published: Published) -> None:
    """`LogError` at the first event that the spec cannot have at its bounds, whatever happens."""
    if (wrong := published.refuse(None)) is not None:
        raise LogError(f"{recording.path}: {wrong}")
    for batch in recording.batches:
        for position, event in enumerate(batch.events, 1):
            if (wrong := published.refuse(event)) is not None:
                raise LogError(f"{recording.path}: batch {batch.number}, event {position}: {event['type']} {wrong}")


class _Node(NamedTuple):
    """A state, the representative of those that count as one, after some events and `choices` decisions from the start.

    Only actions in `then` may follow, if it is given. `before` is the node that led here, where a trace is wanted.
    """

    state: State
    memory: Hashable
    at: int = 0
    choices: int = 0
    then: Sequence[str] | None = None
    before: _Node | None = None

    @property
    def key(self) -> tuple[bytes, Hashable, int, bool]:
        """What tells nodes apart."""
        return _packed(self.state), self.memory, self.at, self.then is None


class _Cut(Exception):
    """A limit was reached."""


class _Search:
    def __init__(self, recording: Recording, bound: BoundSpec, published: Published, limits: Limits, *, keep: bool) -> None:
        self.recording, self.bound, self.published, self.limits, self.keep = recording, bound, published, limits, keep
        self.steps = _Steps(bound, published)
        self.ends = [end for end, batch in _ends(recording) for _ in batch.events]
        self.boundaries = {0, *self.ends}
        self.last = len(self.ends)
        self.queue: list[tuple[int, int, _Node]] = []
        self.best: _Node | None = None
        self.counts = [0] * (self.last + 1)
        self.seen: set[tuple[bytes, Hashable, int, bool]] = set()
        self.place = 0
        """Twice the number of the first event that nothing explains so far, plus 1; minus 1 where a batch ends too soon."""
        self.instead: dict[str, None] = {}

    def result(self) -> Explanation:
        """Search until the recording is explained, or nothing is left to try."""
        try:
            found = self._search()
        except _Cut as reached:
            return self._made(str(reached), None)
        return self._made(self.recording.gap, self._unpublished() if found is None else None)

    def _made(self, cut: str | None, lost: Unpublished | None) -> Explanation:
        events = self.place // 2
        batches = sum(end <= events for end, _ in _ends(self.recording)) - (self.place % 2 == 0)
        trace = self._trace(self.best) if self.keep and self.best is not None else None
        return Explanation(events, batches, len(self.seen), self.published.unseen, lost, None if lost else cut, trace)

    def _search(self) -> _Node | None:
        """A node in which all events are explained, or None where there is none."""
        for _, _, state in self.bound.initial():
            self._push(self._representative(_Node(state, self.published.start())))
        while self.queue:
            node = heappop(self.queue)[-1]
            if node.at == self.last:
                return node
            self._expand(node)
        return None

    def _push(self, node: _Node) -> None:
        """Keep a node for later unless one like it was met."""
        key = node.key
        if key in self.seen:
            return
        self.seen.add(key)
        self.counts[node.at] += 1
        if self.best is None or node.at > self.best.at:
            self.best = node
        heappush(self.queue, (node.choices - WORTH * node.at, -len(self.seen), node))
        self._missing(2 * node.at + 1, None)
        if len(self.seen) % EVERY == 0:
            self._look()
        if self.limits.max_states is not None and len(self.seen) > self.limits.max_states:
            raise _Cut(self.limits.reason("max-states"))

    def _look(self) -> None:
        if self.limits.cancelled():
            raise _Cut(self.limits.reason("cancelled"))
        if self.limits.max_bytes is not None and resident_memory() > self.limits.max_bytes:
            raise _Cut(self.limits.reason("max-memory"))

    def _expand(self, node: _Node) -> None:
        """Take every step from a node."""
        try:
            for rule, args, after, notes in self.steps.of(node.state):
                made = self._after(node, rule, args, after, notes)
                if made is not None:
                    self._push(self._representative(made))
        except SpecError as error:
            where = self._where(self.place)[0]
            raise LogError(
                f"{self.recording.path}: batch {where}: the spec leaves its own bounds ({error}); "
                "are the bounds too small for this recording?"
            ) from error
        made = self._idle(node)
        if made is not None:
            self._push(self._representative(made))

    def _after(self, node: _Node, rule: Rule, args: Arguments, after: State, notes: Sequence[Any]) -> _Node | None:
        """What a step leads to, as far as the events agree with its notes; None where they do not."""
        if node.then is not None and rule.name not in node.then:
            return None
        made = self._matched(node, after, notes)
        if made is None:
            return None
        if self.published.flushes(rule.name) and made.at not in self.boundaries:
            self._missing(2 * made.at + 1, "the end of the batch")
            return None
        choices = node.choices + self.published.choices(rule.name, args)
        return made._replace(choices=choices, then=self.published.late.get(rule.name), before=node if self.keep else None)

    def _idle(self, node: _Node) -> _Node | None:
        """What can be published though nothing happens."""
        notes = self.published.idle(read(Cells(node.state), 0, self.bound.shape)) if node.then is None else ()
        made = self._matched(node, node.state, notes) if notes else None
        return None if made is None else made._replace(choices=node.choices + 1, before=node if self.keep else None)

    def _matched(self, node: _Node, after: State, notes: Sequence[Any]) -> _Node | None:
        end = self.ends[node.at]
        outcome = self.published.match(node.memory, notes, read(Cells(after), 0, self.bound.shape), node.at, end)
        if outcome.instead is None:
            return _Node(after, outcome.memory, outcome.at)
        self._missing(2 * outcome.at + (outcome.at < end), outcome.instead)
        return None

    def _representative(self, node: _Node) -> _Node:
        """The node that stands for all that count as one with this one: after eager steps, without ghosts and names."""
        steps = list(self.steps.eagerly(node.state))
        state, names = self.steps.canonical(steps[-1][-1] if steps else node.state)
        return node._replace(state=state, memory=self.published.renamed(node.memory, names))

    def _missing(self, place: int, instead: str | None) -> None:
        """Remember what else may come at the first place that nothing explains so far."""
        if place > self.place:
            self.place = place
            self.instead.clear()
        if place == self.place and instead is not None:
            self.instead[instead] = None

    def _where(self, place: int) -> tuple[int, int]:
        """The batch and the place in it, from 1, of an event; of the end of a batch, behind its last event."""
        at = place // 2
        for end, batch in _ends(self.recording):
            if at < end or (at == end and place % 2 == 0 and batch.events):
                return batch.number, at - (end - len(batch.events)) + 1
        return len(self.recording.batches), 1

    def _unpublished(self) -> Unpublished:
        number, event = self._where(self.place)
        at = self.place // 2
        words = None if self.place % 2 == 0 else self.published.tell(at)
        states = next(count for count in self.counts[at::-1] if count)
        return Unpublished(number, event, words, states, tuple(self.instead))

    def _trace(self, last: _Node) -> Trace:
        """A path of the spec through the nodes that led to one, with all its names and ghosts."""
        nodes = [last]
        while (before := nodes[-1].before) is not None:
            nodes.append(before)
        self.keep = False
        for rule, args, state in self.bound.initial():
            node = _Node(state, self.published.start())
            if self._representative(node).key == nodes[-1].key:
                start = None if rule is None else (rule.name, args)
                steps: list[Step] = []
                for goal in reversed(nodes[:-1]):
                    node = self._toward(node, goal, steps)
                return Trace(self.bound.spec.name, self.bound.values, "", start, state, tuple(steps))
        raise AssertionError("the search began nowhere")

    def _toward(self, node: _Node, goal: _Node, steps: list[Step]) -> _Node:
        """Take eager steps, and one that leads to a node that counts as one with the goal."""
        for rule, args, after in self.steps.eagerly(node.state):
            steps.append(Step(rule.name, args, after))
            node = node._replace(state=after)
        for rule, args, after, notes in self.steps.of(node.state):
            made = self._after(node, rule, args, after, notes)
            if made is not None and self._representative(made).key == goal.key:
                steps.append(Step(rule.name, args, after))
                return made
        made = self._idle(node)
        assert made is not None
        assert self._representative(made).key == goal.key
        return made


class _Steps:
    """Every step from a state with its notes: those first that should happen, and leave the least choice."""

    def __init__(self, bound: BoundSpec, published: Published) -> None:
        self.bound = bound
        self.watched = Watched(bound, published.watched)
        self.parts = [_part(bound, name) for name in published.changed]
        self.lengths = [cell for name in published.grown for cell in _lengths(bound, name)]
        self.ghosts = sorted((_part(bound, name) for name in published.ghosts), key=lambda part: part.start)
        self.known: dict[tuple[State, int, Arguments], Sequence[Any]] = {}
        self.eager = [rule for rule in bound.actions if rule.name in published.eager]
        try:
            self.stepper = Stepper(bound)
        except BoundsError:  # too large for the compiler: the interpreter goes on, and no two states count as one
            self.stepper = None

    def canonical(self, state: State) -> tuple[State, Mapping[str, Sequence[int]]]:
        """The representative of states that differ only in names and ghosts, and the names that lead to it."""
        for part in self.ghosts:
            state = (*state[: part.start], *self.bound.shape.blank[part], *state[part.stop :])
        return (state, {}) if self.stepper is None else self.stepper.canonical(state)

    def eagerly(self, state: State) -> Iterator[tuple[Rule, Arguments, State]]:
        """The steps of eager actions from a state, one after the other, until none is left."""
        take = self.bound.after if self.stepper is None else self.stepper.after
        choices = [(rule, args) for rule in self.eager for args in rule.choices()]
        at = 0
        while at < len(choices):
            after = take(state, *choices[at])
            if after is None:
                at += 1
            else:
                yield *choices[at], after
                state, at = after, 0

    def of(self, state: State) -> Iterator[tuple[Rule, Arguments, State, Sequence[Any]]]:
        """The steps, in reverse order: what comes last is looked at first."""
        found = self.bound.transitions(state) if self.stepper is None else self.stepper.successors(state)
        for rule, args, after in sorted(found, key=_eagerness, reverse=True):
            noted = any(state[part] != after[part] for part in self.parts) or any(state[i] < after[i] for i in self.lengths)
            yield rule, args, after, self._notes(state, rule, args) if noted else ()

    def _notes(self, state: State, rule: Rule, args: Arguments) -> Sequence[Any]:
        """What an action notes; kept for a while, for one state comes with many memories."""
        key = (state, rule.number, args)
        if key not in self.known:
            if len(self.known) >= KEPT:
                self.known.clear()
            self.known[key] = self.watched.notes(state, rule, args)
        return self.known[key]


def _eagerness(step: tuple[Rule, Arguments, State]) -> tuple[bool, int, Arguments]:
    rule, args, _ = step
    return rule.declared.declaration.fair is None, rule.count, args


def _packed(state: State) -> bytes:
    """A state in little memory; the two forms differ in length."""
    try:
        return array("b", state).tobytes()
    except OverflowError:
        return array("i", state).tobytes()


def _part(bound: BoundSpec, name: str) -> slice:
    """Where a variable lies in a state."""
    found = bound.shape.field(name)
    assert found is not None
    return slice(found[0], found[0] + found[1].size)


def _lengths(bound: BoundSpec, name: str) -> range:
    """The cells with the lengths of a variable's sequences."""
    found = bound.shape.field(name)
    assert found is not None
    assert isinstance(found[1], ArrayShape)
    assert isinstance(found[1].item, SeqShape)
    return range(found[0], found[0] + found[1].size, found[1].item.size)


def _ends(recording: Recording) -> Iterator[tuple[int, Batch]]:
    """Every batch with the number of the event behind its last."""
    end = 0
    for batch in recording.batches:
        end += len(batch.events)
        yield end, batch
