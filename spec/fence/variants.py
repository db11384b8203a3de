"""Protocols with one thing taken away, as releases had it or as somebody might: each has a counterexample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from . import protocol, queue
from .declare import Protocol
from .logic import Sort
from .protocol import fence

WRITE, REUSE = "no-unordered-write-while-used", "no-reuse-while-used"


@dataclass(frozen=True)
class Variant:
    """A protocol that does not do what it should: what is wrong with it, the claim that it breaks, and a size that shows it."""

    name: str
    sentence: str
    protocol: Protocol
    claim: str
    sizes: Mapping[type[Sort], int]


def fence_variants() -> list[Variant]:
    """The fence protocol with faults."""
    sizes: dict[type[Sort], int] = {protocol.Request: 2, protocol.Block: 1, protocol.Step: 2}

    def lacking(name: str, action: str, guard: str, claim: str, sentence: str) -> Variant:
        return Variant(name, sentence, fence.without_guard(action, guard), claim, sizes)

    undone = "A step's output may be processed while the device still works on it."
    return [
        lacking("no-fence", "free", "processed", WRITE, "Blocks are given up at once (0.23.0: _free_blocks, before #45357)."),
        lacking(
            "fence-too-early", "park", "covered", REUSE, "A block is parked behind another step than the last that names it."
        ),
        lacking("drain-too-early", "drain", "processed", REUSE, "A parked block comes back before its fence is processed."),
        lacking("first-fence-only", "drain", "last", REUSE, "A block that waits for two steps comes back with the first."),
        lacking("output-out-of-order", "process", "in-order", REUSE, "Outputs are processed in another order than issued."),
        lacking("step-out-of-order", "issue", "newest", REUSE, "A step is issued before one that is processed already."),
        lacking("stale-table", "issue", "owned", WRITE, "A step names blocks that its request does not have."),
        lacking(
            "aborted-load", "free", "loaded", WRITE, "An aborted load's blocks are given up while it writes (before #32255)."
        ),
        lacking("hit-while-loading", "hit", "loaded", WRITE, "A block can be hit before its load has landed."),
        lacking("scheduled-while-loading", "issue", "loaded", WRITE, "A request is scheduled before its load has landed."),
        lacking("freed-while-sent", "free", "sent", "no-reuse-while-sent", "A block is given up while a transfer reads it."),
        Variant("output-is-not-done", undone, fence.assuming(), WRITE, sizes),
    ]


def queue_variants() -> list[Variant]:
    """The free queue with faults."""
    sizes: dict[type[Sort], int] = {queue.Block: 2, queue.Moment: 2}
    tail = "With caching off, freed blocks go to the tail (0.27.0: free_blocks, #48017)."
    given = "A table is put at the head in its own order, its last block behind the others."
    return [
        Variant("tail", tail, queue.tail, "last-freed-first", sizes),
        Variant("not-reversed", given, queue.as_it_is, "last-freed-first", sizes),
    ]
