"""Numbers that double until their product leaves 64 bits."""

from fencepost.spec.lang import Int, action, always, require, state

LARGE = 1 << 40


@state
class Doubled:
    n: Int(0, LARGE)


@action
def double(s):
    """Twice as much, from one on."""
    require(s.n < LARGE)
    s.n = max(1, s.n * 2)


@always
def squares_grow(s):
    """A square is not negative, and no number is greater than its square."""
    return s.n <= s.n * s.n
