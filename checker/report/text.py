"""A result as text: verdict with its bounds, the counterexample step by step, coverage, and how to see it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..model import DEADLOCK, SPEC_ERROR, Model
from ..result import PropertyResult, Result, Status, Verdict
from .show import grouped
from .steps import tell
from .terminal import columns
from .words import count, number

if TYPE_CHECKING:
    from rich.console import Console

    from ...traces.trace import Trace

STYLES = {Verdict.HOLDS: "bold green", Verdict.VIOLATED: "bold red", Verdict.UNDETERMINED: "bold yellow"}
LISTED = (
    (Status.VIOLATED, "violated"),
    (Status.LATENT, "LATENT"),
    (Status.VACUOUS, "vacuous"),
    (Status.NOT_REACHED, "not reached"),
    (Status.HOLDS, "hold"),
    (Status.REACHED, "reached"),
    (Status.UNDETERMINED, "undetermined"),
    (Status.NOT_APPLICABLE, "not applicable"),
)


@dataclass(frozen=True)
class Shown:
    """What a report is made of besides the result: `origin` is where the model came from, `bounds` the bounds in words,
    `replay` maps the property of each shown trace to the command that replays it; `subject` is the implementation whose
    states these are, where that is not the spec itself."""

    model: Model
    result: Result
    origin: str
    bounds: str
    replay: dict[str, str] = field(default_factory=dict[str, str])
    verbose: bool = False
    full_states: bool = False
    subject: str = ""


def print_report(out: Console, shown: Shown) -> None:
    """Print the whole report."""
    verdict(out, shown)
    for prop in shown.result.violations:
        if prop.trace is not None:
            violation(out, shown.model, prop, full=shown.full_states)
    coverage(out, shown)
    commands(out, shown.replay)


def commands(out: Console, replay: Mapping[str, str]) -> None:
    """The commands that replay traces, by property."""
    for name, command in replay.items():
        out.print(f"replay {name}: {command}" if len(replay) > 1 else f"replay: {command}", soft_wrap=True)


def verdict(out: Console, shown: Shown) -> None:
    """The verdict line; it never says HOLDS without the bounds it holds at."""
    from rich.text import Text

    result = shown.result
    word, style, rest = result.verdict.value, STYLES[result.verdict], ""
    subject = f" for {shown.subject}" if shown.subject else ""
    if any(p.name == SPEC_ERROR for p in result.violations):
        word, style, rest = "SPEC ERROR", "bold red", f": {shown.origin} leaves its own bounds at {shown.bounds}"
    elif result.verdict is Verdict.HOLDS:
        rest = f"{subject} at {shown.bounds}: {_held(result)}; nothing is said of other bounds"
    elif result.verdict is Verdict.VIOLATED:
        rest = f"{subject}: {', '.join(p.name for p in result.violations)} at {shown.bounds}"
    else:
        rest = f"{subject}: {result.reason}; at {shown.bounds}"
    out.print(Text.assemble((word, style), rest))
    if result.verdict is Verdict.VIOLATED and result.cut:
        out.print(f"The search did not see every state: {result.cut}.")


def _held(result: Result) -> str:
    held = sum(p.status is Status.HOLDS for p in result.properties)
    reached = sum(p.status is Status.REACHED for p in result.properties)
    parts = [f"{count(held, 'property')} {'holds' if held == 1 else 'hold'} in every reachable state"] if held else []
    parts += [f"{count(reached, 'witness')} {'is' if reached == 1 else 'are'} reached"] if reached else []
    return ", ".join(parts) or "every reachable state was seen"


def violation(out: Console, model: Model, prop: PropertyResult, *, full: bool = False, end: str = "") -> None:
    """One violated property: its words, and its shortest trace as a table; `end` tells the last transition, if given."""
    assert prop.trace is not None
    out.print()
    if prop.name == SPEC_ERROR:
        out.print(f"The spec leaves its own bounds after {count(len(prop.trace), 'transition')}:", style="bold")
        out.print(f"  {prop.reason}")
        trace(out, model, prop.trace, full=full)
        return
    if prop.name == DEADLOCK:
        out.print(
            f"A deadlock is reached after {count(len(prop.trace), 'transition')}; no shorter trace has one.",
            style="bold",
        )
        trace(out, model, prop.trace, full=full)
        return
    if prop.trace.loop is None:
        how = f"after {count(len(prop.trace), 'transition')}; no shorter trace violates it"
    else:
        how = f"by a path that goes on for ever, fairly, from state {prop.trace.loop} on"
    out.print(f"{prop.name} is violated {how}.", style="bold")
    out.print(f"  {' '.join(prop.statement.split())}")
    if prop.reason:
        out.print(f"  {prop.reason}")
    trace(out, model, prop.trace, full=full, end=end)


def trace(out: Console, model: Model, shown: Trace, *, full: bool = False, end: str = "", begin: str = "") -> None:
    """A trace as a table: each transition with one plain sentence and what it changed (`full`: also whole states).

    `begin` says what its first state is, if not the initial one; `end` stands in place of the sentence of the last
    transition, where the spec cannot tell it.
    """
    table = columns("#", "action", "what happens", "what changed")
    table.columns[0].justify = "right"
    table.add_row("0", "", begin or f"the initial state{_chosen(model, shown)}", "")
    for told in tell(model.bound, shown):
        sentences = (end,) if end and told.number == len(shown) else told.sentences
        table.add_row(str(told.number), told.call, "\n".join(sentences), "\n".join(grouped(told.changes)))
    out.print()
    out.print(table)
    if shown.loop is not None:
        out.print(_for_ever(shown.loop, len(shown)), style="bold")
    if full:
        _states(out, model, shown)
    out.print()


def _for_ever(loop: int, end: int) -> str:
    if loop == end:
        return f"then nothing more happens: state {end} for ever (no action declared fair can change it)"
    again = f"{loop + 1} to {end}" if end > loop + 1 else f"{end}"
    return f"then back to state {loop}: {again} again and again, for ever"


def _chosen(model: Model, shown: Trace) -> str:
    """Which initial state it is, where there are several."""
    if shown.start is None or not shown.start[1]:
        return ""
    from .steps import call

    rule = next(r for r in model.bound.inits if r.name == shown.start[0])
    return f" {call(model.bound, rule, shown.start[1])}"


def _states(out: Console, model: Model, shown: Trace) -> None:
    from .show import Shower

    shower = Shower(model.bound)
    for index, state in enumerate(shown.states):
        out.print()
        out.print(f"state {index}", style="bold")
        table = columns("", "", "")
        for name, value in shower.state(state):
            table.add_row("", name, value)
        out.print(table)


def coverage(out: Console, shown: Shown) -> None:
    """What was searched: figures, every property with what is known of it, how often each action was taken."""
    result, figures = shown.result, shown.result.figures
    states = "states up to symmetry" if figures.symmetry else "states"
    out.print(
        f"{number(figures.distinct)} distinct {states}, {number(figures.generated)} transitions, "
        f"depth {figures.depth}{_deadlocks(result)}"
    )
    table = columns("", "", "")
    for status, word in LISTED:
        found = [p for p in result.properties if p.status is status]
        if found:
            table.add_row("", word, _listing(found, status))
    table.add_row("", "actions", ", ".join(f"{a.name} {number(a.taken)}" for a in figures.actions))
    out.print(table)
    if shown.verbose:
        _verbose(out, shown)


def _deadlocks(result: Result) -> str:
    """How many deadlocks there are, where that is not the violation itself."""
    if result.figures.deadlocks == 0 or any(p.name == DEADLOCK for p in result.violations):
        return ""
    return f", {count(result.figures.deadlocks, 'deadlock')}"


def _listing(found: Sequence[PropertyResult], status: Status) -> str:
    if status is Status.REACHED:
        return ", ".join(f"{p.name} (depth {p.depth})" for p in found)
    if status is Status.LATENT:
        return "; ".join(f"{p.name} (from depth {p.depth}, no violation by itself): {p.statement}" for p in found)
    if status is Status.VACUOUS:
        return ", ".join(f"{p.name} ({p.reason})" for p in found)
    return ", ".join(p.name for p in found)


def _verbose(out: Console, shown: Shown) -> None:
    figures = shown.result.figures
    out.print()
    table = columns("action", "enabled in", "taken")
    for column in table.columns[1:]:
        column.justify = "right"
    for action in figures.actions:
        table.add_row(action.name, number(action.enabled), number(action.taken))
    out.print(table)
    out.print()
    table = columns("property", "kind", "result", "statement")
    for prop in shown.result.properties:
        depth = "" if prop.depth is None else f" at depth {prop.depth}"
        table.add_row(prop.name, prop.kind, prop.status.value + depth, " ".join(prop.statement.split()))
    out.print(table)
    least, mean, greatest = figures.degrees
    out.print()
    out.print(f"transitions out of a state: {least} to {greatest}, {mean:.2f} on average")
    out.print(f"new states at each depth: {', '.join(map(number, figures.per_depth))}")
