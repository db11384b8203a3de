"""How `fencepost conform` compares: every transition, or random runs and the log of what happened in them."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from .errors import UsageError

if TYPE_CHECKING:
    from ...spec.lang import Arguments, Rule
    from ...traces.driver import Driver, Observation
    from ..conform.result import Agreement
    from ..explore.findings import OnProgress
    from ..model import Limits, Model


def how(
    symmetry: str,
    workers: int | None,
    random: str | None,
    seed: int | None,
    log: Path | None,
    exhaustive_limits: Mapping[str, object],
) -> Exhaustive | Sampling:
    """What was asked for; `UsageError` where options of the one are given for the other."""
    from .units import number

    if random is None:
        for option, value in {"--seed": seed, "--log": log}.items():
            if value is not None:
                raise UsageError(f"{option} is for random runs; say with --random how many transitions they should have")
        return Exhaustive(symmetry == "on", workers)
    given = {**exhaustive_limits, "--workers": workers, "--symmetry": None if symmetry == "on" else symmetry}
    for option, value in given.items():
        if value is not None:
            raise UsageError(f"{option} is for the exhaustive comparison; leave it out with --random")
    if log is not None and (log.is_dir() or not os.access(log.parent, os.W_OK)):
        raise UsageError(f"--log {log}: {'is a folder' if log.is_dir() else f'the folder {log.parent} is not writable'}")
    return Sampling(number(random, "--random"), seed or 0, log)


@dataclass(frozen=True)
class Exhaustive:
    """Every transition is compared; without a number of `workers`, a driver of the user's own gets one.

    It may hold what does not survive a fork, such as a device; what comes with Fencepost gets one a core.
    """

    symmetry: bool
    workers: int | None

    @property
    def words(self) -> tuple[str, ...]:
        """The options that compare the same again."""
        return () if self.symmetry else ("--symmetry", "off")

    def words_of(self, model: Model) -> tuple[str, ...]:
        """Those for one row."""
        return self.words

    def compare(self, model: Model, driver: Driver, limits: Limits, progress: OnProgress | None, *, users: bool) -> Agreement:
        """Compare one row; `users` says whose driver it is."""
        from ..conform.product import conform as compare
        from ..explore.native.memory import processors

        workers = self.workers or (1 if users else processors())
        return compare(model, driver, limits, progress, symmetry=self.symmetry, workers=workers)


@dataclass(frozen=True)
class Sampling:
    """Random runs of so many transitions in all, and the file for the log of the first one."""

    transitions: int
    seed: int
    log: Path | None

    @property
    def words(self) -> tuple[str, ...]:
        """The options that draw the same runs again."""
        return ("--random", str(self.transitions), "--seed", str(self.seed))

    def words_of(self, model: Model) -> tuple[str, ...]:
        """Those for one row."""
        return self.words

    def compare(self, model: Model, driver: Driver, limits: Limits, progress: OnProgress | None, *, users: bool) -> Agreement:
        """Compare the runs, and write the log."""
        from ..conform.random_runs import RandomOptions, run

        wanted = RandomOptions(self.transitions, self.seed)
        if self.log is None:
            return run(model, driver, wanted, limits, progress)
        with _whole(self.log) as stream:
            return run(model, driver, wanted, limits, progress, _Logger(model, stream))


@contextmanager
def _whole(path: Path) -> Generator[TextIO]:
    """A file to write that gets its name at the end: an error leaves no part of it."""
    if path.exists() and not path.is_file():  # a device or pipe, such as /dev/stdout, is written to as it is
        with path.open("w", encoding="utf-8") as stream:
            yield stream
        return
    temporary = path.with_name(f".{path.name[:100]}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as stream:
            yield stream
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


class _Logger:
    """Writes the events of the first run, one JSON object a line."""

    def __init__(self, model: Model, stream: TextIO) -> None:
        self.bound, self.stream = model.bound, stream

    def __call__(self, number: int, rule: Rule, args: Arguments, observation: Observation) -> None:
        from ..conform.log import log_line

        if number == 1:
            print(log_line(self.bound, rule, args, observation), file=self.stream)
