"""A lockstep as text: the verdict with its bounds, what was compared, where the two sides differ, and hidden state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ...traces.short import shorten
from ..model import Model
from ..report import text
from ..report.steps import call, tell
from ..report.words import count, number
from ..result import Verdict
from .follow import RESET
from .result import Agreement, Difference, Hidden, Kind, Mismatch

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = 20
"""Differences that are shown; with --verbose all."""


@dataclass(frozen=True)
class Shown:
    """What the report of one comparison is made of: `bounds` in words, `again` the command that repeats it, `replay` the
    one that shows its trace in the spec, `different` the values that only the implementation has. One of `several` leaves it
    to the end of the report to say what HOLDS means."""

    model: Model
    agreement: Agreement
    bounds: str
    again: str
    replay: str = ""
    different: str = ""
    verbose: bool = False
    several: bool = False


def print_report(out: Console, shown: Shown) -> None:
    """Print everything that is known of one comparison."""
    verdict(out, shown)
    out.print(f"  {figures(shown.agreement)}")
    if shown.agreement.figures.after_stop:
        times = count(shown.agreement.figures.after_stop, "more transition")
        out.print(f"  {times} of the spec after an error that stops both sides: nothing more is shown there")
    if shown.verbose:
        taken = shown.agreement.figures.taken
        out.print(f"  actions: {', '.join(f'{name} {number(times)}' for name, times in taken.items())}")
    if shown.agreement.hidden is not None:
        hidden(out, shown.model, shown.agreement.hidden)
    if shown.agreement.mismatch is not None:
        mismatch(out, shown, shown.agreement.mismatch)


def verdict(out: Console, shown: Shown) -> None:
    """The verdict line; it never says HOLDS without the bounds it holds at."""
    from rich.text import Text

    agreement = shown.agreement
    where = f"{shown.bounds}{f'; the implementation at {shown.different}' if shown.different else ''}"
    if agreement.mismatch is not None:
        rest = f": {agreement.mismatch.kind.value}; at {where}"
    elif agreement.verdict is Verdict.HOLDS:
        rest = f" at {where}{'' if shown.several else f': {meaning(agreement)}'}"
    else:
        rest = f": {reason(agreement)}; at {where}"
    out.print(Text.assemble((agreement.verdict.value, text.STYLES[agreement.verdict]), rest))


def meaning(agreement: Agreement) -> str:
    """What HOLDS says of a comparison, and what it does not."""
    if agreement.sampled is None:
        return "every transition agrees; nothing is said of other bounds"
    return f"no difference in {count(agreement.sampled.runs, 'random run')}; nothing is said of others"


def reason(agreement: Agreement) -> str | None:
    """Why a comparison is UNDETERMINED; None if it is not."""
    if agreement.verdict is not Verdict.UNDETERMINED:
        return None
    more = "" if agreement.sampled is None else "; compare more events (--random N), or give bounds at which it can happen"
    return agreement.cut or f"vacuous: {'; '.join(agreement.vacuous)}{more}"


def figures(agreement: Agreement) -> str:
    """What was compared, in one line."""
    found, sampled = agreement.figures, agreement.sampled
    compared = f"{count(found.transitions, 'transition')} compared, {number(found.refusals)} refusals tried"
    if sampled is not None:
        return f"seed {sampled.seed}, {compared}, {count(found.spec_states, 'state')}, longest run {number(found.depth)}"
    states = f"{count(found.spec_states, 'spec state')}, {count(found.product_states, 'product state')}"
    return f"{states}, {compared}, depth {found.depth}"


def mismatch(out: Console, shown: Shown, found: Mismatch) -> None:
    """The first difference: the trace to it, both sides after its last event, and the commands that show it again."""
    model = shown.model
    out.print()
    if found.event == RESET:
        out.print("They differ in the initial state.", style="bold")
    else:
        out.print(f"{_where(model, found)}; {_how_short(shown.agreement)}.", style="bold")
        text.trace(out, model, found.trace, full=shown.verbose)
    if found.kind is Kind.NOT_QUIET:
        out.print(f"then {event(model, found)}, which the spec does not allow there")
    if found.message:
        out.print(f"the implementation says: {found.message}")
    if found.differences:
        if found.kind is Kind.NOT_QUIET or found.message or found.event == RESET:
            out.print()
        table(out, _headers(found), found.differences, everything=shown.verbose)
    out.print()
    out.print(f"again: {shown.again}", soft_wrap=True)
    if shown.replay:
        out.print(f"the spec's side alone: {shown.replay}", soft_wrap=True)


def event(model: Model, found: Mismatch) -> str:
    """The event in question with its arguments, such as `finish(r=A)`."""
    name, arguments = found.event
    rule = next(rule for rule in model.bound.actions if rule.name == name)
    return call(model.bound, rule, arguments)


def _headers(found: Mismatch) -> tuple[str, str, str]:
    """What the two sides are: what nobody but the implementation knows is compared with itself before the event."""
    hidden_only = all(one.path.partition(".")[0].partition("[")[0] == "digest" for one in found.differences)
    return ("path", "before", "after") if hidden_only else ("path", "spec", "implementation")


def _where(model: Model, found: Mismatch) -> str:
    taken = event(model, found)
    what = {
        Kind.OBSERVATION: "They differ",
        Kind.REFUSED: f"{taken} is refused",
        Kind.STOPPED: f"{taken} stops the implementation",
        Kind.NOT_QUIET: f"{taken} has an effect",
    }[found.kind]
    events = len(found.trace) + (found.kind is Kind.NOT_QUIET)  # its event is none of the spec's transitions
    return f"{what} after {count(events, 'event')}" if found.kind is Kind.OBSERVATION else f"{what} as event {events}"


def _how_short(agreement: Agreement) -> str:
    """What is known of the number of events."""
    sampled = agreement.sampled
    if sampled is None or sampled.events is None:
        return "no run of fewer events shows a difference"
    cut = f" ({sampled.shrinking})" if sampled.shrinking else ""
    return f"the run that found it had {count(sampled.events, 'event')} and was shortened{cut}"


def hidden(out: Console, model: Model, found: Hidden) -> None:
    """Spec states that the implementation tells apart: how many, one example, and why that matters."""
    out.print()
    out.print(f"Hidden state: {count(found.states, 'spec state')} with several states of the implementation", end="")
    out.print(f" (at most {number(found.most)} in one).")
    out.print("What it does next can depend on what the spec does not see: differences can appear beyond these bounds.")
    out.print("Two ways to one spec state, up to the names of members, and what the implementation keeps of them:")
    for name, trace in zip(("one", "other"), found.paths, strict=True):
        calls = ", ".join(told.call for told in tell(model.bound, trace))
        out.print(f"  {name:<5}  {calls or 'no event at all'}", soft_wrap=True)
        out.print(f"         {shorten(model.bound, trace)}", soft_wrap=True)
    out.print()
    table(out, ("digest", "one", "other"), found.differences, everything=False)


def table(out: Console, headers: tuple[str, str, str], found: Sequence[Difference], *, everything: bool) -> None:
    """Differences path by path, with the two sides beside each other."""
    from rich.table import Table

    made = Table(box=None, padding=(0, 2, 0, 2), pad_edge=False, header_style="bold")
    for header in headers:
        made.add_column(header, overflow="fold")
    shown = found if everything else found[:SHOWN]
    for one in shown:
        made.add_row(one.path, *_told_apart(one))
    out.print(made)
    if len(shown) < len(found):
        out.print(f"and {count(len(found) - len(shown), 'more place')} (all of them: --verbose)")


def _told_apart(one: Difference) -> tuple[str, str]:
    """What the two sides show, as people read it; as Python writes it where that looks the same (2 and '2')."""
    sides = value(one.spec), value(one.implementation)
    return sides if sides[0] != sides[1] else (repr(one.spec), repr(one.implementation))


def value(given: Any) -> str:
    """A value of an observation or digest in one line."""
    match given:
        case None:
            return "none"
        case bool():
            return "yes" if given else "no"
        case str():
            return given or "''"
        case bytes():
            return given.hex()
        case Mapping():
            pairs = cast("Mapping[Any, Any]", given).items()
            return "{" + ", ".join(f"{value(name)}: {value(inner)}" for name, inner in pairs) + "}"
        case list():
            return "[" + ", ".join(map(value, cast("list[Any]", given))) + "]"
        case tuple():
            return "(" + ", ".join(map(value, cast("tuple[Any, ...]", given))) + ")"
        case set() | frozenset():
            return "{" + ", ".join(sorted(map(value, cast("frozenset[Any]", given)))) + "}"
        case _:
            return str(given)
