"""The device: the compute stream executes steps in order, each some time after it was scheduled."""

from __future__ import annotations

from ..lang import action, require
from .bounds import BLOCK_SIZE, ENDED_ROWS
from .cache import expects, same_slots
from .pool import blocks_for, has_fence
from .state import Status
from .transfers import owned


@action(fair="weak")
def run_step(s):
    """The oldest step that did not run yet: every slot of its tokens is written, then attention reads.

    Slots are written for every request in it, also for those that have ended since (the step was dispatched before); in
    each layer, the writes of a step precede its reads.
    """
    now = next_to_run(s)
    require(now < len(s.flight))
    for r in s.flight[now].owners:
        if rows_written(s, r):
            write_slots(s, now, r)
    for r in s.flight[now].owners:
        read_slots(s, now, r)
    s.flight[now].ran = True


def next_to_run(s):
    """Position of the oldest step that did not run yet; the number of steps if all did."""
    for k in range(len(s.flight)):
        if not s.flight[k].ran:
            return k
    return len(s.flight)


def rows_written(s, r):
    """Whether the device still writes the request's tokens: a dispatched step is executed as it was dispatched."""
    return ENDED_ROWS == "written" or s.status[r] == Status.RUNNING or s.status[r] == Status.PREEMPTED


def write_slots(s, now, r):
    """Write one request's tokens; in a block that stands for something else by now they destroy what was there.

    Tokens of a shared text are the same whoever writes them.
    """
    start = s.flight[now].start[r]
    end = start + s.flight[now].count[r]
    for k in range(start // BLOCK_SIZE, blocks_for(end)):
        b = s.flight[now].table[r][k]
        low = max(start - k * BLOCK_SIZE, 0)
        if expects(s, b, r, k):
            if s.good[b] >= low:
                s.good[b] = max(s.good[b], min(end - k * BLOCK_SIZE, BLOCK_SIZE))
        else:
            same = same_slots(s, b, r, k)
            if end - k * BLOCK_SIZE > same:
                s.good[b] = min(s.good[b], max(low, same))
            if has_fence() and owned(s, b):
                s.foreign = True


def read_slots(s, now, r):
    """Read one request's slots; of one whose result is kept each is to hold that request's own content."""
    end = s.flight[now].start[r] + s.flight[now].count[r]
    if s.status[r] == Status.RUNNING and not superseded(s, now, r, end):
        for k in range(blocks_for(end)):
            b = s.flight[now].table[r][k]
            if expects(s, b, r, k) and s.good[b] < min(BLOCK_SIZE, end - k * BLOCK_SIZE):
                s.misread = True


def superseded(s, now, r, end):
    """Whether the request was preempted and resumed since the step: a later one computes some of its tokens again."""
    return any(r in s.flight[k].owners and s.flight[k].start[r] < end for k in range(now + 1, len(s.flight)))
