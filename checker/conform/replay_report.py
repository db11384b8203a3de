"""A replay on an implementation as text: what it shows in its own objects, or where and why it does something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from ...spec.lang import BoundSpec, Index
from ...spec.lang.reasons import Members
from ...traces.trace import Step
from ..model import Model
from ..report import text
from ..report.steps import call
from .differences import differences
from .replay import Replayed
from .replay_state import as_states, last_change
from .replay_why import Why
from .report import table, value
from .result import Kind

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Side:
    """One of the two sides, in words: what it is called, and for its switches where it is known that it has them so."""

    name: str
    sources: Mapping[str, str]


@dataclass(frozen=True)
class Shown:
    """What a report is made of.

    `members` are those that the trace's property is about, `objects` what the implementation's
    own objects say of them (None: it cannot say). `why` says with which switches the spec would do the same where it differs,
    and where it does not, with which ones that violates nothing.
    """

    model: Model
    found: Replayed
    members: Members
    objects: Sequence[tuple[str, str]] | None
    why: Why | None
    sides: tuple[Side, Side]
    full: bool = False


def print_report(out: Console, shown: Shown) -> None:
    """Print the trace as far as it was replayed, and what came of it."""
    found = shown.found
    steps = found.trace.steps[: len(found.events)]
    part = found.trace if len(steps) == len(found.trace) else replace(found.trace, steps=steps, loop=None)
    text.trace(out, shown.model, part)
    if shown.full:
        observations(out, shown)
    if found.to_the_end:
        _objects(out, shown)
    else:
        _difference(out, shown)
    if shown.why is not None and (shown.why.sets or not found.to_the_end):
        _why(out, shown, shown.why)


def observations(out: Console, shown: Shown) -> None:
    """Everything that the implementation showed, event by event."""
    for number, observation in enumerate(shown.found.shown):
        after = f"after event {number}" if number else "at the beginning"
        out.print(f"what the implementation shows {after}", style="bold")
        _rows(out, [(str(name), value(part)) for name, part in observation.items()])
        out.print()


def _objects(out: Console, shown: Shown) -> None:
    model, found = shown.model, shown.found
    statement = next((p.declared.doc for p in model.bound.every if p.name == found.trace.property), "")
    if statement:
        out.print(f"{found.trace.property}: {' '.join(statement.split())}", style="bold")
    if found.message:
        out.print(f"the implementation says: {found.message}")
    who = named(model.bound, shown.members, numbers=True)
    if shown.objects:
        out.print(f"In the implementation's own objects{f', of {who}' if who else ''}:")
        out.print()
        _rows(out, shown.objects)
        out.print()
    elif len(found.shown) > 1:
        about = f"It is about {who}. " if who else ""
        out.print(f"{about}The driver has no `exhibit` for the implementation's own objects; of the last event it shows:")
        out.print()
        last = last_change(model.bound, found) or differences(found.shown[-2], found.shown[-1])
        table(out, ("", "before", "after"), last, everything=True)
        out.print()


def _difference(out: Console, shown: Shown) -> None:
    found = shown.found
    assert found.discord is not None
    told = where(shown.model.bound, found)
    out.print(f"{told[0].upper()}{told[1:]}.", style="bold")
    if found.message:
        out.print(f"the implementation says: {found.message}")
    if found.discord.differences:
        out.print()
        quiet = found.discord.kind is Kind.NOT_QUIET
        headers = ("", "before", "after") if quiet else ("", "the trace", "implementation")
        differing = as_states(shown.model.bound, found) or found.discord.differences
        table(out, headers, differing, everything=shown.full)
    out.print()


def _why(out: Console, shown: Shown, why: Why) -> None:
    if not why.sets:
        out.print(_unexplained(why))
        out.print()
        return
    out.print(f"why: {in_words(why)}", style="bold")
    for name, choice in dict.fromkeys(choice for chosen in why.sets for choice in chosen):
        out.print(f"  {name}: {shown.model.bound.spec.bounds[name].doc}")
        has = (str(shown.model.bound.values[name]), choice)
        _rows(out, [(f"  {side.name}: {one}", side.sources.get(name, "")) for side, one in zip(shown.sides, has, strict=True)])
    found, those = shown.found, "With this" if len(why.sets) == 1 else "With any one of these"
    same = "the spec does what the implementation did, this event included"
    out.print(f"  {those} {f'it does not violate {found.trace.property}' if found.to_the_end else same}.")
    out.print()


def in_words(why: Why) -> str:
    """What explains a difference, such as `abort-free=fenced`; empty where nothing does."""
    return " or ".join(" and ".join(f"{name}={choice}" for name, choice in chosen) for chosen in why.sets)


def _unexplained(why: Why) -> str:
    if not why.tried:
        return "No mechanism switch explains it: all that are known of the implementation are as in the trace."
    names = ", ".join(dict.fromkeys(name for name, _ in why.tried))
    how = {1: "alone", 2: "alone and in pairs"}.get(why.largest, f"up to {why.largest} together")
    return f"No mechanism switch explains it; tried {how}: {names}."


def where(bound: BoundSpec, found: Replayed) -> str:
    """The event at which an implementation differs, and how, in words."""
    assert found.discord is not None
    if found.event is None:
        return "the initial state is another one"
    event = f"event {len(found.events)}, {event_of(bound, found.event)},"
    match found.discord.kind:
        case Kind.OBSERVATION:
            return f"{event} changes nothing" if found.unchanged else f"{event} leads elsewhere"
        case Kind.REFUSED:
            return f"{event} is refused"
        case Kind.STOPPED:
            return f"{event} stops the implementation"
        case Kind.NOT_QUIET:
            return f"{event} has an effect, and the spec does not allow it there"


def event_of(bound: BoundSpec, step: Step) -> str:
    """An event with its arguments, such as `abort(r=A)`."""
    rule = next(rule for rule in bound.actions if rule.name == step.action)
    return call(bound, rule, step.arguments)


def named(bound: BoundSpec, members: Members, *, numbers: bool = False) -> str:
    """Members in words, such as `block 1, request C`; with `numbers` also those behind letters."""
    parts: list[str] = []
    for name in sorted({name for name, _ in members}):
        index = cast("Index", bound.spec.bounds[name])
        own = sorted(member for other, member in members if other == name)
        labels = [index.label(m) if index.label(m) == str(m) or not numbers else f"{index.label(m)} ({m})" for m in own]
        parts.append(f"{_singular(name) if len(own) == 1 else name} {', '.join(labels)}")
    return " and ".join(parts) if numbers else ", ".join(parts)


def _singular(noun: str) -> str:
    return noun[:-1] if noun.endswith("s") and not noun.endswith(("ses", "ies", "ss")) else noun


def _rows(out: Console, rows: Sequence[tuple[str, str]]) -> None:
    from rich.table import Table

    made = Table(box=None, padding=(0, 2, 0, 2), pad_edge=False, show_header=False)
    made.add_column(overflow="fold")
    made.add_column(overflow="fold")
    for row in rows:
        made.add_row(*row)
    out.print(made)
