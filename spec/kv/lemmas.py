"""Lemmas: what proofs by induction know of a state before an action, and prove of the one after it.

What is where, and how the counters belong together. `fencepost prove` shows them to be inductive together with the
properties; `fencepost check --property NAME` looks at one in every state.
"""

from __future__ import annotations

from ..lang import Bool, Int, always, loop_invariant
from .bounds import (
    ASYNC,
    BLOCKS,
    BUDGET,
    CACHING,
    FULL_ISL,
    LOADS,
    MAX_TOKENS,
    OWN,
    QUEUES,
    REQUESTS,
    RESERVATION,
    SKIPS_ENDED,
    STALE,
    STEPS,
)
from .cache import stands_for
from .pool import blocks_for, gate, has_fence, in_flight, newest
from .scheduler import scan_running, scan_waiting, still_needed
from .state import Job, Status


def times(s, r):
    """How often a request stands in the three lists."""
    return sum(1 for q in s.waiting if q == r) + sum(1 for q in s.holding if q == r) + sum(1 for q in s.running if q == r)


@always(lemma=True)
def listed_once(s):
    """A request stands in one list, once, if it waits, loads, was preempted or runs, and in none otherwise."""
    return all(times(s, r) == expected_times(s, r) for r in range(REQUESTS))


def expected_times(s, r):
    """How often a request should stand in a list."""
    if s.status[r] == Status.ENDED or s.status[r] == Status.HELD:
        return 0
    return 1


@always(lemma=True)
def running_runs(s):
    """On the running list are those that run, or that ended and are still listed."""
    return all((r in s.running) == (s.status[r] == Status.RUNNING or s.status[r] == Status.STOPPED) for r in range(REQUESTS))


@always(lemma=True)
def free_once(s):
    """A block is in the free queue once if nobody holds it, else not at all."""
    return all(sum(1 for c in s.free if c == b) == int(s.refs[b] == 0) for b in range(BLOCKS))


@always(lemma=True)
def tables_fit(s):
    """Who holds blocks has as many as its computed tokens need, the last prompt token once more, and nobody else has any."""
    return all(table_fits(s, r) for r in range(REQUESTS))


def table_fits(s, r):
    """The same for one request."""
    if s.status[r] == Status.RUNNING or s.status[r] == Status.LOADING:
        return len(s.table[r]) == blocks_for(s.computed[r]) and s.computed[r] > 0
    if s.status[r] == Status.HELD:
        return True
    if s.status[r] == Status.WAITING:
        whole = s.computed[r] + 1 == s.prompt[r] and len(s.table[r]) == blocks_for(s.prompt[r])
        return whole or len(s.table[r]) == blocks_for(s.computed[r])
    return len(s.table[r]) == 0 and s.computed[r] == 0


@always(lemma=True)
def ended_have_nothing(s):
    """Of an ended request nothing is left, but its text while steps in flight or transfers may still write it."""
    return all(nothing(s, r) for r in range(REQUESTS) if s.status[r] == Status.ENDED or s.status[r] == Status.HELD)


def nothing(s, r):
    """The same for one request."""
    return (
        s.known[r] == 0
        and s.computed[r] == 0
        and s.places[r] == 0
        and s.stale[r] == 0
        and s.drop[r] == 0
        and not s.remote[r]
        and not s.prefilling[r]
        and not (s.status[r] == Status.HELD and in_flight(s, r, 0, len(s.flight)) > 0)
        and (in_flight(s, r, 0, len(s.flight)) > 0 or len(s.orphan[r]) > 0 or (s.prompt[r] == 0 and s.group[r] == 0))
    )


@always(lemma=True, when=lambda: not gate())
def only_the_fence_parks(s):
    """Without the fence nothing is parked."""
    return len(s.entries) == 0 and len(s.parked) == 0


@always(lemma=True, when=lambda: LOADS == 0)
def only_loads_hold(s):
    """Without loads nobody loads or is held, and whoever waits has nothing."""
    return all(
        s.job[r] == Job.NONE
        and not s.remote[r]
        and s.status[r] != Status.LOADING
        and s.status[r] != Status.HELD
        and (s.status[r] != Status.WAITING or len(s.table[r]) == 0)
        for r in range(REQUESTS)
    )


