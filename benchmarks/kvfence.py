"""kvfence: the block lifecycle with steps in flight and remote writes, small and exact.

The benchmark model: the same states and transitions are written for SPIN, Rumur and TLC in `peers/`. `fence` says
when a released block is free again: 0 at once (the bug), 1 after the newest step in flight (correct), 2 as 1, but at
once when the pipeline is full and the request holds all it may (a rarer bug, with a deeper counterexample).
"""

from enum import IntEnum

from fencepost.spec.lang import (
    Array,
    Bound,
    Index,
    Int,
    Seq,
    SetOf,
    action,
    always,
    init,
    reachable,
    record,
    require,
    state,
)

REQUESTS = Index("requests", default=3, doc="requests")
BLOCKS = Index("blocks", default=4, doc="blocks of the pool")
STEPS = Bound("steps", default=3, least=1, doc="steps in flight at most")
PER_REQUEST = Bound("per_request", default=3, least=1, doc="blocks one request holds at most")
FENCE = Bound("fence", default=1, least=0, most=2, doc="0 no fence, 1 a fence, 2 a fence with a hole")


class Status(IntEnum):
    """Where a request stands; a remote one has its blocks, and the NIC has still to write them."""

    WAITING = 0
    RUNNING = 1
    REMOTE = 2
    FINISHED = 3


@record
class Late:
    """A released block that is not free yet: `fence` more steps must be processed first."""

    fence: Int(1, STEPS)
    block: BLOCKS


@state
class Pool:
    status: Array[REQUESTS, Status]
    blocks: Array[REQUESTS, Seq[BLOCKS, PER_REQUEST]]  # in order of allocation
    free: Seq[BLOCKS, BLOCKS]  # head first
    flight: Seq[SetOf[BLOCKS], STEPS]  # what each unprocessed step may touch, oldest first
    deferred: Seq[Late, BLOCKS]  # oldest first


@init
def start(s):
    """Every block is free, in order of number."""
    for b in range(BLOCKS):
        s.free.append(b)


def take(s, r):
    """Give a request the block at the head of the free queue."""
    s.blocks[r].append(s.free.pop_front())


def release(s, r):
    """Take a request's blocks away: to the head of the free queue as one sequence, or behind the newest step."""
    n = len(s.flight)
    if FENCE == 0 or n == 0 or (FENCE == 2 and n == STEPS and len(s.blocks[r]) == PER_REQUEST):
        for b in reversed(s.blocks[r]):
            s.free.push_front(b)
    else:
        for b in s.blocks[r]:
            late = s.deferred.grow()
            late.fence = n
            late.block = b
    s.blocks[r].clear()


@action
def admit_local(s, r: REQUESTS):
    """A waiting request gets its first block and runs."""
    require(s.status[r] == Status.WAITING and len(s.free) > 0)
    take(s, r)
    s.status[r] = Status.RUNNING


@action
def admit_remote(s, r: REQUESTS):
    """A waiting request gets its first block, which the NIC will write."""
    require(s.status[r] == Status.WAITING and len(s.free) > 0)
    take(s, r)
    s.status[r] = Status.REMOTE


@action
def nic_arrive(s, r: REQUESTS):
    """The remote write has arrived, and the request runs."""
    require(s.status[r] == Status.REMOTE)
    s.status[r] = Status.RUNNING


@action
def grow(s, r: REQUESTS):
    """A running request gets one more block."""
    require(s.status[r] == Status.RUNNING and len(s.free) > 0 and len(s.blocks[r]) < PER_REQUEST)
    take(s, r)


@action
def finish(s, r: REQUESTS):
    """A running request is done and gives its blocks up."""
    require(s.status[r] == Status.RUNNING)
    release(s, r)
    s.status[r] = Status.FINISHED


@action
def abort(s, r: REQUESTS):
    """A request is aborted, perhaps while its remote write is still to come."""
    require(s.status[r] == Status.RUNNING or s.status[r] == Status.REMOTE)
    release(s, r)
    s.status[r] = Status.FINISHED


@action
def preempt(s, r: REQUESTS):
    """A request loses its blocks and waits again."""
    require(s.status[r] == Status.RUNNING or s.status[r] == Status.REMOTE)
    release(s, r)
    s.status[r] = Status.WAITING


@action
def recycle(s, r: REQUESTS):
    """A finished request comes again."""
    require(s.status[r] == Status.FINISHED)
    s.status[r] = Status.WAITING


@action
def schedule(s):
    """Issue a step over the blocks of all running requests."""
    require(len(s.flight) < STEPS and any(s.status[r] == Status.RUNNING for r in range(REQUESTS)))
    s.flight.append({b for r in range(REQUESTS) if s.status[r] == Status.RUNNING for b in s.blocks[r]})


@action
def process(s):
    """The oldest step is done: every fence comes one nearer, and blocks without one go to the free queue's head."""
    require(len(s.flight) > 0)
    s.flight.drop_front()
    due = 0
    for late in s.deferred:
        if late.fence == 1:
            due += 1
    for k in range(due):
        s.free.push_front(s.deferred[due - 1 - k].block)
    for _ in range(due):
        s.deferred.drop_front()
    for k in range(len(s.deferred)):
        s.deferred[k].fence -= 1


@always
def no_write_into_a_block_in_flight(s):
    """No block of a remote request is one that a step in flight may still touch."""
    return all(
        b not in touched for r in range(REQUESTS) if s.status[r] == Status.REMOTE for b in s.blocks[r] for touched in s.flight
    )


@reachable(when=lambda: FENCE > 0)
def a_block_waits_behind_a_step(s):
    """A released block is held back by a step in flight."""
    return len(s.deferred) > 0


@reachable(when=lambda: FENCE > 0 and STEPS > 1 and BLOCKS > 1)
def blocks_wait_behind_different_steps(s):
    """Two released blocks are held back by different steps."""
    return any(late.fence != s.deferred[0].fence for late in s.deferred)


@reachable
def a_remote_write_while_every_step_is_in_flight(s):
    """The pipeline is full while a remote write is still to come."""
    return len(s.flight) == STEPS and any(s.status[r] == Status.REMOTE for r in range(REQUESTS))


@reachable
def a_request_holds_all_it_may(s):
    """A request holds as many blocks as it may."""
    return any(len(s.blocks[r]) == PER_REQUEST for r in range(REQUESTS))
