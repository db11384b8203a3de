"""`fencepost vllm classify`: which release's mechanisms an implementation has, found by experiment."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import check_options as given
from . import conform_options
from .errors import UsageError

if TYPE_CHECKING:
    from ..conform.classify import Classification

MAX_STATES = "50k"

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A release that was fetched (0.33.0), a folder with vLLM in it, or any target of `fencepost conform`.",
        show_default=False,
    ),
]
MaxStates = Annotated[
    str,
    typer.Option(
        metavar="N",
        help="Pairs of a spec state and an implementation state, in each experiment.",
        rich_help_panel=given.LIMITS,
        show_default=True,
    ),
]


Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="Also print the command that shows each piece of evidence.", rich_help_panel=given.OUTPUT
    ),
]


def classify(
    name: Name,
    target_bounds: conform_options.TargetBounds = None,
    max_states: MaxStates = MAX_STATES,
    max_time: given.MaxTime = None,
    json: given.Json = False,
    quiet: given.Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Find out by experiment which profile an implementation behaves as, or which mix of mechanism switches.

    Exit codes: 0 it behaves as the mix that is named, 1 it is unlike any mix, 2 usage or input error, 3 UNDETERMINED,
    4 internal error.
    """
    from ..conform.classify_report import print_report, verdict
    from ..report.terminal import console
    from .check import limits_of
    from .classifying import Classifying
    from .drivers import find

    if json and (quiet or verbose):
        raise UsageError("--json prints the whole result; leave out --quiet and --verbose")
    target = find(target_name(name), "kv", f"vllm classify {name}")
    session = Classifying.of(target, tuple(target_bounds or ()), limits_of(max_states, None, max_time, None))
    out = console()
    if not json and not quiet:
        out.print(f"{target.name}, held against the profiles of spec kv", style="bold")
    told = session.run(quiet=quiet, verbose=verbose)
    if json:
        print(session.document(told, code_of(told.found)).model_dump_json(indent=2))
    elif quiet:
        verdict(out, told)
    else:
        out.print(session.title)
        out.print()
        print_report(out, told)
    raise typer.Exit(code_of(told.found))


def target_name(name: str) -> str:
    """The target that a word names: a version stands for the release, a folder for the vLLM in it."""
    if re.fullmatch(r"\d+(\.\w+)+", name) or (Path(name).is_dir() and not name.startswith("vllm==")):
        return f"vllm=={name}"
    return name


def code_of(found: Classification) -> int:
    """The exit code of a classification."""
    from ..result import Verdict

    return {Verdict.HOLDS: 0, Verdict.VIOLATED: 1, Verdict.UNDETERMINED: 3}[found.verdict]
