"""Two locks that are taken in either order."""

from fencepost.spec.lang import Array, Index, Maybe, action, always, reachable, require, state

LOCKS = Index("locks", default=2)
PEOPLE = Index("people", default=2, letters=True)


@state
class Locks:
    """Who holds which lock."""

    owner: Array[LOCKS, Maybe[PEOPLE]]


@action
def take(s, p: PEOPLE, k: LOCKS):
    """{p} takes lock {k}."""
    require(s.owner[k] is None)
    s.owner[k] = p


@action
def release(s, p: PEOPLE):
    """{p} has all locks and gives them back."""
    require(all(s.owner[k] == p for k in range(LOCKS)))
    for k in range(LOCKS):
        s.owner[k] = None


@always
def free_or_held(s):
    """A lock is free or held."""
    return all(s.owner[k] is None or s.owner[k] is not None for k in range(LOCKS))


@reachable
def all_held(s):
    """One holds everything."""
    return all(s.owner[k] is not None for k in range(LOCKS))
