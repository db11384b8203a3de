"""A bounded queue that may lose any message: all sequences up to its capacity, sum of m^k; losing commutes."""

from fencepost.spec.lang import Bound, Index, Maybe, Seq, action, always, implies, reachable, require, state

MESSAGES = Index("messages", default=2)
CAPACITY = Bound("capacity", default=3, least=1)


@state
class Channel:
    queue: Seq[MESSAGES, CAPACITY]
    last: Maybe[MESSAGES]


@action
def send(s, m: MESSAGES):
    """A message enters at the back."""
    require(len(s.queue) < CAPACITY)
    s.queue.append(m)


@action
def lose(s):
    """The message in front is lost."""
    require(len(s.queue) > 0)
    s.queue.drop_front()


@action
def receive(s):
    """The message in front arrives."""
    require(len(s.queue) > 0)
    s.last = s.queue.pop_front()


@always
def fits(s):
    """There are never more messages than the queue holds."""
    return len(s.queue) <= CAPACITY


@always
def what_arrived_was_sent(s):
    """Where the last message is known, it is one that exists."""
    return implies(s.last is not None, any(m == s.last for m in range(MESSAGES)))


@reachable
def full_of_one_message(s):
    """The queue is full of the message that came last."""
    return len(s.queue) == CAPACITY and all(m == s.last for m in s.queue)
