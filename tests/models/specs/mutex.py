"""Processes and one lock: any number may be waiting, at most one inside.

With n processes there are 2^n states with nobody inside and n * 2^(n - 1) with one; up to renumbering n + 1 and n.
"""

from enum import IntEnum

from fencepost.spec.lang import Array, Index, Maybe, action, always, latent, reachable, require, state

PROCESSES = Index("processes", default=4, letters=True)


class At(IntEnum):
    AWAY = 0
    WAITING = 1
    INSIDE = 2


@state
class Mutex:
    at: Array[PROCESSES, At]
    lock: Maybe[PROCESSES]


@action
def come(s, p: PROCESSES):
    """A process wants in."""
    require(s.at[p] == At.AWAY)
    s.at[p] = At.WAITING


@action
def enter(s, p: PROCESSES):
    """A waiting process takes the lock."""
    require(s.at[p] == At.WAITING and s.lock is None)
    s.at[p] = At.INSIDE
    s.lock = p


@action
def leave(s, p: PROCESSES):
    """The process inside gives the lock back."""
    require(s.at[p] == At.INSIDE)
    s.at[p] = At.AWAY
    s.lock = None


@always
def mutual_exclusion(s):
    """No two processes are inside."""
    return sum(1 for p in range(PROCESSES) if s.at[p] == At.INSIDE) <= 1


@always
def the_lock_says_who(s):
    """The lock names the process inside."""
    return all(s.lock == p for p in range(PROCESSES) if s.at[p] == At.INSIDE)


@latent
def a_crowd(s):
    """More than three wait."""
    return sum(1 for p in range(PROCESSES) if s.at[p] == At.WAITING) > 3


@reachable
def all_wait(s):
    """Every process waits."""
    return all(s.at[p] == At.WAITING for p in range(PROCESSES))
