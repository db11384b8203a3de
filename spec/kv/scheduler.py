"""`schedule`: the release's policy, as a composition of micro-steps (a guard `can_…` or `…_blocks`, and an effect)."""

from __future__ import annotations

from ..lang import Bool, Int, action, require
from .bounds import (
    ASYNC,
    BLOCK_SIZE,
    BLOCKS,
    BUDGET,
    CACHING,
    COUNTS_HITS,
    EMPTY_STEPS,
    FULL_ISL,
    GROUPS,
    HANDS_OFF,
    LOADS,
    MAX_SEQS,
    MAX_TOKENS,
    PIN_FIRST,
    PREEMPTION_FREE,
    PROMPT,
    PROMPT_LEAST,
    QUEUES,
    REMOTE,
    REQUESTS,
    RESERVATION,
    SKIPS_ENDED,
    STALE,
    STEPS,
    VICTIM,
    WATERMARK,
)
from .cache import count_hits, hash_blocks, idle_hits, lookup, pin
from .pool import blocks_for, deferred, grow_table, in_flight, release
from .state import Error, Job, Status


@action(fair="weak")
def submit(s, r: REQUESTS, prompt: Int(PROMPT_LEAST, PROMPT), group: Int(0, CACHING * GROUPS), remote: Bool):
    """A client sends a request; its slot is free once nothing names the last request that had it."""
    require(s.error == Error.NONE and s.status[r] == Status.ENDED)
    require(s.job[r] == Job.NONE and in_flight(s, r, 0, len(s.flight)) == 0)
    require(LOADS == 1 or not remote)
    require(blocks_for(prompt + MAX_TOKENS - 1) <= BLOCKS)
    s.status[r] = Status.WAITING
    s.prompt[r] = prompt
    s.group[r] = group
    s.remote[r] = remote
    s.waiting.append(r)


@action(fair="weak")
def schedule(s):
    """The scheduler builds the next step: running requests first, then, unless it had to preempt, waiting ones."""
    require(s.error == Error.NONE and len(s.flight) < STEPS)
    s.flight.grow()
    running = len(s.running)
    left = scan_running(s)
    preempted = len(s.running) < running
    swept = sweep_ended(s)
    moved = False
    if not preempted:
        moved = scan_waiting(s, left)
    close_step(s, preempted or swept or moved)


def scan_running(s):
    """Give every running request its tokens, in list order, while the budget lasts; returns what is left of it."""
    left = BUDGET
    at = 0
    for _ in range(REQUESTS):
        if at >= len(s.running) or left == 0:
            break
        r = s.running[at]
        tokens = wanted(s, r, left)
        if tokens > 0:
            if not make_room(s, r, tokens):
                break
            grow(s, r, tokens)
            left -= tokens
        at += 1  # noqa: SIM113
    return left


def wanted(s, r, left):
    """Tokens to compute next: none where the steps in flight surely reach the request's last token."""
    if s.status[r] == Status.STOPPED:
        return 0
    if s.places[r] > 0 and s.computed[r] + 2 - s.places[r] >= s.prompt[r] + MAX_TOKENS:
        return 0
    return max(0, min(left, s.prompt[r] + s.known[r] + s.places[r] - s.computed[r]))


def can_grow(s, r, tokens):
    """Whether the blocks that so many more tokens need are free."""
    return blocks_for(s.computed[r] + tokens) - len(s.table[r]) <= len(s.free)


def grow(s, r, tokens):
    """Give a running request blocks for so many tokens, and put it into the step."""
    grow_table(s, r, s.computed[r] + tokens)
    hash_blocks(s, r, s.computed[r] + tokens)
    plan(s, r, tokens)


def make_room(s, r, tokens):
    """Preempt from the end of the running list until the tokens fit; false where refused, or where the request went."""
    for _ in range(REQUESTS):
        if can_grow(s, r, tokens):
            return True
        victim = s.running[len(s.running) - 1]
        if not can_preempt(s, victim):
            return False
        s.running.pop_back()
        preempt(s, victim, HANDS_OFF == 1, len(s.flight) - 1)
        if victim == r:
            return False
    return False


