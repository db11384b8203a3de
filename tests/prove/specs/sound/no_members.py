"""An index without members."""

from fencepost.spec.lang import Array, Bool, Bound, Index, Int, Seq, action, always, require, state

X = Index("x", default=0, least=0)
PAD = Bound("pad", default=130)
N = Bound("n", default=20)


@state
class S:
    q: Seq[X, 2]
    pad: Array[PAD, Bool]
    n: Int(0, N)


@action
def tick(s):
    """Time passes."""
    require(len(s.q) == 0)
    if s.n < N:
        s.n += 1


@always
def fine(s):
    """Never there."""
    return s.n < N
