"""What of the past the fence protocol looks at: of a processed step nothing but that it is processed."""

from __future__ import annotations

from .finite import State, Tuples
from .protocol import fence

_NAMES = tuple(fence.relations)


def settled(state: State) -> State:
    """The state with all processed steps as one, the first, that names nothing; the others move up behind it.

    The same actions are possible in both, and lead to states that are one again (a test tries all of small sizes). The state
    itself where none is processed, or not in order.
    """
    parts = dict(zip(_NAMES, state, strict=True))
    last = max((s for (s,) in parts["processed"]), default=-1)
    if last < 0 or not parts["processed"].issuperset(one for one in parts["issued"] if one[0] < last):
        return state
    if last == 0 and all(s > 0 for s, _, _ in parts["names"]):
        return state
    done = parts["executed"].issuperset(parts["processed"])
    made: dict[str, Tuples] = {
        **parts,
        "issued": frozenset((max(0, s - last),) for (s,) in parts["issued"]),
        "executed": frozenset((max(0, s - last),) for (s,) in parts["executed"] if s > last or done),
        "processed": frozenset({(0,)}),
        "names": frozenset((s - last, r, b) for s, r, b in parts["names"] if s > last),
        "waits": frozenset((b, max(0, s - last)) for b, s in parts["waits"]),
    }
    return tuple(made[name] for name in _NAMES)