def can_preempt(s, r):
    """Whether the release preempts this victim: since 0.33 not one whose blocks would only be parked (#49675)."""
    if VICTIM == "any":
        return True
    return not deferred(s, r, PREEMPTION_FREE == "fenced", 0, len(s.flight) - 1)


def preempt(s, r, dropping, last):
    """Take a running request's blocks and put it in front of the waiting ones; `last` steps may still return output."""
    if s.status[r] == Status.STOPPED:
        s.error = Error.DOUBLE_FREE
        s.status[r] = Status.ENDED
        return
    release(s, r, PREEMPTION_FREE == "fenced", 0, last)
    s.status[r] = Status.PREEMPTED
    s.computed[r] = 0
    s.prefilling[r] = False
    if dropping or s.stale[r] == 0:
        s.drop[r] = int(dropping)
    if STALE == "marked":
        s.stale[r] = in_flight(s, r, 0, last)
        s.places[r] = 0
    elif dropping:
        s.stale[r] = s.places[r]
        s.places[r] = 0
    if s.stale[r] == 0:
        s.drop[r] = 0
    s.waiting.push_front(r)


def sweep_ended(s):
    """Take requests that ended at output processing off the running list, where that was left to the next step."""
    swept = False
    if SKIPS_ENDED == "no":
        for _ in range(REQUESTS):
            at = 0
            for r in s.running:
                if s.status[r] == Status.STOPPED:
                    break
                at += 1
            if at == len(s.running):
                break
            r = s.running[at]
            s.running.remove_at(at)
            s.status[r] = Status.ENDED
            swept = True
    return swept


def scan_waiting(s, budget):
    """Admit waiting requests while budget, room and blocks last; returns whether a load or a queue moved on.

    First the queue `holding` (0.33: who holds blocks; earlier: who was skipped before), then `waiting`.
    Requests that cannot go on yet keep their places; an admission that does not fit ends the scan.
    """
    left = budget
    moved = False
    held = 0
    waits = 0
    for _ in range(REQUESTS):
        if left == 0 or len(s.running) >= MAX_SEQS or (held == len(s.holding) and waits == len(s.waiting)):
            break
        first = held < len(s.holding)
        r = s.holding[held] if first else s.waiting[waits]
        if can_promote(s, r):
            promote(s, r)
            moved = True
        if not blocked(s, r):
            used = try_admit(s, r, left)
            if used < 0:
                moved = moved or (PIN_FIRST == "yes" and fresh_hits(s, r) > 0)
                break
            left -= used
            if used == 0:
                held += 1
                moved = True
        elif first:
            held += 1
        elif QUEUES == "holding":
            waits += 1
        else:
            s.waiting.remove_at(waits)
            s.holding.append(r)
            held += 1
            moved = True
    return moved or s.error != Error.NONE


def blocked(s, r):
    """Whether a request cannot go on yet: its load is not complete, or its old output is still to come."""
    return s.status[r] == Status.LOADING or drains(s, r)


def try_admit(s, r, left):
    """Admit a request if it fits; returns the tokens it got, 0 where a load was started, -1 where it did not fit."""
    hits = fresh_hits(s, r)
    ahead = s.computed[r] + hits * BLOCK_SIZE
    loaded = external(s, r, ahead)
    tokens = 0 if loaded > 0 else min(left, s.prompt[r] + s.known[r] - ahead)
    if PIN_FIRST == "yes":
        pin_hits(s, r, hits)
    if not can_admit(s, r, hits, ahead + loaded + tokens, loaded > 0):
        return -1
    if r in s.holding:
        s.holding.remove(r)
    else:
        s.waiting.remove(r)
    adopt(s, r, hits)
    grow_table(s, r, ahead + loaded + tokens)
    if s.error != Error.NONE:
        return -1
    s.computed[r] = ahead + loaded
    s.remote[r] = False
    if loaded > 0:
        start_load(s, r)
    else:
        admit(s, r, tokens)
    return tokens


def drains(s, r):
    """Whether outputs from before a preemption are still to be delivered: resuming now would sample them again."""
    return STALE == "marked" and s.stale[r] > 0 and s.drop[r] == 0


