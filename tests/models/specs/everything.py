"""Every construct of the language in one small spec; what it says is of no use, that all engines read it alike is."""

from enum import IntEnum

from fencepost.spec.lang import (
    Array,
    Bool,
    Bound,
    Index,
    Int,
    Maybe,
    Seq,
    SetOf,
    Switch,
    action,
    always,
    fresh,
    implies,
    init,
    larger,
    quiescent,
    reachable,
    record,
    require,
    smaller,
    state,
    step,
)

REQUESTS, BLOCKS = Index("requests", default=2, letters=True), Index("blocks", default=3)
STEPS = Bound("steps", default=2, least=1)
ORDER = Switch("order", "head", "tail", "middle")
ROOM = ORDER.choose({"head": STEPS + 1, "tail": larger(2, STEPS), "middle": smaller(STEPS * 2, 3)})
WAITING, RUNNING = range(2)
LOWEST = -3


class Phase(IntEnum):
    """Where the round stands."""

    FILL = 0
    MIX = 1
    DRAIN = 2


@record
class Mark:
    """A note about a block."""

    block: BLOCKS
    by: Maybe[REQUESTS]
    level: Int(LOWEST, 3)


@record
class Page:
    """Records within records."""

    first: Mark
    marks: Seq[Mark, 2]
    seen: SetOf[BLOCKS]


@record
class Tally:
    """Rounds, and nothing about blocks: it may be made blank as a whole."""

    rounds: Array[2, Int(0, 2)]
    by: Maybe[REQUESTS]


@state
class Everything:
    tally: Tally
    phase: Phase
    status: Array[REQUESTS, Int(WAITING, RUNNING)]
    table: Array[REQUESTS, Seq[BLOCKS, 2]]
    free: Seq[BLOCKS, BLOCKS]
    pages: Array[STEPS, Page]
    owner: Array[BLOCKS, Maybe[REQUESTS]]
    numbers: Seq[Int(-2, 4), ROOM]
    busy: SetOf[BLOCKS]
    touched: Array[REQUESTS, Array[BLOCKS, Bool]]
    last: Maybe[Int(0, 4)]
    turn: Bool


@init
def start(s):
    """All blocks are free, the highest first."""
    for b in range(BLOCKS):
        s.free.push_front(b)


def idle(s):
    """Nothing is held."""
    return all(len(s.table[r]) == 0 for r in range(REQUESTS))


def weight(s, r):
    """A number for a request: the value of a helper with two ways out."""
    for b in s.table[r]:
        if b in s.busy:
            return len(s.table[r]) + 1
    return len(s.table[r])


def note(mark, b, r):
    """Write into a place that the caller names."""
    mark.block = b
    mark.by = r
    mark.level = -1


def latest(s, r):
    """The last block of a request that is busy, or None."""
    found = None
    for b in s.table[r]:
        if b in s.busy and (found is None or found != b):
            found = b
    return found


def held(s):
    """The blocks that requests have, as a set value."""
    return {b for r in range(REQUESTS) for b in s.table[r]}


@action
def take(s, r: REQUESTS):
    """A request takes a block from the front."""
    require(s.phase == Phase.FILL and len(s.free) > 0)
    require(weight(s, r) < 3)
    b = s.free.pop_front()
    s.table[r].append(b)
    s.owner[b] = r
    s.busy.add(b)
    s.status[r] = RUNNING
    s.touched[r][b] = True
    if len(s.free) == 0:
        s.phase = Phase.MIX


