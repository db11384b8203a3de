"""A pool that lends blocks; with the fence off, a block goes back while a step may still write it."""

from enum import IntEnum

from fencepost.spec.lang import (
    Array,
    Index,
    Maybe,
    Seq,
    SetOf,
    Switch,
    action,
    always,
    init,
    narrator,
    reachable,
    require,
    state,
)

REQUESTS = Index("requests", default=2, letters=True, doc="requests that borrow")
BLOCKS = Index("blocks", default=2, doc="blocks in the pool")
FENCE = Switch("fence", "off", "on", doc="whether a block waits for the step that may write it")


class Status(IntEnum):
    """What a request is doing."""

    IDLE = 0
    BORROWING = 1


@state
class Pool:
    """Who holds which block, and what the step in flight may still write."""

    status: Array[REQUESTS, Status]
    held: Array[REQUESTS, Maybe[BLOCKS]]
    free: Seq[BLOCKS, BLOCKS]
    writing: SetOf[BLOCKS]


@init
def start(s):
    for b in range(BLOCKS):
        s.free.append(b)


@action
def borrow(s, r: REQUESTS):
    """Request {r} takes the block at the head of the free queue."""
    require(s.status[r] == Status.IDLE and len(s.free) > 0)
    s.status[r] = Status.BORROWING
    s.held[r] = s.free.pop_front()


@action
def launch(s, r: REQUESTS):
    """A step is launched that writes the block of request {r}."""
    require(s.held[r] is not None)
    require(s.held[r] not in s.writing)
    s.writing.add(s.held[r])


@action
def finish(s, r: REQUESTS):
    """Request {r} ends and gives its block back."""
    require(s.held[r] is not None)
    require(FENCE == "off" or s.held[r] not in s.writing)
    s.free.append(s.held[r])
    s.held[r] = None
    s.status[r] = Status.IDLE


@action
def land(s, b: BLOCKS):
    """The write of block {b} lands."""
    require(b in s.writing)
    s.writing.discard(b)


@always
def no_free_block_is_written(s):
    """No block of the free queue is still being written."""
    return all(b not in s.writing for b in s.free)


@reachable
def pool_runs_dry(s):
    """The free queue is empty."""
    return len(s.free) == 0


@narrator
def tell(before, after, action, arguments):
    """Tell what a finish means; the other actions speak for themselves."""
    if action != "finish":
        return []
    block = before["held"][arguments["r"]]
    late = "; a step may still write it" if block in before["writing"] else ""
    return [f"block {block} returns to the pool{late}"]
