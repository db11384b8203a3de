"""What must hold in every state and on every transition."""

from __future__ import annotations

from ..lang import always, latent, quiescent, step
from .bounds import ASYNC, BLOCK_SIZE, BLOCKS, CACHING, INTENDED_ORDER, LOADS, REQUESTS, STALE, STEPS
from .cache import expects
from .device import rows_written
from .output import kept
from .pool import gate, has_fence, holders, in_flight, newest
from .scheduler import can_admit, fresh_hits
from .state import Error, Job, Status


@always(when=lambda: LOADS == 1)
def no_unordered_write_in_flight(s):
    """No block is the target of an outstanding load while a step that is not processed may still write or read it."""
    return all(not touched(s, b) for r in range(REQUESTS) for b in range(BLOCKS) if loaded(s, r, b))


def loaded(s, r, b):
    """Whether the request's load still writes a block."""
    if s.job[r] != Job.MOVING:
        return False
    own = (s.status[r] == Status.LOADING or s.status[r] == Status.HELD) and s.key[b] == 0 and b in s.table[r]
    return own or b in s.orphan[r]


def touched(s, b):
    """Whether a step that is not processed may still write or read a block."""
    return any(b in s.flight[k].table[r] for k in range(len(s.flight)) for r in range(REQUESTS))


@step
def free_order(s, t):
    """Blocks come back in the order the release intends: with caching off, its end of the queue, last block first.

    With caching on unhashed blocks go to the head and hashed ones to the tail (0.23: all to the tail). What stays in
    the queue keeps its order, and a deferred free equals the immediate one that it replaces.
    """
    return all(in_order(s, t, a, b) for a in range(BLOCKS) if s.free != t.free for b in range(BLOCKS))


def in_order(s, t, a, b):
    """The same for two blocks, the first of which is to be nearer to the head; of any two states on the way."""
    if a == b or a not in t.free:
        return True
    if b not in t.free:
        return CACHING == 1 or a not in s.free or b not in s.free or position(s, b) < position(s, a)
    if position(t, b) < position(t, a):
        return True
    kept = a in s.free and b in s.free
    return (
        rank(s, t, a) <= rank(s, t, b)
        and (not kept or position(s, a) < position(s, b))
        and (kept or not given_up_in_turn(s, a, b) or pair_reversed(s, t, a, b))
    )


def rank(s, t, b):
    """0 for a block that was freed to the head of the queue, 1 for one that was in it, 2 for one freed to its tail."""
    if b in s.free:
        return 1
    return 0 if early(s, t, b) else 2


def early(s, t, b):
    """Whether a block freed by this transition should be reused before what was free already."""
    if CACHING == 1:
        return INTENDED_ORDER == "head" and s.key[b] == 0 and t.key[b] == 0
    return INTENDED_ORDER == "head"


def position(s, b):
    """Where a block stands in the free queue; its length if it is not in it."""
    for i in range(len(s.free)):
        if s.free[i] == b:
            return i
    return len(s.free)


def given_up_in_turn(s, a, b):
    """Whether one block stands before another one in a table, or in a parked entry."""
    return any(
        s.table[r][i] == a and s.table[r][j] == b
        for r in range(REQUESTS)
        for i in range(len(s.table[r]))
        for j in range(i + 1, len(s.table[r]))
    ) or parked_in_turn(s, a, b)


def parked_in_turn(s, a, b):
    """The same for parked entries."""
    at = 0
    for e in range(len(s.entries)):
        for i in range(s.entries[e].size):
            for j in range(i + 1, s.entries[e].size):
                if s.parked[at + i] == a and s.parked[at + j] == b:
                    return True
        at += s.entries[e].size
    return False


def pair_reversed(s, t, a, b):
    """Whether of two freed blocks of one table the later one is reused first; a shared one came back with another."""
    if a in s.free or b in s.free or rank(s, t, a) != rank(s, t, b):
        return True
    if s.refs[a] > 1 or s.refs[b] > 1:
        return True
    return position(t, b) < position(t, a)


