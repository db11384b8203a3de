"""A token goes round a ring; the station that has it may be working: n stations, 2n states, a cycle with chords."""

from fencepost.spec.lang import Bool, Bound, Int, action, always, reachable, require, state

STATIONS = Bound("stations", default=5, least=1)


@state
class Ring:
    token: Int(0, STATIONS - 1)
    working: Bool


@action
def work(s):
    """The station with the token begins to work."""
    require(not s.working)
    s.working = True


@action
def rest(s):
    """It ends its work, keeping the token."""
    require(s.working)
    s.working = False


@action
def hand_on(s):
    """It hands the token to the next station."""
    require(not s.working)
    s.token = (s.token + 1) % STATIONS


@always
def somewhere(s):
    """The token is at a station."""
    return 0 <= s.token < STATIONS


@reachable
def the_last_one_works(s):
    """The last station works."""
    return s.token == STATIONS - 1 and s.working
