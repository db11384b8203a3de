"""A spec without meaning that uses all of the language, and leaves its own bounds wherever it can."""

from enum import IntEnum

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
    fresh,
    implies,
    init,
    quiescent,
    record,
    require,
    state,
    step,
)

PEOPLE, SEATS = Index("people", default=3), Index("seats", default=3)
SIZE = Bound("size", default=3, least=1)
MODE = Switch("mode", "plain", "odd")


class Mood(IntEnum):
    """How a person feels."""

    CALM = 0
    BUSY = 1
    GONE = 2


@record
class Item:
    """Something kept in a sequence of records."""

    who: Maybe[PEOPLE]
    n: Int(0, SIZE)
    on: Bool
    seats: SetOf[SEATS]
    more: Seq[SEATS, 2]


@state
class World:
    """One of each."""

    items: Seq[Item, 2]
    queue: Seq[PEOPLE, PEOPLE]
    nums: Seq[Int(-2, 4), SIZE]
    groups: Seq[SetOf[SEATS], 2]
    at: Array[PEOPLE, Int(0, SIZE)]
    mood: Array[PEOPLE, Mood]
    rows: Array[PEOPLE, Seq[SEATS, 2]]
    held: Array[SEATS, Maybe[PEOPLE]]
    busy: SetOf[SEATS]
    perhaps: Maybe[Int(0, 3)]
    flag: Bool
    none: Seq[SEATS, MODE.choose({"plain": 0, "odd": 1})]


@init
def start(s, n: Int(0, 1)):
    """Somebody waits."""
    s.nums.append(n)
    for p in range(PEOPLE):
        s.queue.append(p)


def find(s, n):
    """The first place of a number; the length if it is nowhere."""
    for i in range(len(s.nums)):
        if s.nums[i] == n:
            return i
    return len(s.nums)


def settle(s, p):
    """Leaves early in three ways, and requires something on the way."""
    if s.mood[p] == Mood.GONE:
        return 0
    for b in s.rows[p]:
        if s.held[b] is None:
            s.held[b] = p
            continue
        if s.held[b] == p:
            return 2
        require(b not in s.busy)
        if s.flag:
            break
        s.mood[p] = Mood.BUSY
    s.at[p] += 1
    return 1


def bump(row, b):
    """A helper on a place."""
    row.append(b)


@action
def put(s, n: Int(-3, 5)):
    """Out of range or over the end."""
    s.nums.append(n)


@action
def put_first(s, n: Int(-1, 2), i: Int(-1, 4)):
    """In front or in the middle."""
    if i < 0:
        s.nums.push_front(n)
    else:
        s.nums.insert(i, n)


@action
def take_out(s, p: PEOPLE, how: Int(0, 5)):
    """Every way of removing; each may find nothing."""
    x = 0
    if how == 0:
        x = s.nums.pop_front()
    elif how == 1:
        x = s.nums.pop_back()
    elif how == 2:
        s.nums.drop_front()
    elif how == 3:
        s.nums.drop_back()
    elif how == 4:
        s.nums.remove(s.at[p] - 1)
    else:
        s.nums.remove_at(s.at[p])
    s.at[p] = x + 1


@action
def index(s, p: PEOPLE, i: Int(-1, 3)):
    """Indices that may lie outside, by a known and an unknown number."""
    s.nums[i] += 1
    s.nums[s.at[p]] -= s.nums[i]