@always(lemma=True, when=lambda: gate())
def entries_fit(s):
    """Parked blocks are those of the entries; every entry has some."""
    return len(s.parked) == sum(s.entries[e].size for e in range(len(s.entries))) and all(
        s.entries[e].size > 0 for e in range(len(s.entries))
    )


@always(lemma=True, when=lambda: gate())
def parks_once(s):
    """Of all requests, each has blocks parked behind one step once, or holds some that would be parked behind it."""
    return all(
        sum(1 for e in range(len(s.entries)) if s.entries[e].fence == f) + could_park(s, f) <= REQUESTS
        for f in range(1, STEPS + 1)
    )


def could_park(s, f):
    """How many requests hold blocks and are named last by one of the first f steps with tokens; by any, if f is the last."""
    return sum(
        1 for r in range(REQUESTS) if len(s.table[r]) > 0 and (f == STEPS or (named(s, r, f) and not named_after(s, r, f)))
    )


def named(s, r, f):
    """Whether one of the first f steps with tokens names the request."""
    return any(r in s.flight[k].owners and newest(s, 0, k + 1) <= f for k in range(len(s.flight)))


def named_after(s, r, f):
    """Whether a later step names the request."""
    return any(r in s.flight[k].owners and newest(s, 0, k + 1) > f for k in range(len(s.flight)))


@always(lemma=True)
def steps_fit(s):
    """A step names each of its requests once, with tokens, and the blocks that these need."""
    return all(step_fits(s, k) for k in range(len(s.flight)))


def step_fits(s, k):
    """The same for one step."""
    return all(owner_fits(s, k, r) for r in range(REQUESTS))


def owner_fits(s, k, r):
    """The same for one request in it; of the others the step says nothing."""
    step = s.flight[k]
    often = sum(1 for q in step.owners if q == r)
    if often == 0:
        return step.start[r] == 0 and step.count[r] == 0 and r not in step.samples and len(step.table[r]) == 0
    return often == 1 and step.count[r] > 0 and len(step.table[r]) == blocks_for(step.start[r] + step.count[r])


@always(lemma=True)
def ran_in_order(s):
    """The device runs steps in order."""
    return all(s.flight[k - 1].ran or not s.flight[k].ran for k in range(1, len(s.flight)))


@always(lemma=True)
def stale_in_flight(s):
    """Stale outputs are of steps in flight, of requests that wait or run again."""
    return all(s.stale[r] <= in_flight(s, r, 0, len(s.flight)) for r in range(REQUESTS)) and all(
        s.drop[r] == 0 or s.stale[r] > 0 for r in range(REQUESTS)
    )


def occurrences(s, b):
    """How often a block stands in tables and among the parked ones."""
    return sum(sum(1 for c in s.table[r] if c == b) for r in range(REQUESTS)) + sum(1 for c in s.parked if c == b)


@always(lemma=True)
def held_as_often(s):
    """A block stands in tables and parked entries as often as it has references."""
    return all(occurrences(s, b) == s.refs[b] for b in range(BLOCKS))


@always(lemma=True, when=lambda: CACHING == 0)
def blocks_add_up(s):
    """Without caching every block is in the free queue, in one table, or parked once."""
    return len(s.free) + sum(len(s.table[r]) for r in range(REQUESTS)) + len(s.parked) == BLOCKS


@always(lemma=True)
def tokens_add_up(s):
    """A request that runs is either in its prefill, or computed up to its last placeholder."""
    return all(adds_up(s, r) for r in range(REQUESTS) if s.status[r] == Status.RUNNING)


def adds_up(s, r):
    """The same for one request; without async scheduling there are no placeholders, and a token in flight is not counted."""
    if ASYNC == 0:
        return s.places[r] == 0 and s.computed[r] <= s.prompt[r] + s.known[r]
    if s.prefilling[r]:
        return s.computed[r] < s.prompt[r] + s.known[r] and s.places[r] == 0
    return s.computed[r] + 1 == s.prompt[r] + s.known[r] + s.places[r]


