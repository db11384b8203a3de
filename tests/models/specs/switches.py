"""Independent switches: 2^n states, n transitions out of each; up to renumbering only how many are on counts: n + 1."""

from fencepost.spec.lang import Array, Bool, Index, action, reachable, state

LAMPS = Index("lamps", default=6)


@state
class Board:
    on: Array[LAMPS, Bool]


@action
def press(s, x: LAMPS):
    """Press one switch."""
    s.on[x] = not s.on[x]


@reachable
def all_on(s):
    """Every lamp is on."""
    return all(s.on[x] for x in range(LAMPS))
