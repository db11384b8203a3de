"""Lemmas about the prefix cache, and about what blocks contain once the steps in flight have run."""

from __future__ import annotations

from ..lang import always
from .bounds import BLOCK_SIZE, BLOCKS, CACHING, OWN, REQUESTS, STALE
from .cache import expects, stands_for, text
from .device import rows_written
from .pool import blocks_for, in_flight
from .state import Job, Status


@always(lemma=True)
def hashes_fit(s):
    """A block without a hash has one holder at most; a hash of one's own text is of a request that lives and wrote so far."""
    return all(hash_fits(s, b) for b in range(BLOCKS))


def hash_fits(s, b):
    """The same for one block."""
    if s.key[b] == 0:
        return s.refs[b] <= 1 and s.key_at[b] == 0 and s.key_of[b] is None
    if s.key[b] < OWN:
        return s.key_of[b] is None
    if s.key_of[b] is None:
        return s.key_at[b] == 0 and not any(b in s.table[r] for r in range(REQUESTS))
    return any(s.key_of[b] == r and has_text(s, r, s.key_at[b]) for r in range(REQUESTS))


def has_text(s, r, k):
    """Whether a request that may own hashes knows all tokens of its k-th block, and they are its own."""
    live = s.status[r] == Status.RUNNING or s.status[r] == Status.PREEMPTED
    loaded = s.status[r] == Status.WAITING and len(s.table[r]) > 0
    return (live or loaded) and (k + 1) * BLOCK_SIZE <= s.prompt[r] + s.known[r] and text(s, r, k) == OWN


@always(lemma=True, when=lambda: CACHING == 1)
def cached_is_hashed(s):
    """What can be hit are the blocks whose hash somebody can have, each once."""
    return all(
        sum(1 for c in s.cached if c == b) == int(s.key[b] > 0 and (s.key[b] < OWN or s.key_of[b] is not None))
        for b in range(BLOCKS)
    )


@always(lemma=True, when=lambda: CACHING == 1)
def tables_are_hashed(s):
    """Hashed blocks of a table stand for their places in it, as far as tokens are known; others follow after them."""
    return all(table_hashed(s, r) for r in range(REQUESTS))


def table_hashed(s, r):
    """The same for one request."""
    return all(place_hashed(s, r, k) for k in range(len(s.table[r])))


def place_hashed(s, r, k):
    """The same for one block of a table; what is loaded is hashed once that is reported."""
    b = s.table[r][k]
    if s.key[b] == 0:
        return True
    if s.status[r] == Status.HELD:
        return s.key[b] < OWN and s.key_at[b] == k
    if s.status[r] == Status.LOADING and s.key[b] == OWN:
        return False
    return stands_for(s, b, r, k) and (k == 0 or s.key[s.table[r][k - 1]] > 0)


@always(lemma=True, when=lambda: CACHING == 1)
def entries_name_once(s):
    """A parked entry names a block once."""
    at = 0
    good = True
    for e in range(len(s.entries)):
        for i in range(s.entries[e].size):
            for j in range(i + 1, s.entries[e].size):
                if s.parked[at + i] == s.parked[at + j]:
                    good = False
        at += s.entries[e].size
    return good


@always(lemma=True)
def steps_share_texts(s):
    """A step names a block at one place only, and for several requests only where their texts are the same."""
    return all(shared_by_text(s, b) for b in range(BLOCKS))


def shared_by_text(s, b):
    """The same for one block."""
    return all(
        alone(s, k, b, r, i)
        for k in range(len(s.flight))
        for r in range(REQUESTS)
        for i in range(len(s.flight[k].table[r]))
        if s.flight[k].table[r][i] == b
    )


def alone(s, k, b, r, i):
    """Whether all that name a block in a step mean the request's i-th one."""
    step = s.flight[k]
    return all(
        (i == j and (q == r or same_text(s, q, r, i))) or step.table[q][j] != b
        for q in range(REQUESTS)
        for j in range(len(step.table[q]))
    )


def same_text(s, q, r, i):
    """Whether the i-th blocks of two requests are of one shared text."""
    return s.group[q] > 0 and s.group[q] == s.group[r] and (i + 1) * BLOCK_SIZE <= min(s.prompt[q], s.prompt[r])


