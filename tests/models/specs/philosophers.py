"""Dining philosophers who take the left fork first: stuck when each has one."""

from enum import IntEnum

from fencepost.spec.lang import Array, Bool, Bound, Int, action, always, reachable, require, state

SEATS = Bound("seats", default=3, least=2)


class Hands(IntEnum):
    EMPTY = 0
    ONE = 1
    BOTH = 2


@state
class Table:
    hands: Array[SEATS, Hands]
    taken: Array[SEATS, Bool]


@action
def take_left(s, p: Int(0, SEATS - 1)):
    """A philosopher takes the fork on the left."""
    require(s.hands[p] == Hands.EMPTY and not s.taken[p])
    s.taken[p] = True
    s.hands[p] = Hands.ONE


@action
def take_right(s, p: Int(0, SEATS - 1)):
    """A philosopher with one fork takes the other."""
    require(s.hands[p] == Hands.ONE and not s.taken[(p + 1) % SEATS])
    s.taken[(p + 1) % SEATS] = True
    s.hands[p] = Hands.BOTH


@action
def put_back(s, p: Int(0, SEATS - 1)):
    """A philosopher has eaten."""
    require(s.hands[p] == Hands.BOTH)
    s.taken[p] = False
    s.taken[(p + 1) % SEATS] = False
    s.hands[p] = Hands.EMPTY


@always
def neighbours_do_not_eat_together(s):
    """A fork is in one hand."""
    return all(s.hands[(p + 1) % SEATS] != Hands.BOTH for p in range(SEATS) if s.hands[p] == Hands.BOTH)


@reachable
def someone_eats(s):
    """A philosopher has both forks."""
    return any(s.hands[p] == Hands.BOTH for p in range(SEATS))
