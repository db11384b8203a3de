"""A walk along a path of nodes that has no way back: it is stuck at the end."""

from fencepost.spec.lang import Bound, Int, action, require, state

NODES = Bound("nodes", default=5, least=1)


@state
class Walk:
    node: Int(0, NODES - 1)


@action
def forward(s):
    """Walk to the next node."""
    require(s.node < NODES - 1)
    s.node += 1
