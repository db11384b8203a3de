"""The prefix cache of one full-attention group: hashes given when a step is scheduled, hits, pins."""

from __future__ import annotations

from .bounds import BLOCK_SIZE, BLOCKS, CACHING, OWN, REQUESTS
from .pool import forget_hash


def text(s, r, k):
    """Which text the request's k-th block is part of: a common one, while it lies within the prompt, or its own."""
    if s.group[r] > 0 and (k + 1) * BLOCK_SIZE <= s.prompt[r]:
        return s.group[r]
    return OWN


def stands_for(s, b, r, k):
    """Whether a block's hash is that of the request's k-th block."""
    if s.key[b] == 0 or s.key[b] != text(s, r, k) or s.key_at[b] != k:
        return False
    return s.key[b] < OWN or s.key_of[b] == r


def expects(s, b, r, k):
    """Whether a block's content, as far as anybody still wants it, is that of the request's k-th block."""
    if CACHING == 1 and s.key[b] > 0:
        return stands_for(s, b, r, k)
    return k < len(s.table[r]) and s.table[r][k] == b


def same_slots(s, b, r, k):
    """How many leading slots of the request's k-th block are of a text that is to be in a block, in the same place."""
    if stands_for(s, b, r, k):
        return BLOCK_SIZE
    return sum(1 for i in range(BLOCK_SIZE) if any(shares(s, b, r, k, i, q) for q in range(REQUESTS)))


def shares(s, b, r, k, i, q):
    """Whether slot i of both requests' k-th block is of one shared text, and the second has the block there."""
    if s.group[q] == 0 or s.group[q] != s.group[r] or min(s.prompt[q], s.prompt[r]) <= k * BLOCK_SIZE + i:
        return False
    return (s.key_of[b] == q and s.key_at[b] == k) or (k < len(s.table[q]) and s.table[q][k] == b)


def lookup(s, r, k):
    """Where in `cached` the oldest block with the hash of the request's k-th block stands; its length if nowhere."""
    for i in range(len(s.cached)):
        if stands_for(s, s.cached[i], r, k):
            return i
    return len(s.cached)


def count_hits(s, r):
    """Blocks of the request found from the left up to the first miss; its last known token is always computed."""
    hits = 0
    if CACHING == 1:
        for k in range((s.prompt[r] + s.known[r] - 1) // BLOCK_SIZE):
            if lookup(s, r, k) == len(s.cached):
                break
            hits += 1
    return hits


def idle_hits(s, r, hits):
    """How many of the hit blocks are in the free queue, so that pinning them makes it shorter."""
    return sum(1 for k in range(hits) if s.refs[s.cached[lookup(s, r, k)]] == 0)


def pin(s, b):
    """Take a reference to a hit block, out of the free queue if it is in it (block_pool.touch)."""
    if s.refs[b] == 0:
        s.free.remove(b)
    s.refs[b] += 1


def hash_blocks(s, r, tokens):
    """Give every full block of so many tokens its hash, written or not (SingleTypeKVCacheManager.cache_blocks)."""
    if CACHING == 1:
        for k in range(min(tokens, s.prompt[r] + s.known[r]) // BLOCK_SIZE):
            b = s.table[r][k]
            if s.key[b] == 0:
                s.key[b] = text(s, r, k)
                s.key_at[b] = k
                if s.key[b] == OWN:
                    s.key_of[b] = r
                publish(s, b)


def publish(s, b):
    """Make a hash findable: behind those of earlier positions and smaller texts, and behind its equals."""
    place = 0
    for other in s.cached:
        if s.key_at[other] < s.key_at[b] or (s.key_at[other] == s.key_at[b] and s.key[other] <= s.key[b]):
            place += 1
    s.cached.insert(place, b)


def orphan_hashes(s, r):
    """Hashes of an ended request's own text stay on their blocks, but nobody can ever hit them again."""
    for b in s.cached:
        if s.key_of[b] == r:
            s.key_of[b] = None
            s.key_at[b] = 0
            s.good[b] = 0
    for _ in range(BLOCKS):
        gone = first_orphan(s)
        if gone == len(s.cached):
            break
        s.cached.remove_at(gone)


def first_orphan(s):
    """Where in `cached` the first block whose text has no request any more stands; its length if nowhere."""
    for i in range(len(s.cached)):
        if s.key[s.cached[i]] == OWN and s.key_of[s.cached[i]] is None:
            return i
    return len(s.cached)


def clear_cache(s):
    """Take every hash away (reset_prefix_cache, once all blocks are free)."""
    for b in s.free:
        if s.key[b] > 0:
            forget_hash(s, b)
