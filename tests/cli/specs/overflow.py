"""A counter that runs over: the spec itself is wrong."""

from fencepost.spec.lang import Int, action, always, state


@state
class Counter:
    """One number."""

    n: Int(0, 3)


@action
def add(s):
    """One more."""
    s.n += 1


@always
def never_negative(s):
    """The counter is never negative."""
    return s.n >= 0
