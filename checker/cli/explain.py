"""`fencepost explain`: render a trace again, or explain an error code."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from .errors import UsageError
from .replay import BoundsOption, FaultOption, FullOption, ProfileOption, SpecOption

_CODE = re.compile(r"FP\d+", re.IGNORECASE)


def explain(
    what: Annotated[
        str,
        typer.Argument(
            metavar="TRACE | CODE",
            help="A trace file or its short form; or a code such as FP103, from an error of the spec language.",
            show_default=False,
        ),
    ],
    spec: SpecOption = None,
    profile: ProfileOption = None,
    fault: FaultOption = None,
    bounds: BoundsOption = None,
    full: FullOption = False,
) -> None:
    """Explain a trace step by step, or an error code of the spec language with its rule, its fix and an example."""
    if _CODE.fullmatch(what):
        _code(what.upper())
    else:
        from .load import On

        _trace(what, On(spec, profile, fault, tuple(bounds or ())), full=full)


def _code(code: str) -> None:
    from ...spec.lang.codes import CODES

    if code not in CODES:
        raise UsageError(f"there is no code {code}; there are {', '.join(sorted(CODES))}")
    found = CODES[code]
    print(f"{code}: {found.rule}\n\nFix: {found.fix}")
    if found.example:
        print("\nWhat breaks it:\n\n" + "\n".join(f"    {line}" for line in found.example.strip("\n").splitlines()))


def _trace(what: str, on: object, *, full: bool) -> None:
    from ...traces.short import shorten
    from ..report import text
    from ..report.terminal import console
    from ..report.words import count
    from .load import On, load
    from .target import again

    assert isinstance(on, On)
    loaded = load(what, on)
    model, run = loaded.target.model, loaded.revived.trace
    out = console()
    fault = f", fault {model.fault}" if model.fault else ""
    out.print(f"{loaded.target.origin}{fault}", style="bold")
    for note in loaded.revived.notes:
        out.print(f"note: {note}")
    out.print(f"bounds: {loaded.target.bounds}")
    out.print()
    out.print(f"{count(len(run), 'transition')}; shows: {run.property or 'nothing in particular'}")
    statement = next((p.declared.doc for p in model.bound.every if p.name == run.property), "")
    if statement:
        out.print(f"  {' '.join(statement.split())}")
    text.trace(out, model, run, full=full)
    out.print("short form, with the command that replays it:")
    out.print(again(loaded.target, shorten(model.bound, run)), soft_wrap=True)
