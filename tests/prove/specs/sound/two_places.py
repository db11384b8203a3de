"""Two places of one array of sets, each passed to a helper."""

from fencepost.spec.lang import Array, Bool, Bound, Index, Int, SetOf, action, always, require, state

BLOCKS = Index("blocks", default=3)
OWNERS = Index("owners", default=1)
PAD = Bound("pad", default=130)
N = Bound("n", default=0)


@state
class S:
    sets: Array[BLOCKS, SetOf[OWNERS]]
    mark: Array[BLOCKS, Bool]
    pad: Array[PAD, Bool]
    n: Int(0, N)


def differ(u, v, r):
    """Whether an owner is in one and not in the other."""
    return r in u and r not in v


@action(when=lambda: N > 0)
def tick(s):
    """Time passes."""
    require(s.n < N)
    s.n += 1


@action
def fill(s, b: BLOCKS, r: OWNERS):
    """A block gets an owner."""
    s.sets[b].add(r)


@action
def bad(s, x: BLOCKS, y: BLOCKS, z: BLOCKS, r: OWNERS):
    """Mark a block where two others differ."""
    require(s.n == N and z != x and z != y)
    require(differ(s.sets[x], s.sets[y], r))
    s.mark[z] = True


@always
def nothing_marked(s):
    """No block is marked."""
    return all(not s.mark[b] for b in range(BLOCKS))
