"""What a schedule keeps on its way: the order in which blocks come back, tables, parked entries."""

from __future__ import annotations

from ..lang import Bool, Int, loop_invariant
from .bounds import BLOCKS, BUDGET, CACHING, REQUESTS, VICTIM
from .properties import in_order
from .scheduler import scan_running, scan_waiting
from .state import Status


@loop_invariant(scan_running, when=lambda: CACHING == 0)
def running_two_in_order(s, t, left: Int(0, BUDGET), at: Int(0, REQUESTS)):
    """So far blocks came back in order."""
    return all(in_order(s, t, a, b) for a in range(BLOCKS) for b in range(BLOCKS))


@loop_invariant(scan_running, when=lambda: CACHING == 0)
def running_keep_blocks(s, t, left: Int(0, BUDGET), at: Int(0, REQUESTS)):
    """What was parked still is; where nobody was preempted, every request has what it had, and perhaps more.

    One that is still to be scheduled has just that, and nobody else had any of it.
    """
    return all(
        parked_stays(s, t, b)
        and all(still_has(s, t, r, b) or (preempted(s, t) and s.status[r] == Status.RUNNING) for r in range(REQUESTS))
        and all(untouched(s, t, t.running[k], b) for k in range(at, len(t.running)))
        for b in range(BLOCKS)
    )


@loop_invariant(scan_running, when=lambda: CACHING == 0)
def running_change_little(s, t, left: Int(0, BUDGET), at: Int(0, REQUESTS)):
    """Parked entries are those that were, and perhaps more; who is still to be scheduled runs, as before."""
    return (
        len(t.running) <= len(s.running)
        and entries_stay(s, t)
        and all(s.status[t.running[k]] == t.status[t.running[k]] for k in range(at, len(t.running)))
    )


def preempted(s, t):
    """Whether somebody was preempted so far."""
    return len(t.running) < len(s.running)


def entries_stay(s, t):
    """Whether entries are still there; no more of them where victims are only requests whose blocks come back at once."""
    if len(t.parked) < len(s.parked) or len(t.entries) < len(s.entries) or (VICTIM != "any" and len(t.parked) > len(s.parked)):
        return False
    return all(t.entries[e].size == s.entries[e].size for e in range(len(s.entries)))


def parked_stays(s, t, b):
    """Whether a block is parked wherever it was."""
    return all(i < len(t.parked) and (t.parked[i] == b) == (s.parked[i] == b) for i in range(len(s.parked)))


def still_has(s, t, r, b):
    """Whether a request has a block wherever it had it, and nowhere else up to there."""
    return all(i < len(t.table[r]) and (t.table[r][i] == b) == (s.table[r][i] == b) for i in range(len(s.table[r])))


def untouched(s, t, r, b):
    """Whether a request has a block exactly where it had it, and nobody else had it then."""
    return (
        len(s.table[r]) == len(t.table[r])
        and still_has(s, t, r, b)
        and (b not in s.table[r] or (b not in s.free and not any(b in s.table[q] for q in range(REQUESTS) if q != r)))
    )


@loop_invariant(scan_waiting, when=lambda: CACHING == 0)
def waiting_two_in_order(
    s, t, budget: Int(0, BUDGET), left: Int(0, BUDGET), moved: Bool, held: Int(0, REQUESTS), waits: Int(0, REQUESTS)
):
    """So far blocks came back in order."""
    return all(in_order(s, t, a, b) for a in range(BLOCKS) for b in range(BLOCKS))


@loop_invariant(scan_waiting, when=lambda: CACHING == 0)
def waiting_keep_blocks(
    s, t, budget: Int(0, BUDGET), left: Int(0, BUDGET), moved: Bool, held: Int(0, REQUESTS), waits: Int(0, REQUESTS)
):
    """Nobody was preempted: what was parked still is, and every request has what it had, and perhaps more."""
    return all(parked_stays(s, t, b) and all(still_has(s, t, r, b) for r in range(REQUESTS)) for b in range(BLOCKS))


@loop_invariant(scan_waiting, when=lambda: CACHING == 0)
def waiting_change_little(
    s, t, budget: Int(0, BUDGET), left: Int(0, BUDGET), moved: Bool, held: Int(0, REQUESTS), waits: Int(0, REQUESTS)
):
    """Parked entries are those that were, and perhaps more."""
    return entries_stay(s, t)
