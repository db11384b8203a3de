"""`fencepost check`: from a config, a spec or a fault to a verdict."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from . import check_options as given
from .clock import since_start
from .errors import INTERNAL_ERROR, UsageError

if TYPE_CHECKING:
    from ..model import Limits, Options
    from ..result import Result
    from .drivers import Implementation
    from .target import Target, Wanted

STANDARD_OUTPUT = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def check(
    target: given.TargetWords = None,
    profile: given.Profile = None,
    fault: given.Fault = None,
    bounds: given.Bounds = None,
    properties: given.Properties = None,
    implementation: given.Implementation = None,
    refines: given.Refines = None,
    engine: given.Engine = "native",
    symmetry: given.Symmetry = "on",
    check_symmetry: given.CheckSymmetry = False,
    deadlock: given.Deadlock = "stuck",
    keep_going: given.KeepGoing = False,
    threads: given.Threads = None,
    max_states: given.MaxStates = None,
    max_depth: given.MaxDepth = None,
    max_time: given.MaxTime = None,
    max_memory: given.MaxMemory = None,
    json: given.Json = False,
    trace_out: given.TraceOut = None,
    mbt: given.Mbt = False,
    quiet: given.Quiet = False,
    verbose: given.Verbose = False,
) -> None:
    """Search every reachable state of a model, or with --target of an implementation, and report a verdict.

    Exit codes: 0 HOLDS, 1 VIOLATED, 2 usage, spec or input error, 3 UNDETERMINED, 4 internal error.
    """
    from ..model import Options
    from . import check_refines, check_target

    output = Output(json, trace_out, mbt, quiet, verbose)
    output.validate(*(target or ()))
    wanted = _wanted(target, profile, fault, bounds, properties)
    limits = limits_of(max_states, max_depth, max_time, max_memory)
    options = Options(symmetry == "on", deadlock == "stuck", keep_going, threads, limits)
    if refines is not None:
        raise typer.Exit(check_refines.run(refines, wanted, options, output, implementation, engine, compare=check_symmetry))
    searched, wanted = check_target.chosen(implementation, wanted, engine, compare=check_symmetry)
    raise typer.Exit(_searched(wanted, searched, options, engine, output, compare=check_symmetry))


@dataclass(frozen=True)
class Output:
    """Where the result goes."""

    json: bool
    trace_out: Path | None
    mbt: bool
    quiet: bool
    verbose: bool

    def validate(self, *inputs: str | Path | None, log: Path | None = None) -> None:
        """Find out before a long search that its trace could not be written, or that options contradict each other.

        `inputs` are the files that the command reads, `log` is one that it writes besides.
        """
        refuse_overwriting("--log", log, *inputs)
        if self.json and (self.quiet or self.verbose):
            raise UsageError("--json prints the whole result; leave out --quiet and --verbose")
        if self.quiet and self.verbose:
            raise UsageError("--quiet and --verbose contradict each other")
        if self.mbt and self.trace_out is None:
            raise UsageError("--mbt changes the trace file; it needs --trace-out")
        if self.json and str(self.trace_out) in STANDARD_OUTPUT:
            raise UsageError("--json has the trace in it, under `trace`; leave out --trace-out, or name a file")
        if self.trace_out is not None and not _is_device(self.trace_out):
            require_writable("--trace-out", self.trace_out)
            refuse_overwriting("--trace-out", self.trace_out, *inputs, log)


def require_writable(option: str, path: Path) -> None:
    """`UsageError` where a file could not be written."""
    import os

    folder = path.parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        why = "is a folder" if path.is_dir() else f"the folder {folder} is not there or not writable"
        raise UsageError(f"{option} {path}: {why}")


def refuse_overwriting(option: str, path: Path | None, *others: str | Path | None) -> None:
    """`UsageError` where an output would take the place of a file that the same command uses for something else."""
    for other in others:
        if path is not None and other is not None and path.resolve() == Path(other).resolve():
            raise UsageError(f"{option} {path}: this command uses the file for something else; choose another name")


def _is_device(path: Path) -> bool:
    """Whether a path is a device or pipe, such as /dev/stdout, which is written to as it is."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _deadlock_wanted(found: Target, named: tuple[str, ...]) -> bool:
    from ..model import DEADLOCK

    only = named or found.only
    return not only or DEADLOCK in only


def limits_of(max_states: str | None, max_depth: int | None, max_time: str | None, max_memory: str | None) -> Limits:
    """The limits of a command line; `UsageError` names the option that is not understood."""
    from ..model import Limits
    from .units import number, seconds, size

    return Limits(
        max_states=None if max_states is None else number(max_states, "--max-states"),
        max_depth=max_depth,
        max_seconds=None if max_time is None else seconds(max_time, "--max-time"),
        max_bytes=None if max_memory is None else size(max_memory, "--max-memory"),
    )


def _wanted(
    words: list[str] | None, profile: str | None, fault: str | None, bounds: list[str] | None, properties: list[str] | None
) -> Wanted:
    from .target import Wanted

    return Wanted(tuple(words or ()), profile, fault, tuple(bounds or ()), tuple(properties or ()))


def _searched(
    wanted: Wanted, implementation: Implementation | None, options: Options, engine: str, output: Output, *, compare: bool
) -> int:
    from dataclasses import replace

    from .check_target import run
    from .target import resolve

    found = resolve(wanted)
    options = replace(options, deadlock=options.deadlock and _deadlock_wanted(found, wanted.properties))
    if implementation is not None:
        return run(found, implementation, options, output)
    return _run(found, options, engine, output, compare=compare)


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
    return reduced, differences(found.model, reduced, full, keep_going=options.keep_going)
