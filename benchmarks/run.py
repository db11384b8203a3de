"""Run the benchmarks: `python benchmarks/run.py --row kvfence-rate`; `--row all --write` renews README.md."""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from harness import machine, ours, rows_command, rows_kvfence, rumur, spin, tlc
from harness.expected import HERE, SIZES
from harness.outcome import Tool
from harness.process import BenchmarkError
from harness.report import Report, write_figures
from harness.session import Session

FAMILIES = ("fencepost", "spin", "rumur", "tlc")
ROWS: dict[str, Callable[[Session], Report]] = {**rows_kvfence.ROWS, **rows_command.ROWS}


def main(arguments: list[str] | None = None) -> int:
    """Run what is asked for: 0 if every target that was measured is met, 1 if one is missed, 2 if a tool failed."""
    parser = options()
    asked = parser.parse_args(arguments)
    if asked.list:
        for name, row in ROWS.items():
            print(f"{name:22} {row.__doc__}")
        return 0
    if not asked.row:
        parser.error("say which --row; --list lists them")
    names = list(ROWS) if "all" in asked.row else asked.row
    disturbed = machine.disturbance()
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as place:
        session = Session(command(asked.fencepost), [], split(asked.sizes, SIZES), asked.repeat, Path(place))
        session.tools = tools(session, split(asked.only, FAMILIES), asked.tlc)
        if disturbed:
            session.say(f"note: {disturbed}")
        reports, failures = collect(session, names)
    if asked.write:
        write_figures(HERE / "README.md", figures(reports, failures, asked, disturbed))
    if failures:
        return 2
    return 1 if any(report.missed for report in reports) else 0


def options() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks/run.py", description=__doc__)
    add = parser.add_argument
    add(
        "--row",
        action="append",
        choices=[*ROWS, "all"],
        metavar="ROW",
        help="a row, or all; may be repeated",
        default=[],
    )
    add("--list", action="store_true", help="list the rows")
    add("--sizes", help=f"sizes of kvfence, of {','.join(SIZES)}")
    add("--only", help=f"tools, of {','.join(FAMILIES)}")
    add("--repeat", type=positive, default=5, help="runs of each figure; the median is shown (default 5)")
    add("--tlc", type=Path, metavar="JAR", help="tla2tools.jar, for TLC")
    add("--fencepost", metavar="COMMAND", help="the command to measure (default: the one beside this Python)")
    add("--write", action="store_true", help="write the figures into benchmarks/README.md")
    return parser


def positive(text: str) -> int:
    """A number from 1."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def split(text: str | None, known: tuple[str, ...]) -> list[str]:
    """The names of a comma-separated list, all of them where none is given; ends the program on an unknown one."""
    names = [name.strip() for name in text.split(",")] if text else list(known)
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"benchmarks/run.py: {', '.join(unknown)} is not one of {', '.join(known)}")
    return names


def command(given: str | None) -> ours.Command:
    """The command to measure."""
    return ours.Command(tuple(shlex.split(given))) if given else ours.default_command()


def tools(session: Session, families: list[str], jar: Path | None) -> list[Tool]:
    """Every mode of every tool that is asked for."""
    every: list[Tool] = [
        *ours.modes(session.command),
        *spin.modes(session.work),
        *rumur.modes(session.work),
        *tlc.modes(jar.resolve() if jar else None, session.work),
    ]
    return [tool for tool in every if tool.family in families]


def collect(session: Session, names: list[str]) -> tuple[list[Report], list[str]]:
    """Run rows one after another; a row that fails is named, and does not stop the others."""
    reports: list[Report] = []
    failures: list[str] = []
    for name in names:
        session.say(f"{name} …")
        try:
            reports.append(ROWS[name](session))
            print(reports[-1].markdown(), end="\n\n", flush=True)
        except (BenchmarkError, OSError) as error:
            failures.append(f"{name} failed: {error}")
            print(f"### {name}\n\n{failures[-1]}\n", flush=True)
    return reports, failures


def figures(reports: list[Report], failures: list[str], asked: argparse.Namespace, disturbed: str | None) -> str:
    """What stands between the markers of README.md."""
    words = ["python", "benchmarks/run.py", *(f"--row {name}" for name in asked.row), f"--repeat {asked.repeat}"]
    words += [f"--{name} {value}" for name in ("sizes", "only") if (value := getattr(asked, name))]
    words += ["--tlc JAR"] if asked.tlc else []
    head = [
        "Machine: " + "\n".join(machine.description()),
        f"Command: `{' '.join(words)} --write`; medians of {asked.repeat}.",
    ]
    head += [f"Note: {disturbed}."] if disturbed else []
    return "\n\n".join([*head, *(report.markdown() for report in reports), *failures])


if __name__ == "__main__":
    sys.exit(main())