@always(lemma=True)
def unfinished(s):
    """A request that is not ended has a prompt, tokens left to write, and a pool that is large enough for it."""
    return all(
        s.prompt[r] > 0 and s.known[r] < MAX_TOKENS and blocks_for(s.prompt[r] + MAX_TOKENS - 1) <= BLOCKS
        for r in range(REQUESTS)
        if s.status[r] != Status.ENDED and s.status[r] != Status.HELD and s.status[r] != Status.STOPPED
    )


@always(lemma=True, when=lambda: STALE == "marked")
def waiting_are_fresh(s):
    """Who waits has no placeholders, and loads first if its prompt is remote."""
    return all(fresh(s, r) for r in range(REQUESTS))


def fresh(s, r):
    """The same for one request; one that loads or was loaded counts as being in its prefill."""
    if s.status[r] == Status.WAITING or s.status[r] == Status.LOADING:
        return (
            s.places[r] == 0
            and s.stale[r] == 0
            and s.known[r] == 0
            and (not s.remote[r] or len(s.table[r]) == 0)
            and not (s.status[r] == Status.LOADING and s.remote[r])
            and in_flight(s, r, 0, len(s.flight)) == 0
            and s.prefilling[r] == (len(s.table[r]) > 0)
        )
    if s.status[r] == Status.PREEMPTED:
        return s.places[r] == 0 and not s.remote[r] and not s.prefilling[r]
    return not s.remote[r]


@always(lemma=True)
def loads_are_whole(s):
    """What is loaded is at most the prompt."""
    return all(
        s.computed[r] <= s.prompt[r] and (s.status[r] == Status.LOADING or s.computed[r] < s.prompt[r])
        for r in range(REQUESTS)
        if s.status[r] == Status.LOADING or s.status[r] == Status.WAITING
    )


@always(lemma=True, when=lambda: STALE == "marked")
def steps_chain(s):
    """Steps of a request that runs, but for stale ones, follow one another up to what is computed."""
    return all(chained(s, r) for r in range(REQUESTS) if s.status[r] == Status.RUNNING)


def chained(s, r):
    """The same for one request."""
    end = -1
    good = True
    for k in range(len(s.flight)):
        if r in s.flight[k].owners and in_flight(s, r, 0, k) >= s.stale[r]:
            if end >= 0 and s.flight[k].start[r] != end:
                good = False
            end = s.flight[k].start[r] + s.flight[k].count[r]
    return good and (end < 0 or end == s.computed[r])


@always(lemma=True, when=lambda: STALE == "marked")
def samples_at_the_end(s):
    """A step that is not stale yields a token exactly if it computes the last one that is known or promised."""
    return all(
        sampled(s, r)
        for r in range(REQUESTS)
        if s.status[r] == Status.RUNNING or (s.status[r] == Status.PREEMPTED and s.drop[r] == 0)
    )


def sampled(s, r):
    """The same for one request."""
    promised = 0
    good = True
    for k in range(len(s.flight)):
        if r in s.flight[k].owners and (s.status[r] == Status.PREEMPTED or in_flight(s, r, 0, k) >= s.stale[r]):
            end = s.flight[k].start[r] + s.flight[k].count[r]
            if r in s.flight[k].samples:
                if end != s.prompt[r] + s.known[r] + promised:
                    good = False
                promised += 1
            elif end >= s.prompt[r] + s.known[r]:
                good = False
    return good


@always(lemma=True, when=lambda: STALE == "marked")
def stale_is_dropped_or_awaited(s):
    """Who runs has no stale output that is wanted; of one that was preempted every step in flight is stale."""
    return all(awaited(s, r) for r in range(REQUESTS))


def awaited(s, r):
    """The same for one request."""
    if s.status[r] == Status.RUNNING:
        return s.stale[r] == 0 or s.drop[r] == 1
    if s.status[r] == Status.PREEMPTED:
        return s.stale[r] == in_flight(s, r, 0, len(s.flight))
    return s.stale[r] == 0


