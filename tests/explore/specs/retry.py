"""A request that may fail, and is then tried again."""

from enum import IntEnum

from fencepost.spec.lang import action, eventually, require, state


class At(IntEnum):
    IDLE = 0
    TRYING = 1
    DONE = 2


@state
class Request:
    """How far the request is."""

    at: At


@action(fair="weak")
def try_it(s):
    """The request is tried."""
    require(s.at == At.IDLE)
    s.at = At.TRYING


@action
def fail(s):
    """The attempt fails."""
    require(s.at == At.TRYING)
    s.at = At.IDLE


@action(fair="strong")  # varied
def succeed(s):
    """The attempt succeeds."""
    require(s.at == At.TRYING)
    s.at = At.DONE


@action
def rest(s):
    """Nothing is left to do."""
    require(s.at == At.DONE)


@eventually
def done_in_the_end(s):
    """The request succeeds in the end."""
    return s.at == At.DONE
