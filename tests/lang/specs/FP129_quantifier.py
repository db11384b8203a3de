# ruff: noqa
"""A loop with an invariant that a quantifier comes to several times."""

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
    if any(scan(s) == n for n in range(3)):  # <- FP129
        s.n = 1


def scan(s):
    found = 0
    for _ in range(3):
        if s.n > found:
            found += 1
    return found


@loop_invariant(scan)
def holds(s, found: Int(0, 3)):
    """Always."""
    return True
