"""What makes a pass worthless, one at a time."""

from fencepost.spec.lang import Array, Bool, Index, Int, Switch, action, always, implies, quiescent, reachable, require, state

MEMBERS = Index("members", default=2)
EMPTY = Switch("empty", "nothing", "action", "witness", "implication", "disjunction", "domain", "condition", "not-applicable")


@state
class World:
    n: Int(0, 3)
    on: Array[MEMBERS, Bool]


@action
def turn(s, m: MEMBERS):
    """Turn a member on or off."""
    s.on[m] = not s.on[m]
    s.n = sum(1 for x in range(MEMBERS) if s.on[x])


@action(when=lambda: EMPTY != "not-applicable")
def other(s):
    """Turn all off at once."""
    require(EMPTY != "action" and s.n == MEMBERS)
    s.n = 0
    for m in range(MEMBERS):
        s.on[m] = False


def limit():
    """The least number that never comes."""
    return 3


def resting(s):
    """The world rests."""
    return s.n == (limit() if EMPTY == "condition" else 0)


@always
def implication(s):
    """One member on means that the number says so."""
    return implies(s.n == (limit() if EMPTY == "implication" else 1), any(s.on[m] for m in range(MEMBERS)))


@always
def disjunction(s):
    """The same by a disjunction."""
    least = limit() if EMPTY == "disjunction" else 1
    return not (s.n >= least and s.n < 3) or any(s.on[m] for m in range(MEMBERS))


@always
def domain(s):
    """For every member that is on, the number is positive."""
    return all(s.n > 0 for m in range(MEMBERS) if s.on[m] and EMPTY != "domain")


@quiescent(resting)
def rests(s):
    """At rest, nothing is on."""
    return not any(s.on[m] for m in range(MEMBERS))


@reachable
def everything_on(s):
    """Every member is on."""
    return s.n == (limit() if EMPTY == "witness" else MEMBERS)
