"""A clerk takes letters from a tray, some at a time: a loop with an invariant, come to twice, in a branch, and left early."""

from fencepost.spec.lang import Bool, Bound, Int, action, always, loop_invariant, reachable, require, state, step

LETTERS = Bound("letters", default=3, least=1)
AT_ONCE = Bound("at-once", default=2, least=1)


@state
class Desk:
    tray: Int(0, LETTERS)
    hand: Int(0, LETTERS)
    sent: Int(0, LETTERS)
    urgent: Bool


@action
def refill(s, letters: Int(1, LETTERS)):
    """Letters come in once the last ones are gone."""
    require(s.tray == 0 and s.hand == 0)
    s.tray = letters
    s.sent = 0


@action
def hurry(s):
    """The next round is to be a long one."""
    require(not s.urgent)
    s.urgent = True


@action
def work(s):
    """The clerk takes a few letters, more of them where it is urgent, and sends what was taken."""
    taken = take(s, 1)
    if s.urgent:
        s.urgent = False
        if taken == 0:
            s.sent = 0
        else:
            taken += take(s, AT_ONCE)
    require(taken > 0)
    send(s)


def take(s, most):
    """Take letters from the tray; returns how many."""
    taken = 0
    for _ in range(LETTERS):
        if taken == most or s.tray == 0:
            break
        s.tray -= 1
        s.hand += 1
        taken += 1
    return taken


def send(s):
    """Send what is in the hand."""
    for _ in range(LETTERS):
        if s.hand > 0:
            s.hand -= 1
            s.sent += 1


@loop_invariant(take)
def taken_is_in_the_hand(s, most: Int(1, LETTERS + AT_ONCE), taken: Int(0, LETTERS)):
    """What was taken is in the hand, and no more than was wanted."""
    return taken <= most and taken <= s.hand


@loop_invariant(take)
def tray_only_gives(s, t, most: Int(1, LETTERS + AT_ONCE), taken: Int(0, LETTERS)):
    """Since the work began, letters went from the tray to the hand."""
    return t.tray <= s.tray and t.hand == s.hand + s.tray - t.tray and t.sent == s.sent and taken <= s.tray - t.tray


@always
def letters_fit(s):
    """There are never more letters than there is room for."""
    return s.tray + s.hand + s.sent <= LETTERS


@step
def nothing_comes_back(s, t):
    """Where letters are sent, none comes into the tray."""
    return t.sent <= s.sent or t.tray <= s.tray


@reachable
def all_sent(s):
    """A day's work gets done."""
    return s.sent == LETTERS
