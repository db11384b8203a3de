"""A desk of one clerk: papers are laid out for a step, and put back, with a fence or at once."""

from __future__ import annotations

from fencepost.spec.lang import Bool, Index, SetOf, Switch, action, refines, require, state

PAPERS = Index("papers", default=2)
FENCE = Switch("fence", "on", "off", doc="whether papers wait until the step that names them is processed")


@state
class Desk:
    """What lies out, what waits for the step, what the step names, and whether it was sent and has run."""

    out: SetOf[PAPERS]
    waiting: SetOf[PAPERS]
    named: SetOf[PAPERS]
    sent: Bool
    ran: Bool


@action
def lay_out(s, p: PAPERS):
    """A paper is taken from the shelf."""
    require(p not in s.out and p not in s.waiting)
    s.out.add(p)


@action
def send(s):
    """The step goes out; it names what lies there."""
    require(not s.sent)
    s.sent = True
    for p in s.out:
        s.named.add(p)


@action
def run(s):
    """The step is carried out."""
    require(s.sent and not s.ran)
    s.ran = True


@action
def process(s):
    """The result comes in; what has waited goes back to the shelf."""
    require(s.ran)
    s.sent = False
    s.ran = False
    s.named.clear()
    s.waiting.clear()


@action
def put_back(s, p: PAPERS):
    """A paper is no longer needed."""
    require(p in s.out)
    s.out.discard(p)
    if FENCE == "on" and p in s.named:
        s.waiting.add(p)


class AsFence:
    """The desk as an instance of the fence protocol."""

    note = "There is one request."
    start = (("issue", (0, frozenset())), ("execute", (0,)), ("process", (0,)))

    def __init__(self, papers: int) -> None:
        self.sizes = {"Request": 1, "Block": papers, "Step": 2}
        self.members = {"Block": "papers"}

    def state(self, s):
        sent = {(1,)} if s["sent"] else set()
        return {
            "issued": {(0,)} | sent,
            "executed": {(0,)} | ({(1,)} if s["ran"] else set()),
            "processed": {(0,)},
            "names": {(1, 0, p) for p in s["named"]},
            "owns": {(0, p) for p in s["out"]},
            "waits": {(p, k) for p in s["waiting"] for k in (0, 1)},
            "loading": set(),
            "sending": set(),
        }

    def steps(self, before, after, action, arguments):
        if action == "lay_out":
            return [("allocate", (0, arguments["p"]))]
        if action == "send":
            return [("issue", (1, frozenset((0, p) for p in before["out"])))]
        if action == "run":
            return [("execute", (1,))]
        if action == "process":
            return [("process", (1,)), *(("drain", (p, 1)) for p in sorted(before["waiting"]))]
        p = arguments["p"]
        return [("park", (0, p, 1)) if p in after["waiting"] else ("free", (0, p))]


@refines("fence")
def as_fence(values):
    """The mapping at these bounds."""
    return AsFence(int(values["papers"]))
