"""A loading bay: things are packed with a weight and shipped together; a switch plants a difference in what is counted."""

from fencepost.spec.lang import Bool, Bound, Index, Int, SetOf, Switch, action, require, state

THINGS = Index("things", default=6, letters=True)
HEAVIEST = Bound("heaviest", default=40, least=1)
COUNTS = Switch("counts", "once", "heavy-twice")


@state
class Bay:
    packed: SetOf[THINGS]
    load: Int(0, 3 * HEAVIEST)
    shipped: Int(0, 9)
    dark: Bool


@action(fair="weak")
def pack(s, things: SetOf[THINGS], weight: Int(1, HEAVIEST)):
    """Things that are not packed yet are packed."""
    require(not s.dark and len(things) > 0 and len(s.packed & things) == 0)
    require(s.load + weight <= 3 * HEAVIEST)
    s.packed = s.packed | things
    s.load += weight


@action(fair="weak")
def ship(s):
    """All that is packed goes; the planted difference counts three things of more than 50 together twice."""
    require(not s.dark and len(s.packed) > 0)
    s.shipped = (s.shipped + 1) % 10
    if COUNTS == "heavy-twice" and s.load > 50 and len(s.packed) >= 3:
        s.shipped = (s.shipped + 1) % 10
    s.load = 0
    s.packed.clear()


@action
def lights_out(s):
    """The bay closes for good."""
    require(not s.dark and s.shipped == 9)
    s.dark = True
