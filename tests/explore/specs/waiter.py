"""Guests of whom one is served at a time, by chance; each is an instance of one action, which is fair only as a whole."""

from fencepost.spec.lang import Array, Bool, Index, action, leads_to, require, state

GUESTS = Index("guests", default=2, letters=True)


@state
class Hall:
    """Who is hungry."""

    hungry: Array[GUESTS, Bool]


@action
def gets_hungry(s, g: GUESTS):
    """{g} gets hungry."""
    require(not s.hungry[g])
    s.hungry[g] = True


@action(fair="strong")
def serve(s, g: GUESTS):
    """{g} is served."""
    require(s.hungry[g])
    s.hungry[g] = False


def all_hungry(s):
    return all(s.hungry[g] for g in range(GUESTS))


@leads_to(all_hungry)
def somebody_is_served(s):
    """When all are hungry, somebody is served."""
    return any(not s.hungry[g] for g in range(GUESTS))


@leads_to(all_hungry)
def nobody_is_hungry(s):
    """When all are hungry, all are served at some time."""
    return all(not s.hungry[g] for g in range(GUESTS))
