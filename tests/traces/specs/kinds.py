"""Every kind of value, parameter and property, for the tests of traces."""

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
    action,
    always,
    eventually,
    init,
    leads_to,
    quiescent,
    reachable,
    record,
    require,
    state,
    step,
)

REQUESTS, BLOCKS = Index("requests", default=2, letters=True), Index("blocks", default=3)
LIMIT = Bound("limit", default=3)


class Mood(IntEnum):
    """Two moods."""

    CALM = 0
    BUSY = 1


@record
class Job:
    """Who works on what."""

    who: Maybe[REQUESTS]
    blocks: SetOf[BLOCKS]
    counts: Array[2, Int(-1, 1)]


@state
class Kinds:
    """One field of each kind."""

    mood: Mood
    last: Maybe[Mood]
    on: Bool
    low: Int(-2, LIMIT)
    owner: Array[BLOCKS, Maybe[REQUESTS]]
    queue: Seq[BLOCKS, BLOCKS]
    jobs: Seq[Job, 2]


@init
def start(s, n: Int(0, 1)):
    s.low = n


@action
def begin(s, r: REQUESTS, picked: SetOf[BLOCKS], loud: Bool):
    """Request {r} begins on {picked} ({loud} loud)."""
    require(len(s.jobs) < 2 and len(picked) > 0)
    job = s.jobs.grow()
    job.who = r
    job.blocks = picked
    s.on = loud
    s.last = s.mood
    s.mood = Mood.BUSY


@action
def end(s):
    """The oldest job ends."""
    require(len(s.jobs) > 0)
    s.jobs.drop_front()
    s.mood = Mood.CALM


@action
def count(s, by: Int(-1, 1)):
    """The counter moves by {by}."""
    require(s.mood == Mood.BUSY)
    s.low += by


@always
def one_job(s):
    """There is at most one job."""
    return len(s.jobs) <= 1


@step
def never_quieter(s, t):
    """It does not become quiet while a job runs."""
    return t.on or not s.on or len(t.jobs) == 0


def idle(s):
    return len(s.jobs) == 0


def noisy(s):
    return s.on


@quiescent(idle)
def idle_is_calm(s):
    """Without jobs, the mood is calm and nobody was last."""
    return s.last is None


@reachable
def a_job(s):
    """There is a job."""
    return len(s.jobs) == 1


@eventually
def busy_in_the_end(s):
    """A job begins some time."""
    return s.mood == Mood.BUSY


@leads_to(noisy)
def quiet_again(s):
    """After noise there is quiet."""
    return not s.on
