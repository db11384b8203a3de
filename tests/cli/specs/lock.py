"""Clients take turns at a lock; without its lemma, that nobody else is inside cannot be proved by induction."""

from fencepost.spec.lang import Bool, Index, Maybe, SetOf, Switch, action, always, reachable, require, state

CLIENTS = Index("clients", default=3, letters=True)
LOCK = Switch("lock", "right", "broken", doc="broken: whoever asks gets it")
LEMMA = Switch("lemma", "yes", "no", doc="whether the lemma is there")
LIGHT = Switch("light", "yes", "no", doc="whether there is a light, so that a path can be as long as one likes")


@state
class Lock:
    inside: SetOf[CLIENTS]
    holder: Maybe[CLIENTS]
    light: Bool


@action
def enter(s, c: CLIENTS):
    """A client takes the lock and goes in."""
    require(c not in s.inside and (LOCK == "broken" or s.holder is None))
    s.holder = c
    s.inside.add(c)


@action
def leave(s, c: CLIENTS):
    """It goes out and gives the lock back."""
    require(c in s.inside)
    s.inside.discard(c)
    s.holder = None


@action(when=lambda: LIGHT == "yes")
def turn(s):
    """Somebody turns the light on or off."""
    s.light = not s.light


@always
def alone(s):
    """Nobody shares the room."""
    return len(s.inside) <= 1


@always(lemma=True, when=lambda: LEMMA == "yes")
def the_holder_is_inside(s):
    """Exactly the one who has the lock is inside."""
    return all((c in s.inside) == (s.holder == c) for c in range(CLIENTS))


@reachable
def somebody_is_inside(s):
    """The room is used."""
    return len(s.inside) > 0
