"""`fencepost prove`: from a config or a spec to what holds after any number of transitions, or up to a length of path."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from . import check_options as given
from . import prove_configs, prove_fence
from .check_options import LIMITS, MODEL, OUTPUT, SEARCH, option
from .errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model import Limits
    from ..prove.asked import Answer
    from ..prove.bmc import Bounded, Depth
    from ..prove.proof import Proof
    from .check import Output
    from .target import Target

Method = Annotated[
    Literal["induction", "bmc"],
    option(
        SEARCH,
        "induction: what no action breaks holds after any number of transitions; the spec's lemmas are proved with it. "
        "bmc: every path up to --max-depth, for shallow bugs at large bounds.",
        show_default=True,
    ),
]
QueryTime = Annotated[
    str,
    option(LIMITS, "Time for one query to the solver, such as 30s.", metavar="TIME", show_default=True),
]
Suggest = Annotated[
    bool,
    option(
        SEARCH,
        "Where induction fails, print facts that rule its counterexamples out and hold in all states explored.",
        "--suggest",
    ),
]
Certificate = Annotated[
    Path | None,
    option(
        OUTPUT,
        "Write the invariant and what was proved of it in SMT-LIB 2, for another solver to check (docs/prove.md).",
        metavar="FILE",
    ),
]
PropertyNames = Annotated[
    list[str] | None,
    option(MODEL, "Prove only this property, with the lemmas. May be repeated.", "--property", metavar="NAME"),
]
QUERY_TIME = "60s"
EVERY = 20
"""Beyond so many transitions only every so many lengths of path that an induction looks at are told of."""
MaxDepth = Annotated[int | None, option(LIMITS, "Transitions of a path, for --method bmc.", metavar="N", min=0)]
Workers = Annotated[
    int | None,
    option(SEARCH, "Processes for --method induction. Default: one a core. Results do not depend on it.", min=1, max=1024),
]


def prove(
    target: given.TargetWords = None,
    profile: given.Profile = None,
    fault: given.Fault = None,
    bounds: given.Bounds = None,
    properties: PropertyNames = None,
    method: Method = "induction",
    suggest: Suggest = False,
    workers: Workers = None,
    find_configs: prove_configs.FindConfigs = False,
    keep_going: given.KeepGoing = False,
    max_depth: MaxDepth = None,
    query_time: QueryTime = QUERY_TIME,
    max_time: given.MaxTime = None,
    max_memory: given.MaxMemory = None,
    certificate: Certificate = None,
    json: given.Json = False,
    trace_out: given.TraceOut = None,
    quiet: given.Quiet = False,
    verbose: given.Verbose = False,
) -> None:
    """Prove that properties hold after any number of transitions, or look for shallow violations at large bounds.

    Exit codes: 0 PROVED, 1 VIOLATED, 2 usage, spec or input error, 3 UNDETERMINED, 4 internal error.
    """
    words, limits = tuple(target or ()), _limits(max_depth, max_time, max_memory)
    output = _output(json, trace_out, certificate, words, quiet=quiet, verbose=verbose)
    others: list[object] = [fault, properties, method == "bmc", suggest, workers]
    if find_configs:
        others += (keep_going, certificate, query_time != QUERY_TIME)
        raise typer.Exit(prove_configs.run(words, profile, bounds or (), limits, output, others))
    if words == (prove_fence.WORD,):
        others += (profile, bounds, max_depth, keep_going, max_time, max_memory, trace_out)
        raise typer.Exit(prove_fence.run(output, others, query_time, certificate))
    each = _fitting(method, max_depth, query_time, workers, suggest=suggest, certificate=certificate)
    found = _target(words, profile, fault, bounds, properties)
    if method == "induction":
        proof = _proved(found, limits, output, each, workers, keep_going=keep_going)
        raise typer.Exit(_induction(found, output, proof, suggest=suggest, certificate=certificate))
    raise typer.Exit(_bounded(found, limits, output, keep_going=keep_going))


def _limits(max_depth: int | None, max_time: str | None, max_memory: str | None) -> Limits:
    from .check import limits_of

    return limits_of(None, max_depth, max_time, max_memory)


def _output(
    json: bool, trace_out: Path | None, certificate: Path | None, inputs: tuple[str, ...], *, quiet: bool, verbose: bool
) -> Output:
    """What is printed and written; whether it can be written is found out before a long proof."""
    from .check import Output, refuse_overwriting, require_writable

    output = Output(json, trace_out, mbt=False, quiet=quiet, verbose=verbose)
    output.validate(*inputs)
    if certificate is not None:
        require_writable("--certificate", certificate)
        refuse_overwriting("--certificate", certificate, output.trace_out, *inputs)
    return output


def _target(
    words: tuple[str, ...], profile: str | None, fault: str | None, bounds: list[str] | None, properties: list[str] | None
) -> Target:
    from .target import Wanted, resolve

    return resolve(Wanted(words, profile, fault, tuple(bounds or ()), tuple(properties or ()), enumerable=False))


def _fitting(
    method: str,
    max_depth: int | None,
    query_time: str,
    workers: int | None,
    *,
    suggest: bool,
    certificate: Path | None,
) -> float:
    """The seconds of one query; `UsageError` for options that the method does not know."""
    from .units import seconds

    if method == "bmc" and suggest:
        raise UsageError("--suggest is for --method induction: it suggests lemmas")
    if method == "bmc" and certificate is not None:
        raise UsageError("--certificate is for --method induction: a bounded search proves nothing of longer paths")
    if method == "bmc" and workers is not None:
        raise UsageError("--workers is for --method induction; a bounded search goes path by path in one process")
    if method == "bmc" and query_time != QUERY_TIME:
        raise UsageError("--query-time is for --method induction; a bounded search ends by --max-depth or --max-time")
    if method == "induction" and max_depth is not None:
        raise UsageError("--max-depth is for --method bmc; induction looks at any depth")
    return seconds(query_time, "--query-time")


def _bounded(found: Target, limits: Limits, output: Output, *, keep_going: bool) -> int:
    from dataclasses import replace

    from ..prove.bmc import BoundedSearch
    from ..prove.report import depth_line, print_bounded, verdict_of_bounded
    from ..report.terminal import console
    from .interrupt import Interrupts
    from .present import introduce

    loud = not output.json and not output.quiet
    if loud:
        introduce(found, verbose=False)

    def tell(depth: Depth) -> None:
        if loud:
            print(depth_line(depth), flush=True)

    with Interrupts() as interrupts:
        limited = replace(limits, cancelled=lambda: interrupts.asked)
        result = BoundedSearch(found.model, limited, tell, keep_going=keep_going).run()
    replay = _written(found, result, output)
    if output.json:
        _print_json(found, result, replay)
    elif output.quiet:
        verdict_of_bounded(console(), result, found.bounds, found.origin)
    else:
        print()
        print_bounded(console(), found.model, result, found.bounds, found.origin, replay)
    return result.exit_code


def _induction(found: Target, output: Output, proof: Proof, *, suggest: bool, certificate: Path | None) -> int:
    """Print and write what came of a proof by induction; returns the exit code."""
    from ..prove.report import print_proof, verdict_of_proof
    from ..report.terminal import console

    replay = _written(found, proof, output)
    longer = ", ".join(proof.induced.longer)
    if certificate is not None and proof.exit_code == 0 and not longer:
        from ..prove.certificate import write

        write(certificate, found.model, found.bounds, {*proof.induced.kept, *proof.induced.stepped})
    if output.json:
        _print_json(found, proof, replay)
    elif output.quiet:
        verdict_of_proof(console(), proof, found.bounds, found.origin)
    else:
        print()
        print_proof(console(), found.model, proof, found.bounds, found.origin, replay, verbose=output.verbose)
    if suggest and not output.json:
        from ..prove.suggest import print_suggestions

        print_suggestions(console(), found.model.bound, proof)
    if certificate is not None and (proof.exit_code != 0 or longer):
        why = (
            f"{longer} needs longer paths than one transition, which a certificate is not about"
            if longer
            else "it is not proved"
        )
        print(f"note: {why}, so {certificate} is not written", file=sys.stderr)
    return proof.exit_code


def _proved(found: Target, limits: Limits, output: Output, each: float, workers: int | None, *, keep_going: bool) -> Proof:
    from dataclasses import replace

    from ..explore.native.memory import processors
    from ..prove.proof import Told, prove
    from ..prove.report import action_line, depth_line
    from .interrupt import Interrupts
    from .present import introduce

    loud = not output.json and not output.quiet
    if loud:
        introduce(found, verbose=False)

    def of_action(name: str, answers: Sequence[Answer], spent: float) -> None:
        if loud:
            print(action_line(name, answers, spent), flush=True)

    def of_depth(depth: Depth) -> None:
        if loud and (depth.depth <= EVERY or depth.depth % EVERY == 0 or depth.violated):
            print(depth_line(depth), flush=True)

    def of_next(what: str) -> None:
        if loud:
            print(what, flush=True)

    with Interrupts() as interrupts:
        limited = replace(limits, cancelled=lambda: interrupts.asked)
        told = Told(of_action, of_depth, of_next)
        return prove(found.model, limited, each=each, told=told, workers=workers or processors(), keep_going=keep_going)


def _written(found: Target, result: Bounded | Proof, output: Output) -> dict[str, str]:
    """Write the traces of violations where asked to; the command that replays each."""
    from .present import commands, write_traces

    replay = commands(found, result.violations, output.trace_out)
    if output.trace_out is not None:
        write_traces(found, result.violations, output.trace_out, engine=result.engine, mbt=False)
    return replay


def _print_json(found: Target, result: Bounded | Proof, replay: dict[str, str]) -> None:
    from ..prove.schema import document_of

    print(document_of(found.identity(), found.model, result, found.source, replay).model_dump_json(indent=2))
