"""Nothing that this spec promises is ever put to the test."""

from fencepost.spec.lang import Int, action, always, implies, reachable, require, state


@state
class Count:
    """One number."""

    n: Int(0, 3)


@action
def add(s):
    """One more, round and round."""
    s.n = (s.n + 1) % 3


@action
def jump(s):
    """From 3 back to 0."""
    require(s.n == 3)
    s.n = 0


@always
def three_is_odd(s):
    """Where the count is 3, it is odd."""
    return implies(s.n == 3, s.n % 2 == 1)


@reachable
def three(s):
    """The count is 3."""
    return s.n == 3
