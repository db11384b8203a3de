"""Several initial states, and properties that fail at different distances from them."""

from fencepost.spec.lang import Array, Bool, Bound, Index, Int, action, always, init, quiescent, reachable, require, state, step

LIMIT = Bound("limit", default=5, least=1)
MEMBERS = Index("members", default=3, letters=True)


@state
class Race:
    at: Array[MEMBERS, Int(0, LIMIT)]
    turbo: Bool


@init
def in_front(s, m: MEMBERS, turbo: Bool):
    """One member starts one step ahead; turbo only for one of the others."""
    require(not turbo or LIMIT > 1)
    s.at[m] = 1
    s.turbo = turbo


@init
def together(s):
    """All start at zero."""
    s.turbo = False


@action
def walk(s, m: MEMBERS):
    """A member walks one step."""
    require(s.at[m] < LIMIT)
    s.at[m] += 1


@action
def jump(s, m: MEMBERS, far: Int(2, 3)):
    """With turbo, a member jumps."""
    require(s.turbo and s.at[m] + far <= LIMIT)
    s.at[m] += far
    s.turbo = False


def arrived(s):
    """Everybody is at the end."""
    return all(s.at[m] == LIMIT for m in range(MEMBERS))


@always
def nobody_is_far_ahead(s):
    """Nobody is more than three steps ahead of another."""
    return all(s.at[m] - s.at[other] <= 3 for m in range(MEMBERS) for other in range(MEMBERS))


@always
def not_all_at_two(s):
    """The members are never all at two."""
    return not all(s.at[m] == 2 for m in range(MEMBERS))


@step
def no_jumps(s, t):
    """Nobody moves by three at once."""
    return all(t.at[m] - s.at[m] < 3 for m in range(MEMBERS))


@quiescent(arrived)
def turbo_is_used(s):
    """At the end, turbo has been used."""
    return not s.turbo


@reachable
def two_at_the_end(s):
    """Two members are at the end."""
    return sum(1 for m in range(MEMBERS) if s.at[m] == LIMIT) == 2
