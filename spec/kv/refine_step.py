"""That a transition is a row of actions of the fence protocol, said of one arbitrary block: for proofs by induction.

`refine.py` says which actions a transition is made up of, and `fencepost check --refines fence` takes them. Here the same is
one formula about the state before and the state after. What an action of the protocol needs speaks of one block at a time,
but for the order of steps; so a row is allowed if the part of it about each block is. A block goes through a transition in
this order: its load lands or its fence is processed, requests give it up, requests get it, the new step names it.
"""

from __future__ import annotations

from ..lang import Bool, Int, loop_invariant, step
from .bounds import BLOCK_SIZE, BLOCKS, BUDGET, CACHING, REQUESTS
from .pool import gate, newest
from .properties import loaded
from .scheduler import scan_running, scan_waiting
from .state import Job


@step(lemma=True, when=lambda: gate())
def refines_fence(s, t):
    """A transition is a row of actions that the fence protocol allows, or changes nothing that it knows of."""
    return all(block_refines(s, t, b) for b in range(BLOCKS))


def block_refines(s, t, b):
    """The same for one block, and for the steps themselves."""
    return (
        steps_follow(s, t)
        and names_follow(s, t, b)
        and loads_follow(s, t, b)
        and waits_follow(s, t, b)
        and given_up_in_time(s, t, b)
        and taken_from_pool(s, t, b)
        and shared_once_loaded(s, t, b)
        and named_by_owners(s, t, b)
    )


@loop_invariant(scan_running, when=lambda: gate() and CACHING == 0)
def running_refine_fence(s, t, left: Int(0, BUDGET), at: Int(0, REQUESTS)):
    """What was done so far is a row of actions that the protocol allows, if the new step were handed out as it is."""
    return all(issues(s, t) and block_refines(s, t, b) for b in range(BLOCKS))


@loop_invariant(scan_waiting, when=lambda: gate() and CACHING == 0)
def waiting_refine_fence(
    s, t, budget: Int(0, BUDGET), left: Int(0, BUDGET), moved: Bool, held: Int(0, REQUESTS), waits: Int(0, REQUESTS)
):
    """What was done so far is a row of actions that the protocol allows, if the new step were handed out as it is."""
    return all(issues(s, t) and block_refines(s, t, b) for b in range(BLOCKS))


# Steps: issued at the end, executed in order, processed from the front.


def behind(s, t):
    """How many steps the transition takes off the front."""
    return int(len(t.flight) < len(s.flight))


def issues(s, t):
    """Whether the transition hands out a new step, the last one in flight after it."""
    return len(t.flight) > len(s.flight)


def steps_follow(s, t):
    """Whether at most one step is issued, executed or processed; a processed one was executed, and a new one was not."""
    first = behind(s, t)
    return (
        len(t.flight) - 1 <= len(s.flight)
        and len(s.flight) <= len(t.flight) + 1
        and (first == 0 or s.flight[0].ran)
        and all(ran_follows(s, t, k, t.flight[k - first].ran) for k in range(first, len(s.flight)))
        and (not issues(s, t) or not t.flight[len(t.flight) - 1].ran)
    )


def ran_follows(s, t, k, ran):
    """Whether a step was executed already if it is now, or is the oldest that was not."""
    if ran == s.flight[k].ran:
        return True
    return ran and len(s.flight) == len(t.flight) and all(s.flight[j].ran for j in range(k))


# What steps name, transfers write, and the fence holds back: as before, but for what the transition's actions change.


def names(s, k, r, b):
    """Whether a step reads or writes a block for a request."""
    return r in s.flight[k].owners and b in s.flight[k].table[r]


def names_follow(s, t, b):
    """Whether steps in flight name the block for the requests that they did."""
    first = behind(s, t)
    return all(names(s, k, r, b) == names(t, k - first, r, b) for k in range(first, len(s.flight)) for r in range(REQUESTS))


def named_by_owners(s, t, b):
    """Whether a new step names the block only for those who have it, and whose loads do not write it."""
    return not issues(s, t) or all(
        b in t.table[r] and not loaded(t, r, b) for r in range(REQUESTS) if names(t, len(t.flight) - 1, r, b)
    )


def still_loaded(s, t, r, b):
    """Whether a load writes the block, and does not land with this transition."""
    return loaded(s, r, b) and not (s.job[r] == Job.MOVING and t.job[r] == Job.LANDED)


def loads_follow(s, t, b):
    """Whether loads write the block that did and have not landed, and those that were just given it to write."""
    return all(
        loaded(t, r, b) == (still_loaded(s, t, r, b) or (loaded(t, r, b) and takes(s, t, r, b) > 0)) for r in range(REQUESTS)
    )