@always(lemma=True)
def who_holds_is_first(s):
    """In the queue that is looked at first are those that hold blocks; where it is one of the skipped, others as well."""
    return all(
        not (r in s.holding and QUEUES == "holding")
        if s.status[r] != Status.LOADING and (s.status[r] != Status.WAITING or len(s.table[r]) == 0)
        else r in s.holding
        for r in range(REQUESTS)
    )


@always(lemma=True, when=lambda: LOADS == 1 and FULL_ISL == 1 and RESERVATION == "on")
def loads_leave_room(s):
    """Beside the blocks of those that load or are held there are enough for the rest of each prompt that was loaded."""
    return all(still_needed(s, q) <= apart(s) for q in range(REQUESTS) if set_aside(s, q))


def apart(s):
    """Blocks that no such request has; without caching no two have the same."""
    if CACHING == 0:
        return BLOCKS - sum(len(s.table[r]) for r in range(REQUESTS) if set_aside(s, r))
    return sum(1 for b in range(BLOCKS) if not any(b in s.table[r] and set_aside(s, r) for r in range(REQUESTS)))


def set_aside(s, r):
    """Whether a request holds blocks for a load, so that no preemption gives them back."""
    return s.status[r] == Status.LOADING or s.status[r] == Status.HELD or s.status[r] == Status.WAITING


@always(lemma=True, when=lambda: SKIPS_ENDED == "yes")
def nobody_lingers(s):
    """Nobody who has ended is still on the running list."""
    return all(s.status[r] != Status.STOPPED for r in range(REQUESTS))


@always(lemma=True, when=lambda: has_fence() and STALE == "marked")
def references_are_protected(s):
    """A block that a step in flight names is still its request's, or parked until that step is processed; its hash agrees."""
    return all(protected(s, b) for b in range(BLOCKS))


def protected(s, b):
    """The same for one block."""
    return all(
        protected_from(s, b, k, r, i)
        for k in range(len(s.flight))
        for r in range(REQUESTS)
        for i in range(len(s.flight[k].table[r]))
        if s.flight[k].table[r][i] == b
    )


def protected_from(s, b, k, r, i):
    """The same for one step that names the block as a request's i-th."""
    if s.status[r] == Status.RUNNING and in_flight(s, r, 0, k) >= s.stale[r]:
        return i < len(s.table[r]) and s.table[r][i] == b
    return waits_for(s, b) >= newest(s, 0, k + 1) and (s.key[b] == 0 or lost(s, b) or stands_for(s, b, r, i))


def lost(s, b):
    """Whether a block has a hash of a text that nobody has any more."""
    return s.key[b] == OWN and s.key_of[b] is None


def waits_for(s, b):
    """How many steps are still to be processed before a parked block comes back; 0 for one that is not parked."""
    at = 0
    found = 0
    for e in range(len(s.entries)):
        for i in range(s.entries[e].size):
            if s.parked[at + i] == b:
                found = s.entries[e].fence
        at += s.entries[e].size
    return found


@loop_invariant(scan_running)
def running_in_turn(s, left: Int(0, BUDGET), at: Int(0, REQUESTS)):
    """The step that is being built names none but the first requests of the running list."""
    return (
        half_built(s)
        and at <= len(s.running)
        and all(any(s.running[k] == r for k in range(min(at, len(s.running)))) for r in s.flight[len(s.flight) - 1].owners)
    )


def half_built(s):
    """Whether the last step in flight may be one that is being built: it has not run, and nothing is parked behind it."""
    last = len(s.flight) - 1
    return last >= 0 and not s.flight[last].ran and all(s.entries[e].fence <= newest(s, 0, last) for e in range(len(s.entries)))


@loop_invariant(scan_waiting)
def waiting_in_turn(
    s, budget: Int(0, BUDGET), left: Int(0, BUDGET), moved: Bool, held: Int(0, REQUESTS), waits: Int(0, REQUESTS)
):
    """The step that is being built names running requests only; what was looked at and left in a queue is still there."""
    return (
        half_built(s)
        and left <= budget
        and held <= len(s.holding)
        and waits <= len(s.waiting)
        and all(r in s.running for r in s.flight[len(s.flight) - 1].owners)
    )
