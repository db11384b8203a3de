"""The search kernel in dialect text: successors, exact state tables, marking; and how it is joined with a spec's text.

A *shard* owns the states whose hash ends in its number. It holds an array of packed states in order of discovery and an
open-addressing table of 32-bit slots: the low bits are the state's number plus 1, the bits above are a fingerprint that
saves most comparisons. Equality is always decided on the whole state. A thread writes successors into its outboxes, one
for each shard; between two rounds every shard is filled from all outboxes by one thread. So there are no locks.
"""

from .cache import Cache
from .machine import Library, Unit, build, load
from .program import Program

SHARD_BITS = 6
SHARDS = 1 << SHARD_BITS

# Fields of a thread's context, in 64-bit words; the statistics from GENERATED on are saved and restored together.
MODE, FULL, SUCCESSORS, LAST, COVER, SCRATCH, BOXES, DIRECTORY, HIT = range(9)
CHECK_COVER, FAILED, WITNESSED, CHECK_ERROR, STEP_FAILED, ACTION_ERROR, ERRED = range(9, 16)
STOP_ON_CHECK, STOP_ON_DEADLOCK = range(16, 18)
GENERATED, EXPANDED, DEADLOCKS, DEGREE_MIN, DEGREE_MAX, COUNTERS = range(18, 24)

# Fields of a shard, in 64-bit words.
TABLE, MASK, BITS, STATES, COUNT, MARKS, LEVEL_FROM, LEVEL_TO, NEW_TABLE, NEW_BITS = range(10)
SHARD_WORDS = 16

# Fields of a work item, in 64-bit words.
ITEM_SHARD, ITEM_FROM, ITEM_TO = range(3)
ITEM_WORDS = 3

_BOX_BYTES = 1 << 16

SEARCHING, LOOKING_UP, EDGES_ONLY = range(3)
TARGETS = ("property", "witness", "check-error", "deadlock", "step", "action-error")

SPEC_SIDE = '''
def emit(ctx, action, cells):
    """Take a transition: count it and put the packed successor into the outbox of its shard."""
    words = alloca(8 * W)
    mode = load64(ctx + 8 * MODE)
    store64(ctx + 8 * SUCCESSORS, load64(ctx + 8 * SUCCESSORS) + 1)
    if unlikely(mode != 0):
        if mode == LOOKING_UP and load64(ctx + 8 * HIT) == 0:
            k_look_up(ctx, cells)
        return 0
    counters = ctx + 8 * COUNTERS + 16 * action
    store64(counters, load64(counters) + (load64(ctx + 8 * LAST) != action))
    store64(counters + 8, load64(counters + 8) + 1)
    store64(ctx + 8 * LAST, action)
    k_pack(cells, words)
    k_send(ctx, words)

def step_failed(ctx, mask):
    """Note step properties that fail on the transition at hand."""
    store64(ctx + 8 * STEP_FAILED, load64(ctx + 8 * STEP_FAILED) | mask)

def spec_error(ctx, action, site):
    """Note a spec error in an action; the least action and site are kept."""
    store64(ctx + 8 * ERRED, 1)
    code = action << 32 | site
    old = load64(ctx + 8 * ACTION_ERROR)
    store64(ctx + 8 * ACTION_ERROR, code if old == 0 else min(old, code))
'''

PACK_PLAIN = """
@inline
def k_pack(cells, words):
    pack(cells, words)
"""

PACK_CANONICAL = """
@inline
def k_pack(cells, words):
    other = alloca(CELLS)
    canon(cells, other)
    pack(other, words)
"""

