"""Fencepost itself, run as a user runs it: the command, its JSON result, its cache."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from .expected import HERE, Bounds
from .outcome import Outcome, Tool
from .process import BenchmarkError, Finished, run

SPEC = HERE / "kvfence.py"
REPOSITORY = HERE.parent
ANY_VERDICT = (0, 1, 3)
WARMINGS = 3
"""A first run may end before its compilation does; so many runs must be enough to fill the cache."""


@dataclass(frozen=True)
class Command:
    """The command that is measured; `words` come before its arguments."""

    words: tuple[str, ...]

    def missing(self) -> str | None:
        """What is wrong with the command, None if it runs."""
        try:
            return None if run((*self.words, "--help")).code == 0 else f"{self.words[0]} does not run"
        except OSError as error:
            return f"{self.words[0]}: {error.strerror}"

    def check(self, *arguments: str, cache: Path | None = None) -> Finished:
        """Run `fencepost check` in the repository; `cache` is where compiled code is kept, if not as usual."""
        env = {} if cache is None else {"FENCEPOST_CACHE": str(cache)}
        return run((*self.words, "check", *arguments), cwd=REPOSITORY, env=env)

    def result(self, *arguments: str, cache: Path | None = None) -> tuple[dict[str, Any], Finished]:
        """The JSON result of a check, whatever its verdict."""
        ended = self.check(*arguments, "--json", cache=cache).checked(*ANY_VERDICT)
        return parsed(ended), ended

    def warm(self, *arguments: str) -> None:
        """Fill the cache for a check: run it until the native engine answers."""
        for _ in range(WARMINGS):
            if self.result(*arguments)[0].get("engine") == "native":
                return


def default_command() -> Command:
    """The command installed beside this interpreter."""
    beside = Path(sys.executable).parent / "fencepost"
    return Command((str(beside),) if beside.is_file() else ("fencepost",))


def parsed(ended: Finished) -> dict[str, Any]:
    """The one JSON object on standard output."""
    try:
        found = json.loads(ended.out)
    except json.JSONDecodeError as error:
        raise BenchmarkError(f"{' '.join(ended.command)} printed no JSON: {error}\n{ended.out[:500]}") from None
    if not isinstance(found, dict):
        raise BenchmarkError(f"{' '.join(ended.command)} printed no JSON object")
    return found  # pyright: ignore[reportUnknownVariableType]


def trace_length(result: dict[str, Any]) -> int | None:
    """The number of actions of the shortest counterexample in a result, None where nothing is violated."""
    if result["verdict"] != "VIOLATED":
        return None
    return min(item["depth"] for item in result["properties"] if item["status"] == "violated")


@dataclass(frozen=True)
class Fencepost(Tool):
    """Our search of kvfence with so many threads, symmetry on (both indices) or off."""

    command: Command
    family: ClassVar[str] = "fencepost"

    @property
    def shortest(self) -> bool:
        """Always: traces do not depend on threads or symmetry."""
        return True

    def missing(self) -> str | None:
        """What is wrong with the command."""
        return self.command.missing()

    def _arguments(self, bounds: Bounds) -> tuple[str, ...]:
        symmetry = "off" if self.symmetry == "none" else "on"
        options = ("--symmetry", symmetry, "--threads", str(self.cores))
        return (str(SPEC), "--bounds", bounds.text, *options)

    def prepare(self, bounds: Bounds) -> None:
        """Fill the cache."""
        self.command.warm(*self._arguments(bounds))

    def run(self, bounds: Bounds) -> Outcome:
        """Run the command once."""
        result, ended = self.command.result(*self._arguments(bounds))
        seconds = result["seconds"]
        return Outcome(
            distinct=result["distinct"],
            generated=result["generated"],
            depth=result["depth"],
            trace=trace_length(result),
            build=0.0,
            search=seconds["search"],
            wall=ended.seconds,
            memory=result["peak_memory_bytes"] - result["start_memory_bytes"],
        )


def modes(command: Command) -> list[Fencepost]:
    """The modes that are measured."""
    return [
        Fencepost("fencepost", 1, "none", command),
        Fencepost("fencepost, 2 threads", 2, "none", command),
        Fencepost("fencepost, symmetry", 1, "both", command),
        Fencepost("fencepost, symmetry, 2 threads", 2, "both", command),
    ]
