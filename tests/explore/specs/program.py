"""A program that counts to its end, and stops."""

from fencepost.spec.lang import Bound, Int, action, eventually, leads_to, require, state

END = Bound("end", default=3, least=1)


@state
class Program:
    """Its counter."""

    n: Int(0, END)


@action(fair="weak")  # varied
def count(s):
    """The counter goes up."""
    require(s.n < END)
    s.n += 1


@eventually
def ends(s):
    """The program ends."""
    return s.n == END


@eventually
def passes_one(s):
    """The counter is one at some time, and may go on from there."""
    return s.n == 1


def beyond_its_end(s):
    return s.n > END


@leads_to(beyond_its_end)
def comes_back(s):
    """What never happens is followed by anything."""
    return s.n == 0
