"""Peterson's algorithm for two processes; `broken` asks for the turn after looking, and lets both in."""

from enum import IntEnum

from fencepost.spec.lang import Array, Bool, Int, Switch, action, always, reachable, require, state

ORDER = Switch("order", "right", "broken")


class At(IntEnum):
    AWAY = 0
    FLAGGED = 1
    WAITING = 2
    INSIDE = 3


@state
class Peterson:
    at: Array[2, At]
    flag: Array[2, Bool]
    turn: Int(0, 1)


@action
def raise_flag(s, p: Int(0, 1)):
    """A process says that it wants in."""
    require(s.at[p] == At.AWAY)
    s.flag[p] = True
    s.at[p] = At.FLAGGED


@action
def give_turn(s, p: Int(0, 1)):
    """It lets the other one go first."""
    require(s.at[p] == At.FLAGGED)
    s.turn = 1 - p if ORDER == "right" else p
    s.at[p] = At.WAITING


@action
def enter(s, p: Int(0, 1)):
    """It goes in when the other does not want to, or it has the turn."""
    require(s.at[p] == At.WAITING and (not s.flag[1 - p] or s.turn == p))
    s.at[p] = At.INSIDE


@action
def leave(s, p: Int(0, 1)):
    """It leaves and lowers its flag."""
    require(s.at[p] == At.INSIDE)
    s.flag[p] = False
    s.at[p] = At.AWAY


@always
def mutual_exclusion(s):
    """The two are never inside together."""
    return not (s.at[0] == At.INSIDE and s.at[1] == At.INSIDE)


@reachable
def one_waits_for_the_other(s):
    """One is inside while the other waits."""
    return s.at[0] == At.INSIDE and s.at[1] == At.WAITING
