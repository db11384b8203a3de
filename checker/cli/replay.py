"""`fencepost replay`: run a recorded trace again in the interpreted spec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .errors import UsageError

if TYPE_CHECKING:
    from .load import Loaded

TraceWord = Annotated[
    str,
    typer.Argument(
        metavar="TRACE",
        help="A trace file (NAME.itf.json), or a short form such as kv:1f2e3d4c5b6a7988:0,3.1.",
        show_default=False,
    ),
]
SpecOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="The spec, where it is not the recorded one.", show_default=False),
]
ProfileOption = Annotated[
    str | None, typer.Option(help="Run it under this profile of the KV spec instead.", show_default=False)
]
FaultOption = Annotated[
    str | None, typer.Option(metavar="ID", help="Run it with the bounds of this fault.", show_default=False)
]
BoundsOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE,…",
        help="Bounds that differ from the recorded ones; for a short form, from the defaults. May be repeated.",
        show_default=False,
    ),
]
TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="NAME | FILE.py:CLASS",
        help="An implementation that is driven through the trace: `reference`, `vllm==VERSION`, or the driver class in a "
        "file of yours (docs/replay.md).",
        show_default=False,
    ),
]
TargetProfileOption = Annotated[
    str | None,
    typer.Option(
        "--target-profile",
        metavar="PROFILE",
        help="Which profile of the KV spec the implementation follows, where its name does not say it.",
        show_default=False,
    ),
]
TargetBoundsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--target-bounds",
        metavar="NAME=VALUE,…",
        help="Values that only the implementation gets. May be repeated.",
        show_default=False,
    ),
]
FullOption = Annotated[bool, typer.Option("--full", help="Print every state as well, not only what changed.")]

REPLAYED, NOT_SHOWN = 0, 1


def replay(
    trace: TraceWord,
    spec: SpecOption = None,
    profile: ProfileOption = None,
    fault: FaultOption = None,
    bounds: BoundsOption = None,
    target: TargetOption = None,
    target_profile: TargetProfileOption = None,
    target_bounds: TargetBoundsOption = None,
    full: FullOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the last line only.")] = False,
) -> None:
    """Run a trace again in the interpreted spec, or on an implementation, and see whether it still shows what it claims.

    Exit codes: 0 it runs and shows it; 1 it runs and does not show it; 2 it cannot be read, or its actions do not run
    on this spec at these bounds.
    """
    from .load import On, load

    for option, given in {"--target-profile": target_profile, "--target-bounds": target_bounds}.items():
        if given and target is None:
            raise UsageError(f"{option} is for an implementation; name it with --target")
    loaded = load(trace, On(spec, profile, fault, tuple(bounds or ())))
    if target is not None:
        from . import replay_target as on

        wanted = on.On(target, target_profile, tuple(target_bounds or ()))
        raise typer.Exit(on.OnTarget(loaded, wanted).run(full=full, quiet=quiet))
    raise typer.Exit(_report(loaded, full=full, quiet=quiet))


def _report(loaded: Loaded, *, full: bool, quiet: bool) -> int:
    from ...traces.claims import shown_by, shows
    from ..report import text
    from ..report.terminal import console
    from ..report.words import count

    out = console()
    run, bound = loaded.revived.trace, loaded.target.model.bound
    for note in loaded.revived.notes:
        out.print(f"note: {note}")
    if not quiet:
        text.trace(out, loaded.target.model, run, full=full)
    claimed = bool(run.property) and shows(bound, run)
    found = [name for name in shown_by(bound, run) if name != run.property]
    out.print(f"REPLAYED {count(len(run), 'transition')}", style="bold green" if claimed else "bold yellow", end="")
    out.print(f": {_outcome(run.property, claimed, found)}")
    return REPLAYED if claimed else NOT_SHOWN


def _outcome(claim: str, claimed: bool, others: list[str]) -> str:
    from ...traces.claims import LOCKSTEP, REFINES

    more = f"; its end also violates {', '.join(others)}" if others else ""
    if claim == LOCKSTEP:
        return f"the spec allows it; what an implementation showed at its end is not in the trace{more}"
    if claimed and claim.startswith(REFINES):
        protocol = claim.removeprefix(REFINES)
        return f"the spec allows it; what of it {protocol} does not is what check --refines {protocol} says{more}"
    if claimed:
        return f"it shows {claim}, as claimed{more}"
    if not claim:
        return "its end violates no property"
    return f"it does not show {claim} here{more}"
