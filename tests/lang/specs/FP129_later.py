# ruff: noqa
"""An invariant about a local that has no value yet."""

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
    for _ in range(3):
        k = s.n
        s.n = k
    k = 2


@loop_invariant(scan)  # <- FP129
def holds(s, k: Int(0, 3)):
    """Always."""
    return True
