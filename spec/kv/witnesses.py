"""What must be reachable, so that nothing holds because nothing happens."""

from __future__ import annotations

from ..lang import reachable
from .bounds import ABORTS, ASYNC, BLOCK_SIZE, BUDGET, CACHING, GROUPS, LOADS, PROMPT, REQUESTS, STEPS
from .pool import gate, in_flight
from .properties import live
from .state import Job, Status


@reachable
def pool_runs_full(s):
    """Every block is in use."""
    return len(s.free) == 0


@reachable(when=lambda: STEPS > 1)
def preemption_with_a_step_in_flight(s):
    """A request was preempted and a step is in flight."""
    return len(s.flight) > 0 and any(s.status[r] == Status.PREEMPTED for r in range(REQUESTS))


@reachable(when=lambda: gate())
def a_free_is_parked(s):
    """Blocks wait behind the fence."""
    return len(s.parked) > 0


@reachable(when=lambda: gate() and CACHING == 1 and GROUPS > 0)
def a_parked_block_is_hit(s):
    """A block behind the fence is in another request's table."""
    return any(b in s.table[r] for b in s.parked for r in range(REQUESTS))


@reachable(when=lambda: LOADS == 1)
def a_load_lands_while_a_step_is_in_flight(s):
    """The bytes of a load are in place, its completion is not known, and a step is in flight."""
    return len(s.flight) > 0 and any(s.job[r] == Job.LANDED for r in range(REQUESTS))


@reachable(when=lambda: STEPS > 1 and ASYNC == 1)
def a_step_runs_ahead(s):
    """A step was scheduled behind one that is not processed, for the same request."""
    return any(in_flight(s, r, 0, len(s.flight)) > 1 for r in range(REQUESTS))


@reachable(when=lambda: ABORTS == 1 or (STEPS > 1 and ASYNC == 1))
def a_request_ends_in_flight(s):
    """A request has ended and a step in flight still names it."""
    return any(s.status[r] == Status.ENDED and in_flight(s, r, 0, len(s.flight)) > 0 for r in range(REQUESTS))


@reachable(when=lambda: ABORTS == 1)
def abort_while_running_in_flight(s):
    """A client may disconnect while its request runs in a step."""
    return any(s.status[r] == Status.RUNNING and in_flight(s, r, 0, len(s.flight)) > 0 for r in range(REQUESTS))


@reachable(when=lambda: ABORTS == 1)
def abort_while_waiting(s):
    """A client may disconnect while its request waits."""
    return any(s.status[r] == Status.WAITING for r in range(REQUESTS))


@reachable(when=lambda: ABORTS == 1 and LOADS == 1)
def aborted_load_is_held(s):
    """A request was aborted during its load, and its blocks are held for the transfer."""
    return any(s.status[r] == Status.HELD for r in range(REQUESTS))


@reachable(when=lambda: CACHING == 1 and GROUPS > 0 and ABORTS == 1 and PROMPT > BLOCK_SIZE)
def an_unwritten_block_is_hit(s):
    """A block was hit though nobody has written it yet, and the request that is to write it has ended (#43569)."""
    return any(s.good[b] == 0 and s.refs[b] > 0 and not awaited(s, b) for b in s.cached)


def awaited(s, b):
    """Whether a request that shares the block will write it itself, or waits for its load."""
    return any(b in s.table[r] and (s.status[r] != Status.RUNNING or writes(s, r, b)) for r in range(REQUESTS))


def writes(s, r, b):
    """Whether a step that did not run yet starts the request at or before the block."""
    return any(
        not s.flight[k].ran and r in s.flight[k].owners and s.flight[k].start[r] <= s.key_at[b] * BLOCK_SIZE
        for k in range(len(s.flight))
    )


@reachable(when=lambda: CACHING == 1)
def an_eviction_is_next(s):
    """The next block to be handed out still has a hash, and a request waits."""
    return len(s.free) > 0 and s.key[s.free[0]] > 0 and len(s.waiting) > 0


@reachable(when=lambda: CACHING == 1 and GROUPS > 0)
def two_requests_share_a_block(s):
    """A block is in two tables."""
    return any(s.refs[b] > 1 and b not in s.parked for b in s.cached)


@reachable(when=lambda: BUDGET < PROMPT)
def a_prompt_is_chunked(s):
    """A running request has computed part of its prompt only."""
    return any(s.status[r] == Status.RUNNING and s.computed[r] < s.prompt[r] for r in range(REQUESTS))


@reachable
def a_token_is_known(s):
    """A live request has output."""
    return any(live(s, r) and s.known[r] > 0 for r in range(REQUESTS))
