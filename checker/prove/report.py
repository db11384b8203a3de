"""A proof as text: the verdict with what it is of, what each action was asked, the gaps, and counterexamples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...traces.trace import Step, Trace
from ..model import SPEC_ERROR, Model
from ..report import text
from ..report.show import Shower
from ..report.steps import call
from ..report.terminal import columns
from ..report.words import count, seconds
from ..result import PropertyResult, Status, Verdict
from .asked import Answer, Unkept
from .bmc import Bounded, Depth
from .proof import Gap, Proof

if TYPE_CHECKING:
    from rich.console import Console

STYLES = text.STYLES


def verdict_of_proof(out: Console, proof: Proof, bounds: str, origin: str) -> None:
    """The verdict line of a proof; it never says PROVED without the bounds it is proved at."""
    from rich.text import Text

    word, rest = proof.verdict.value, ""
    if any(p.name == SPEC_ERROR for p in proof.violations):
        word, rest = "SPEC ERROR", f": {origin} leaves its own bounds at {bounds}"
    elif proof.verdict is Verdict.HOLDS:
        held = count(len(proof.proved), "property")
        rest = f" at {bounds}: {held} {'holds' if len(proof.proved) == 1 else 'hold'} after any number of transitions; "
        word, rest = "PROVED", rest + "nothing is said of other bounds"
    elif proof.verdict is Verdict.VIOLATED:
        rest = f": {', '.join(p.name for p in proof.violations)} at {bounds}"
    else:
        rest = f": {proof.reason}; at {bounds}"
    out.print(Text.assemble((word, STYLES[proof.verdict]), rest))


def action_line(name: str, answers: Sequence[Answer], spent: float) -> str:
    """What came out for one action."""
    kept = sum(answer.answer == "proved" for answer in answers)
    parts = max((answer.cases for answer in answers), default=0)
    split = f", in up to {parts} parts" if parts > 1 else ""
    others = [f"{word} {', '.join(a.fact for a in answers if a.answer == answer)}" for answer, word in OTHERS]
    told = "; ".join(one for one in others if not one.endswith(" "))
    return f"{name}: keeps {kept} of {count(len(answers), 'fact')} ({seconds(spent)}{split}){'; ' + told if told else ''}"


OTHERS = (("unkept", "may break"), ("unknown", "no answer in time for"))


def depth_line(found: Depth) -> str:
    """What came out for one length of path."""
    new = [*(f"violates {name}" for name in found.violated), *(f"reaches {name}" for name in found.reached)]
    told = f": {', '.join(new)}" if new else ": no violation"
    return f"depth {found.depth}{told} ({seconds(found.seconds)})"


def print_proof(
    out: Console, model: Model, proof: Proof, bounds: str, origin: str, replay: dict[str, str], *, verbose: bool
) -> None:
    """The whole report of a proof by induction; with `verbose`, what every property and lemma says."""
    verdict_of_proof(out, proof, bounds, origin)
    for prop in proof.violations:
        text.violation(out, model, prop)
    _listed(out, proof)
    if verbose:
        _statements(out, proof)
    if proof.unseen:
        out.print(f"The facts allow it, but no state explored shows: {', '.join(proof.unseen)}.")
    if proof.induced.cut is not None:
        return
    for gap in proof.gaps:
        if gap.name not in {p.name for p in proof.violations}:
            _gap(out, model, gap, proof)
    text.commands(out, replay)


def _listed(out: Console, proof: Proof) -> None:
    """Every property and lemma with what is known of it."""
    table = columns("", "", "")
    open_ = "not looked at" if proof.stopped else "not proved"
    for word, status in (("proved", Status.HOLDS), ("violated", Status.VIOLATED), (open_, Status.UNDETERMINED)):
        found = [_with_k(proof, p.name) for p in proof.properties if p.status is status]
        if found:
            table.add_row("", word, ", ".join(found))
    for word, status in (("lemmas proved", Status.HOLDS), ("lemmas not proved", Status.UNDETERMINED)):
        found = [_with_k(proof, p.name) for p in proof.lemmas if p.status is status]
        if found:
            table.add_row("", word, ", ".join(found))
    out.print(table)


def _with_k(proof: Proof, name: str) -> str:
    """A name, and how long the paths are that keep it, where one transition is not enough."""
    k = proof.induced.longer.get(name)
    return name if k is None else f"{name} (k = {k})"


def _statements(out: Console, proof: Proof) -> None:
    table = columns("name", "kind", "statement")
    for prop in (*proof.properties, *proof.lemmas):
        table.add_row(prop.name, prop.kind, " ".join(prop.statement.split()))
    out.print(table)


def _gap(out: Console, model: Model, gap: Gap, proof: Proof) -> None:
    """Why one property or lemma is not proved."""
    out.print()
    out.print(f"{gap.name}: {gap.words}.", style="bold")
    if gap.unkept is None:
        return
    out.print(_told(gap, proof))
    _unkept(out, model, gap.unkept)


def _told(gap: Gap, proof: Proof) -> str:
    """What is known of the state that a counterexample to induction begins with."""
    assert gap.unkept is not None
    if gap.unkept.inside:
        return (
            "All facts that were left hold in this state in the middle of the action, and a part of the action breaks this one."
        )
    known = "All facts that were left hold in this state, and the action breaks this one."
    seen = proof.reached
    if seen is None:
        return known
    states = count(len(seen.states), "state")
    if gap.reachable:
        return f"{known} The state is reachable: one of the first {states} explored is this one up to names."
    if seen.all:
        return f"{known} It is none of the {states} that are reachable here: a lemma that rules it out is missing."
    return f"{known} It is none of the first {states} explored, which are not all."


def _unkept(out: Console, model: Model, found: Unkept) -> None:
    """A counterexample to induction like a trace: the state before, and what the action changes."""
    rule = next(rule for rule in model.bound.actions if rule.name == found.action)
    shower, table = Shower(model.bound), columns("", "")
    for name, value in shower.state(found.before):
        table.add_row(name, value)
    for name, value in found.named:
        table.add_row(f"local {name}", str(value))
    if found.begins is not None:
        out.print(f"At {found.begins}, from where control comes to {found.ends or 'a step out of the bounds of the spec'}:")
    out.print(table)
    if found.begins is not None and found.after is not None:
        _changes(out, shower, found)
        return
    if found.after is None:
        out.print(f"then {call(model.bound, rule, found.arguments)}, which leaves the spec's own bounds")
        return
    step = Step(found.action, found.arguments, found.after)
    text.trace(out, model, Trace(model.spec.name, model.bound.values, "", None, found.before, (step,)), begin="the state above")


def _changes(out: Console, shower: Shower, found: Unkept) -> None:
    """What a piece of an action changes, and what had changed since the action began."""
    assert found.after is not None
    states = [found.before, found.after] if found.began is None else [found.began, found.before, found.after]
    table = columns("", *("at the start of the action", "before", "after")[-len(states) :])
    for rows in zip(*(shower.state(one) for one in states), strict=True):
        if len({value for _, value in rows}) > 1:
            table.add_row(rows[0][0], *(value for _, value in rows))
    out.print(table if table.row_count else "nothing of the state changes on the way")


def verdict_of_bounded(out: Console, found: Bounded, bounds: str, origin: str) -> None:
    """The verdict line of a bounded search, with the length of path that it is of."""
    from rich.text import Text

    word, rest = found.verdict.value, f": {found.reason}; at {bounds}"
    if any(p.name == SPEC_ERROR for p in found.violations):
        word, rest = "SPEC ERROR", f": {origin} leaves its own bounds at {bounds}"
    elif found.violations:
        rest = f": {', '.join(p.name for p in found.violations)} at {bounds}"
    out.print(Text.assemble((word, STYLES[found.verdict]), rest))


def print_bounded(out: Console, model: Model, found: Bounded, bounds: str, origin: str, replay: dict[str, str]) -> None:
    """The whole report of a bounded search."""
    verdict_of_bounded(out, found, bounds, origin)
    for prop in found.violations:
        text.violation(out, model, prop)
    table = columns("", "", "")
    for status, word in text.LISTED:
        names = [_with_depth(p) for p in found.properties if p.status is status]
        if names:
            table.add_row("", word, ", ".join(names))
    table.add_row("", "actions", ", ".join(f"{name} (from depth {at})" for name, at in found.possible.items()) or "none")
    if found.never:
        table.add_row("", "never enabled", f"{', '.join(found.never)} (within this depth)")
    if found.open:
        table.add_row("", "open", "; ".join(found.open))
    out.print(table)
    text.commands(out, replay)


def _with_depth(prop: PropertyResult) -> str:
    return prop.name if prop.depth is None else f"{prop.name} (depth {prop.depth})"
