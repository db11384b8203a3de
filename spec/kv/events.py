"""What of a run of the KV spec vLLM publishes as KV events, and which prefixes their hashes stand for; plain Python.

A release notes an event where it changes its prefix cache (v1/core/block_pool.py, 0.23.0 to 0.33.0): BlockRemoved where a
block that is handed out still has a hash, BlockStored once for all blocks that one call gives their hashes, AllBlocksCleared
where a reset succeeded. What was noted goes out as one batch at the end of update_from_output (v1/core/sched/scheduler.py),
also of a step without tokens, which the spec need not have as a step; so a batch may end anywhere, and must end at `process`.
"""

from __future__ import annotations

# pyright: reportUnknownVariableType=false
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..lang import published
from .cache import clear_cache, hash_blocks
from .pool import take
from .state import Error, Status

Event = Mapping[str, Any]
NONE = -1
_ENDED = (Status.ENDED, Status.HELD, Status.STOPPED)
_SHOWN = 16
"""Digits of a hash that are shown."""


class Note(NamedTuple):
    """What a helper of the spec did: blocks and requests by number; for hashes (position, block, shared text or 0) each."""

    kind: str
    member: int = NONE
    hashed: tuple[tuple[int, int, int], ...] = ()
    before: int = NONE


class Memory(NamedTuple):
    """What hashes stand for, as prefixes by number: each block's; the longest known of each shared text, of each request's."""

    blocks: tuple[int, ...]
    texts: tuple[int, ...]
    own: tuple[int, ...]


class Prefix(NamedTuple):
    """A prefix that a hash stands for: its parent (NONE: none), its position, the number of the event that is first of it."""

    parent: int
    position: int
    first: int


class Outcome(NamedTuple):
    """How far the events agree with what was published: the next one, and what was to come there where they do not."""

    memory: Memory
    at: int
    instead: str | None = None


def _taken(call: Callable[..., Any], s: Any, r: int) -> Note | None:
    note = Note("taken", s.free[0]) if len(s.free) > 0 else None
    call(s, r)
    return note


def _hashed(call: Callable[..., Any], s: Any, r: int, tokens: int) -> Note | None:
    table = list(s.table[r])
    first = next((k for k, b in enumerate(table) if s.key[b] == 0), len(table))
    call(s, r, tokens)
    new = tuple((k, b, _shared(s, b)) for k, b in enumerate(table) if k >= first and s.key[b] > 0)
    return Note("hashed", r, new, table[first - 1] if first else NONE) if new else None


def _shared(s: Any, b: int) -> int:
    return 0 if s.key_of[b] is not None else s.key[b]


def _cleared(call: Callable[..., Any], s: Any) -> Note:
    call(s)
    return Note("cleared")


