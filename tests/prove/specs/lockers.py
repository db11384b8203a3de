"""People put things into lockers: everything that a spec does with members of an index, and claims that are right or wrong."""

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
    fresh,
    init,
    quiescent,
    require,
    state,
    step,
)

LOCKERS = Index("lockers", default=4)
PEOPLE = Index("people", default=2, letters=True)


@state
class Hall:
    free: Seq[LOCKERS, LOCKERS]
    things: Array[LOCKERS, Int(0, 2)]
    owner: Array[LOCKERS, Maybe[PEOPLE]]
    key: Array[PEOPLE, Maybe[LOCKERS]]
    rented: Array[PEOPLE, Seq[LOCKERS, LOCKERS]]
    used: SetOf[LOCKERS]
    shut: Array[LOCKERS, Bool]
    lost: Bool
    spoilt: Bool


@init
def opened(s):
    """All lockers are free."""
    for x in range(LOCKERS):
        s.free.append(x)


@action
def rent(s, p: PEOPLE):
    """Somebody takes the first free locker."""
    require(len(s.free) > 0)
    x = s.free.pop_front()
    s.owner[x] = p
    s.rented[p].append(x)
    s.shut[x] = s.key[p] == x or len(s.rented[p]) == 2


@action
def put(s, p: PEOPLE, x: LOCKERS):
    """Somebody puts a thing into a locker."""
    require(s.owner[x] == p and s.things[x] < 2)
    s.things[x] += 1
    if s.things[x] == 2:
        s.spoilt = True
    s.used.add(x)
    s.key[p] = x


@action
def leave(s, p: PEOPLE, x: LOCKERS):
    """Somebody gives a locker back, in front or behind."""
    require(x in s.rented[p])
    if s.owner[x] != p:
        s.lost = True
    s.rented[p].remove(x)
    s.owner[x] = None
    s.used.discard(x)
    s.things[x] = 0
    if s.shut[x]:
        s.free.push_front(x)
    else:
        s.free.append(x)
    if s.key[p] == x:
        s.key[p] = None
    s.shut[x] = False


@action
def leave_all(s, p: PEOPLE):
    """Somebody gives everything back."""
    require(len(s.rented[p]) > 0)
    seen = fresh(Seq[LOCKERS, LOCKERS])
    for x in s.rented[p]:
        if s.owner[x] != p or x in s.free:
            s.lost = True
        if x not in s.free:
            seen.append(x)
        s.owner[x] = None
        s.used.discard(x)
        s.things[x] = 0
        s.shut[x] = False
    for x in reversed(seen):
        s.free.insert(len(s.free), x)
    s.rented[p].clear()
    s.key[p] = None


@action
def tidy(s):
    """Where all lockers are free, the queue begins anew."""
    require(all(s.owner[x] is None for x in range(LOCKERS)) and sum(s.things[x] for x in range(LOCKERS)) == 0)
    require(not any(s.shut[x] for x in range(LOCKERS)))
    first = s.free.pop_front()
    s.free.append(first)


def often(s, x):
    """How often a locker is in lists."""
    return sum(1 for y in s.free if y == x) + sum(sum(1 for y in s.rented[p] if y == x) for p in range(PEOPLE))


@always
def in_one_place(s):
    """A locker is free once or rented once."""
    return all(often(s, x) == 1 for x in range(LOCKERS))


@always
def owner_has_it(s):
    """The owner of a locker has it, and nobody else."""
    return all((x in s.rented[p]) == (s.owner[x] == p) for p in range(PEOPLE) for x in range(LOCKERS))


@always
def used_if_full(s):
    """What has things in it is used, and no other."""
    return all((x in s.used) == (s.things[x] > 0) for x in range(LOCKERS))


@always
def key_fits(s):
    """A key is of an own locker."""
    return all(s.key[p] != x or s.owner[x] == p for x in range(LOCKERS) for p in range(PEOPLE))


@always
def free_is_open(s):
    """A free locker is open and empty."""
    return all(not s.shut[x] and s.things[x] == 0 for x in range(LOCKERS) if x in s.free)


@always
def apart(s):
    """No two people have one locker (two members at once)."""
    return all(
        x == y or not (s.key[p] == x and s.key[q] == y and s.owner[x] != p and p != q)
        for p in range(PEOPLE)
        for q in range(PEOPLE)
        for x in range(LOCKERS)
        for y in range(LOCKERS)
    )


@step
def order_stays(s, t):
    """What stays in the queue keeps its order, but where it begins anew."""
    return all(implied(s, t, x, y) for x in range(LOCKERS) for y in range(LOCKERS) if x != y and len(s.free) != len(t.free))


def implied(s, t, x, y):
    """The same for two lockers."""
    if not (x in s.free and y in s.free and x in t.free and y in t.free):
        return True
    return (place(s, x) < place(s, y)) == (place(t, x) < place(t, y))


def place(s, x):
    """Where a locker stands in the queue."""
    return sum(1 for i in range(len(s.free)) if any(s.free[j] == x for j in range(i + 1, len(s.free))))


@always
def nothing_lost(s):
    """What is given back is one's own: an alarm that is never raised."""
    return not s.lost


@always
def wrong_spoilt(s):
    """Wrong: an alarm that is raised."""
    return not s.spoilt


@always
def wrong_one_thing(s):
    """Wrong: two things fit into a locker."""
    return all(s.things[x] < 2 for x in range(LOCKERS))


@always
def wrong_one_locker(s):
    """Wrong: somebody may rent two, of which no two-member claim about a single one knows."""
    return all(x == y or s.owner[x] is None or s.owner[x] != s.owner[y] for x in range(LOCKERS) for y in range(LOCKERS))


@always
def wrong_somebody_is_free(s):
    """Wrong: all lockers may be rented."""
    return any(x in s.free for x in range(LOCKERS))


@always
def wrong_few_used(s):
    """Wrong: all may be used."""
    return sum(1 for x in range(LOCKERS) if x in s.used) < LOCKERS


@always
def wrong_shut(s):
    """Wrong: the second locker of somebody is shut."""
    return all(not s.shut[x] for x in range(LOCKERS))


def nothing_in(s):
    """Whether all lockers are empty."""
    return all(s.things[x] == 0 for x in range(LOCKERS))


@quiescent(nothing_in)
def wrong_all_free(s):
    """Wrong: empty lockers may be rented."""
    return all(x in s.free for x in range(LOCKERS))


@step
def wrong_first_stays(s, t):
    """Wrong: the front of the queue changes."""
    return len(s.free) == 0 or len(t.free) == 0 or s.free[0] == t.free[0]
