"""Two-phase commit with resource managers (after Gray and Lamport, "Consensus on Transaction Commit"): 288 states for 3."""

from enum import IntEnum

from fencepost.spec.lang import Array, Bool, Index, SetOf, action, always, reachable, require, state

MANAGERS = Index("managers", default=3)


class Manager(IntEnum):
    WORKING = 0
    PREPARED = 1
    COMMITTED = 2
    ABORTED = 3


class Decision(IntEnum):
    OPEN = 0
    COMMITTED = 1
    ABORTED = 2


@state
class Commit:
    manager: Array[MANAGERS, Manager]
    decision: Decision
    heard: SetOf[MANAGERS]
    sent: SetOf[MANAGERS]
    commit_sent: Bool
    abort_sent: Bool


@action
def hear_prepared(s, m: MANAGERS):
    """The transaction manager hears that a resource manager is prepared."""
    require(s.decision == Decision.OPEN and m in s.sent)
    s.heard.add(m)


@action
def decide_commit(s):
    """All are prepared: commit."""
    require(s.decision == Decision.OPEN and len(s.heard) == MANAGERS)
    s.decision = Decision.COMMITTED
    s.commit_sent = True


@action
def decide_abort(s):
    """The transaction manager aborts on its own."""
    require(s.decision == Decision.OPEN)
    s.decision = Decision.ABORTED
    s.abort_sent = True


@action
def prepare(s, m: MANAGERS):
    """A resource manager is prepared, and says so."""
    require(s.manager[m] == Manager.WORKING)
    s.manager[m] = Manager.PREPARED
    s.sent.add(m)


@action
def choose_abort(s, m: MANAGERS):
    """A resource manager aborts on its own."""
    require(s.manager[m] == Manager.WORKING)
    s.manager[m] = Manager.ABORTED


@action
def hear_commit(s, m: MANAGERS):
    """A resource manager is told to commit."""
    require(s.commit_sent)
    s.manager[m] = Manager.COMMITTED


@action
def hear_abort(s, m: MANAGERS):
    """A resource manager is told to abort."""
    require(s.abort_sent)
    s.manager[m] = Manager.ABORTED


@always
def consistent(s):
    """No two resource managers disagree."""
    return not (
        any(s.manager[m] == Manager.ABORTED for m in range(MANAGERS))
        and any(s.manager[m] == Manager.COMMITTED for m in range(MANAGERS))
    )


@reachable
def all_committed(s):
    """Every resource manager has committed."""
    return all(s.manager[m] == Manager.COMMITTED for m in range(MANAGERS))
