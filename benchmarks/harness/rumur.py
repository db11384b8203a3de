"""Rumur: Murphi to C to a program that searches."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from .expected import HERE, Bounds
from .outcome import Outcome, Tool
from .process import BenchmarkError, run

MODEL = HERE / "peers" / "kvfence.m"
GCC = ("gcc", "-std=c11", "-O3", "-march=native", "-mcx16", "-fwhole-program")
"""The flags that rumur's own wrapper (rumur-run) uses on x86-64."""


@dataclass(frozen=True)
class Rumur(Tool):
    """One way to search: threads, and which index types are scalar sets."""

    work: Path
    family: ClassVar[str] = "rumur"

    def missing(self) -> str | None:
        """Rumur or the compiler, if it is not installed."""
        return next((f"{tool} is not installed" for tool in ("rumur", "gcc") if not shutil.which(tool)), None)

    def run(self, bounds: Bounds) -> Outcome:
        """Generate, compile and run. Of scalar sets all permutations are tried, so that counts are exact."""
        folder = self.work / f"rumur-{'-'.join(map(str, vars(bounds).values()))}-{self.name.replace(' ', '-')}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kvfence.m").write_text(text(bounds, self.symmetry), encoding="utf-8")
        reduction = "off" if self.symmetry == "none" else "exhaustive"
        options = ("--deadlock-detection", "stuck", "--threads", str(self.cores), "--symmetry-reduction", reduction)
        made = run(("rumur", *options, "--output", "kvfence.c", "kvfence.m"), cwd=folder).checked()
        compiled = run((*GCC, "-o", "kvfence", "kvfence.c", "-lpthread"), cwd=folder).checked()
        ended = run((folder / "kvfence",), cwd=folder).checked(0, 1)
        counted = re.search(r"(\d+) states, (\d+) rules fired", ended.out)
        if not counted:
            raise BenchmarkError(f"{self.name} says no counts:\n{ended.out[-2000:]}")
        steps = len(re.findall(r"^Rule .* fired\.$", ended.out, re.M))
        return Outcome(
            distinct=int(counted[1]),
            generated=int(counted[2]),
            depth=None,
            trace=steps if "error trace" in ended.out else None,
            build=made.seconds + compiled.seconds,
            search=ended.seconds,
            wall=ended.seconds,
            memory=ended.peak_bytes,
        )


def text(bounds: Bounds, symmetry: str) -> str:
    """The Murphi text at these bounds, with scalar sets where the symmetry is to be used."""
    scalar = {"none": (), "requests": ("R",), "both": ("R", "B")}[symmetry]
    kinds = {size: f"scalarset({size})" if size in scalar else f"0 .. {size} - 1" for size in ("R", "B")}
    filled = MODEL.read_text(encoding="utf-8")
    for name, value in {
        "R": bounds.requests,
        "B": bounds.blocks,
        "D": bounds.steps,
        "K": bounds.per_request,
        "FENCE": bounds.fence,
        "REQUEST": kinds["R"],
        "BLOCK": kinds["B"],
    }.items():
        filled = filled.replace(f"@{name}@", str(value))
    return filled


def modes(work: Path) -> list[Rumur]:
    """The modes that are measured."""
    return [
        Rumur("Rumur", 1, "none", work),
        Rumur("Rumur, 2 threads", 2, "none", work),
        Rumur("Rumur, scalar sets", 1, "both", work),
    ]