SEARCH = '''
@inline
def k_hash(words):
    h = load64(words) * HASH
    h ^= lshr(h, 32)
    for i in range(1, W):
        h = (h ^ load64(words + 8 * i)) * HASH
        h ^= lshr(h, 32)
    if W == 1:
        h *= HASH
        h ^= lshr(h, 32)
    return h

@inline
def k_equal(a, b):
    differ = 0
    for i in range(W):
        differ |= load64(a + 8 * i) ^ load64(b + 8 * i)
    return differ == 0

@inline
def k_send(ctx, words):
    shard = k_hash(words) & (SHARDS - 1)
    fill = ctx + 8 * FILLS + 8 * shard
    n = load64(fill)
    copy(load64(ctx + 8 * BOXES) + (shard * BOX + n) * (8 * W), words, 8 * W)
    store64(fill, n + 1)
    if unlikely(n >= BOX_LIMIT):
        store64(ctx + 8 * FULL, 1)

def k_seed(ctx, words):
    canonical = alloca(8 * W)
    k_canonical(words, canonical)
    k_send(ctx, canonical)

def k_canonical(words, out):
    cells = alloca(CELLS)
    unpack(words, cells)
    k_pack(cells, out)

def k_check(ctx, cells):
    """Check one state; say whether anything failed."""
    out = alloca(16)
    site = check(cells, out, load64(ctx + 8 * CHECK_COVER))
    failed = load64(out)
    store64(ctx + 8 * WITNESSED, load64(ctx + 8 * WITNESSED) | load64(out + 8))
    if likely((failed | site) == 0):
        return 0
    store64(ctx + 8 * FAILED, load64(ctx + 8 * FAILED) | failed)
    if site:
        old = load64(ctx + 8 * CHECK_ERROR)
        store64(ctx + 8 * CHECK_ERROR, site if old == 0 else min(old, site))
    return 1

@inline
def k_successors(ctx, cells):
    """Expand one state; its number of transitions is left in the context."""
    store64(ctx + 8 * SUCCESSORS, 0)
    store64(ctx + 8 * LAST, -1)
    store64(ctx + 8 * ERRED, 0)
    expand(cells, ctx)

@inline
def k_count(ctx):
    """Count the state just expanded; say whether it is a deadlock."""
    n = load64(ctx + 8 * SUCCESSORS)
    store64(ctx + 8 * GENERATED, load64(ctx + 8 * GENERATED) + n)
    store64(ctx + 8 * EXPANDED, load64(ctx + 8 * EXPANDED) + 1)
    store64(ctx + 8 * DEGREE_MIN, min(load64(ctx + 8 * DEGREE_MIN), n))
    store64(ctx + 8 * DEGREE_MAX, max(load64(ctx + 8 * DEGREE_MAX), n))
    if likely(n != 0) or load64(ctx + 8 * ERRED):
        return 0
    store64(ctx + 8 * DEADLOCKS, load64(ctx + 8 * DEADLOCKS) + 1)
    return 1

def k_expand(ctx, items, n):
    """Check and expand the states of work items; 0: all done, 1: an outbox is full, 2: a failure stops the level."""
    cells = alloca(CELLS)
    for t in range(n):
        item = items + 8 * ITEM_WORDS * t
        states = load64(load64(item) + 8 * STATES)
        at = load64(item + 8 * ITEM_FROM)
        to = load64(item + 8 * ITEM_TO)
        while at < to:
            unpack(states + at * (8 * W), cells)
            if unlikely(k_check(ctx, cells)) and load64(ctx + 8 * STOP_ON_CHECK):
                return 2
            k_successors(ctx, cells)
            if unlikely(k_count(ctx)) and load64(ctx + 8 * STOP_ON_DEADLOCK):
                return 2
            at += 1
            if unlikely(load64(ctx + 8 * FULL)):
                store64(item + 8 * ITEM_FROM, at)
                return 1
        store64(item + 8 * ITEM_FROM, at)
    return 0

def k_check_all(ctx, items, n):
    """Check the states of work items, and nothing else."""
    cells = alloca(CELLS)
    for t in range(n):
        item = items + 8 * ITEM_WORDS * t
        states = load64(load64(item) + 8 * STATES)
        for at in range(load64(item + 8 * ITEM_FROM), load64(item + 8 * ITEM_TO)):
            unpack(states + at * (8 * W), cells)
            k_check(ctx, cells)
'''

