"""An action that is called as a cell of the state is called inside."""

from fencepost.spec.lang import Bool, Int, action, always, require, state


@state
class S:
    light: Bool
    n: Int(0, 3)
    m: Int(0, 3)


@action
def c0(s):
    """The light goes on."""
    require(not s.light)
    s.light = True


@action
def off(s):
    """The light goes off; one more."""
    require(s.light)
    s.light = False
    s.n = min(s.n + 1, 3)


@action
def turn(s):
    """Something else."""
    s.m = 3 - s.m


@always
def few(s):
    """Never three."""
    return s.n < 2
