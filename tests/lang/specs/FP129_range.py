# ruff: noqa
"""A loop with an invariant that runs as often as the state says."""

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
    scan(s)


def scan(s):
    for _ in range(s.n):  # <- FP129
        s.on = True


@loop_invariant(scan)
def holds(s):
    """Always."""
    return True
