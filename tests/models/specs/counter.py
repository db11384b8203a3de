"""A counter from 0 to a limit: limit + 1 states, up and down."""

from fencepost.spec.lang import Bound, Int, action, always, reachable, require, state, step

LIMIT = Bound("limit", default=10, least=1)


@state
class Counter:
    value: Int(0, LIMIT)


@action
def up(s):
    """Count up."""
    require(s.value < LIMIT)
    s.value += 1


@action
def down(s):
    """Count down."""
    require(s.value > 0)
    s.value -= 1


@always
def within(s):
    """The value stays within its limits."""
    return 0 <= s.value <= LIMIT


@step
def by_one(s, t):
    """The value changes by one at a time."""
    return abs(s.value - t.value) == 1


@reachable
def full(s):
    """The limit is reached."""
    return s.value == LIMIT
