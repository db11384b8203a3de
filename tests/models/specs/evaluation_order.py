"""What is read before what, where reading and changing stand in one line: as in Python, from left to right."""

from fencepost.spec.lang import Array, Bool, Index, Int, Seq, SetOf, action, always, init, require, state

BLOCKS = Index("blocks", default=3)


@state
class World:
    at: Int(0, 2)
    n: Int(-20, 20)
    cells: Array[3, Int(-20, 20)]
    rows: Array[3, Seq[BLOCKS, BLOCKS]]
    spare: Seq[BLOCKS, BLOCKS]
    digits: Seq[Int(0, 3), 4]
    seen: SetOf[BLOCKS]
    done: Bool


@init
def start(s):
    """Three rows, digits from 0."""
    for b in range(BLOCKS):
        s.rows[0].append(b)
        s.rows[1].push_front(b)
        s.spare.append(b)
    for d in range(4):
        s.digits.append(d)


def move(s):
    """Move the position, and return where it was."""
    before = s.at
    s.at = (s.at + 1) % 3
    return before


def note(s, row, digit, at):
    """Use places and values that later arguments changed after they were named."""
    if len(row) > 0:
        s.seen.add(row[0])
    s.n = s.n + digit * 4 + at


def nothing(s):
    """A number, and no effect."""
    return s.n * 0


@action
def element_then_move(s):
    """The target of an augmented assignment is found before its right side moves the position."""
    require(not s.done)
    s.cells[s.at] += move(s) + s.at
    s.done = True


@action
def value_then_target(s):
    """The right side moves the position before the target is found."""
    require(not s.done)
    s.cells[s.at] = 5 + move(s)
    s.done = True


@action
def sum_of_two(s):
    """Both ends of a sum are taken out, the left one first; what is read on the left stays as it was."""
    require(not s.done)
    s.n = s.digits.pop_back() * 3 - s.digits.pop_front() - s.digits[0] + (s.at - move(s) * 2 + s.at)
    s.done = True


@action
def arguments(s):
    """A place is named, then something is taken out, then the position moves."""
    require(not s.done)
    note(s, s.rows[s.at], s.digits.pop_back(), move(s))
    s.done = True


@action
def loop_over_moving_row(s):
    """A loop stays in the row it began in while the position moves."""
    require(not s.done)
    for b in s.rows[s.at]:
        s.cells[s.at] += len(s.rows[s.at]) + len(s.seen)
        s.seen.add(b)
        s.at = (s.at + 1) % 3
    s.done = True


@action
def loop_with_moving_local(s, k: Int(0, 1)):
    """The same with a local as the position, and with a range whose end is taken out."""
    require(not s.done)
    here = k
    for b in s.rows[here]:
        here = (here + 1) % 2
        s.cells[here] += 1
        if b in s.seen:
            break
    for d in range(s.digits.pop_front(), s.digits.pop_back()):
        s.cells[d] -= here
    s.done = True


@action
def sets(s):
    """What is taken out within a set is taken out once, after what stands to its left."""
    require(not s.done and len(s.rows[s.at]) > 0)
    s.seen = (s.seen | {s.spare.pop_front()}) - {s.spare.pop_front()} | ({s.spare.pop_back()} & set(s.seen))
    s.seen |= {s.rows[s.at].pop_back()}
    s.done = True


@action
def append_what_is_taken(s):
    """A row is chosen before what is put in it is taken out of another."""
    require(not s.done and len(s.rows[2]) == 0 and s.at == 0 and len(s.rows[0]) > 0)
    s.rows[s.at + 2].append(s.rows[move(s)].pop_back())
    s.rows[2].insert(move(s) - 1, s.spare.pop_back())
    s.done = True


@action
def skipped(s):
    """What a short circuit or a choice leaves out does not happen."""
    require(not s.done)
    s.n = s.digits.pop_back() if s.at == 0 and move(s) == 1 else s.digits.pop_front() - 1
    if s.at == 1 or move(s) == 2 or move(s) == 0:
        s.n += s.at
    s.n = max(s.n, s.digits.pop_front()) + min(s.digits.pop_front(), s.n, -s.at)
    s.done = True


@action
def again(s):
    """On from there, with whatever is left."""
    require(s.done and len(s.digits) == 4 and len(s.spare) == 3 and abs(s.n) < 4 and sum(x for x in s.cells) < 14)
    s.done = nothing(s) != 0


@always
def positions(s):
    """The position stays within its range."""
    return 0 <= s.at <= 2
