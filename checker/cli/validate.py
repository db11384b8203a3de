"""`fencepost validate`: does the spec allow what a log says that an implementation did?"""

from __future__ import annotations

import json as jsonlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import check_options as given
from .errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ...spec.lang import BoundSpec, Rule
    from ..conform.published import Explanation
    from ..conform.validate import Unexplained, Validation
    from .target import Target

JSON_FORMAT = 1
"""Changes when a field of the JSON goes away or changes its meaning."""
MODEL, SEARCH, OUTPUT = "Model", "Limits (reached means UNDETERMINED, exit code 3)", "Output"

LogFile = Annotated[
    Path,
    typer.Argument(
        metavar="LOG",
        help="A log of events, one JSON object a line, or a recording of vLLM's KV events (docs/logs.md).",
        show_default=False,
    ),
]
SpecOption = Annotated[
    str | None,
    typer.Option(
        "--spec",
        metavar="SPEC",
        help="A spec (.py) or the name of a shipped one (kv).",
        rich_help_panel=MODEL,
        show_default=False,
    ),
]
Unlogged = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ACTION",
        help="An action that happens without a line, any number of times between two lines. May be repeated.",
        rich_help_panel=MODEL,
        show_default=False,
    ),
]
MaxStates = Annotated[
    str,
    typer.Option(
        metavar="N",
        help="States that are possible at one time, such as 5M; of a recording, states that are looked at.",
        rich_help_panel=SEARCH,
        show_default=True,
    ),
]
TraceOut = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write one path of the spec that explains the log (up to the line that nothing explains) as FILE, usually "
        "NAME.itf.json, for `fencepost explain`.",
        rich_help_panel=OUTPUT,
        show_default=False,
    ),
]