@action
def mix(s, k: Int(0, STEPS - 1), r: REQUESTS, up: Bool):
    """Rearrange numbers and pages."""
    require(s.phase == Phase.MIX)
    page = s.pages[k]
    if len(page.marks) == 2:
        page.marks.drop_front()
    for b in reversed(s.table[r]):
        note(page.first, b, r)
        page.seen.add(b)
    mark = page.marks.grow()
    mark.block = page.first.block
    mark.level = max(LOWEST, -len(page.seen)) if up else min(2, k, 1)
    if up and len(s.numbers) < ROOM:
        s.numbers.insert(len(s.numbers) // 2, (mark.level - 1) % 3)
    elif len(s.numbers) > 0:
        s.numbers.remove(s.numbers[0])
    else:
        s.numbers.push_front(-7 // 4)
    total = 0
    for x in s.numbers:
        if x < 0:
            continue
        total += x
        if total > 3:
            break
    s.last = None if total == 0 else total % 5
    s.tally.by = r
    s.turn = not s.turn
    if total > 1 or s.turn:
        s.phase = Phase.DRAIN


@action(name="give-back")
def give_back(s, r: REQUESTS, whole: Bool):
    """A request gives one or all of its blocks back, by the order of the switch."""
    require(s.phase == Phase.DRAIN and len(s.table[r]) > 0)
    back = fresh(Seq[BLOCKS, BLOCKS])
    if whole:
        for b in s.table[r]:
            back.append(b)
        s.table[r].clear()
    else:
        back.append(s.table[r].pop_back())
    for b in back:
        if ORDER == "head":
            s.free.push_front(b)
        elif ORDER in ("tail",):
            s.free.append(b)
        else:
            s.free.insert(len(s.free) // 2, b)
        s.busy.discard(b)
        s.owner[b] = None
        s.touched[r][b] = False
    if len(s.table[r]) == 0:
        s.status[r] = WAITING
    if not s.busy <= held(s) or len(held(s)) == 0:
        again(s)


def again(s):
    """A new round."""
    s.phase = Phase.FILL
    s.numbers.clear()
    s.last = None
    for k in range(STEPS):
        s.pages[k].marks.clear()
        s.pages[k].seen = set()
    s.tally.rounds[0] = (s.tally.rounds[0] + 1) % 2
    if s.turn:
        s.tally.clear()
    s.busy |= held(s)
    s.busy &= held(s)
    s.busy -= {b for b in s.free if b not in held(s)}


@action
def shuffle(s, kept: SetOf[BLOCKS]):
    """Keep some of the free blocks where they are, move the first of the others to the end."""
    require(s.phase == Phase.DRAIN and len(kept & s.busy) == 0 and len(kept) == 1)
    for i in range(len(s.free)):
        if s.free[i] not in kept:
            b = s.free[i]
            s.free.remove_at(i)
            s.free.append(b)
            return
    require(False)


@always
def blocks_are_somewhere_once(s):
    """Every block is free or in one table, exactly once."""
    return all(
        sum(1 for x in s.free if x == b) + sum(1 for r in range(REQUESTS) for x in s.table[r] if x == b) == 1
        for b in range(BLOCKS)
    )


@always
def owners_match(s):
    """The owner of a block is the request that has it."""
    last_ones = {latest(s, r) for r in range(REQUESTS) if latest(s, r) is not None}
    return all(s.owner[b] == r for r in range(REQUESTS) for b in s.table[r]) and last_ones <= held(s)


@always
def busy_blocks_are_held(s):
    """A busy block is owned, and its request runs."""
    return s.busy == held(s) and all(implies(b in s.busy, s.owner[b] is not None) for b in range(BLOCKS))


@always
def arithmetic(s):
    """Floor division and remainder as in Python."""
    return all(x == 3 * (x // 3) + x % 3 and 0 <= x % 3 < 3 and abs(x) >= x for x in s.numbers)


@quiescent(idle)
def nothing_left(s):
    """With nothing held, nothing is busy, and every request waits."""
    return s.busy == set() and not any(s.status[r] == RUNNING for r in range(REQUESTS)) and s.last is None


@step
def one_phase_at_a_time(s, t):
    """A phase is followed by itself or the next one."""
    return t.phase == s.phase or t.phase == (s.phase + 1) % 3


@step(when=lambda: STEPS > 5)
def only_with_many_steps(s, t):
    """Not applicable at small bounds."""
    return s.phase == t.phase


@reachable
def a_full_page(s):
    """A page has two different marks."""
    return any(len(p.marks) == 2 and p.marks[0] != p.marks[1] for p in s.pages)


@reachable(when=lambda: STEPS >= 1)
def negative_numbers(s):
    """A number below zero is kept."""
    return min(0, sum(x for x in s.numbers if x < 0)) == -2
