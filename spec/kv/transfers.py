"""Remote loads: their bytes land and their completion is reported, in no order with the compute stream."""

from __future__ import annotations

from ..lang import action, require
from .bounds import ABORT_FREE, BLOCK_SIZE, LOADS, REMOTE, REQUESTS
from .cache import same_slots
from .output import end, forget_text
from .pool import blocks_for, in_flight, release
from .state import Error, Job, Status


@action(fair="weak", when=lambda: LOADS == 1)
def land(s, r: REQUESTS):
    """The bytes of a request's load arrive in its blocks; nothing waits for the compute stream."""
    require(s.job[r] == Job.MOVING)
    s.job[r] = Job.LANDED
    if s.status[r] == Status.LOADING:
        for k in range(len(s.table[r])):
            b = s.table[r][k]
            if s.key[b] == 0:
                s.good[b] = min(BLOCK_SIZE, s.computed[r] - k * BLOCK_SIZE)
    end = min(s.prompt[r], REMOTE)
    first = blocks_for(end) - len(s.orphan[r])
    for i in range(len(s.orphan[r])):
        b = s.orphan[r][i]
        same = same_slots(s, b, r, first + i)
        if min(BLOCK_SIZE, end - (first + i) * BLOCK_SIZE) > same:
            s.good[b] = min(s.good[b], same)
        if owned(s, b):
            s.foreign = True
    s.orphan[r].clear()
    if in_flight(s, r, 0, len(s.flight)) == 0:
        forget_text(s, r)


def owned(s, b):
    """Whether a block is in some request's table."""
    return any(b in s.table[r] for r in range(REQUESTS))


@action(fair="weak", when=lambda: LOADS == 1)
def report(s, r: REQUESTS):
    """The scheduler learns, with some step's output, that a load is complete; an aborted one's blocks are freed now."""
    require(s.error == Error.NONE and s.job[r] == Job.LANDED)
    if s.status[r] == Status.LOADING:
        s.job[r] = Job.REPORTED
    else:
        s.job[r] = Job.NONE
        if s.status[r] == Status.HELD:
            release(s, r, ABORT_FREE == "fenced", 0, len(s.flight))
            end(s, r, 0)
        else:
            s.error = Error.COMPLETION
