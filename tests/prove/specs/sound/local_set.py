"""A local set of members, and a quantifier whose variable is called as a local elsewhere."""

from fencepost.spec.lang import Array, Bool, Bound, Index, SetOf, action, always, require, state

BLOCKS = Index("blocks", default=3)
PAD = Bound("pad", default=130)


@state
class S:
    used: SetOf[BLOCKS]
    mark: Array[BLOCKS, Bool]
    pad: Array[PAD, Bool]


@action
def use(s, b: BLOCKS):
    """Use a block."""
    u = set(s.used)
    require(b not in u)
    s.used.add(b)


@action
def other(s, b: BLOCKS, deep: Bool):
    """Another."""
    if deep:
        x = b
        require(x in s.used)
    else:
        require(all(not s.mark[x] for x in range(BLOCKS)))


@always
def nothing_marked(s):
    """No block is marked."""
    return all(not s.mark[b] for b in range(BLOCKS))
