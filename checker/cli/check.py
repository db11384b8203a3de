"""`fencepost check`: from a config, a spec or a fault to a verdict."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from .clock import since_start
from .errors import INTERNAL_ERROR, UsageError

if TYPE_CHECKING:
    from ..model import Options
    from ..result import Result
    from .target import Target

MODEL, SEARCH, LIMITS, OUTPUT = "Model", "Search", "Limits (reached means UNDETERMINED, exit code 3)", "Output"


def check(
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGET | -- vllm serve …",
            help="A vLLM config (.yaml), a spec (.py), or the name of a shipped spec (kv); or, after --, a command "
            "line that starts vLLM.",
            show_default=False,
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            help="Which release of vLLM the KV spec follows (see `fencepost models`). Default: that of the vLLM "
            "installed here, else the newest one modelled.",
            rich_help_panel=MODEL,
            show_default=False,
        ),
    ] = None,
    fault: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Check a known bug (see `fencepost models`) at its own bounds, for the property that it breaks.",
            rich_help_panel=MODEL,
            show_default=False,
        ),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE,…",
            help="Values for bounds and switches, over those of the config or spec. May be repeated.",
            rich_help_panel=MODEL,
            show_default=False,
        ),
    ] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="NAME",
            help="Check only this property (or `deadlock`). May be repeated.",
            rich_help_panel=MODEL,
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        Literal["native", "reference"],
        typer.Option(
            help="native: compiled, all cores. reference: plain Python, slow; also decides progress properties.",
            rich_help_panel=SEARCH,
        ),
    ] = "native",
    symmetry: Annotated[
        Literal["on", "off"],
        typer.Option(
            help="Whether states that differ only in the names of interchangeable members count as one.",
            rich_help_panel=SEARCH,
        ),
    ] = "on",
    check_symmetry: Annotated[
        bool,
        typer.Option(
            "--check-symmetry",
            help="Search with and without symmetry and compare the results.",
            rich_help_panel=SEARCH,
        ),
    ] = False,
    deadlock: Annotated[
        Literal["off", "stuck"],
        typer.Option(
            help="stuck: a state in which no action is enabled is a violation. off: it is only counted.",
            rich_help_panel=SEARCH,
        ),
    ] = "stuck",
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going",
            help="Search on after a violation; show a shortest trace for each violated property.",
            rich_help_panel=SEARCH,
        ),
    ] = False,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1024,
            help="Threads of the native engine. Default: one a core. Results do not depend on it.",
            rich_help_panel=SEARCH,
            show_default=False,
        ),
    ] = None,
    max_states: Annotated[
        str | None,
        typer.Option(metavar="N", help="Distinct states, such as 5M.", rich_help_panel=LIMITS, show_default=False),
    ] = None,
    max_depth: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="Transitions from an initial state.", rich_help_panel=LIMITS, show_default=False
        ),
    ] = None,
    max_time: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Time, such as 30s or 5min.", rich_help_panel=LIMITS, show_default=False),
    ] = None,
    max_memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Memory of this process, such as 2GiB. Default: nine tenths of what is free at the start.",
            rich_help_panel=LIMITS,
            show_default=False,
        ),
    ] = None,
    json_: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print the whole result as one JSON object (docs/json-result.md).",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    trace_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the shortest counterexample as FILE, usually NAME.itf.json (docs/trace-format.md).",
            rich_help_panel=OUTPUT,
            show_default=False,
        ),
    ] = None,
    mbt: Annotated[
        bool,
        typer.Option("--mbt", help="Add Quint's mbt:: variables to the states of --trace-out.", rich_help_panel=OUTPUT),
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", help="Print the verdict only, and no progress.", rich_help_panel=OUTPUT),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            "-v",
            help="Print the whole table of the derived model, and coverage property by property.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
) -> None:
    """Search every reachable state of a model within its bounds, and report a verdict.

    Exit codes: 0 HOLDS, 1 VIOLATED, 2 usage, spec or input error, 3 UNDETERMINED, 4 internal error.
    """
    from .target import Wanted, resolve

    output = Output(json_, trace_out, mbt, quiet, verbose)
    output.validate()
    wanted = Wanted(tuple(target or ()), profile, fault, tuple(bounds or ()), tuple(properties or ()))
    found = resolve(wanted)
    watch_deadlock = deadlock == "stuck" and _deadlock_wanted(found, wanted.properties)
    options = _options(
        symmetry == "on", watch_deadlock, keep_going, threads, max_states, max_depth, max_time, max_memory
    )
    raise typer.Exit(_run(found, options, engine, output, compare=check_symmetry))


@dataclass(frozen=True)
class Output:
    """Where the result goes."""

    json: bool
    trace_out: Path | None
    mbt: bool
    quiet: bool
    verbose: bool

    def validate(self) -> None:
        """Find out before a long search that its trace could not be written, or that options contradict each other."""
        import os

        if self.json and (self.quiet or self.verbose):
            raise UsageError("--json prints the whole result; leave out --quiet and --verbose")
        if self.quiet and self.verbose:
            raise UsageError("--quiet and --verbose contradict each other")
        if self.mbt and self.trace_out is None:
            raise UsageError("--mbt changes the trace file; it needs --trace-out")
        if self.trace_out is None:
            return
        folder = self.trace_out.parent
        if self.trace_out.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
            why = "is a folder" if self.trace_out.is_dir() else f"the folder {folder} is not there or not writable"
            raise UsageError(f"--trace-out {self.trace_out}: {why}")


def _deadlock_wanted(found: Target, named: tuple[str, ...]) -> bool:
    from ..model import DEADLOCK

    only = named or found.only
    return not only or DEADLOCK in only


def _options(
    symmetry: bool,
    deadlock: bool,
    keep_going: bool,
    threads: int | None,
    max_states: str | None,
    max_depth: int | None,
    max_time: str | None,
    max_memory: str | None,
) -> Options:
    from ..model import Limits, Options
    from .units import number, seconds, size

    limits = Limits(
        max_states=None if max_states is None else number(max_states, "--max-states"),
        max_depth=max_depth,
        max_seconds=None if max_time is None else seconds(max_time, "--max-time"),
        max_bytes=None if max_memory is None else size(max_memory, "--max-memory"),
    )
    return Options(symmetry=symmetry, deadlock=deadlock, keep_going=keep_going, threads=threads, limits=limits)


def _run(found: Target, options: Options, engine: str, output: Output, *, compare: bool) -> int:
    from .present import introduce, present

    if not output.json and not output.quiet:
        introduce(found, verbose=output.verbose)
    start = since_start()
    if compare:
        result, differences = _compared(found, options, engine, output)
    else:
        result, differences = _search(found, options, engine, output), []
    present(found, result, output, start)
    for difference in differences:
        print(f"internal error: with and without symmetry, {difference}", file=sys.stderr)
    return INTERNAL_ERROR if differences else result.exit_code


def _search(found: Target, options: Options, engine: str, output: Output) -> Result:
    from dataclasses import replace

    from ..explore import explore
    from ..report.progress import ProgressLine
    from .interrupt import Interrupts

    progress = None if output.quiet else ProgressLine(sys.stderr)
    with Interrupts() as interrupts:
        limits = replace(options.limits, cancelled=lambda: interrupts.asked)
        try:
            return explore(found.model, replace(options, limits=limits), engine, progress)
        finally:
            if progress is not None:
                progress.close()


def _compared(found: Target, options: Options, engine: str, output: Output) -> tuple[Result, list[str]]:
    """The result with symmetry, and in what the full search disagrees with it."""
    from dataclasses import replace

    from .compare import differences

    reduced = _search(found, replace(options, symmetry=True), engine, output)
    full = _search(found, replace(options, symmetry=False), engine, output)
    if not output.json and not output.quiet:
        word = "up to symmetry" if reduced.figures.symmetry else "with symmetry (this spec has none)"
        print(f"symmetry check: {reduced.figures.distinct:,} states {word}, {full.figures.distinct:,} without\n")
    return reduced, differences(found.model, reduced, full)
