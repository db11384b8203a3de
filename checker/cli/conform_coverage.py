"""`fencepost conform --coverage`: which lines of an implementation the compared transitions run through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...spec.lang import BoundsError, Index
from .conform_how import Exhaustive, Sampling
from .conform_rows import Asked, Row, rows
from .drivers import Implementation
from .errors import UsageError
from .target import SHIPPED

if TYPE_CHECKING:
    from rich.console import Console

    from ...traces.driver import Driver
    from ..conform.coverage import Tracer
    from ..conform.result import Agreement
    from ..conform.unreached import FileCoverage, Lines
    from ..explore.findings import OnProgress
    from ..model import Limits, Model

TRANSITIONS = 1_000
"""Random transitions at each of the larger sizes."""
LARGER = 4
"""How many times as many members each index of a user's spec has at its larger sizes."""


@dataclass(frozen=True)
class Wish:
    """Whether coverage was asked for, and of which files or folders (none: those of the target)."""

    wanted: bool
    measure: tuple[Path, ...] = ()

    @classmethod
    def of(cls, wanted: bool, measure: Sequence[Path] | None, workers: int | None, random: str | None) -> Wish:
        """What was asked for; `UsageError` where it does not go with other options, or a file is not there."""
        if measure and not wanted:
            raise UsageError("--measure says what --coverage looks at; add --coverage")
        if wanted and random is not None:
            raise UsageError("--coverage is of the exhaustive comparison, and makes random runs after it; leave out --random")
        if wanted and workers is not None and workers > 1:
            raise UsageError("--coverage looks at one process; leave out --workers")
        for path in measure or ():
            if not path.exists():
                raise UsageError(f"--measure {path}: there is no such file or folder")
        return cls(wanted, tuple(measure or ()))


@dataclass(frozen=True)
class Covering(Exhaustive):
    """The exhaustive comparison of some rows under a tracer, in one process; after them random runs of `larger` rows."""

    tracer: Tracer
    larger: tuple[Row, ...]
    _within: dict[Path, Lines] = field(default_factory=dict)

    @classmethod
    def of(cls, plain: Exhaustive, wish: Wish, target: Implementation, asked: Asked, wanted: Sequence[Row]) -> Covering:
        """What was asked for; `UsageError` where coverage.py is not installed."""
        from ..conform.coverage import Tracer

        try:
            if wish.measure or target.path is None:
                tracer = Tracer(wish.measure or target.code())
            else:
                tracer = Tracer(adapter=target.path)
        except ImportError:
            raise UsageError("--coverage needs coverage.py: pip install 'fencepost[coverage]'") from None
        return cls(plain.symmetry, 1, tracer, tuple(_larger(asked, wanted)))

    def words_of(self, model: Model) -> tuple[str, ...]:
        """The options that compare the same again."""
        return self._runs.words if self._is_larger(model) else self.words

    def compare(self, model: Model, driver: Driver, limits: Limits, progress: OnProgress | None, *, users: bool) -> Agreement:
        """Compare one row, traced; in runs at larger sizes it does not matter whether every action is drawn."""
        traced = self.tracer.traced(driver)
        if not self._is_larger(model):
            return super().compare(model, traced, limits, progress, users=users)
        self._note_what_is_within()
        agreement = self._runs.compare(model, traced, limits, progress, users=users)
        return replace(agreement, vacuous=())

    def found(self) -> list[FileCoverage]:
        """What the exhaustive comparison reached, and what is to be thought of the rest."""
        self._note_what_is_within()
        return self.tracer.found(self._within)

    def present(self, out: Console, *, quiet: bool, complete: bool) -> None:
        """Print what was found; with `quiet` in one line."""
        from ..conform.coverage_report import print_coverage, summary

        if quiet:
            summary(out, self.found())
            return
        out.print()
        print_coverage(out, self.found(), complete=complete)

    def _note_what_is_within(self) -> None:
        if not self._within:
            self._within.update(self.tracer.lines())

    def _is_larger(self, model: Model) -> bool:
        return any(row.target.model is model for row in self.larger)

    @property
    def _runs(self) -> Sampling:
        return Sampling(TRANSITIONS, 0, None)


def _larger(asked: Asked, wanted: Sequence[Row]) -> list[Row]:
    """Sizes beyond those of the rows: of kv those of the manifest; a user's spec has more members of every index."""
    if asked.spec in SHIPPED:
        kinds = dict.fromkeys((row.target.model.profile, row.target.model.fault) for row in wanted)
        return [
            row
            for profile, fault in kinds
            for row in rows(Asked(asked.spec, None if fault else profile, fault, (), asked.different, random=True))
        ]
    model = wanted[0].target.model
    sizes = {n: LARGER * int(model.bound.values[n]) for n, b in model.spec.bounds.items() if isinstance(b, Index)}
    kept = [f"{name}={value}" for name, value in model.bound.values.items() if name not in sizes]
    try:
        (row,) = rows(replace(asked, bounds=(*kept, *(f"{name}={size}" for name, size in sizes.items()))))
    except BoundsError:
        return []
    return [replace(row, name="larger sizes")]