def validate(
    log: LogFile,
    spec: SpecOption = None,
    profile: given.Profile = None,
    fault: given.Fault = None,
    bounds: given.Bounds = None,
    unlogged: Unlogged = None,
    max_states: MaxStates = "1M",
    json: Annotated[
        bool, typer.Option("--json", help="Print the result as one JSON object (docs/logs.md).", rich_help_panel=OUTPUT)
    ] = False,
    trace_out: TraceOut = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict only.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Check a log or a recording of KV events against a spec, and name the first event that the spec does not allow.

    Exit codes: 0 HOLDS, 1 VIOLATED, 2 usage, spec or input error, 3 UNDETERMINED, 4 internal error.
    """
    from ..conform.kv_events import is_recording
    from .check import Output
    from .target import Wanted, resolve
    from .units import number

    Output(json, trace_out, mbt=False, quiet=quiet, verbose=False).validate(log, spec)
    if spec is None and fault is None:
        raise UsageError("name the spec with --spec: a file (my_spec.py) or a shipped one (kv)")
    most = number(max_states, "--max-states")
    found = resolve(Wanted(() if spec is None else (spec,), profile, fault, tuple(bounds or ()), enumerable=False))
    if is_recording(log):
        raise typer.Exit(_events(found, log, unlogged, most, trace_out, json=json, quiet=quiet))
    result = _validated(found, log, unlogged or (), most, trace=trace_out is not None)
    if json:
        print(jsonlib.dumps(_document(found, log, result), indent=2, ensure_ascii=False))
    else:
        _print(found, log, result, quiet=quiet)
    if trace_out is not None:
        _write(found, result, trace_out)
    raise typer.Exit(_exit_code(result))


def _events(
    found: Target, log: Path, unlogged: list[str] | None, most: int, trace_out: Path | None, *, json: bool, quiet: bool
) -> int:
    """Validate a recording of KV events; the exit code."""
    from ..report.terminal import console
    from . import validate_events

    if unlogged:
        raise UsageError(f"--unlogged: no action is in {log}, a recording of KV events; leave the option out")
    recording, result = validate_events.explained(found, log, most, trace=trace_out is not None)
    if json:
        print(jsonlib.dumps(validate_events.document(found, recording, result), indent=2, ensure_ascii=False))
    else:
        validate_events.print_explanation(console(), found, recording, result, quiet=quiet)
    if trace_out is not None:
        _write(found, result, trace_out)
    return _exit_code(result)


def _exit_code(result: Validation | Explanation) -> int:
    from . import errors

    return {"HOLDS": errors.HOLDS, "VIOLATED": errors.VIOLATED, "UNDETERMINED": errors.UNDETERMINED}[result.verdict.value]


def _validated(found: Target, log: Path, unlogged: Sequence[str], most: int, *, trace: bool) -> Validation:
    from ..conform.log import Log
    from ..conform.validate import validate as check
    from ..explore.memory import default_budget
    from ..model import Limits
    from .interrupt import Interrupts

    bound = found.model.bound
    rules = [_rule(bound, name) for name in dict.fromkeys(unlogged)]
    with Interrupts() as interrupts:
        limits = Limits(max_states=most, max_bytes=default_budget(), cancelled=lambda: interrupts.asked)
        return check(Log(log, bound), rules, limits, trace=trace)


def _rule(bound: BoundSpec, name: str) -> Rule:
    from ...spec.lang.bind import MAX_INSTANCES
    from ..conform.partial import nearest

    rules = {rule.name: rule for rule in bound.actions}
    if name in bound.not_applicable:
        raise UsageError(f"--unlogged: {name} does not apply at these bounds (its when= is false)")
    if name not in rules:
        raise UsageError(f"--unlogged: {bound.spec.name} has no action {name!r}; {nearest(name, rules)}")
    if rules[name].count > MAX_INSTANCES:
        raise UsageError(f"--unlogged: {name} has {rules[name].count:,} instances, at most {MAX_INSTANCES:,} are tried")
    return rules[name]


def _print(found: Target, log: Path, result: Validation, *, quiet: bool) -> None:
    from rich.text import Text

    from ..report.terminal import console
    from ..report.text import STYLES

    out = console()
    if not quiet:
        fault = f", fault {found.model.fault}" if found.model.fault else ""
        out.print(f"{log} against {found.origin}{fault}", style="bold")
        for note in found.notes:
            out.print(f"note: {note}")
        out.print()
    verdict = result.verdict
    out.print(Text.assemble((verdict.value, STYLES[verdict]), f": {_outcome(log, result)}; at {found.bounds}"))
    if result.unexplained is not None and not quiet:
        _explain(out, result.unexplained)


def _outcome(log: Path, result: Validation) -> str:
    from ..report.words import count

    lost = result.unexplained
    if lost is not None:
        why = "the spec shows something else there" if lost.candidates else "the spec does not allow it there"
        return f"{log}:{lost.line}: {lost.event}: {why}"
    events, states = count(result.events, "event"), count(result.states, "state")
    if result.cut is None:
        if not result.events:
            return "the log has no event"
        return f"the spec allows this log: {events} up to line {result.line}; {states} possible at the end"
    rest = "the rest was not read" if result.unchecked is None else f"{count(result.unchecked, 'event')} not checked"
    return f"{result.cut}; {events} before it allowed{f', {rest}' if result.unchecked != 0 else ''}"


def _explain(out: Console, lost: Unexplained) -> None:
    """Print what the spec expects of the line that nothing explains."""
    from rich.table import Table

    from ..report.words import count

    if lost.candidates:
        kind, after = ("initial state", "") if lost.event == "start" else ("possible state", " after it")
        if lost.candidates == 1:
            where = f"In the one {kind}{after}, the spec shows something else in"
        else:
            many = count(lost.candidates, kind)
            where = f"There are {many}{after}, and none shows what the log says; the nearest differs in"
        out.print(f"{where} {count(len(lost.differences), 'place')}:")
        table = Table(box=None, padding=(0, 2, 0, 2), pad_edge=True, header_style="bold")
        for header in ("where", "the log", "the spec"):
            table.add_column(header, overflow="fold")
        for each in lost.differences:
            table.add_row(each.path, _shown(each.implementation), _shown(each.spec))
        out.print()
        out.print(table)
        out.print()
    if lost.event == "start":
        return
    since = f"Since line {lost.since}" if lost.since else "From the start"
    is_are = "is" if lost.states == 1 else "are"
    out.print(f"{since}, {count(lost.states, 'state')} {is_are} possible; events allowed there:")
    for words in lost.allowed or ("none",):
        out.print(f"  {words}")


def _plain(value: Any) -> Any:
    """A value as a log has it."""
    from ..conform.log import plain

    return plain(value)


def _shown(value: Any) -> str:
    from ..conform.differences import ABSENT

    return "not there" if value is ABSENT else jsonlib.dumps(_plain(value), ensure_ascii=False)


def _document(found: Target, log: Path, result: Validation) -> dict[str, Any]:
    from ...traces.origin import version
    from ..conform.differences import ABSENT

    lost = result.unexplained
    made: dict[str, Any] = {
        "format": JSON_FORMAT,
        "version": version(),
        "verdict": result.verdict.value,
        "reason": result.reason if lost is None else None,
        "log": str(log),
        **found.identity(),
        "events": result.events,
        "line": result.line,
        "states": result.states,
        "most_states": result.most,
        "unchecked": result.unchecked,
        "violation": None,
    }
    if lost is not None:
        made["violation"] = {
            "line": lost.line,
            "event": lost.event,
            "since": lost.since,
            "states": lost.states,
            "allowed": list(lost.allowed),
            "candidates": lost.candidates,
            "differences": [
                {"path": d.path}
                | {side: _plain(value) for side, value in (("log", d.implementation), ("spec", d.spec)) if value is not ABSENT}
                for d in lost.differences
            ],
        }
    return made


def _write(found: Target, result: Validation | Explanation, trace_out: Path) -> None:
    from ...traces.itf import document, write
    from ...traces.origin import Origin

    if result.trace is None:
        print(f"note: no state explains the log, so {trace_out} is not written", file=sys.stderr)
        return
    model = found.model
    origin = Origin.of(model.bound, "", source=found.source, profile=model.profile, fault=model.fault)
    write(trace_out, document(model.bound, result.trace, origin))
