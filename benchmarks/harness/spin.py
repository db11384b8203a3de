"""SPIN: Promela to C to a program that searches."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from .expected import HERE, Bounds
from .outcome import Outcome, Tool
from .process import BenchmarkError, Finished, run

GCC = ("gcc", "-O2", "-DNOREDUCE", "-DSAFETY")
MODEL = HERE / "peers" / "kvfence.pml"
REQUESTS, BLOCKS, STEPS, PER_REQUEST = (2, 3), 7, 3, 3
"""What the Promela text can: which numbers of requests, and at most how much of the rest."""


@dataclass(frozen=True)
class Spin(Tool):
    """One way to search: flags of the compiler and of the program."""

    flags: tuple[str, ...]
    options: tuple[str, ...]
    work: Path
    family: ClassVar[str] = "spin"

    @property
    def breadth_first(self) -> bool:
        """Whether depths and counterexamples are shortest ones."""
        return any("-DBFS" in flag for flag in self.flags)

    @property
    def shortest(self) -> bool:
        """Whether a counterexample of this mode is a shortest one."""
        return self.breadth_first and self.cores == 1

    def missing(self) -> str | None:
        """SPIN or the compiler, if it is not installed."""
        return next((f"{tool} is not installed" for tool in ("spin", "gcc") if not shutil.which(tool)), None)

    def run(self, bounds: Bounds) -> Outcome:
        """Generate, compile and run."""
        if bounds.requests not in REQUESTS or (bounds.blocks > BLOCKS or bounds.steps > STEPS):
            raise BenchmarkError(f"kvfence.pml is not written for {bounds.text}")
        folder = self.work / f"spin-{'-'.join(map(str, vars(bounds).values()))}-{self.name.replace(' ', '-')}"
        folder.mkdir(parents=True, exist_ok=True)
        names = ("R", "B", "D", "K", "FENCE")
        values = (bounds.requests, bounds.blocks, bounds.steps, bounds.per_request, bounds.fence)
        defines = [f"-D{name}={value}" for name, value in zip(names, values, strict=True)]
        made = run(("spin", *defines, "-a", MODEL), cwd=folder).checked()
        compiled = run((*GCC, *self.flags, "-o", "pan", "pan.c", "-lm", "-lrt", "-lpthread"), cwd=folder).checked()
        ended = run(("./pan", *self.options), cwd=folder).checked(0, 1)
        return self._read(ended).built_in(made.seconds + compiled.seconds)

    def _read(self, ended: Finished) -> Outcome:
        text = ended.out + ended.err
        cut = re.search(r"max search depth too small|out of memory|search was not completed|memory exceeded", text, re.I)
        if cut and "assertion violated" not in text:
            raise BenchmarkError(f"{self.name} did not finish:\n{text[-2000:]}")
        stored = _number(r"(\d+) states, stored", text)
        transitions = _number(r"(\d+) transitions \(= stored", text)
        depth = _number(r"depth reached (\d+)", text)
        violated = re.search(r"assertion violated.*\(at depth (\d+)\)", text)
        elapsed = re.search(r"elapsed time ([\d.]+(?:e[+-]?\d+)?) seconds", text)
        used = re.search(r"([\d.]+)\s+total (?:actual memory usage|shared memory usage)", text)
        return Outcome(
            distinct=stored,
            generated=None if transitions is None else transitions - 1,
            depth=depth if self.breadth_first else None,
            trace=int(violated[1]) + 1 if violated else None,
            build=0.0,
            search=float(elapsed[1]) if elapsed and float(elapsed[1]) > 0 else ended.seconds,
            wall=ended.seconds,
            memory=int(float(used[1]) * 1e6) if used and self.cores > 1 else ended.peak_bytes,
        )


def _number(pattern: str, text: str) -> int | None:
    found = re.search(pattern, text)
    return int(found[1]) if found else None


def modes(work: Path) -> list[Spin]:
    """The modes that are measured.

    On several cores, SPIN's breadth-first search stores hashes of states; `-DNO_HC` turns that off, and takes four
    times as long. A hash table of 2^24 slots suits ten million states; depth-first keeps its whole stack in memory.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    shared = f"-DMEMLIM={min(memory // 2, 8000)}"
    table, stack = "-w24", "-m2000000"
    return [
        Spin("SPIN breadth-first", 1, "none", ("-DBFS",), (table,), work),
        Spin("SPIN breadth-first, 2 cores", 2, "none", ("-DBFS_PAR",), ("-u2", table), work),
        Spin("SPIN depth-first", 1, "none", (), (stack, table), work),
        Spin("SPIN depth-first, 2 cores", 2, "none", ("-DNCORE=2", shared), (stack, table), work),
    ]
