"""A lemma that is no invariant, an action that is never enabled, and a witness that is nowhere."""

from fencepost.spec.lang import Int, action, always, reachable, require, state


@state
class S:
    a: Int(0, 3)
    b: Int(0, 3)


@action
def up(s):
    """Up."""
    s.b = min(s.b + 1, 3)


@action
def never(s):
    """Never possible, though no fact says so."""
    require(s.a == 2)
    s.a = 2


@always(lemma=True)
def wrong(s):
    """Not so."""
    return s.b < 3


@always
def fine(s):
    """Fine."""
    return s.a < 3


@reachable
def used(s):
    """Never."""
    return s.a == 1