@always(lemma=True, when=lambda: STALE == "marked")
def reuse_is_rewritten(s):
    """A block that a step is still to write as what it no longer is gets its new content from a later step."""
    return all(rewritten(s, b) for b in range(BLOCKS))


def rewritten(s, b):
    """The same for one block."""
    return all(
        expects(s, b, r, i) or saved(s, k, b)
        for k in range(len(s.flight))
        if not s.flight[k].ran
        for r in range(REQUESTS)
        for i in range(len(s.flight[k].table[r]))
        if s.flight[k].table[r][i] == b
    )


def saved(s, k, b):
    """Whether later steps fill a block before anybody reads it, whatever is in it until then; loads do not wait for them."""
    found = b not in s.cached or filled_by(s, b, 0, k + 1, len(s.flight)) == BLOCK_SIZE
    return found and all(
        saved_for(s, k, b, r, i) for r in range(REQUESTS) for i in range(len(s.table[r])) if s.table[r][i] == b
    )


def saved_for(s, k, b, r, i):
    """The same for one request that has the block at a place."""
    if s.status[r] != Status.RUNNING:
        return s.key[b] > 0
    use = next_step(s, r, i)
    return any(j == use and good_after(s, b, 0, k + 1, j, r, i) for j in range(len(s.flight)))


@always(lemma=True, when=lambda: STALE == "marked")
def content_comes_in_time(s):
    """What a request computed is in its slots by the time that its next step has run."""
    return all(in_time(s, b) for b in range(BLOCKS))


def in_time(s, b):
    """The same for one block."""
    return all(in_time_for(s, b, r, i) for r in range(REQUESTS) for i in range(len(s.table[r])) if s.table[r][i] == b)


def in_time_for(s, b, r, i):
    """The same for a request whose i-th block it is; of one that waits, what is hashed may come later."""
    if s.status[r] == Status.RUNNING:
        use = next_step(s, r, 0)
        if use < len(s.flight):
            return any(k == use and good_after(s, b, s.good[b], 0, k, r, i) for k in range(len(s.flight)))
        return good_now(s, b, r, i)
    if s.status[r] == Status.WAITING or (s.status[r] == Status.LOADING and s.job[r] != Job.MOVING):
        return s.key[b] > 0 or good_now(s, b, r, i)
    return True


def good_now(s, b, r, i):
    """Whether the slots of a request's i-th block are good as far as it is computed."""
    return s.good[b] >= min(BLOCK_SIZE, s.computed[r] - i * BLOCK_SIZE)


def good_after(s, b, now, first, last, r, i):
    """Whether the slots of a request's i-th block, so many of which are good now, are once steps first..last have run.

    As far as the last one computes the request's tokens.
    """
    end = s.flight[last].start[r] + s.flight[last].count[r]
    return filled_by(s, b, now, first, last + 1) >= min(BLOCK_SIZE, end - i * BLOCK_SIZE)


def next_step(s, r, i):
    """Position of the oldest step, not stale and not run yet, that uses the request's i-th block; their number if none does."""
    found = len(s.flight)
    for k in range(len(s.flight)):
        uses = blocks_for(s.flight[k].start[r] + s.flight[k].count[r]) > i and in_flight(s, r, 0, k) >= s.stale[r]
        if found == len(s.flight) and uses and not s.flight[k].ran:
            found = k
    return found


def filled_by(s, b, now, first, end):
    """Leading slots of a block that are good once steps first..end-1 have run, if so many are now."""
    low = now
    for k in range(len(s.flight)):
        if first <= k and k < end and not s.flight[k].ran:
            low = fills(s, k, b, low)
    return low


def fills(s, k, b, low):
    """Leading slots of a block, which a step names at one place, that are good once it has run, if so many were before."""
    return sum(1 for n in range(1, BLOCK_SIZE + 1) if n <= low or any(written(s, k, b, low, n, r) for r in range(REQUESTS)))


def written(s, k, b, low, n, r):
    """Whether a step writes the first n slots of a block for a request, after so many that were good before."""
    step = s.flight[k]
    return rows_written(s, r) and any(
        step.table[r][i] == b
        and expects(s, b, r, i)
        and step.start[r] - i * BLOCK_SIZE <= low
        and step.start[r] + step.count[r] - i * BLOCK_SIZE >= n
        for i in range(len(step.table[r]))
    )