def fresh_hits(s, r):
    """Blocks found in the prefix cache for a request that holds nothing yet."""
    return count_hits(s, r) if s.computed[r] == 0 else 0


def external(s, r, ahead):
    """Tokens that the remote side sends beyond what is there already; it is asked once, at the first admission."""
    return max(0, min(s.prompt[r], REMOTE) - ahead) if s.remote[r] else 0


def can_admit(s, r, hits, tokens, loading):
    """Whether an admission fits: all known tokens where configured so, and these tokens beside the reservation."""
    idle = 0
    if COUNTS_HITS == "no" and PIN_FIRST == "no":
        idle = idle_hits(s, r, hits)
    held = len(s.table[r]) + hits
    spare = 0
    if len(s.running) > 0:
        spare = WATERMARK
    if FULL_ISL == 1 and max(0, blocks_for(s.prompt[r] + s.known[r]) - held) + idle + spare > len(s.free):
        return False
    promised = 0
    if loading and RESERVATION == "on":
        promised = sum(still_needed(s, q) for q in range(REQUESTS))
    return max(0, blocks_for(tokens) - held) + idle + spare <= len(s.free) - promised


def still_needed(s, q):
    """Blocks that an admitted request lacks for its known tokens while it is loading or in prefill."""
    return max(0, blocks_for(s.prompt[q] + s.known[q]) - len(s.table[q])) if s.prefilling[q] else 0


def pin_hits(s, r, hits):
    """Take references to the hit blocks."""
    for k in range(hits):
        pin(s, s.cached[lookup(s, r, k)])


def adopt(s, r, hits):
    """Pin the hit blocks, all of them before anything is allocated, and put them in the table."""
    if PIN_FIRST == "no":
        pin_hits(s, r, hits)
    for k in range(hits):
        s.table[r].append(s.cached[lookup(s, r, k)])


def start_load(s, r):
    """The request's blocks become the target of a transfer; it waits outside the running list, safe from preemption."""
    s.status[r] = Status.LOADING
    s.job[r] = Job.MOVING
    s.prefilling[r] = True
    s.holding.append(r)


def can_promote(s, r):
    """Whether a request's load was reported."""
    return s.status[r] == Status.LOADING and s.job[r] == Job.REPORTED


def promote(s, r):
    """A reported load is done: its blocks are hashed, and at least one token is left to compute."""
    hash_blocks(s, r, s.computed[r])
    if s.computed[r] == s.prompt[r] + s.known[r]:
        s.computed[r] -= 1
    s.job[r] = Job.NONE
    s.status[r] = Status.WAITING


def admit(s, r, tokens):
    """The request joins the running list and this step."""
    s.status[r] = Status.RUNNING
    s.running.append(r)
    hash_blocks(s, r, s.computed[r] + tokens)
    if s.computed[r] + tokens < s.prompt[r] + s.known[r]:
        s.prefilling[r] = True
    plan(s, r, tokens)


def plan(s, r, tokens):
    """Put the request into the step: its table as it is now, and a placeholder where the step yields a token."""
    step = s.flight[len(s.flight) - 1]
    start = s.computed[r]
    end = start + tokens
    step.owners.append(r)
    step.start[r] = start
    step.count[r] = tokens
    for k in range(blocks_for(end)):
        step.table[r].append(s.table[r][k])
    if end >= s.prompt[r] + s.known[r]:
        step.samples.add(r)
    s.computed[r] = end
    if end >= s.prompt[r] + s.known[r] + s.places[r]:
        s.prefilling[r] = False
        s.places[r] += ASYNC


def close_step(s, changed):
    """Hand the step out. One without tokens moves no counter; it goes out only where the bound lets it be in flight."""
    if len(s.flight[len(s.flight) - 1].owners) == 0:
        empty = sum(1 for k in range(len(s.flight)) if len(s.flight[k].owners) == 0)
        if empty > EMPTY_STEPS or unfinished(s) == 0:
            s.flight.drop_back()
            require(changed)


def unfinished(s):
    """How many requests are neither ended nor merely held."""
    return len(s.running) + len(s.holding) + len(s.waiting)