class CacheEvents:
    """Compares the notes of a run with recorded events, one after the other.

    Hashes carry no text, so identity is all that counts: a prefix's first event makes it known, as a shared text's or as one
    request's own; from then on both sides must mean the same one, and what was somebody's own is nobody else's later.
    """

    watched: Mapping[Callable[..., Any], Callable[..., Any]] = {
        take: _taken,
        hash_blocks: _hashed,
        clear_cache: _cleared,
    }
    """Helpers of the spec with what notes their effect."""
    changed, grown = ("key",), ("table",)
    """A transition that makes any note changes one of these variables, or makes a sequence in one of these longer."""
    ghosts = ("good", "foreign", "misread")
    """Variables on which nothing depends that is published: states that differ in these only count as one."""
    eager: Sequence[str] = ("run_step",)
    """Actions that change nothing but ghosts and what more may happen: they are taken as soon as they can be."""
    late: Mapping[str, Sequence[str]] = {"submit": ("submit", "schedule")}
    """Actions that could as well happen later, right before one of these: nothing else is tried after them."""
    unseen = "block ids, requests, times and tokens within a block; hashes only as equal or different"
    """What is not checked of the events."""

    def __init__(self, values: Mapping[str, int | str]) -> None:
        self.values = values
        self.block_size = int(values["block-size"])
        self.events: Sequence[Event] = ()
        self.prefixes: list[Prefix] = []
        self.numbers: dict[Any, int] = {}
        self.contents: dict[Any, tuple[Any, ...]] = {}
        self.hashes: dict[tuple[Any, ...], Any] = {}
        self.wrong: dict[int, str] = {}

    def refuse(self, event: Event | None) -> str | None:
        """What of an event the spec cannot have at these bounds, and the fix; of None, of any event at all."""
        if event is None:
            off = int(self.values["enable-prefix-caching"]) == 0
            return "these bounds have no prefix cache; add --bounds enable-prefix-caching=1" if off else None
        if event.get("group_idx") not in (None, 0):
            return f"is of KV-cache group {event['group_idx']}, and the spec has one group (of full attention)"
        if event["type"] == "BlockStored" and event["block_size"] != self.block_size:
            size = event["block_size"]
            return f"has blocks of {size} tokens, and the bounds say {self.block_size}; add --bounds block-size={size}"
        if event.get("lookahead_token_ids") is not None:
            return "has hashes that look ahead (speculative decoding), which the spec does not have"
        return None

    def read(self, events: Sequence[Event]) -> None:
        """Learn which prefix each hash stands for, and where the events contradict themselves."""
        self.events = events
        for number, event in enumerate(events):
            if event["type"] == "BlockStored":
                self._store(number, event)

    def _store(self, number: int, event: Event) -> None:
        before = event.get("parent_block_hash")
        parent = NONE if before is None else self.numbers.get(before)
        if parent is None:
            self.wrong[number] = f"its parent {word(before)} was never stored"
            return
        extra = event.get("extra_keys") or ()
        for i, one in enumerate(event["block_hashes"]):
            tokens = event["token_ids"][i * self.block_size : (i + 1) * self.block_size]
            content = (before, tokens, extra[i] if i < len(extra) else None, event.get("lora_name"))
            if self.contents.setdefault(one, content) != content:
                self.wrong[number] = f"{word(one)} stood for other tokens or had another parent before"
            elif (other := self.hashes.setdefault(content, one)) != one:
                self.wrong[number] = f"the same tokens after the same parent had the hash {word(other)} before"
            if one not in self.numbers:
                self.numbers[one] = len(self.prefixes)
                position = 0 if parent == NONE else self.prefixes[parent].position + 1
                self.prefixes.append(Prefix(parent, position, number))
            before, parent = one, self.numbers[one]

    def start(self) -> Memory:
        """Nothing is cached at the start."""
        sizes = (int(self.values[name]) for name in ("blocks", "prefix-groups", "requests"))
        return Memory(*((NONE,) * size for size in sizes))

    def renamed(self, memory: Memory, names: Mapping[str, Sequence[int]]) -> Memory:
        """The same under other names of blocks and requests: x becomes `names[index][x]`."""
        return Memory(_moved(memory.blocks, names.get("blocks")), memory.texts, _moved(memory.own, names.get("requests")))

    def idle(self, s: Any) -> tuple[Note, ...]:
        """What can be published though nothing happens: a reset while no block is held and none can be hit."""
        empty = s.error == Error.NONE and len(s.cached) == 0 and len(s.free) == len(s.refs)
        return (Note("cleared"),) if empty else ()

    def flushes(self, action: str) -> bool:
        """Whether a batch ends with this action, if anything was published since the last one."""
        return action == "process"

    def choices(self, action: str, arguments: Sequence[int]) -> int:
        """How much somebody outside had to decide for an action to happen: what needs least is tried first."""
        if action == "process":
            return arguments[0].bit_count()
        return {"submit": 1, "abort": 2, "reset_prefix_cache": 2, "reset_running": 2}.get(action, 0)

    def match(self, memory: Memory, notes: Sequence[Note], after: Any, at: int, end: int) -> Outcome:
        """Compare the notes of one transition with the events from `at`; all of them are in the batch that ends at `end`."""
        for note in notes:
            outcome = getattr(self, f"_{note.kind}")(memory, note, at, end)
            if outcome.instead is not None:
                return outcome
            memory, at = outcome.memory, outcome.at
        for r, prefix in enumerate(memory.own):
            if prefix != NONE and after.status[r] in _ENDED:
                memory = memory._replace(own=_put(memory.own, r, NONE))
        return Outcome(memory, at)

    def _cleared(self, memory: Memory, note: Note, at: int, end: int) -> Outcome:
        if not self._is(at, end, "AllBlocksCleared"):
            return Outcome(memory, at, "AllBlocksCleared")
        return Outcome(memory._replace(blocks=(NONE,) * len(memory.blocks)), at + 1)

    def _taken(self, memory: Memory, note: Note, at: int, end: int) -> Outcome:
        prefix = memory.blocks[note.member]
        if prefix == NONE:
            return Outcome(memory, at)
        if not self._is(at, end, "BlockRemoved") or self.numbers.get(self.events[at]["block_hashes"][0]) != prefix:
            return Outcome(memory, at, f"BlockRemoved of {self._hash(prefix)}")
        return Outcome(memory._replace(blocks=_put(memory.blocks, note.member, NONE)), at + 1)

    def _hashed(self, memory: Memory, note: Note, at: int, end: int) -> Outcome:
        parent = NONE if note.before == NONE else memory.blocks[note.before]
        if self._is(at, end, "BlockStored") and at not in self.wrong:
            known = [self.numbers[one] for one in self.events[at]["block_hashes"]]
            if len(known) == len(note.hashed) and self.prefixes[known[0]].parent == parent:
                after = self._identified(memory, note, known, at)
                if after is not None:
                    return Outcome(after, at + 1)
        return Outcome(memory, at, self._stored(memory, note, parent))

    def _identified(self, memory: Memory, note: Note, prefixes: Sequence[int], at: int) -> Memory | None:
        """The memory once these prefixes are those of the note; None where one of them is known to be another."""
        for (k, b, text), prefix in zip(note.hashed, prefixes, strict=True):
            longest = memory.texts[text - 1] if text else memory.own[note.member]
            meant = self._at(longest, k)
            if meant not in (NONE, prefix) or self.prefixes[prefix].position != k:
                return None
            if meant == NONE:
                if self.prefixes[prefix].first != at:
                    return None  # it is somebody else's
                if text:
                    memory = memory._replace(texts=_put(memory.texts, text - 1, prefix))
                else:
                    memory = memory._replace(own=_put(memory.own, note.member, prefix))
            memory = memory._replace(blocks=_put(memory.blocks, b, prefix))
        return memory

    def _at(self, prefix: int, position: int) -> int:
        """The part of a prefix that ends at a position; NONE where it is not that long."""
        if prefix == NONE or self.prefixes[prefix].position < position:
            return NONE
        while self.prefixes[prefix].position > position:
            prefix = self.prefixes[prefix].parent
        return prefix

    def _is(self, at: int, end: int, kind: str) -> bool:
        return at < end and self.events[at]["type"] == kind

    def _stored(self, memory: Memory, note: Note, parent: int) -> str:
        """A BlockStored in words: its hashes as far as they are known."""
        k, _, text = note.hashed[0]
        meant = self._at(memory.texts[text - 1] if text else memory.own[note.member], k)
        first = f", the first {self._hash(meant)}" if meant != NONE else ""
        count = f"{len(note.hashed)} block{'s' * (len(note.hashed) > 1)}"
        return f"BlockStored of {count}{first}, {'without parent' if parent == NONE else f'parent {self._hash(parent)}'}"

    def _hash(self, prefix: int) -> str:
        return word(next(one for one, number in self.numbers.items() if number == prefix))

    def tell(self, number: int) -> str:
        """An event in words, and why none can be like it where it contradicts earlier ones."""
        event = self.events[number]
        if event["type"] == "AllBlocksCleared":
            return "AllBlocksCleared"
        hashes = ", ".join(map(word, event["block_hashes"]))
        if event["type"] == "BlockRemoved":
            never = event["block_hashes"][0] not in self.numbers
            return f"BlockRemoved of {hashes}{' (it was never stored)' * never}"
        parent = event.get("parent_block_hash")
        wrong = f" ({self.wrong[number]})" if number in self.wrong else ""
        return f"BlockStored of {hashes}, {'without parent' if parent is None else f'parent {word(parent)}'}{wrong}"


def word(value: Any) -> str:
    """A hash as it is shown: a number, or the first digits of its bytes."""
    if isinstance(value, bytes):
        return value.hex() if len(value) * 2 <= _SHOWN else f"{value.hex()[:_SHOWN]}…"
    return str(value)


def _put(row: tuple[int, ...], place: int, value: int) -> tuple[int, ...]:
    return row if row[place] == value else (*row[:place], value, *row[place + 1 :])


def _moved(row: tuple[int, ...], names: Sequence[int] | None) -> tuple[int, ...]:
    if names is None:
        return row
    moved = list(row)
    for x, value in enumerate(row):
        moved[names[x]] = value
    return tuple(moved)


@published
def cache_events(values: Mapping[str, int | str]) -> CacheEvents:
    """The events of vLLM's prefix cache."""
    return CacheEvents(values)
