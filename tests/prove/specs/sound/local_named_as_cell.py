"""A local that is called as a cell of the state is called inside."""

from fencepost.spec.lang import Array, Bool, Bound, Int, action, always, loop_invariant, state

PAD = Bound("pad", default=130)


@state
class S:
    a: Int(0, 5)
    hit: Bool
    go: Bool
    pad: Array[PAD, Bool]


@action
def act(s):
    """Two loops, one after the other."""
    n = first(s)
    m = second(s)
    if n != m:
        s.hit = True


def first(s):
    """Counts two."""
    c0 = 0
    for _ in range(2):
        if not s.go:
            break
        c0 = min(c0 + 1, 5)
        s.a = 5
    return c0


def second(s):
    """Reads it."""
    d = s.a
    for _ in range(2):
        if s.go:
            break
        s.go = not s.go
        s.go = not s.go
    return d


@action
def start(s):
    """Go."""
    s.go = not s.go


@loop_invariant(first)
def f(s, c0: Int(0, 5)):
    """Nothing."""
    return True


@loop_invariant(second)
def g(s):
    """Nothing."""
    return True


@always
def fine(s):
    """No hit."""
    return not s.hit


@always(lemma=True)
def wrong(s):
    """Not so: skips the search for witnesses."""
    return not s.go
