"""A number that one action has looked at, and another one not."""

from fencepost.spec.lang import Bool, Int, action, always, require, state


@state
class S:
    x: Int(0, 9)
    small: Int(0, 5)
    done: Bool
    late: Bool


@action
def copy(s):
    """Copy it and back."""
    require(s.done and s.x <= 5)
    s.small = s.x
    s.x = s.small


@action
def up(s, k: Int(0, 9)):
    """Choose a number."""
    require(not s.done)
    s.x = k
    s.done = True


@action
def idle(s):
    """Time passes."""
    require(s.done)
    s.late = True


@always
def low(s):
    """Late numbers are low."""
    return s.x <= 5 or not s.late
