"""An audit as text, section by section, for a reader who never used a model checker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..report import text
from ..report.terminal import columns
from ..report.words import count, number
from ..result import Status, Verdict
from . import classify_report, report, search_report
from .audit import CLASSIFY, LOCKSTEP, PROPERTIES, Audit, Checked, Compared, Judged
from .classify_report import Told, name_of

if TYPE_CHECKING:
    from rich.console import Console

LISTED = (
    (Status.VIOLATED, "violated"),
    (Status.LATENT, "latent: can happen, and is no violation by itself"),
    (Status.HOLDS, "hold in every state that was reached"),
    (Status.REACHED, "reached (the search comes to the situations that matter)"),
    (Status.UNDETERMINED, "not decided"),
    (Status.VACUOUS, "never put to the test"),
    (Status.NOT_REACHED, "never reached"),
    (Status.NOT_APPLICABLE, "do not apply"),
)


@dataclass(frozen=True)
class Mechanism:
    """A switch in which the releases differ, or the implementation from the nearest: what each does, and where that was read.

    `choices` go by profile; `told` whether experiments show the choice, or nothing tells it from others; `source` says where
    it was read that a release has this choice.
    """

    name: str
    meaning: str
    choice: str
    choices: Mapping[str, str]
    differs: bool
    told: bool
    source: str


def heading(out: Console, number_: int, words: str) -> None:
    """The heading of a section."""
    out.print()
    out.print(f"{number_}. {words}", style="bold")


def failed(out: Console, error: str) -> None:
    """What is said of a section that failed."""
    out.print(f"this section failed: {error}")


def subject(out: Console, audit: Audit) -> None:
    """What was found."""
    for line in audit.subject:
        out.print(line)


def classification(out: Console, told: Told, mechanisms: Sequence[Mechanism]) -> None:
    """What it behaves as, and how that differs from the releases; with --verbose the evidence for every switch."""
    found = told.found
    if told.verbose or not found.findings:
        classify_report.print_report(out, told)
    else:
        classify_report.verdict(out, told)
        out.print()
        classify_report.profiles(out, found)
    if not found.findings:
        return
    out.print()
    _differing(out, told, [one for one in mechanisms if one.differs])
    out.print()
    out.print(
        "Where releases differ among themselves, it is like the ones marked * (marked ?: nothing that was compared tells):"
    )
    table = columns("mechanism", *(profile.name for profile in told.profiles))
    for one in mechanisms:
        mark = " *" if one.told else " ?"
        table.add_row(one.name, *(choice + mark * (choice == one.choice) for choice in one.choices.values()))
    out.print(table)
    out.print()
    out.print("What these choices are, and where that was read:")
    for one in mechanisms:
        read = f" ({one.source})" if one.source else ""
        out.print(f"  {one.name}={one.choice}: {one.meaning}{read}", soft_wrap=True)


def _differing(out: Console, told: Told, other: Sequence[Mechanism]) -> None:
    """What is otherwise than in the nearest profile, with the evidence."""
    nearest = told.found.nearest.name
    if not other:
        out.print(f"Nothing that was looked at is otherwise than in {nearest}.")
        return
    out.print(f"Otherwise than in {nearest}:", style="bold")
    findings = {finding.switch: finding for finding in told.found.findings}
    for one in other:
        out.print(f"  {one.name} is {one.choice}, there it is {one.choices[nearest]}: {one.meaning}")
        for line in classify_report.lines(findings[one.name]):
            out.print(f"    {line}")


def compared(out: Console, rows: Sequence[Compared], against: str, *, verbose: bool) -> None:
    """Every row of the lockstep with what came out, and the trace of the shortest difference."""
    transitions = sum(row.agreement.figures.transitions for row in rows)
    out.print(
        f"Transitions of the spec with the switches of {against} are taken on both sides, and all that is shown is compared."
    )
    table = columns("row", "verdict", "transitions", "")
    table.columns[2].justify = "right"
    for row in rows:
        table.add_row(row.name, row.verdict.value, number(row.agreement.figures.transitions), _first(row))
    out.print(table)
    for row in rows:
        if row.agreement.cut is not None and row.agreement.hidden is not None:
            out.print()
            out.print(f"{row.name!r} was cut: {row.agreement.cut}. It may never end for what the implementation keeps:")
            report.hidden(out, row.model, row.agreement.hidden)
    differing = [row for row in rows if row.agreement.mismatch is not None]
    if not differing:
        out.print(f"{number(transitions)} transitions compared, no difference.")
        return
    shortest = min(differing, key=_length)
    assert shortest.agreement.mismatch is not None
    out.print()
    out.print(f"The shortest path to a difference, at {shortest.name!r}:")
    shown = report.Shown(shortest.model, shortest.agreement, "", shortest.again, verbose=verbose)
    report.mismatch(out, shown, shortest.agreement.mismatch)


def _first(row: Compared) -> str:
    if row.agreement.mismatch is not None:
        return f"{row.agreement.mismatch.kind.value}, event {_length(row)}"
    return row.agreement.cut or ""


def _length(row: Compared) -> int:
    assert row.agreement.mismatch is not None
    return classify_report.length(row.agreement.mismatch)


def checked(out: Console, audit: Audit, *, verbose: bool) -> None:
    """The properties over all rows, and the shortest trace of each that is violated."""
    rows = audit.checked
    states = sum(row.searched.result.figures.distinct for row in rows)
    out.print(
        f"States that the implementation itself reaches are judged by the properties of the spec: {number(states)} states at "
        f"{count(len(rows), 'row')} of bounds."
    )
    judged = audit.judged
    for status, words in LISTED:
        names = [one for one in judged if one.status is status]
        if names and status not in (Status.VACUOUS, Status.NOT_REACHED, Status.NOT_APPLICABLE):
            out.print(f"  {words}: {', '.join(one.result.name for one in names)}")
    for one in judged:
        if one.status is Status.VIOLATED:
            _violation(out, audit, one, verbose=verbose)


def _violation(out: Console, audit: Audit, one: Judged, *, verbose: bool) -> None:
    result, row = one.result, one.at
    shown = text.Shown(row.model, row.searched.result, "", "", full_states=verbose)
    path = row.searched.paths.get(result.name)
    out.print()
    out.print(f"At {row.name!r} ({count(one.rows, 'row')} of {len(audit.checked)} {'show' if one.rows > 1 else 'shows'} it):")
    if result.trace is None or path is None:
        out.print(f"{result.name} is violated after {count(result.depth or 0, 'transition')}.")
        return
    end = "" if path.dead is None else f"The implementation stops: {path.message}"
    text.violation(out, row.model, result, full=verbose, end=end)
    if one.like_spec and audit.told is not None:
        found = audit.told.found
        new = f" {found.nearest.name} does not." if found.flips and not audit.inherited(one) else ""
        out.print(f"{name_of(found)} does the same: the spec takes these steps, too.{new}")
    else:
        search_report.beside(out, shown, path)
    out.print(f"again: {row.again}", soft_wrap=True)


def uncovered(out: Console, audit: Audit, more: Sequence[str]) -> None:
    """What was not covered, as a list."""
    for line in (*more, *open_questions(audit)):
        out.print(f"  - {line}")


def open_questions(audit: Audit) -> list[str]:
    """What an audit did not look at, or could not decide, line by line."""
    lines: list[str] = []
    ends = {} if audit.told is None else classify_report.longest(audit.told.found)
    lines += [f"{CLASSIFY}, paths of more than {classify_report.events(ends.values())}: {', '.join(ends)}"] if ends else []
    findings = () if audit.told is None else audit.told.found.findings
    for why in dict.fromkeys(why for finding in findings for why in finding.untold.values()):
        names = [finding.switch for finding in findings if why in finding.untold.values()]
        lines.append(f"switches not told from their other choices, {why}: {', '.join(names)}")
    for status, words in LISTED[-3:]:
        names = [one.result.name for one in audit.judged if one.status is status]
        lines += [f"properties, {words}: {', '.join(names)}"] if names else []
    lines += [f"{name}, not begun: {', '.join(rows)}" for name, rows in audit.left_out.items() if rows]
    for row in (*audit.compared, *audit.checked):
        section = LOCKSTEP if isinstance(row, Compared) else PROPERTIES
        lines += [f"{section}, {row.name}: {_cut(row)}"] if _cut(row) else []
    return lines + [f"{name}: failed" for name in audit.errors]


def verdict(out: Console, audit: Audit, name: str) -> None:
    """The one verdict, with its reasons."""
    from rich.text import Text

    out.print(Text.assemble((audit.verdict.value, text.STYLES[audit.verdict]), f": {name}: {'; '.join(_reasons(audit))}"))


def _reasons(audit: Audit) -> list[str]:
    reasons: list[str] = []
    if audit.told is not None:
        found = audit.told.found
        if found.unlike is not None:
            reasons.append("unlike any mix of switches")
        elif found.verdict is Verdict.HOLDS:
            reasons.append(f"behaves as {name_of(found)}")
        else:
            reasons.append("it was not found out what it behaves as")
    differing = sum(row.agreement.mismatch is not None for row in audit.compared)
    if audit.compared:
        of = count(len(audit.compared), "row")
        agrees = f"lockstep agrees{_so_far(audit.compared, audit.left_out.get(LOCKSTEP))}"
        reasons.append(f"lockstep differs at {differing} of {of}" if differing else agrees)
    elif LOCKSTEP not in audit.errors:
        reasons.append("nothing was compared in lockstep")
    if audit.checked:
        reasons += _violated(audit)
    elif PROPERTIES not in audit.errors:
        reasons.append("no state was searched")
    undetermined = audit.verdict is Verdict.UNDETERMINED
    vacuous = [f"vacuous: {'; '.join(audit.vacuous)}"] if audit.vacuous and undetermined else []
    return reasons + vacuous + [f"{name} failed" for name in audit.errors]


def _so_far(rows: Sequence[Compared | Checked], left_out: Sequence[str] | None) -> str:
    return " so far (see what was not covered)" if left_out or any(map(_cut, rows)) else ""


def _violated(audit: Audit) -> list[str]:
    """The violated properties: those that are new, and those that the nearest release violates likewise."""
    violated = [one for one in audit.judged if one.status is Status.VIOLATED]
    if not violated:
        return [f"no property is violated{_so_far(audit.checked, audit.left_out.get(PROPERTIES))}"]
    if audit.told is None:
        return [f"violates {', '.join(one.result.name for one in violated)}"]
    inherited = [one.result.name for one in violated if audit.inherited(one)]
    new = [one.result.name for one in violated if one.result.name not in inherited]
    nearest = audit.told.found.nearest.name
    said = [f"violates {', '.join(new)} (new)"] if new else []
    return said + ([f"violates {', '.join(inherited)} as {nearest} does (inherited)"] if inherited else [])


def _cut(row: Compared | Checked) -> str | None:
    return row.agreement.cut if isinstance(row, Compared) else row.searched.result.cut
