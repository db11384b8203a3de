"""Indices that are used in an order: the language notices, and symmetry leaves them alone."""

from fencepost.spec.lang import Array, Bool, Index, Maybe, Seq, action, always, reachable, require, state

BLOCKS = Index("blocks", default=3)
READERS = Index("readers", default=2)


@state
class Shelf:
    free: Array[BLOCKS, Bool]
    lowest: Maybe[BLOCKS]
    queue: Seq[READERS, READERS]


def first_taken(s):
    """The lowest block that is taken: a loop that leaves early depends on the order of the blocks."""
    for b in range(BLOCKS):
        if not s.free[b]:
            return b
    return None


@action
def give(s, b: BLOCKS):
    """Give a block back."""
    require(not s.free[b])
    s.free[b] = True
    s.lowest = first_taken(s)


@action
def take(s, b: BLOCKS):
    """Take a block."""
    require(s.free[b])
    s.free[b] = False
    s.lowest = first_taken(s)


@action
def come(s, r: READERS):
    """A reader stands in line."""
    require(r not in s.queue)
    s.queue.append(r)


@action
def go(s):
    """The first one in line goes."""
    require(len(s.queue) > 0)
    s.queue.pop_front()


@always
def lowest_is_taken(s):
    """The lowest block, where there is one, is taken, and all below it are free."""
    return s.lowest is None or all(s.free[b] == (b < s.lowest) for b in range(BLOCKS) if b <= s.lowest)


@reachable
def all_free(s):
    """Every block is free, and every reader stands in line."""
    return s.lowest is None and len(s.queue) == READERS and all(s.free[b] for b in range(BLOCKS))
