"""The search of an implementation as text: the report of `check`, and what the spec says of the same events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..report import text
from ..report.steps import call
from ..report.words import count, number
from .report import table
from .search import Ended, Searched, Shown
from .transitions import Kind

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Subject:
    """An implementation under the name that it was asked for by, and what came of searching it."""

    name: str
    searched: Searched


def print_report(out: Console, shown: text.Shown, searched: Searched) -> None:
    """Print the whole report."""
    text.verdict(out, shown)
    for prop in shown.result.violations:
        path = searched.paths.get(prop.name)
        if prop.trace is not None and path is not None:
            text.violation(out, shown.model, prop, full=shown.full_states, end=_end(path))
            beside(out, shown, path)
    if searched.ended is not None:
        ended(out, shown, searched.ended)
    text.coverage(out, shown)
    if searched.states < searched.result.figures.distinct:
        out.print(f"Hidden state: the spec tells only {number(searched.states)} of these states of the implementation apart.")
    text.commands(out, shown.replay)


def _end(path: Shown) -> str:
    """What the last transition of a path does, where no state of the spec comes of it."""
    return "" if path.dead is None else f"The implementation stops: {path.message}"


def beside(out: Console, shown: text.Shown, path: Shown) -> None:
    """What the spec does when it is run along the same events."""
    found = path.otherwise
    if found is None:
        out.print(f"The spec takes the same steps{'' if path.by_spec else ', and its own state at the end does not show it'}.")
    elif found.step == 0:
        out.print("The spec begins in another state:")
    else:
        step = path.trace.steps[found.step - 1]
        rule = next(rule for rule in shown.model.bound.actions if rule.name == step.action)
        event = call(shown.model.bound, rule, step.arguments)
        before = "" if found.step == 1 else f"takes the same steps up to {found.step - 1}, and "
        out.print(f"The spec {before}says otherwise at step {found.step}, {event}: {found.why}.")
    if found is not None and found.differences:
        table(out, ("path", "spec", "implementation"), found.differences, everything=shown.verbose)
    out.print()


def ended(out: Console, shown: text.Shown, found: Ended) -> None:
    """A shortest path to where no property can be judged."""
    out.print()
    events = count(len(found.path.trace), "event")
    out.print(f"After {events} {found.kind.value}; what follows was not searched.", style="bold")
    out.print(f"  {found.message}")
    end = f"What comes of it is no state of the spec: {found.message}" if found.kind is Kind.BEYOND else ""
    text.trace(out, shown.model, found.path.trace, full=shown.full_states, end=end)
    beside(out, shown, found.path)
