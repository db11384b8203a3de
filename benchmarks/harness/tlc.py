"""TLC, from a tla2tools.jar that the user names."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from .expected import HERE, Bounds
from .outcome import Outcome, Tool
from .process import BenchmarkError, run

FOLDER = HERE / "peers"


@dataclass(frozen=True)
class Tlc(Tool):
    """One way to search: workers, and over which sets states are counted up to permutation."""

    jar: Path | None
    work: Path
    family: ClassVar[str] = "tlc"

    def missing(self) -> str | None:
        """The jar or Java, if it is not there."""
        if self.jar is None:
            return "no jar is given (--tlc JAR)"
        if not self.jar.is_file():
            return f"{self.jar} is not a file"
        return None if shutil.which("java") else "java is not installed"

    def run(self, bounds: Bounds) -> Outcome:
        """Run once. Seconds are those of the whole process: TLC rounds its own to whole ones."""
        folder = self.work / f"tlc-{'-'.join(map(str, vars(bounds).values()))}-{self.name.replace(' ', '-')}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        shutil.copy(FOLDER / "kvfence.tla", folder)
        (folder / "kvfence.cfg").write_text(text(bounds, self.symmetry), encoding="utf-8")
        java = ("java", "-XX:+UseParallelGC", "-cp", str(self.jar), "tlc2.TLC")
        # 12: a safety property is violated.
        ended = run((*java, "-workers", str(self.cores), "kvfence"), cwd=folder).checked(0, 12)
        counted = re.findall(r"([\d,]+) states generated[^,\n]*, ([\d,]+) distinct states found", ended.out)
        if not counted:
            raise BenchmarkError(f"{self.name} says no counts:\n{ended.out[-2000:]}")
        generated, distinct = (int(number.replace(",", "")) for number in counted[-1])
        depth = re.search(r"depth of the complete state graph search is (\d+)", ended.out)
        states = re.findall(r"^State (\d+):", ended.out, re.M)
        return Outcome(
            distinct=distinct,
            generated=generated - 1,
            depth=int(depth[1]) - 1 if depth and self.cores == 1 else None,  # with more workers TLC estimates it
            trace=len(states) - 1 if "is violated" in ended.out else None,
            build=0.0,
            search=ended.seconds,
            wall=ended.seconds,
        )


def text(bounds: Bounds, symmetry: str) -> str:
    """The configuration at these bounds."""
    operator = {"none": "", "requests": "SYMMETRY RequestsOnly", "both": "SYMMETRY Both"}[symmetry]
    filled = (FOLDER / "kvfence.cfg").read_text(encoding="utf-8")
    for name, value in {
        "REQUESTS": _set("r", bounds.requests),
        "BLOCKS": _set("b", bounds.blocks),
        "D": bounds.steps,
        "K": bounds.per_request,
        "FENCE": bounds.fence,
        "SYMMETRY": operator,
    }.items():
        filled = filled.replace(f"@{name}@", str(value))
    return filled


def _set(letter: str, size: int) -> str:
    return "{" + ", ".join(f"{letter}{number}" for number in range(size)) + "}"


def modes(jar: Path | None, work: Path) -> list[Tlc]:
    """The modes that are measured."""
    return [
        Tlc("TLC, 1 worker", 1, "none", jar, work),
        Tlc("TLC, 2 workers", 2, "none", jar, work),
        Tlc("TLC, symmetry sets", 1, "both", jar, work),
    ]
