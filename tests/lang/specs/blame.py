"""A spec whose properties are about members in all the ways that a formula can be."""

from fencepost.spec.lang import (
    Array,
    Bool,
    Index,
    Int,
    Maybe,
    Seq,
    SetOf,
    action,
    always,
    implies,
    quiescent,
    require,
    state,
    step,
)

PEOPLE = Index("people", default=3, letters=True)
SEATS = Index("seats", default=3)


@state
class Room:
    """Who sits where, who waits, which seats are broken, and a bell."""

    seat: Array[PEOPLE, Maybe[SEATS]]
    queue: Seq[PEOPLE, 3]
    broken: SetOf[SEATS]
    bell: Bool
    rings: Int(0, 3)


@action
def sit(s, p: PEOPLE, c: SEATS):
    """Person {p} takes seat {c}."""
    require(s.seat[p] is None)
    s.seat[p] = c


@action
def wait(s, p: PEOPLE):
    """Person {p} waits."""
    require(p not in s.queue)
    s.queue.append(p)


@action
def smash(s, c: SEATS):
    """Seat {c} breaks."""
    s.broken.add(c)


@action
def ring(s):
    """The bell rings."""
    require(s.rings < 3)
    s.bell = True
    s.rings += 1


@always
def each_alone(s):
    """No two people have one seat."""
    return all(s.seat[p] is None or s.seat[p] != s.seat[q] for p in range(PEOPLE) for q in range(PEOPLE) if p < q)


@always
def nobody_on_broken(s):
    """Nobody sits on a broken seat."""
    return not any(s.seat[p] is not None and s.seat[p] in s.broken for p in range(PEOPLE))


@always
def waits_or_sits(s):
    """Nobody waits who sits; by a helper with a loop."""
    return first_double(s) is None


def first_double(s):
    """The first who does both."""
    for p in s.queue:
        if s.seat[p] is not None:
            return p
    return None


@always
def patient(s):
    """The same, by a helper that returns a truth value."""
    return nobody_doubles(s)


def nobody_doubles(s):
    """Whether nobody does both."""
    for p in s.queue:  # noqa: SIM110 - what is tested is the loop
        if s.seat[p] is not None:
            return False
    return True


@always
def all_whole(s):
    """No seat is broken, by their number."""
    return len(s.broken) == 0


@always
def all_wait(s):
    """Everybody waits, by their number."""
    return len(s.queue) == PEOPLE


@always
def all_smashed(s):
    """Every seat is broken, by their number."""
    return len(s.broken) == SEATS


@always
def quiet(s):
    """The bell did not ring."""
    return not s.bell


@always
def rings_for_somebody(s):
    """If the bell rings, somebody waits, and nobody sits."""
    return implies(s.bell, len(s.queue) > 0 and all(s.seat[p] is None for p in range(PEOPLE)))


@always
def either(s):
    """Nobody waits, or no seat is broken."""
    return not any(p in s.queue for p in range(PEOPLE)) or all(c not in s.broken for c in range(SEATS))


@always
def few(s):
    """At most one person sits, by a sum."""
    return sum(1 for p in range(PEOPLE) if s.seat[p] is not None) <= 1


@always
def chosen(s):
    """Of those who wait when the bell rings nobody sits, else nobody waits."""
    return all(s.seat[p] is None for p in s.queue) if s.bell else len(s.queue) == 0


@quiescent(quiet)
def empty(s):
    """Nobody sits while the bell is silent."""
    return all(s.seat[p] is None for p in range(PEOPLE))


@step
def keeps_seats(s, t):
    """Who sits stays."""
    return all(t.seat[p] == s.seat[p] for p in range(PEOPLE) if s.seat[p] is not None)


@step
def keeps_order(s, t):
    """The queue only grows."""
    return len(t.queue) >= len(s.queue) and all(s.queue[i] == t.queue[i] for i in range(len(s.queue)))