@action
def walk(s, p: PEOPLE):
    """A loop whose ends are both unknown, with locals that survive it."""
    last = -1
    total = 0
    for k in range(s.at[p] // 2, len(s.nums)):
        if s.nums[k] < 0:
            continue
        if s.nums[k] == 3:
            break
        last = k
        total += s.nums[k]
    require(last >= 0 or s.flag)
    s.at[p] = max(0, min(SIZE, total % 4))
    s.nums[last] = abs(s.nums[last]) - 1


@action
def find_it(s, p: PEOPLE, n: Int(0, 2)):
    """A helper that returns from within a loop; its result is an index."""
    i = find(s, n)
    require(i < len(s.nums) or s.mood[p] != Mood.CALM)
    s.at[p] = i
    s.nums[i] = s.at[p]


@action
def settle_all(s):
    """Calls in a loop, with requirements in the middle of what is written."""
    done = 0
    for p in s.queue:
        done += settle(s, p)
    s.perhaps = done if done < 4 else None
    require(done != 2)


@action
def give(s, b: SEATS):
    """From the queue, whoever that is, into a row."""
    p = s.queue.pop_front()
    s.rows[p].append(b)
    bump(s.rows[p], b)
    s.held[b] = p
    if s.mood[p] == Mood.BUSY:
        s.rows[p].remove(b)
        s.queue.append(p)


@action
def give_back(s, p: PEOPLE):
    """Backwards through a row, into a set and a sequence."""
    for b in reversed(s.rows[p]):
        q = s.held[b]
        if q is None:
            break
        s.nums.push_front(s.at[q])
        s.busy.add(b)
    s.rows[s.queue[0]].clear()


@action
def copy(s, p: PEOPLE, q: PEOPLE):
    """Copies of places, also by an unknown member."""
    s.rows[p] = s.rows[q]
    if s.held[0] is not None:
        r = s.held[0]
        s.rows[q] = s.rows[r]
    require(s.rows[p] == s.rows[q])
    s.flag = s.rows[p] != s.rows[p]


@action
def grow(s, p: PEOPLE):
    """A new record, and places by an unknown number."""
    item = s.items.grow()
    item.who = p
    item.n = s.at[p]
    item.on = not s.flag
    item.seats = {b for b in s.rows[p] if b in s.busy} | s.busy
    other = s.items[s.at[p] - 1]
    other.n += 1
    other.more.append(s.rows[p][0])
    other.seats.discard(s.rows[p][0])


@action
def move(s):
    """Records as wholes."""
    s.items.append(s.items[0])
    s.items[0] = s.items[len(s.items) - 1]
    s.items.push_front(s.items[0])
    s.items.drop_back()


@action
def sets(s, who: SetOf[PEOPLE], add: Bool):
    """Everything that sets can do."""
    s.groups.append({b for p in range(PEOPLE) if p in who for b in s.rows[p]})
    for b in s.busy - s.groups[0]:
        s.held[b] = None
    if s.busy <= s.groups[0] and s.busy != s.groups[0]:
        s.busy |= s.groups[0]
    elif add:
        s.busy = s.groups[0] & s.busy
    else:
        s.busy -= s.groups[0] | set()
    require(len(s.busy) != 1)


@action
def nothing(s, p: PEOPLE):
    """None where a number is needed, in several disguises."""
    x = s.perhaps if s.flag else 1
    if s.mood[p] == Mood.CALM:
        s.at[p] = s.perhaps
    elif s.mood[p] == Mood.BUSY:
        s.at[p] = x + 1
    elif s.perhaps == -1 or s.perhaps is None:
        s.perhaps = s.at[p] - 1
    elif s.perhaps < 2:
        s.perhaps = None
    else:
        s.held[0] = None
        s.at[p] = min(s.perhaps, 2)


@action
def short(s, p: PEOPLE):
    """Short circuits that keep from harm, and one that does not."""
    require(len(s.nums) > 0 and s.nums[0] >= 0 and (s.flag or s.nums[len(s.nums) - 1] > 0))
    if len(s.nums) > 2 or s.nums[1] == 1 or (s.nums.pop_back() > 0 and s.nums.pop_front() >= 0):
        s.at[p] = 1 if len(s.nums) > 2 else s.nums[2 - len(s.nums)]


@action
def container(s, p: PEOPLE):
    """A container of its own, filled by a loop that may break."""
    mine = fresh(Seq[SEATS, 2])
    for b in s.rows[p]:
        if b in mine:
            break
        mine.append(b)
        mine.append(b)
    for b in mine:
        if s.held[b] == p:
            s.held[b] = None
    s.rows[p] = mine


@action
def some_seat(s, p: PEOPLE):
    """Something that is known to be outside, on one path only."""
    if MODE == "odd" and s.flag:
        s.none.append(0)
    if s.mood[p] != Mood.CALM:
        s.mood[p] = s.none[0]
    s.at[p] = SIZE // 2 + s.at[p] - (s.at[p] + 3) // 2


@always
def loops(s):
    """Quantifiers with conditions that protect what is behind them."""
    return all(s.held[b] != p for p in range(PEOPLE) if s.mood[p] == Mood.GONE for b in s.rows[p]) or any(
        s.nums[i] < s.nums[i + 1] <= 3 for i in range(len(s.nums) - 1)
    )


@always
def sums(s):
    """Sums, comparisons and implications; the sum may use None as a number."""
    total = sum(x for x in s.nums) + sum(1 for p in range(PEOPLE) if p in s.queue)
    return implies(total > 2, s.flag) or (s.flag and s.perhaps + total > 0) or 1 in s.nums


@always
def risky(s):
    """The first false one protects the rest."""
    return all(s.nums[s.at[p]] >= 0 for p in s.queue) and all(len(s.groups[k]) > 0 for k in range(len(s.items)))


@always
def members(s):
    """Loops over sets, and members looked for in sets."""
    return not any(b in s.groups[0] and s.held[b] in s.queue for b in s.busy)


@step
def keeps(s, t):
    """A property of a transition."""
    return s.nums == t.nums or s.busy <= t.busy or t.perhaps == s.perhaps


def quiet(s):
    """Whether the queue is empty or starts with nobody gone."""
    return len(s.queue) == 0 or s.mood[s.queue[0]] != Mood.GONE


@quiescent(quiet)
def flagged(s):
    """Something about quiet states."""
    for p in s.queue:
        if s.mood[p] == Mood.BUSY and s.at[p] > 1:
            return s.flag
    return True
