"""A lending desk: readers ask for copies of a book, wait in line, and give them back; switches plant differences."""

from enum import IntEnum

from fencepost.spec.lang import Array, Bool, Bound, Index, Int, Maybe, Seq, Switch, action, init, observed, require, state

READERS = Index("readers", default=2, letters=True)
COPIES = Index("copies", default=2)
LOANS = Bound("loans", default=3, least=1)
ORDER = Switch("order", "oldest", "newest")
RETURN = Switch("return", "always", "not-when-all-lent")
CLOSING = Switch("closing", "empty", "any")
STORM = Switch("storm", "off", "on")


class At(IntEnum):
    AWAY = 0
    IN_LINE = 1
    READING = 2


@state
class Desk:
    at: Array[READERS, At]
    copy: Array[READERS, Maybe[COPIES]]
    line: Seq[READERS, READERS]
    shelf: Seq[COPIES, COPIES]
    loans: Int(0, LOANS)
    open: Bool
    wet: Bool


@init
def fill(s):
    """All copies are on the shelf."""
    for c in range(COPIES):
        s.shelf.append(c)
    s.open = True


@action
def ask(s, r: READERS):
    """A reader joins the line."""
    require(s.open and not s.wet and s.at[r] == At.AWAY)
    s.at[r] = At.IN_LINE
    s.line.append(r)


@action
def lend(s):
    """The first in line gets the copy that lay on the shelf longest."""
    require(s.open and not s.wet and len(s.line) > 0 and len(s.shelf) > 0 and s.loans < LOANS)
    r = s.line.pop_front()
    c = s.shelf.pop_front() if ORDER == "oldest" else s.shelf.pop_back()
    s.at[r] = At.READING
    s.copy[r] = c
    s.loans += 1


@action
def give_back(s, r: READERS):
    """A reader brings a copy back."""
    require(not s.wet and s.at[r] == At.READING)
    require(RETURN == "always" or len(s.shelf) > 0)
    s.shelf.append(s.copy[r])
    s.at[r] = At.AWAY
    s.copy[r] = None


@action
def shut(s, again: Bool):
    """The desk shuts when nobody waits, or opens again."""
    require(not s.wet and s.open != again)
    require(again or len(s.line) == 0 or CLOSING == "any")
    s.open = again


@action(when=lambda: STORM == "on")
def flood(s):
    """Water comes in when all has been lent; the desk is out of use."""
    require(not s.wet and s.loans == LOANS and len(s.shelf) == 0)
    s.wet = True


@action(when=lambda: STORM == "on")
def rain(s):
    """It rains on, whatever the desk does."""
    require(s.loans == LOANS)


@observed
def seen(s, values):
    """A wet desk shows that only; else the readers by letter, the line, the shelf, and whether the desk is open."""
    if s["wet"]:
        return {"wet": True}
    readers = {chr(65 + r): {"at": at, "copy": s["copy"][r]} for r, at in enumerate(s["at"])}
    return {"readers": readers, "line": s["line"], "shelf": s["shelf"], "left": values["loans"] - s["loans"], "open": s["open"]}
