"""Shows what a check is about and what came out, as text or JSON, and writes its traces."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .clock import since_start
from .target import again

if TYPE_CHECKING:
    from rich.console import Console

    from ...traces.trace import Trace
    from ..conform.search_report import Subject
    from ..result import PropertyResult, Result
    from .check import Output
    from .target import Target


def introduce(found: Target, *, verbose: bool, searched: tuple[str, str] | None = None) -> None:
    """Print what is checked: where the model comes from, its bounds, and the name and title of the implementation searched."""
    from ..report.derived import print_derived
    from ..report.terminal import console

    out = console()
    out.print(found.origin, style="bold")
    if found.derived is not None:
        print_derived(out, found.derived, verbose=verbose)
    if searched is not None:
        name, title = searched
        out.print(f"the states searched are those of {name}: {title}")
    for note in found.notes:
        out.print(f"note: {note}")
    out.print()


def present(found: Target, result: Result, output: Output, start: float, subject: Subject | None = None) -> None:
    """Print a result and write its traces; `TraceError` where a trace cannot be written.

    `subject` is the implementation that was searched, if it was one.
    """
    replay = commands(found, result.violations, output.trace_out, subject)
    if output.json:
        print(_json(found, result, replay, start, subject))
    elif output.quiet:
        _quietly(found, result, subject)
    else:
        _fully(found, result, output, replay, subject)
    if output.trace_out is not None:
        write_traces(found, result.violations, output.trace_out, engine=result.engine, mbt=output.mbt)
    sys.stdout.flush()
    if not output.quiet and not output.json:
        _times(result, start)


def _times(result: Result, start: float) -> None:
    """Time, memory, and which engine was done first; on standard error, so that reports compare line by line."""
    from ..report.words import seconds, size

    figures = result.figures
    spent = {name: figures.seconds.get(name, 0.0) for name in ("compile", "search")}
    each = ", ".join(f"{name} {seconds(amount)}" for name, amount in {"start": start, **spent}.items() if amount >= 0.005)
    memory = size(figures.peak_memory_bytes)
    print(f"{seconds(since_start())} ({each}), peak memory {memory}, engine {result.engine}", file=sys.stderr)


def commands(
    found: Target, violations: Sequence[PropertyResult], trace_out: Path | None, subject: Subject | None = None
) -> dict[str, str]:
    """For each shown trace, by the name of its property, the command that replays it: on the implementation it is of.

    A trace of an implementation that is none of the spec is left out: only the same search shows it again.
    """
    import shlex

    from ...traces.short import shorten
    from .target import words_of

    made: dict[str, str] = {}
    options = () if subject is None else ("--target", subject.name)
    for prop, path in _with_files(violations, trace_out):
        if subject is not None and not subject.searched.paths[prop.name].by_spec:
            continue
        short = shorten(found.model.bound, _trace(prop))
        words = ["fencepost", "replay", *words_of(str(path), options)]
        made[prop.name] = again(found, short, options=options) if path is None else shlex.join(words)
    return made


def _trace(prop: PropertyResult) -> Trace:
    assert prop.trace is not None
    return prop.trace


def _with_files(violations: Sequence[PropertyResult], trace_out: Path | None) -> list[tuple[PropertyResult, Path | None]]:
    """The violations that have traces, with their files: the first gets the name asked for, others add the property."""
    shown = [p for p in violations if p.trace is not None]
    if trace_out is None:
        return [(p, None) for p in shown]
    stem, suffix = _split(trace_out.name)
    others = (trace_out.with_name(f"{stem}.{p.name}{suffix}") for p in shown[1:])
    return list(zip(shown, (trace_out, *others), strict=False))


def _split(name: str) -> tuple[str, str]:
    for suffix in (".itf.json", ".json"):
        if name.endswith(suffix):
            return name.removesuffix(suffix), suffix
    return name, ""


def write_traces(found: Target, violations: Sequence[PropertyResult], trace_out: Path, *, engine: str, mbt: bool) -> None:
    """Write the traces of violations as files; `TraceError` where that cannot be."""
    from ...traces.itf import document, write
    from ...traces.origin import Origin

    model = found.model
    written = _with_files(violations, trace_out)
    for prop, path in written:
        origin = Origin.of(
            model.bound,
            prop.name,
            source=found.source,
            profile=model.profile,
            fault=model.fault,
            engine=engine,
        )
        assert path is not None
        write(path, document(model.bound, _trace(prop), origin, mbt=mbt))
    if not written:
        print(f"note: nothing is violated, so {trace_out} is not written", file=sys.stderr)


def _json(found: Target, result: Result, replay: dict[str, str], start: float, subject: Subject | None) -> str:
    from ..report.schema import Said, result_document

    rows: list[dict[str, Any]] = []
    if found.derived is not None:
        rows = [row.model_dump() for row in (*found.derived.rows, *found.derived.ignored)]
    about = None
    if subject is not None:
        from ..conform.search_schema import implementation_part

        about = implementation_part(found.model, subject, found.source).model_dump()
    said = Said(found.origin, found.source, rows, replay, found.notes, start, since_start(), about)
    return result_document(found.model, result, said).model_dump_json(indent=2)


def _quietly(found: Target, result: Result, subject: Subject | None) -> None:
    from ..report.terminal import console
    from ..report.text import Shown, verdict

    name = "" if subject is None else subject.name
    verdict(console(), Shown(found.model, result, found.origin, found.bounds, subject=name))


def _fully(found: Target, result: Result, output: Output, replay: dict[str, str], subject: Subject | None) -> None:
    from ..report.terminal import console
    from ..report.text import Shown, print_report

    out: Console = console()
    if subject is None:
        print_report(out, Shown(found.model, result, found.origin, found.bounds, replay, output.verbose))
        return
    from ..conform import search_report

    shown = Shown(found.model, result, found.origin, found.bounds, replay, output.verbose, subject=subject.name)
    search_report.print_report(out, shown, subject.searched)