@always(when=lambda: LOADS == 1 and has_fence())
def no_reuse_in_flight(s):
    """No block is reallocated while a scheduled step that references it is unprocessed (of a release with a fence)."""
    return all(not reused(s, b) for b in range(BLOCKS))


def reused(s, b):
    """Whether a block is in somebody's table, and a step in flight references it as something else."""
    return (
        any(b in s.table[q] for q in range(REQUESTS))
        and b not in s.parked
        and any(
            s.flight[k].table[r][i] == b and not expects(s, b, r, i)
            for k in range(len(s.flight))
            for r in range(REQUESTS)
            for i in range(len(s.flight[k].table[r]))
        )
    )


@always(when=lambda: LOADS == 1)
def write_ownership(s):
    """When a step (of a release with a fence) or a transfer writes a block, it is the writer's own, or nobody's."""
    return not s.foreign


@always
def read_freshness(s):
    """A step of a request whose result is kept reads only slots that hold that request's own prefix and position."""
    return not s.misread


@always(when=lambda: CACHING == 1)
def no_hit_on_unwritten(s):
    """Every block that can be hit is written, or will be by a step in flight, which runs before any that reads it."""
    return all(s.good[b] == BLOCK_SIZE or promised(s, b) for b in s.cached)


def promised(s, b):
    """Whether steps that did not run yet will write the rest of a hashed block."""
    low = s.good[b]
    for k in range(len(s.flight)):
        if not s.flight[k].ran:
            low = max(low, filled(s, k, b, low))
    return low == BLOCK_SIZE


def filled(s, k, b, low):
    """Leading slots of a block that are good once the step has run, if `low` were before it."""
    step = s.flight[k]
    good = low
    for r in step.owners:
        end = step.start[r] + step.count[r]
        for i in range(len(step.table[r])):
            named = step.table[r][i] == b and expects(s, b, r, i) and rows_written(s, r)
            if named and step.start[r] - i * BLOCK_SIZE <= good:
                good = max(good, min(BLOCK_SIZE, end - i * BLOCK_SIZE))
    return good


@always
def refcount_exact(s):
    """A block's reference count is the number of tables and parked entries that hold it."""
    return all(s.refs[b] == holders(s, b) for b in range(BLOCKS))


@always
def no_double_free(s):
    """A reference is given back once."""
    return s.error != Error.DOUBLE_FREE


@always
def pool_conservation(s):
    """The free queue is exactly the blocks without references, each once; the null block is no member of the index."""
    return len(s.free) == sum(1 for b in range(BLOCKS) if s.refs[b] == 0) and all(s.refs[b] == 0 for b in s.free)


@always
def alloc_atomic(s):
    """The capacity test is sound: an allocation never runs out of blocks half-way."""
    return s.error != Error.ALLOCATION


@always
def table_consistency(s):
    """A step in flight uses the scheduler's table as it was at dispatch, and that table has only grown since."""
    return all(places_kept(s, b) for b in range(BLOCKS))


def places_kept(s, b):
    """The same for one block, in the tables of requests that were not preempted or ended since."""
    return all(
        i < len(s.table[r]) and (s.table[r][i] == b) == (s.flight[k].table[r][i] == b)
        for k in range(len(s.flight))
        for r in range(REQUESTS)
        if s.status[r] == Status.RUNNING and in_flight(s, r, 0, k) >= s.stale[r] and STALE == "marked"
        for i in range(len(s.flight[k].table[r]))
    )


@always
def write_in_bounds(s):
    """No request is computed past what its table maps."""
    return all(s.computed[r] <= len(s.table[r]) * BLOCK_SIZE for r in range(REQUESTS) if s.status[r] == Status.RUNNING)


@always(when=lambda: ASYNC == 1)
def counter_sound(s):
    """Placeholders equal the tokens that steps in flight still owe, stale steps aside; no counter runs under."""
    return all(s.places[r] == owed(s, r) for r in range(REQUESTS) if live(s, r))