def wait(s, b, first):
    """How long a block waits by the entries from this one on: 0 not at all, else one more than steps with tokens."""
    at = 0
    found = 0
    for e in range(len(s.entries)):
        for i in range(s.entries[e].size):
            if e >= first and s.parked[at + i] == b:
                found = max(found, s.entries[e].fence + 1)
        at += s.entries[e].size
    return found


def moves_fences(s, t):
    """Whether the transition processes a step with tokens, which brings every fence one step nearer."""
    return behind(s, t) == 1 and len(s.flight[0].owners) > 0


def drained(s, t):
    """How many entries come back: those at the front that wait for no step after the one that is processed."""
    found = 0
    if moves_fences(s, t):
        for e in range(len(s.entries)):
            if s.entries[e].fence > 1:
                break
            found += 1
    return found


def waits_follow(s, t, b):
    """Whether the block waits for what it did, if that is still to come, and for what it is parked behind now.

    It is parked only where somebody gives it up.
    """
    gone = drained(s, t)
    old = wait(s, b, gone)
    new = wait(t, b, len(s.entries) - gone)
    if moves_fences(s, t) and old > 1:
        old -= 1
    return wait(t, b, 0) == max(old, new) and (new == 0 or any(gives_up(s, t, r, b) for r in range(REQUESTS)))


# Who gives the block up, and who gets it. No table that was given up comes back in the same transition.


def gives_up(s, t, r, b):
    """Whether a request has the block no longer where it had it."""
    return any(s.table[r][i] == b and not (i < len(t.table[r]) and t.table[r][i] == b) for i in range(len(s.table[r])))


def keeps(s, t, r, b):
    """Whether a request has the block where it had it."""
    return any(s.table[r][i] == b and i < len(t.table[r]) and t.table[r][i] == b for i in range(len(s.table[r])))


def given_up_in_time(s, t, b):
    """Whether who gives the block up has it once, not as the target of a load, and no step beyond the fence names it."""
    first = behind(s, t)
    fence = wait(t, b, len(s.entries) - drained(s, t))
    return all(
        not still_loaded(s, t, r, b)
        and sum(1 for c in s.table[r] if c == b) == 1
        and all(newest(s, first, k + 1) < fence for k in range(first, len(s.flight)) if names(s, k, r, b))
        for r in range(REQUESTS)
        if gives_up(s, t, r, b)
    )


def admitted_behind(s, t, r):
    """How many hits a request was admitted with; one that is not in the new step has hashes on its hits only."""
    if issues(s, t) and r in t.flight[len(t.flight) - 1].owners:
        return t.flight[len(t.flight) - 1].start[r] // BLOCK_SIZE
    return sum(1 for c in t.table[r] if t.key[c] > 0)


def is_new(s, t, r, k, b):
    """Whether the block is at a place of a request's table where it was not."""
    return t.table[r][k] == b and not (k < len(s.table[r]) and s.table[r][k] == b)


def may_hit(s, r, k):
    """Whether a place of a request's table is none behind blocks that it had: those are never filled with hits."""
    return len(s.table[r]) == 0 or k < len(s.table[r])


def takes(s, t, r, b):
    """How often a request is given the block from the pool."""
    hits = admitted_behind(s, t, r)
    return sum(1 for k in range(len(t.table[r])) if is_new(s, t, r, k, b) and not (k < hits and may_hit(s, r, k)))


def shares(s, t, r, b):
    """Whether a request gets the block as a hit."""
    hits = admitted_behind(s, t, r)
    return any(is_new(s, t, r, k, b) and k < hits and may_hit(s, r, k) for k in range(len(t.table[r])))


def taken_from_pool(s, t, b):
    """Whether the block is handed out once at most, where nobody has it, it waits for no step, and no hit came before."""
    often = sum(takes(s, t, r, b) for r in range(REQUESTS))
    return often == 0 or (
        often == 1
        and wait(t, b, 0) == 0
        and not any(keeps(s, t, r, b) for r in range(REQUESTS))
        and all(
            comes_first(s, t, r, q) and not loaded(t, r, b)
            for r in range(REQUESTS)
            for q in range(REQUESTS)
            if takes(s, t, r, b) > 0 and shares(s, t, q, b)
        )
    )


def comes_first(s, t, r, q):
    """Whether a request is in the new step, and another one after it or not at all."""
    if not issues(s, t):
        return False
    new = t.flight[len(t.flight) - 1]
    return r in new.owners and all(
        new.owners[j] != r for i in range(len(new.owners)) if new.owners[i] == q for j in range(i, len(new.owners))
    )


def shared_once_loaded(s, t, b):
    """Whether the block is hit only while no load writes it."""
    return not any(shares(s, t, r, b) for r in range(REQUESTS)) or not any(still_loaded(s, t, r, b) for r in range(REQUESTS))
