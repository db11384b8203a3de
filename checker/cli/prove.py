"""`fencepost prove`: from a config or a spec to what holds after any number of transitions, or up to a length of path."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from . import check_options as given
from . import prove_fence
from .check_options import LIMITS, MODEL, OUTPUT, SEARCH, option
from .errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model import Limits
    from ..prove.bmc import Bounded, Depth
    from ..prove.induction import Answer
    from ..prove.proof import Proof
    from ..result import PropertyResult
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
MaxDepth = Annotated[int | None, option(LIMITS, "Transitions of a path, for --method bmc.", metavar="N", min=0)]


def prove(
    target: given.TargetWords = None,
    profile: given.Profile = None,
    fault: given.Fault = None,
    bounds: given.Bounds = None,
    properties: PropertyNames = None,
    method: Method = "induction",
    suggest: Suggest = False,
    keep_going: given.KeepGoing = False,
    max_depth: MaxDepth = None,
    query_time: QueryTime = "60s",
    max_time: given.MaxTime = None,
    max_memory: given.MaxMemory = None,
    certificate: Certificate = None,
    json: given.Json = False,
    trace_out: given.TraceOut = None,
    quiet: given.Quiet = False,
    verbose: given.Verbose = False,
) -> None:
    """Prove with Z3 that properties hold after any number of transitions, or look for shallow violations at large bounds.

    Exit codes: 0 PROVED, 1 VIOLATED, 2 usage, spec or input error, 3 UNDETERMINED, 4 internal error.
    """
    from .check import Output, limits_of
    from .target import Wanted, resolve
    from .units import seconds

    words, output = tuple(target or ()), Output(json, trace_out, mbt=False, quiet=quiet, verbose=verbose)
    output.validate(*words)
    _check_certificate(certificate, trace_out, *words)
    _fit(method, max_depth, suggest=suggest, certificate=certificate, keep_going=keep_going)
    each = seconds(query_time, "--query-time")
    if words == (prove_fence.WORD,):
        prove_fence.refuse(profile, fault, bounds, properties, max_time, max_memory, trace_out, suggest, method == "bmc")
        raise typer.Exit(prove_fence.run(output, each=each, certificate=certificate))
    found = resolve(Wanted(words, profile, fault, tuple(bounds or ()), tuple(properties or ()), enumerable=False))
    limits = limits_of(None, max_depth, max_time, max_memory)
    if method == "bmc":
        raise typer.Exit(_bounded(found, limits, output, keep_going=keep_going))
    raise typer.Exit(_induction(found, limits, output, each=each, suggest=suggest, certificate=certificate))


def _check_certificate(certificate: Path | None, *others: Path | str | None) -> None:
    from .check import refuse_overwriting, require_writable

    if certificate is not None:
        require_writable("--certificate", certificate)
        refuse_overwriting("--certificate", certificate, *others)


def _fit(method: str, max_depth: int | None, *, suggest: bool, certificate: Path | None, keep_going: bool) -> None:
    """Refuse options that the method does not know."""
    if method == "bmc" and suggest:
        raise UsageError("--suggest is for --method induction: it suggests lemmas")
    if method == "bmc" and certificate is not None:
        raise UsageError("--certificate is for --method induction: a bounded search proves nothing of longer paths")
    if method == "induction" and (max_depth is not None or keep_going):
        name = "--keep-going" if keep_going else "--max-depth"
        raise UsageError(f"{name} is for --method bmc; induction looks at any depth and at every property")


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
    replay = _written(found, result.violations, output)
    if output.json:
        _print_json(found, result, replay)
    elif output.quiet:
        verdict_of_bounded(console(), result, found.bounds, found.origin)
    else:
        print()
        print_bounded(console(), found.model, result, found.bounds, found.origin, replay)
    return result.exit_code


def _induction(found: Target, limits: Limits, output: Output, *, each: float, suggest: bool, certificate: Path | None) -> int:
    from ..prove.report import print_proof, verdict_of_proof
    from ..report.terminal import console

    loud = not output.json and not output.quiet
    proof = _proved(found, limits, each, loud=loud)
    replay = _written(found, proof.violations, output)
    if certificate is not None and proof.exit_code == 0:
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
    if certificate is not None and proof.exit_code != 0:
        print(f"note: it is not proved, so {certificate} is not written", file=sys.stderr)
    return proof.exit_code


def _proved(found: Target, limits: Limits, each: float, *, loud: bool) -> Proof:
    from dataclasses import replace

    from ..prove.proof import Told, prove
    from ..prove.report import action_line, depth_line
    from .interrupt import Interrupts
    from .present import introduce

    if loud:
        introduce(found, verbose=False)

    def of_action(name: str, answers: Sequence[Answer], spent: float) -> None:
        if loud:
            print(action_line(name, answers, spent), flush=True)

    def of_depth(depth: Depth) -> None:
        if loud:
            print(depth_line(depth), flush=True)

    def of_next(what: str) -> None:
        if loud:
            print(what, flush=True)

    with Interrupts() as interrupts:
        limited = replace(limits, cancelled=lambda: interrupts.asked)
        return prove(found.model, limited, each=each, told=Told(of_action, of_depth, of_next))


def _written(found: Target, violations: Sequence[PropertyResult], output: Output) -> dict[str, str]:
    """Write the traces of violations where asked to; the command that replays each."""
    from .present import commands, write_traces

    replay = commands(found, violations, output.trace_out)
    if output.trace_out is not None:
        write_traces(found, violations, output.trace_out, engine="z3", mbt=False)
    return replay


def _print_json(found: Target, result: Bounded | Proof, replay: dict[str, str]) -> None:
    from ..prove.schema import document_of

    print(document_of(found.identity(), found.model, result, found.source, replay).model_dump_json(indent=2))
