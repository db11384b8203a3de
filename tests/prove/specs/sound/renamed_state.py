"""An alarm that is taken back through another name of the state."""

from enum import IntEnum

from fencepost.spec.lang import Array, Bool, Bound, Index, Int, action, always, require, state

BLOCKS = Index("blocks", default=3)
PAD = Bound("pad", default=130)
N = Bound("n", default=0)


class Error(IntEnum):
    NONE = 0
    A = 1
    B = 2


@state
class S:
    error: Error
    bad: Array[BLOCKS, Bool]
    weird: Array[BLOCKS, Bool]
    mark: Array[BLOCKS, Bool]
    pad: Array[PAD, Bool]
    n: Int(0, N)


@action(when=lambda: N > 0)
def tick(s):
    """Time passes."""
    require(s.n < N)
    s.n += 1


@action
def spoil(s, b: BLOCKS):
    """A block becomes bad or weird."""
    if s.bad[b]:
        s.weird[b] = True
    else:
        s.bad[b] = True


@action
def act(s, x: BLOCKS, y: BLOCKS):
    """Look at two blocks."""
    require(s.n == N and x != y)
    hit = False
    if s.bad[x]:
        s.error = Error.A
        hit = True
    z = s
    z.error = Error.NONE
    if hit and s.weird[y]:
        s.error = Error.B


@always
def no_error(s):
    """Nothing went wrong."""
    return s.error == Error.NONE


@always
def nothing_marked(s):
    """No block is marked."""
    return all(not s.mark[b] for b in range(BLOCKS))
