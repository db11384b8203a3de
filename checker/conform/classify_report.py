"""A classification as text: what the implementation behaves as, and for each switch the evidence."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..report.words import count
from ..result import Verdict
from . import report
from .classify import Classification, Finding, Profile
from .experiments import Experiment
from .follow import RESET
from .report import event, value
from .result import Agreement, Figures, Kind, Mismatch

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {Verdict.HOLDS: "bold green", Verdict.VIOLATED: "bold red", Verdict.UNDETERMINED: "bold yellow"}


@dataclass(frozen=True)
class Told:
    """What the report of a classification is made of: the profiles, the transitions compared at so many rows, and `again`,
    which gives the command that repeats an experiment."""

    found: Classification
    profiles: tuple[Profile, ...]
    transitions: int
    rows: int
    again: Callable[[Experiment], str]
    verbose: bool = False


def print_report(out: Console, told: Told) -> None:
    """Print everything that is known."""
    verdict(out, told)
    found = told.found
    out.print()
    profiles(out, found)
    if found.unlike is not None:
        _unlike(out, told, found.unlike)
        return
    if found.findings:
        out.print()
        evidence(out, told)
    if told.verbose:
        out.print()
        for finding in found.findings:
            for other, experiment in finding.told.items():
                out.print(f"not {finding.switch}={other}: {told.again(experiment)}", soft_wrap=True)


def verdict(out: Console, told: Told) -> None:
    """The verdict line, with what was compared."""
    from rich.text import Text

    found = told.found
    style = STYLES[found.verdict]
    compared = f"{count(told.rows, 'row')} of small bounds, {count(told.transitions, 'transition')} compared"
    if found.verdict is Verdict.HOLDS:
        words = f"behaves as {name_of(found)}"
        rest = f": every transition agrees{_paths(found)}; {compared}; nothing is said of others"
    elif found.unlike is not None:
        words = "unlike any mix of switches"
        rest = f" at {found.unlike.row.name!r}; the nearest is {name_of(found)}, which agrees longest; {compared}"
    else:
        words, rest = "UNDETERMINED", f": {found.reason}; the nearest so far is {name_of(found)}; {compared}"
    out.print(Text.assemble((words, style), rest))


def _paths(found: Classification) -> str:
    """On which paths the mix was compared, where rows have longer ones."""
    ends = longest(found)
    if not ends:
        return ""
    rows = f" (at {len(ends)} of {count(len(found.experiments), 'row')})" if len(ends) < len(found.experiments) else ""
    return f" on paths of at most {events(ends.values())}{rows}"


def longest(found: Classification) -> dict[str, int]:
    """The rows at which there are longer paths than were compared with the mix, and where these ended."""
    return {one.row.name: one.longest for one in found.experiments if one.longest is not None}


def events(ends: Collection[int]) -> str:
    """How many events paths have that end here or there, such as `9 events` or `6 to 14 events`."""
    least = min(ends)
    return f"{least} to {count(max(ends), 'event')}" if least < max(ends) else count(least, "event")


def name_of(found: Classification) -> str:
    """A mix in words, such as `vllm-0.27 with victim-rule=not-fenced`."""
    flips = ", ".join(f"{name}={choice}" for name, choice in found.flips.items())
    return f"{found.nearest.name} with {flips}" if flips else found.nearest.name


def profiles(out: Console, found: Classification) -> None:
    """Where each profile differs first."""
    from rich.table import Table

    made = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for header in ("profile", "where it differs first"):
        made.add_column(header, overflow="fold")
    for name, experiment in found.profiles.items():
        made.add_row(name, where(experiment) if experiment is not None else _nowhere(found, name))
    out.print(made)


def _nowhere(found: Classification, name: str) -> str:
    if name != found.nearest.name or found.flips or found.unlike is not None:
        return "not looked for"
    return "nowhere" if found.verdict is Verdict.HOLDS else "nowhere so far"


def where(experiment: Experiment) -> str:
    """The event of a difference, its place in the path, and the row, in words."""
    found = experiment.mismatch
    assert found is not None
    if found.event == RESET:
        return f"in the initial state, {experiment.row.name}"
    return f"event {length(found)}, {event(experiment.model, found)}, {experiment.row.name}"


def length(found: Mismatch) -> int:
    """Events of the path, the last one included."""
    return len(found.trace) + (found.kind is Kind.NOT_QUIET)


def evidence(out: Console, told: Told) -> None:
    """The table of the switches."""
    from rich.table import Table

    made = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for header in ("switch", "as in", "evidence"):
        made.add_column(header, overflow="fold")
    for finding in told.found.findings:
        made.add_row(f"{finding.switch}={finding.choice}", _shared(told, finding), "\n".join(lines(finding)))
    out.print(made)


def sharing(finding: Finding, known: tuple[Profile, ...]) -> list[str]:
    """The profiles that have this choice, too."""
    return [profile.name for profile in known if profile.mix[finding.switch] == finding.choice]


def _shared(told: Told, finding: Finding) -> str:
    names = sharing(finding, told.profiles)
    return "all" if len(names) == len(told.profiles) else ", ".join(names) or "none"


def lines(finding: Finding) -> list[str]:
    """The evidence for the choice of a switch, line by line."""
    told = [line for other, experiment in finding.told.items() for line in (where(experiment), *_sides(experiment, other))]
    return told + [f"not told apart from {other}: {why}" for other, why in finding.untold.items()]


def _sides(experiment: Experiment, other: str) -> list[str]:
    """What the implementation shows, and what the other choice would."""
    found = experiment.mismatch
    assert found is not None
    if found.kind is Kind.OBSERVATION:
        one = found.differences[0]
        return [f"{one.path}: {value(one.implementation)}; {other}: {value(one.spec)}"]
    said = f": {found.message}" if found.message else ""
    return [f"{found.kind.value}, if it were {other}{said}"]


def _unlike(out: Console, told: Told, experiment: Experiment) -> None:
    """The first difference from the mix that comes nearest, step by step."""
    assert experiment.mismatch is not None
    out.print()
    out.print(f"against {name_of(told.found)}, {experiment.row.name} ({_bounds(experiment)}):")
    agreement = Agreement("", Figures(0, 0, experiment.transitions, {}, 0, 0, 0.0), experiment.mismatch)
    again = told.again(experiment)
    report.mismatch(out, report.Shown(experiment.model, agreement, "", again, verbose=told.verbose), experiment.mismatch)


def _bounds(experiment: Experiment) -> str:
    return ", ".join(f"{name}={given}" for name, given in experiment.row.bounds.items())
