"""Two people want to be in a room for one; whether Ann gets in depends on how fair her way in is."""

from fencepost.spec.lang import Bool, action, always, leads_to, require, state


@state
class Room:
    """Who waits at the door, and who is inside."""

    ann_waits: Bool
    bob_waits: Bool
    ann_inside: Bool
    bob_inside: Bool


@action
def ann_comes(s):
    """Ann comes to the door."""
    require(not s.ann_waits and not s.ann_inside)
    s.ann_waits = True


@action
def bob_comes(s):
    """Bob comes to the door."""
    require(not s.bob_waits and not s.bob_inside)
    s.bob_waits = True


@action(fair="strong")  # varied
def ann_enters(s):
    """Ann goes in."""
    require(s.ann_waits and not s.bob_inside)
    s.ann_waits = False
    s.ann_inside = True


@action
def bob_enters(s):
    """Bob goes in."""
    require(s.bob_waits and not s.ann_inside)
    s.bob_waits = False
    s.bob_inside = True


@action(fair="weak")
def ann_leaves(s):
    """Ann leaves."""
    require(s.ann_inside)
    s.ann_inside = False


@action(fair="weak")
def bob_leaves(s):
    """Bob leaves."""
    require(s.bob_inside)
    s.bob_inside = False


@always
def one_at_a_time(s):
    """Never are two inside."""
    return not (s.ann_inside and s.bob_inside)


def ann_at_the_door(s):
    return s.ann_waits


@leads_to(ann_at_the_door)
def ann_gets_in(s):
    """When Ann waits, she gets in."""
    return s.ann_inside