TABLES = '''
def k_insert(directory, first, last, contexts, threads):
    """Move the outboxes of all threads for the shards first..last-1 into their tables."""
    for s in range(first, last):
        shard = directory + 8 * SHARD_WORDS * s
        if load64(shard + 8 * NEW_TABLE):
            k_rehash(shard)
        for t in range(threads):
            ctx = load64(contexts + 8 * t)
            fill = ctx + 8 * FILLS + 8 * s
            k_insert_box(shard, load64(ctx + 8 * BOXES) + s * (8 * W * BOX), load64(fill))
            store64(fill, 0)

@noinline
def k_insert_box(shard, box, n):
    """Store n states; each one's slot, and then the state found there, are fetched well before they are needed."""
    hashes = alloca(16 * AHEAD)
    table = load64(shard + 8 * TABLE)
    mask = load64(shard + 8 * MASK)
    bits = load64(shard + 8 * BITS)
    states = load64(shard + 8 * STATES)
    count = load64(shard + 8 * COUNT)
    for at in range(n + 2 * AHEAD):
        here = hashes + 8 * (at & (2 * AHEAD - 1))
        if likely(at >= 2 * AHEAD):
            count += k_insert_one(table, mask, bits, states, count, box + (at - 2 * AHEAD) * (8 * W), load64(here))
        if likely(at < n):
            h = k_hash(box + at * (8 * W))
            store64(here, h)
            prefetch(table + 4 * (lshr(h, SHARD_BITS) & mask))
        if likely(at >= AHEAD) and likely(at < n + AHEAD):
            h = load64(hashes + 8 * ((at - AHEAD) & (2 * AHEAD - 1)))
            slot = loadu32(table + 4 * (lshr(h, SHARD_BITS) & mask))
            prefetch(states + (slot & mask) * (8 * W) - 8 * W)
    store64(shard + 8 * COUNT, count)

@inline
def k_insert_one(table, mask, bits, states, count, words, h):
    """Store a state under the number `count` unless it is there; return how many were added."""
    i = lshr(h, SHARD_BITS) & mask
    mark = lshr(lshr(h, 32), bits)
    while 1:
        slot = loadu32(table + 4 * i)
        if slot == 0:
            copy(states + count * (8 * W), words, 8 * W)
            store32(table + 4 * i, mark << bits | count + 1)
            return 1
        if lshr(slot, bits) == mark and likely(k_equal(states + (slot & mask) * (8 * W) - 8 * W, words)):
            return 0
        i = (i + 1) & mask

@noinline
def k_rehash(shard):
    """Fill the shard's new table from its states, and put it in place of the old one."""
    table = load64(shard + 8 * NEW_TABLE)
    bits = load64(shard + 8 * NEW_BITS)
    states = load64(shard + 8 * STATES)
    mask = (1 << bits) - 1
    for number in range(load64(shard + 8 * COUNT)):
        h = k_hash(states + number * (8 * W))
        i = lshr(h, SHARD_BITS) & mask
        while loadu32(table + 4 * i):
            i = (i + 1) & mask
        store32(table + 4 * i, lshr(lshr(h, 32), bits) << bits | number + 1)
    store64(shard + 8 * TABLE, table)
    store64(shard + 8 * BITS, bits)
    store64(shard + 8 * MASK, mask)
    store64(shard + 8 * NEW_TABLE, 0)
'''

MARKING = '''
@noinline
def k_look_up(ctx, cells):
    words = alloca(8 * W)
    k_pack(cells, words)
    store64(ctx + 8 * HIT, k_is_marked(load64(ctx + 8 * DIRECTORY), words))

def k_find(shard, words, h):
    """Return the number of a state in its shard, or -1."""
    table = load64(shard + 8 * TABLE)
    mask = load64(shard + 8 * MASK)
    bits = load64(shard + 8 * BITS)
    states = load64(shard + 8 * STATES)
    i = lshr(h, SHARD_BITS) & mask
    mark = lshr(lshr(h, 32), bits)
    while 1:
        slot = loadu32(table + 4 * i)
        if slot == 0:
            return -1
        if lshr(slot, bits) == mark and k_equal(states + (slot & mask) * (8 * W) - 8 * W, words):
            return (slot & mask) - 1
        i = (i + 1) & mask

def k_is_marked(directory, words):
    """Say whether a state belongs to the level looked at and is marked."""
    h = k_hash(words)
    shard = directory + 8 * SHARD_WORDS * (h & (SHARDS - 1))
    number = k_find(shard, words, h)
    if number < load64(shard + 8 * LEVEL_FROM) or number >= load64(shard + 8 * LEVEL_TO):
        return 0
    return loadu8(load64(shard + 8 * MARKS) + number)

def k_mark_targets(ctx, items, n, kind, mask):
    """Mark the states of work items that are targets of a kind; return how many."""
    cells = alloca(CELLS)
    out = alloca(16)
    total = 0
    for t in range(n):
        item = items + 8 * ITEM_WORDS * t
        states = load64(load64(item) + 8 * STATES)
        marks = load64(load64(item) + 8 * MARKS)
        for at in range(load64(item + 8 * ITEM_FROM), load64(item + 8 * ITEM_TO)):
            unpack(states + at * (8 * W), cells)
            if kind < 3:
                site = check(cells, out, load64(ctx + 8 * CHECK_COVER))
                hit = site != 0 if kind == 2 else load64(out + 8 * kind) & mask
            else:
                store64(ctx + 8 * STEP_FAILED, 0)
                k_successors(ctx, cells)
                hit = load64(ctx + 8 * ERRED)
                if kind == 3:
                    hit = not hit and load64(ctx + 8 * SUCCESSORS) == 0
                elif kind == 4:
                    hit = load64(ctx + 8 * STEP_FAILED) & mask
            if hit:
                store8(marks + at, 1)
                total += 1
    return total

def k_mark_back(ctx, items, n):
    """Mark the states of work items that have a marked successor in the level looked at; return how many."""
    cells = alloca(CELLS)
    total = 0
    for t in range(n):
        item = items + 8 * ITEM_WORDS * t
        states = load64(load64(item) + 8 * STATES)
        marks = load64(load64(item) + 8 * MARKS)
        for at in range(load64(item + 8 * ITEM_FROM), load64(item + 8 * ITEM_TO)):
            unpack(states + at * (8 * W), cells)
            store64(ctx + 8 * HIT, 0)
            k_successors(ctx, cells)
            if load64(ctx + 8 * HIT):
                store8(marks + at, 1)
                total += 1
    return total
'''

