"""A channel for one message that may lose it; the sender sends until an answer comes."""

from fencepost.spec.lang import Bound, Int, action, eventually, leads_to, require, state

MESSAGES = Bound("messages", default=2, least=1)


@state
class Channel:
    """How many messages are under way (none or one), how many arrived, and how many the sender knows of."""

    under_way: Int(0, 1)
    arrived: Int(0, MESSAGES)
    known: Int(0, MESSAGES)


@action(fair="weak")
def send(s):
    """The sender sends the next message, once more if need be."""
    require(s.under_way == 0 and s.arrived == s.known and s.known < MESSAGES)
    s.under_way = 1


@action
def lose(s):
    """The message under way is lost."""
    require(s.under_way == 1)
    s.under_way = 0


@action(fair="strong")  # varied
def deliver(s):
    """The message under way arrives."""
    require(s.under_way == 1)
    s.under_way = 0
    s.arrived += 1


@action(fair="weak")
def answer(s):
    """The sender hears that a message arrived."""
    require(s.known < s.arrived)
    s.known += 1


@eventually
def all_known(s):
    """In the end every message has arrived, and the sender knows."""
    return s.known == MESSAGES


def something_arrived(s):
    return s.arrived > s.known


@leads_to(something_arrived)
def heard_of(s):
    """What arrives is heard of."""
    return s.arrived == s.known
