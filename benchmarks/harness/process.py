"""Run a command, and say how long it took, how much memory it used and what it printed."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finished:
    """A command that ended: seconds of wall time, peak resident bytes (of its largest process), and its output."""

    command: tuple[str, ...]
    code: int
    seconds: float
    peak_bytes: int
    out: str
    err: str

    def checked(self, *codes: int) -> Finished:
        """This, if the exit code is one of these (0 where none is given); else `BenchmarkError` with the output."""
        if self.code not in (codes or (0,)):
            said = (self.err.strip() or self.out.strip())[-2000:]
            raise BenchmarkError(f"{' '.join(self.command)} ended with exit code {self.code}:\n{said}")
        return self


class BenchmarkError(Exception):
    """A tool failed, or its figures are not the expected ones."""


def run(command: Sequence[str | Path], cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Finished:
    """Run a command to its end; `env` is added to the environment.

    The peak is the kernel's (wait4). It is never less than this process's own, which is kept small for that reason.
    """
    words = tuple(str(word) for word in command)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.perf_counter()
        child = subprocess.Popen(words, cwd=cwd, env={**os.environ, **(env or {})}, stdout=out, stderr=err)
        try:
            _, status, usage = os.wait4(child.pid, 0)
        except BaseException:
            child.kill()
            child.wait()
            raise
        seconds = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        texts: list[str] = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return Finished(words, child.returncode, seconds, usage.ru_maxrss * 1024, *texts)