ENTRIES = (
    "k_seed",
    "k_canonical",
    "k_expand",
    "k_check_all",
    "k_insert",
    "k_is_marked",
    "k_mark_targets",
    "k_mark_back",
)


def cell_bytes(program: Program) -> int:
    """Return the bytes of an unpacked state, rounded up to whole words."""
    return (program.cell_bytes + 7) // 8 * 8


def box_states(program: Program) -> int:
    """Return how many states an outbox takes."""
    return max(_BOX_BYTES // (8 * program.words), 256, 4 * program.max_out)


def fills_at(program: Program) -> int:
    """Return where in a context the fill counts of the outboxes start, in 64-bit words."""
    return COUNTERS + 2 * program.actions


def context_words(program: Program) -> int:
    """Return the size of a thread's context in 64-bit words."""
    return fills_at(program) + SHARDS + 8


def scratch_bytes(program: Program) -> int:
    """Return the size of the scratch memory of a thread."""
    return program.constants.get("SCRATCH", 4096)


def _shared_constants(program: Program) -> dict[str, int]:
    """Return the constants that the text of a spec and the kernel both see."""
    return {
        "W": program.words,
        "CELLS": cell_bytes(program),
        "MAXOUT": program.max_out,
        "NACTIONS": program.actions,
        "NPROPS": program.properties,
        "NWITNESS": program.witnesses,
        "NCOVER": program.covers,
        "CTX_COVER": 8 * COVER,
        "CTX_SCRATCH": 8 * SCRATCH,
    }


def _kernel_constants(program: Program) -> dict[str, int]:
    return {name: value for name, value in globals().items() if name.isupper() and isinstance(value, int)} | {
        "BOX": box_states(program),
        "BOX_LIMIT": box_states(program) - program.max_out - 1,
        "FILLS": fills_at(program),
        "AHEAD": 32,
        "HASH": 0x9E3779B97F4A7C15,
    }


def units(program: Program) -> list[Unit]:
    """Return the texts that make up the library of a program."""
    shared = _shared_constants(program)
    kernel = SPEC_SIDE + (PACK_CANONICAL if program.symmetry else PACK_PLAIN) + SEARCH + TABLES + MARKING
    return [
        Unit("spec", program.text, {**shared, **program.constants}, frozenset({"pack"})),
        Unit("kernel", kernel, {**shared, **_kernel_constants(program)}),
    ]


def build_program(program: Program, cache: Cache | None = None) -> Library:
    """Compile the kernel together with a program, or load both from the cache; raises DialectError."""
    return build(units(program), _exports(program), cache)


def load_program(program: Program, cache: Cache) -> Library | None:
    """Load the kernel and a program from the cache, or return None if they are not there."""
    return load(units(program), _exports(program), cache)


def _exports(program: Program) -> list[str]:
    return [*ENTRIES, "unpack", "pack", "check", *(["canon"] if program.symmetry else [])]
