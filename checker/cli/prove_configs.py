"""`fencepost prove kv --find-configs`: which configurations need the fence, and which releases have it there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..report.progress import ProgressLine
from . import kvdata
from .check_options import SEARCH, option
from .errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model import Limits
    from ..prove.condition import Combination
    from ..prove.configs import Answer, Release, Row
    from .check import Output
    from .target import Target

FindConfigs = Annotated[
    bool,
    option(
        SEARCH,
        "Of kv: decide for every combination of role, loads, steps in flight, caching and asynchronous scheduling whether "
        "freeing at once is unsafe, and compare with the gate of --profile, or of every release (docs/configs.md).",
        "--find-configs",
    ),
]


def run(
    words: Sequence[str],
    profile: str | None,
    bounds: Sequence[str],
    limits: Limits,
    output: Output,
    others: Sequence[object],
) -> int:
    """Decide, print and write what was asked for; returns the exit code. `others` are options that have no say here."""
    from ..prove.configs_report import document_of_configs, print_configs, verdict_of_configs
    from ..report.terminal import console

    _refuse(words, (*others, limits.max_depth is not None))
    answer = _answer(profile, bounds, limits, quiet=output.quiet)
    replay = _replays(answer, output.trace_out)
    if output.json:
        print(document_of_configs(answer, replay).model_dump_json(indent=2))
    elif output.quiet:
        verdict_of_configs(console(), answer)
    else:
        print_configs(console(), answer, replay, verbose=output.verbose)
    return answer.exit_code


def _refuse(words: Sequence[str], others: Sequence[object]) -> None:
    if tuple(words) != ("kv",):
        raise UsageError("--find-configs is a question to the KV spec: write fencepost prove kv --find-configs")
    if any(others):
        raise UsageError(
            "--find-configs searches every state of each configuration; it takes --profile, --bounds, --max-time, "
            "--max-memory, --trace-out, --json, -q and -v only"
        )


def _answer(profile: str | None, bounds: Sequence[str], limits: Limits, *, quiet: bool) -> Answer:
    from dataclasses import replace

    from ..prove.configs import find_configs, grid
    from .interrupt import Interrupts
    from .target import load_shipped, parse_bounds

    spec = load_shipped("kv")
    given = parse_bounds(bounds)
    profiles = kvdata.profiles() if profile is None else {profile: kvdata.profile(profile)}
    spec.values(given)
    if not grid(spec, given)[1]:
        raise UsageError(
            "--bounds: no engine is so; loads (remote-tokens) need a role, and asynchronous scheduling has two steps in "
            f"flight or more, and these were given: {', '.join(f'{n}={v}' for n, v in given.items())}"
        )
    ticker = Ticker(sys.stderr)

    def told(name: str, at: int, of: int) -> None:
        if not quiet:
            ticker.tell(name, at, of)

    with Interrupts() as interrupts:
        limited = replace(limits, cancelled=lambda: interrupts.asked)
        switches = {name: found.switches for name, found in profiles.items()}
        try:
            return find_configs(spec, switches, given, limited, told)
        finally:
            ticker.close()


class Ticker(ProgressLine):
    """Says which combination is being decided: one line that renews itself, now and then a plain line off a terminal."""

    def tell(self, profile: str, at: int, of: int) -> None:
        """Show it, if it is time."""
        import time

        said = f"{profile}: combination {at} of {of}"
        if self.terminal:
            self._renew(said)
        elif time.monotonic() >= self.next:
            print(said, file=self.stream, flush=True)
            self.next = time.monotonic() + self.pause
            self.pause = min(self.LONGEST, self.pause * 2)


def _replays(answer: Answer, trace_out: Path | None) -> dict[tuple[str, Combination], str]:
    """The command that replays the trace of each row in which something is corrupted; the traces are written if asked for."""
    from .present import commands, write_traces

    made: dict[tuple[str, Combination], str] = {}
    for release in answer.releases:
        for row in release.open:
            assert row.as_is.found is not None
            found, target = [row.as_is.found], _target(release, row)
            path = trace_out if trace_out is None or not made else _beside(trace_out, release, row)
            if path is not None:
                write_traces(target, found, path, engine="native", mbt=False)
            made[release.name, row.combination] = commands(target, found, path)[found[0].name]
    if trace_out is not None and not made:
        print(f"note: nothing is violated, so {trace_out} is not written", file=sys.stderr)
    return made


def _beside(path: Path, release: Release, row: Row) -> Path:
    """The file of a trace that is not the first: it adds the release and the values of the features."""
    suffix = next(end for end in (".itf.json", ".json", "") if path.name.endswith(end))
    values = "-".join(map(str, row.combination))
    return path.with_name(f"{path.name.removesuffix(suffix)}.{release.name}.{values}{suffix}")


def _target(release: Release, row: Row) -> Target:
    from .target import Target

    spec = row.model.spec
    return Target(row.model, "spec kv", None, ("--profile", release.name), spec.values(dict(release.switches)))
