"""`fencepost check … --refines NAME`: every transition held against a protocol of any size, and what came out."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from .clock import since_start
from .errors import UsageError

if TYPE_CHECKING:
    from ..model import Options
    from ..prove.refine_search import Refined
    from .check import Output
    from .target import Target, Wanted


def run(
    name: str, wanted: Wanted, options: Options, output: Output, implementation: str | None, engine: str, *, compare: bool
) -> int:
    """Hold a spec against the protocol of this name, print what came out, and return the exit code.

    `UsageError` for options that are about properties, or about searches of another kind.
    """
    from ..report.words import seconds
    from .present import introduce
    from .target import resolve

    _fit(wanted, options, output, implementation, engine, compare=compare)
    found = resolve(wanted)
    if not output.json and not output.quiet:
        introduce(found, verbose=output.verbose)
    start = since_start()
    result = _search(found, name, options, output)
    _present(found, result, output)
    if not output.json and not output.quiet:
        spent = ", ".join(f"{part} {seconds(amount)}" for part, amount in {"start": start, **result.seconds}.items())
        print(f"{seconds(since_start())} ({spent})", file=sys.stderr)
    return result.exit_code


def _fit(wanted: Wanted, options: Options, output: Output, implementation: str | None, engine: str, *, compare: bool) -> None:
    given = {
        "--property": wanted.properties,
        "--target": implementation is not None,
        "--engine": engine != "native",
        "--check-symmetry": compare,
        "--deadlock": not options.deadlock,
        "--keep-going": options.keep_going,
        "--threads": options.threads is not None,
        "--mbt": output.mbt,
    }
    names = [option for option, value in given.items() if value]
    if names:
        raise UsageError(
            f"{', '.join(names)}: --refines holds the transitions of the spec against a protocol, up to the first that is none "
            f"of it, and checks no property; leave {'it' if len(names) == 1 else 'them'} out"
        )


def _search(found: Target, name: str, options: Options, output: Output) -> Refined:
    from ..explore.memory import default_budget
    from ..prove.refine_search import refined
    from ..report.progress import ProgressLine
    from .interrupt import Interrupts

    progress = None if output.quiet else ProgressLine(sys.stderr)
    most = options.limits.max_bytes or default_budget()
    with Interrupts() as interrupts:
        limits = replace(options.limits, max_bytes=most, cancelled=lambda: interrupts.asked)
        try:
            return refined(found.model, name, limits, progress, symmetry=options.symmetry)
        finally:
            if progress is not None:
                progress.close()


def _present(found: Target, result: Refined, output: Output) -> None:
    from ..prove.refine_report import document_of, print_refined, verdict_of_refined
    from ..report.terminal import console
    from .present import commands, write_traces

    violations = [] if result.violation is None else [result.violation]
    replay = commands(found, violations, output.trace_out)
    if output.json:
        print(document_of(found.identity(), found.model, result, found.source, replay).model_dump_json(indent=2))
    elif output.quiet:
        verdict_of_refined(console(), found.model, result, found.bounds)
    else:
        print_refined(console(), found.model, result, found.bounds, replay)
    if output.trace_out is not None:
        write_traces(found, violations, output.trace_out, engine="native", mbt=False)
    sys.stdout.flush()
