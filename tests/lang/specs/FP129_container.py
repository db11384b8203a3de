# ruff: noqa
"""An action whose own loop has an invariant, and a local container."""

from enum import IntEnum

from fencepost.spec.lang import *

REQUESTS, BLOCKS = Index("requests", default=2), Index("blocks", default=2)
STEPS = Bound("steps", default=2, least=1)
ORDER = Switch("order", "head", "tail")


class Status(IntEnum):
    WAITING = 0
    RUNNING = 1


@record
class Entry:
    n: Int(0, 3)
    block: BLOCKS


@state
class Pool:
    n: Int(0, 3)
    on: Bool
    status: Array[REQUESTS, Status]
    owner: Array[BLOCKS, Maybe[REQUESTS]]
    free: Seq[BLOCKS, BLOCKS]
    used: Seq[BLOCKS, BLOCKS]
    entries: Seq[Entry, STEPS]
    busy: SetOf[BLOCKS]
    late: SetOf[BLOCKS]
    asked: SetOf[REQUESTS]


@action
def act(s, r: REQUESTS, b: BLOCKS):
    """Do something."""
    box = fresh(Seq[BLOCKS, 2])  # <- FP129
    for _ in range(2):
        box.append(b)
    s.n = len(box)


@loop_invariant(act)
def holds(s):
    """Always."""
    return True
