"""The block pool: the free queue with its order, references, and the fence that defers a free."""

from __future__ import annotations

from .bounds import (
    ABORT_FREE,
    BLOCK_SIZE,
    CACHED_ORDER,
    CACHING,
    ENTRIES,
    FINISH_FREE,
    PREEMPTION_FREE,
    REQUESTS,
    ROLE,
    STEPS,
    TABLE,
    UNCACHED_ORDER,
)
from .state import Error


def blocks_for(tokens):
    """Blocks that hold so many tokens."""
    return (tokens + BLOCK_SIZE - 1) // BLOCK_SIZE


def gate():
    """Whether the fence is on: several steps in flight and a role that loads (0.25 on, Scheduler.__init__)."""
    return STEPS > 1 and (ROLE == "kv_consumer" or ROLE == "kv_both")


def has_fence():
    """Whether the release defers frees at all, so that a block in flight belongs to nobody else by its own rules.

    Without a fence early reuse is by design: later steps of the same stream write after the step in flight.
    """
    return gate() and (FINISH_FREE == "fenced" or ABORT_FREE == "fenced" or PREEMPTION_FREE == "fenced")


def in_flight(s, r, first, last):
    """How many of the steps first..last-1 in flight name the request."""
    return sum(1 for k in range(first, last) if r in s.flight[k].owners)


def newest(s, first, last):
    """How many of the steps first..last-1 have tokens: a fence on the newest of them (empty steps move no counter)."""
    return sum(1 for k in range(first, last) if len(s.flight[k].owners) > 0)


def deferred(s, r, fenced, first, last):
    """Whether a free of the request's blocks waits: the fence is on and a step in flight names the request."""
    return fenced and gate() and in_flight(s, r, first, last) > 0


def to_head(s, b):
    """Whether a block that is freed now is reused first rather than last (block_pool.free_blocks of each release)."""
    if CACHING == 0:
        return UNCACHED_ORDER == "head"
    return CACHED_ORDER == "split" and s.key[b] == 0


def drop_reference(s, b):
    """Take one reference off a block; at zero and without a hash, nobody expects its content any more."""
    if s.refs[b] == 0:
        s.error = Error.DOUBLE_FREE
        return
    s.refs[b] -= 1
    if s.refs[b] == 0 and s.key[b] == 0:
        s.good[b] = 0


def free_table(s, r):
    """Return a request's table in reversed order: the head group is prepended, then the tail group appended."""
    for b in s.table[r]:
        drop_reference(s, b)
    for b in s.table[r]:
        if s.refs[b] == 0 and b not in s.free and to_head(s, b):
            s.free.push_front(b)
    for b in reversed(s.table[r]):
        if s.refs[b] == 0 and b not in s.free and not to_head(s, b):
            s.free.append(b)


def can_drain(s):
    """Whether the oldest parked entry has no step left to wait for."""
    return len(s.entries) > 0 and s.entries[0].fence == 0


def drain_entry(s):
    """Return the oldest parked entry, like the immediate free that it replaces (_drain_deferred_frees)."""
    size = s.entries[0].size
    for i in range(size):
        drop_reference(s, s.parked[i])
    for i in range(size):
        b = s.parked[i]
        if s.refs[b] == 0 and b not in s.free and to_head(s, b):
            s.free.push_front(b)
    for i in range(size):
        b = s.parked[size - 1 - i]
        if s.refs[b] == 0 and b not in s.free and not to_head(s, b):
            s.free.append(b)
    for _ in range(size):
        s.parked.pop_front()
    s.entries.drop_front()


def park(s, r, fence):
    """Defer a free: the blocks wait in allocation order for the newest scheduled step, not the request's own last."""
    for b in s.table[r]:
        s.parked.append(b)
        if s.key[b] == 0:
            s.good[b] = 0
    entry = s.entries.grow()
    entry.fence = fence
    entry.size = len(s.table[r])


def release(s, r, fenced, first, last):
    """Give up a request's blocks: at once, or parked behind the fence where it is on and a step names the request."""
    if len(s.table[r]) > 0:
        if deferred(s, r, fenced, first, last):
            park(s, r, newest(s, first, last))
        else:
            free_table(s, r)
        s.table[r].clear()


def drain(s):
    """A step with tokens was processed: every fence is one step nearer; what has none left is freed, oldest first."""
    for i in range(len(s.entries)):
        s.entries[i].fence -= 1
    for _ in range(ENTRIES):
        if not can_drain(s):
            break
        drain_entry(s)


def take(s, r):
    """Hand out the head of the free queue; a hash it still has is evicted now, not when it was freed."""
    if len(s.free) == 0:
        s.error = Error.ALLOCATION
        return
    b = s.free.pop_front()
    if s.key[b] > 0:
        forget_hash(s, b)
    s.refs[b] += 1
    s.table[r].append(b)


def forget_hash(s, b):
    """Take a block's hash away; its content stands for nothing any more."""
    if b in s.cached:
        s.cached.remove(b)
    s.key[b] = 0
    s.key_of[b] = None
    s.key_at[b] = 0
    s.good[b] = 0


def grow_table(s, r, tokens):
    """Allocate what the request still lacks for so many tokens."""
    for _ in range(TABLE):
        if len(s.table[r]) >= blocks_for(tokens):
            break
        take(s, r)


def holders(s, b):
    """How many tables and parked entries refer to a block."""
    tables = sum(1 for r in range(REQUESTS) if b in s.table[r])
    return tables + sum(1 for p in s.parked if p == b)