def live(s, r):
    """Whether a request is running or was preempted, so that its outputs are still wanted."""
    return s.status[r] == Status.RUNNING or s.status[r] == Status.PREEMPTED


def owed(s, r):
    """Steps in flight that yield a token for the request and count for its placeholders."""
    return sum(1 for k in range(len(s.flight)) if r in s.flight[k].samples and in_flight(s, r, 0, k) >= s.stale[r])


@always
def stale_output_safe(s):
    """A token that is delivered continues the known ones exactly: late output neither repeats nor skips a position."""
    return len(s.flight) == 0 or all(continues(s, r) for r in s.flight[0].owners if kept(s, r))


def continues(s, r):
    """Whether the oldest step computed the request up to its last known token."""
    return s.flight[0].start[r] + s.flight[0].count[r] == s.prompt[r] + s.known[r]


@always(when=lambda: gate())
def fence_sound(s):
    """Parked entries leave in order, never before their fence: each waits for a step in flight, a later one as long."""
    limit = newest(s, 0, len(s.flight))
    return all(
        1 <= s.entries[e].fence <= limit and (e == 0 or s.entries[e - 1].fence <= s.entries[e].fence)
        for e in range(len(s.entries))
    ) and len(s.parked) == sum(s.entries[e].size for e in range(len(s.entries)))


@always(when=lambda: LOADS == 1)
def completion_once(s):
    """Every load's completion is consumed once, by the request that waits for it, or frees what its abort left held."""
    return all(completion_due(s, r) for r in range(REQUESTS))


def completion_due(s, r):
    """Whether a request that waits for a load has one outstanding, and nobody else has."""
    if s.status[r] == Status.LOADING:
        return s.job[r] != Job.NONE
    if s.status[r] == Status.HELD:
        return s.job[r] == Job.MOVING or s.job[r] == Job.LANDED
    return s.job[r] == Job.NONE


@always
def no_deadlock(s):
    """If a request is unfinished and no step or transfer is outstanding, the next step moves something on."""
    return not at_rest(s) or (len(s.running) == 0 and len(s.waiting) + len(s.holding) == 0) or moves(s)


def at_rest(s):
    """Whether no step is in flight and no load outstanding."""
    return len(s.flight) == 0 and not any(s.job[r] == Job.MOVING or s.job[r] == Job.LANDED for r in range(REQUESTS))


def moves(s):
    """Whether the next step would compute, admit or promote something; with nothing in flight, whoever runs goes on."""
    if len(s.running) > 0:
        return True
    r = s.holding[0] if len(s.holding) > 0 else s.waiting[0]
    if s.status[r] == Status.LOADING:
        return True
    hits = fresh_hits(s, r)
    return can_admit(s, r, hits, s.computed[r] + hits * BLOCK_SIZE + 1, s.remote[r])


@always
def no_error(s):
    """No assertion or exception of the engine is reachable."""
    return s.error == Error.NONE


@step(when=lambda: STEPS > 1)
def preemption_pays(s, t):
    """A preemption by the scheduler enlarges what can be allocated at once, or it is not done."""
    return all(
        len(t.parked) == len(s.parked) or not any(b in t.parked for b in s.table[r])
        for r in range(REQUESTS)
        if s.status[r] == Status.RUNNING and t.status[r] == Status.PREEMPTED and t.error == Error.NONE
    )


def quiet(s):
    """Nothing is outstanding: no request but ended or held ones, no step, no load under way."""
    return unlisted(s) and at_rest(s)


def unlisted(s):
    """Whether no request is running or waiting."""
    return len(s.running) == 0 and len(s.waiting) == 0 and len(s.holding) == 0


@quiescent(quiet)
def no_leak(s):
    """Once nothing is outstanding, every block is free."""
    return len(s.free) == BLOCKS


@latent(when=lambda: LOADS == 1)
def block_in_flight_is_allocatable(s):
    """A block that a step in flight may write is free when the next one is scheduled; only the order of reuse hides it."""
    return len(s.flight) < STEPS and any(touched(s, b) for b in s.free)
