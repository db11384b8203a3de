"""A token goes round in a ring."""

from fencepost.spec.lang import Bound, Int, action, eventually, leads_to, state

SEATS = Bound("seats", default=4, least=2)


@state
class Ring:
    """Where the token is."""

    token: Int(0, SEATS - 1)


@action(fair="weak")  # varied
def hand_on(s):
    """The token goes to the next seat."""
    s.token = (s.token + 1) % SEATS


@eventually
def token_at_the_last(s):
    """The last one has the token some time."""
    return s.token == SEATS - 1


def first_has_it(s):
    return s.token == 0


@leads_to(first_has_it)
def token_comes_back(s):
    """After the first, the one before it has the token."""
    return s.token == SEATS - 1


def last_has_it(s):
    return s.token == SEATS - 1


@leads_to(last_has_it)
def at_once(s):
    """A goal that is met where it is asked for counts."""
    return s.token == SEATS - 1
