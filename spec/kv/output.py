"""`process`: the oldest executed step's output; ends, aborts and the reset of the prefix cache."""

from __future__ import annotations

from ..lang import SetOf, action, require
from .bounds import (
    ABORT_FREE,
    ABORT_OF_LOAD,
    ABORT_REPORTED,
    ABORTS,
    ASYNC,
    BLOCKS,
    CACHING,
    FINISH_FREE,
    MAX_TOKENS,
    REQUESTS,
    RESET_PARKED,
    RESET_RUNNING,
    SKIPS_ENDED,
    STALE,
)
from .cache import clear_cache, hash_blocks, orphan_hashes
from .pool import drain, in_flight, release
from .scheduler import preempt
from .state import Error, Job, Status


@action(fair="weak")
def process(s, stops: SetOf[REQUESTS]):
    """The output of the oldest step is processed: drain, then tokens and ends of its requests, in the step's order."""
    require(s.error == Error.NONE and len(s.flight) > 0 and s.flight[0].ran)
    require(all(may_stop(s, r) for r in range(REQUESTS) if r in stops))
    if len(s.flight[0].owners) > 0:
        drain(s)
    for r in s.flight[0].owners:
        deliver(s, r, r in stops)
    for r in s.flight[0].owners:
        if in_flight(s, r, 1, len(s.flight)) == 0:
            forget_text(s, r)
    s.flight.drop_front()


def kept(s, r):
    """Whether the oldest step yields a token for the request, and somebody still wants it."""
    if r not in s.flight[0].samples or (s.status[r] != Status.RUNNING and s.status[r] != Status.PREEMPTED):
        return False
    return s.stale[r] == 0 or s.drop[r] == 0


def may_stop(s, r):
    """Whether a stop token is a choice of its own: the token is kept, and does not end the request by length anyway."""
    return kept(s, r) and s.known[r] + 1 < MAX_TOKENS


def deliver(s, r, stop):
    """One request's share of an output: settle what was stale, count the token, end the request where it stops."""
    wanted = kept(s, r)
    late = s.stale[r] > 0
    if late and (STALE == "marked" or r in s.flight[0].samples):
        s.stale[r] -= 1
        if s.stale[r] == 0:
            s.drop[r] = 0
    if wanted:
        s.known[r] += 1
        if not late and ASYNC == 1:
            settle_place(s, r)
        if not late and s.status[r] == Status.RUNNING:
            hash_blocks(s, r, settled(s, r))
        if stop or s.known[r] == MAX_TOKENS:
            finish(s, r)


def settle_place(s, r):
    """The token takes its placeholder; without one the release's assertion stops the engine (0.23, 0.25; #48245)."""
    if s.places[r] > 0:
        s.places[r] -= 1
    elif STALE == "counted":
        s.error = Error.PLACEHOLDERS


def settled(s, r):
    """Tokens computed by processed steps; up to 0.25: those that are not placeholders."""
    if STALE == "counted":
        return max(0, s.computed[r] - s.places[r])
    return s.computed[r] - sum(s.flight[k].count[r] for k in range(1, len(s.flight)))


def finish(s, r):
    """A request ends at output processing."""
    first = s.status[r] == Status.RUNNING
    if not first:
        if r in s.waiting:
            s.waiting.remove(r)
        else:
            s.holding.remove(r)
    elif SKIPS_ENDED == "yes":
        s.running.remove(r)
    if first and SKIPS_ENDED == "no":
        leave_listed(s, r)
    else:
        release(s, r, FINISH_FREE == "fenced", 1, len(s.flight))
        end(s, r, 1)


def leave_listed(s, r):
    """The ended request stays on the running list until the next step is built."""
    release(s, r, FINISH_FREE == "fenced", 1, len(s.flight))
    end(s, r, 1)
    s.status[r] = Status.STOPPED


def end(s, r, first):
    """Nothing of an ended request is left but what steps and transfers may still need: its text, for what they write."""
    s.status[r] = Status.ENDED
    s.remote[r] = False
    s.known[r] = 0
    s.computed[r] = 0
    s.prefilling[r] = False
    s.places[r] = 0
    s.stale[r] = 0
    s.drop[r] = 0
    orphan_hashes(s, r)
    if CACHING == 0 or in_flight(s, r, first, len(s.flight)) == 0:
        forget_text(s, r)


def forget_text(s, r):
    """The last step that named an ended request is processed, and no transfer of it still writes."""
    if s.status[r] == Status.ENDED and (CACHING == 0 or len(s.orphan[r]) == 0):
        s.prompt[r] = 0
        s.group[r] = 0


@action(when=lambda: ABORTS == 1)
def abort(s, r: REQUESTS):
    """A client disconnects, whatever its request is doing; output still in flight is ignored."""
    require(s.error == Error.NONE)
    require(s.status[r] != Status.ENDED and s.status[r] != Status.HELD and s.status[r] != Status.STOPPED)
    if s.status[r] == Status.RUNNING:
        s.running.remove(r)
    elif r in s.waiting:
        s.waiting.remove(r)
    else:
        s.holding.remove(r)
    if s.status[r] == Status.LOADING:
        abort_load(s, r)
    else:
        release(s, r, ABORT_FREE == "fenced", 0, len(s.flight))
        end(s, r, 0)


def abort_load(s, r):
    """The blocks of a load stay until its completion is reported; one that was reported already will not be again."""
    if s.job[r] == Job.REPORTED and ABORT_REPORTED == "free":
        s.job[r] = Job.NONE
        release(s, r, ABORT_FREE == "fenced", 0, len(s.flight))
        end(s, r, 0)
    elif s.job[r] != Job.REPORTED and ABORT_OF_LOAD == "at-once":
        if s.job[r] == Job.MOVING:
            for b in s.table[r]:
                if s.key[b] == 0:
                    s.orphan[r].append(b)
        release(s, r, ABORT_FREE == "fenced", 0, len(s.flight))
        end(s, r, 0)
    else:
        end(s, r, 0)
        s.status[r] = Status.HELD


@action(when=lambda: CACHING == 1)
def reset_prefix_cache(s):
    """The cache is reset; with anything held it fails and changes nothing, which is not a transition."""
    require(s.error == Error.NONE and len(s.free) == BLOCKS and len(s.cached) > 0)
    clear_cache(s)


@action(when=lambda: RESET_RUNNING == 1)
def reset_running(s):
    """The cache is reset by preempting everybody first; in-flight output is dropped.

    The fence parks what steps in flight still use, so the pool is not empty and the releases raise (0.23 to 0.33);
    `reference` refuses the call and changes nothing.
    """
    require(s.error == Error.NONE and len(s.running) > 0)
    for _ in range(REQUESTS):
        if len(s.running) == 0:
            break
        victim = s.running.pop_back()
        preempt(s, victim, True, len(s.flight))
    if RESET_PARKED == "refuse":
        require(len(s.free) == BLOCKS)
    if s.error == Error.NONE:
        if len(s.free) < BLOCKS:
            s.error = Error.RESET
        else:
            clear_cache(s)
