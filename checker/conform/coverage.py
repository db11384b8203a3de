"""Which lines and branches of an implementation its events run through, as coverage.py sees it."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...traces.driver import Copyable, Driver, Handing
from .unreached import Branch, FileCoverage, Lines, compared_with


class Tracer:
    """Notes what runs in some files while drivers reset and take events; what they show and save is not looked at.

    Of `places`, a folder stands for every file below it. Of the folder of an `adapter`, a file with a driver, only the
    files that something ran in are looked at, and the adapter itself only if there is no other. `ImportError` where
    coverage.py is not installed.
    """

    def __init__(self, places: Sequence[Path] = (), *, adapter: Path | None = None) -> None:
        from coverage import Coverage

        self.adapter = adapter
        self.places = [place.resolve() for place in ((adapter.resolve().parent,) if adapter else places)]
        self._coverage = Coverage(
            data_file=None,
            branch=True,
            include=[f"{place}/*" if place.is_dir() else str(place) for place in self.places],
            config_file=False,
        )
        self._coverage.set_option("run:disable_warnings", ["no-data-collected", "couldnt-parse"])
        self._coverage.clear_exclude()
        self._coverage.clear_exclude("partial")
        self._coverage.exclude(r"(^\s*|:\s+)\.\.\.$")  # the body of what a protocol declares

    def traced(self, driver: Driver) -> Driver:
        """The same driver under this tracer."""
        return _TracedCopyable(driver, self) if isinstance(driver, Copyable) else _Traced(driver, self)

    @contextmanager
    def running(self) -> Generator[None]:
        """Note what runs."""
        self._coverage.start()
        try:
            yield
        finally:
            self._coverage.stop()

    def lines(self) -> dict[Path, Lines]:
        """What ran so far, file by file, in order."""
        files = [file for place in self.places for file in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]
        with TemporaryDirectory() as folder:
            out = Path(folder) / "coverage.json"
            self._coverage.json_report(morfs=[str(file) for file in files], outfile=str(out), ignore_errors=True)
            found = {Path(name).resolve(): _lines(made) for name, made in json.loads(out.read_text())["files"].items()}
        return {file: found[file] for file in files if file in found}

    def found(self, before: Mapping[Path, Lines]) -> list[FileCoverage]:
        """What the events ran through up to `before`, and what is to be thought of the rest, given what ran since."""
        found = self.lines()
        if self.adapter is not None:
            entered = [file for file, lines in found.items() if lines.ran]
            found = {file: found[file] for file in entered if len(entered) == 1 or file != self.adapter.resolve()}
        return [compared_with(name(file), file.read_text(), before[file], larger) for file, larger in found.items()]


def name(file: Path) -> str:
    """A file as it is called where the command runs."""
    here = os.path.relpath(file)
    return str(file) if here.startswith("..") else here


def _lines(made: Mapping[str, Any]) -> Lines:
    ran, missed = made["executed_lines"], made["missing_lines"]
    taken, left = (_branches(made.get(f"{which}_branches", ())) for which in ("executed", "missing"))  # none: nothing ran
    return Lines(frozenset(ran + missed), taken | left, frozenset(ran), taken)


def _branches(made: Sequence[Sequence[int]]) -> frozenset[Branch]:
    return frozenset((start, end) for start, end in made)


class _Traced(Handing):
    """A driver whose resets and events are traced."""

    def __init__(self, driver: Driver, tracer: Tracer) -> None:
        super().__init__(driver)
        self._tracer = tracer

    def reset(self) -> None:
        """That of the driver, traced."""
        with self._tracer.running():
            super().reset()

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        """That of the driver, traced."""
        with self._tracer.running():
            super().take(action, arguments)


class _TracedCopyable(_Traced):
    """One that can go back."""

    def save(self) -> Any:
        """That of the driver."""
        driver: Any = self.driver
        return driver.save()

    def restore(self, saved: Any) -> None:
        """That of the driver."""
        driver: Any = self.driver
        driver.restore(saved)
