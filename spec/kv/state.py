"""What the scheduler, the pool, the device and the transfers know."""

from __future__ import annotations

from enum import IntEnum

from ..lang import Array, Bool, Int, Maybe, Seq, SetOf, init, larger, record, state
from .bounds import (
    BLOCK_SIZE,
    BLOCKS,
    CACHING,
    ENTRIES,
    GROUPS,
    HANDS_OFF,
    HOLDERS,
    MAX_TOKENS,
    ORPHANED,
    OWN,
    PARKED,
    PROMPT,
    REQUESTS,
    RESET_RUNNING,
    STEPS,
    TABLE,
    TOKENS,
)


class Status(IntEnum):
    """Where a request stands; ENDED also stands for one that was not submitted yet."""

    ENDED = 0
    WAITING = 1
    LOADING = 2
    RUNNING = 3
    PREEMPTED = 4
    HELD = 5
    STOPPED = 6


class Job(IntEnum):
    """A request's remote load: bytes under way, bytes in place, known to the scheduler."""

    NONE = 0
    MOVING = 1
    LANDED = 2
    REPORTED = 3


class Error(IntEnum):
    """What stops the engine: assertions and exceptions of its own."""

    NONE = 0
    PLACEHOLDERS = 1
    ALLOCATION = 2
    DOUBLE_FREE = 3
    COMPLETION = 4
    RESET = 5


@record
class Step:
    """A scheduled step that was not processed yet, as the worker was told to execute it.

    `owners` in the order they were scheduled, `start` and `count` of their tokens, `samples` those that yield a token,
    `table` their blocks up to these tokens, `ran` once the device is through with it.
    """

    owners: Seq[REQUESTS, REQUESTS]
    samples: SetOf[REQUESTS]
    start: Array[REQUESTS, Int(0, TOKENS)]
    count: Array[REQUESTS, Int(0, TOKENS)]
    table: Array[REQUESTS, Seq[BLOCKS, TABLE]]
    ran: Bool


@record
class Entry:
    """A deferred free: how many processed steps it still waits for, and how many of the parked blocks are its own."""

    fence: Int(0, STEPS)
    size: Int(0, TABLE)


@state
class KV:
    """The life of blocks in one engine.

    A member of `requests` is a request from its submission until it has ended and no step and no transfer names it;
    then it stands for the next one. Sequence numbers are relative: a fence counts the steps still to be processed, and
    "last scheduled step not processed" is "some step in flight names the request" (outputs are processed in order).

    Requests: `prompt` length, `group` of its text (0: its own), `remote` whether its prompt is still to be loaded,
    `known` output tokens, `computed` tokens as scheduled, `prefilling` whether it counts for the reservation,
    `places` output placeholders, `stale` steps in flight from before a preemption, `drop` whether their output is
    dropped.
    Blocks: `refs`, and `good`, how many leading slots hold what the block's hash (else its holder) stands for.
    Hashes: `key` is the text (0: none), `key_of` its request where the text is one request's own (None: of an ended
    one), `key_at` the position in the text; `cached` lists those that can be hit, equal keys in order of insertion.
    """

    status: Array[REQUESTS, Status]
    prompt: Array[REQUESTS, Int(0, PROMPT)]
    group: Array[REQUESTS, Int(0, CACHING * GROUPS)]
    remote: Array[REQUESTS, Bool]
    known: Array[REQUESTS, Int(0, MAX_TOKENS)]
    computed: Array[REQUESTS, Int(0, TOKENS)]
    prefilling: Array[REQUESTS, Bool]
    places: Array[REQUESTS, Int(0, STEPS)]
    stale: Array[REQUESTS, Int(0, STEPS)]
    drop: Array[REQUESTS, Int(0, larger(HANDS_OFF, RESET_RUNNING))]
    table: Array[REQUESTS, Seq[BLOCKS, TABLE]]
    job: Array[REQUESTS, Job]
    orphan: Array[REQUESTS, Seq[BLOCKS, ORPHANED]]
    waiting: Seq[REQUESTS, REQUESTS]
    holding: Seq[REQUESTS, REQUESTS]
    running: Seq[REQUESTS, REQUESTS]
    free: Seq[BLOCKS, BLOCKS]
    refs: Array[BLOCKS, Int(0, HOLDERS)]
    good: Array[BLOCKS, Int(0, BLOCK_SIZE)]
    key: Array[BLOCKS, Int(0, CACHING * OWN)]
    key_of: Array[BLOCKS, Maybe[REQUESTS]]
    key_at: Array[BLOCKS, Int(0, CACHING * (TABLE - 1))]
    cached: Seq[BLOCKS, CACHING * BLOCKS]
    parked: Seq[BLOCKS, PARKED]
    entries: Seq[Entry, ENTRIES]
    flight: Seq[Step, STEPS]
    foreign: Bool
    misread: Bool
    error: Error


@init
def boot(s):
    """All blocks are free, in id order (block 0 of the release is the null block and no member of the index)."""
    for b in range(BLOCKS):
        s.free.append(b)
