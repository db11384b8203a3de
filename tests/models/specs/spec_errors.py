"""A spec that leaves its own bounds after two steps, in the way that the switch says: in an action, a property, a helper."""

from fencepost.spec.lang import (
    Array,
    Bool,
    Bound,
    Index,
    Int,
    Maybe,
    Seq,
    SetOf,
    Switch,
    action,
    always,
    implies,
    init,
    quiescent,
    record,
    require,
    state,
    step,
)

MEMBERS = Index("members", default=2)
DIVISOR = Bound("divisor", default=0)
KIND = Switch(
    "kind",
    "above", "below", "none-stored", "outside-array", "outside-sequence", "negative", "pop-front", "pop-back", "drop-front",
    "drop-back", "overflow-append", "overflow-front", "overflow-insert", "overflow-grow", "insert-outside", "remove-missing",
    "remove-at-outside", "none-added", "none-compared", "none-counted", "none-index", "none-member", "zero", "maybe-above",
    "enum-above", "no-room", "property", "step-property", "condition",
)  # fmt: skip


@record
class Part:
    n: Int(0, 1)


@state
class World:
    steps: Int(0, 2)
    n: Int(-1, 3)
    parts: Array[2, Part]
    q: Seq[Int(0, 3), 2]
    records: Seq[Part, 1]
    empty: Seq[MEMBERS, 0]
    nobody: Maybe[MEMBERS]
    number: Maybe[Int(0, 3)]
    who: Array[MEMBERS, Bool]
    busy: SetOf[MEMBERS]


@init
def start(s):
    """One element in each sequence."""
    s.q.append(3)
    s.records.grow()


@action
def wait(s):
    """Nothing yet."""
    require(s.steps < 2)
    s.steps += 1


@action
def go(s, m: MEMBERS, flag: Bool):
    """Something goes wrong, for the second choice of arguments only."""
    require(s.steps == 2 and flag)
    s.busy.add(m)
    if KIND == "above":
        s.n = s.n + len(s.q) * 4
    elif KIND == "below":
        s.n -= 2
    elif KIND == "none-stored":
        s.n = s.number
    elif KIND == "outside-array":
        s.parts[s.steps].n = 1
    elif KIND == "outside-sequence":
        s.n = s.q[len(s.q)]
    elif KIND == "negative":
        s.n = s.q[s.n - 1]
    elif KIND == "zero":
        s.n = s.steps % DIVISOR
    else:
        take_and_put(s, m)


def take_and_put(s, m):
    """What goes wrong with sequences."""
    if KIND == "drop-front":
        s.empty.drop_front()
    elif KIND == "drop-back":
        s.records.drop_back()
        s.records.drop_back()
    elif KIND == "pop-front":
        s.n = s.q.pop_front() + s.q.pop_front()
    elif KIND == "pop-back":
        s.q.clear()
        s.n = s.q.pop_back()
    elif KIND == "overflow-append":
        s.q.append(1)
        s.q.append(2)
    elif KIND == "overflow-front":
        for x in range(3):
            s.q.push_front(x)
    elif KIND == "overflow-insert":
        s.q.append(0)
        s.q.insert(1, 1)
    elif KIND == "overflow-grow":
        s.records.grow().n = 1
    elif KIND == "insert-outside":
        s.q.insert(2, 0)
    elif KIND == "remove-missing":
        s.q.remove(2)
    elif KIND == "remove-at-outside":
        s.q.remove_at(1)
    elif KIND == "no-room":
        s.empty.append(m)
    else:
        none(s, m)


def none(s, m):
    """What goes wrong with None, and with ranges of other kinds of cells."""
    if KIND == "none-added":
        s.n = s.number + 1
    elif KIND == "none-compared":
        s.who[m] = s.number < 2
    elif KIND == "none-counted":
        for x in range(s.number):
            s.n = x
    elif KIND == "none-index":
        s.who[s.nobody] = True
    elif KIND == "none-member":
        s.who[m] = s.nobody in s.busy
    elif KIND == "maybe-above":
        s.number = s.q[0] + 1
    elif KIND == "enum-above":
        s.records[0] = s.parts[0]
        s.records[0].n += 2


@always
def looks_ahead(s):
    """A property that looks where there is nothing."""
    return KIND != "property" or s.steps < 2 or s.q[1] == 0


@always
def counts(s):
    """An invariant that another one comes before."""
    return implies(s.steps == 2, len(s.q) < 2 or s.q[0] < 3 or KIND == "property")


def waited(s):
    """A condition that looks too far when there is nothing."""
    return KIND == "condition" and s.steps == 2 and s.q[2] == 0


@quiescent(waited, when=lambda: KIND == "condition")
def rests(s):
    """Never looked at."""
    return s.steps < 2


@step
def moves(s, t):
    """A step property that looks at the second element after the step."""
    return KIND != "step-property" or t.steps < 2 or t.q[1] == 0
