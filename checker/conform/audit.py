"""An audit of an implementation: what it behaves as, where it differs from that, and which properties it violates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...spec.lang import BoundSpec, SpecError
from ...traces.claims import shows
from ...traces.trace import ReplayError, rerun
from ..model import Model
from ..result import PropertyResult, Status, Verdict
from .classify_report import Told
from .result import Agreement
from .search import Searched

CLASSIFY, LOCKSTEP, PROPERTIES = "classification", "lockstep", "properties"
"""The sections that can fail, be cut, or be left out."""


@dataclass(frozen=True)
class Compared:
    """Lockstep at one row of bounds, and the command that repeats it."""

    name: str
    model: Model
    agreement: Agreement
    again: str

    @property
    def verdict(self) -> Verdict:
        """That of the comparison; actions that are never taken at a row are left to other rows (`Audit.vacuous`)."""
        return Verdict.HOLDS if self.complete else self.agreement.verdict

    @property
    def complete(self) -> bool:
        """Whether everything at this row was compared."""
        return self.agreement.mismatch is None and self.agreement.cut is None


@dataclass(frozen=True)
class Checked:
    """The search of the implementation at one row of bounds, and the command that repeats it."""

    name: str
    model: Model
    searched: Searched
    again: str

    @property
    def verdict(self) -> Verdict:
        """That of the search; what is vacuous at a row is left to other rows (`Audit.vacuous`)."""
        return replace(self.searched.result, vacuous=()).verdict

    @property
    def complete(self) -> bool:
        """Whether every state at this row was searched."""
        return self.searched.result.cut is None


@dataclass(frozen=True)
class Judged:
    """A property over all rows: what is known, `at` which row the shortest trace is, and how many rows say so."""

    result: PropertyResult
    status: Status
    at: Checked
    rows: int

    @property
    def like_spec(self) -> bool:
        """Whether the spec with the same switches takes the steps of the shortest trace, too, and violates it at their end."""
        path = self.at.searched.paths.get(self.result.name)
        return path is not None and path.by_spec


@dataclass(frozen=True)
class Audit:
    """What was found, section by section.

    A section that failed is in `errors` by its name, the rows that it did not begin in `left_out`. `subject` says what the
    implementation is, line by line.
    """

    subject: tuple[str, ...]
    told: Told | None = None
    compared: tuple[Compared, ...] = ()
    checked: tuple[Checked, ...] = ()
    errors: Mapping[str, str] = field(default_factory=dict[str, str])
    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    @property
    def verdict(self) -> Verdict:
        """VIOLATED outranks everything; what failed, was cut, was not begun or is vacuous is UNDETERMINED.

        A difference in lockstep counts only where it is known what the implementation behaves as.
        """
        classified = Verdict.UNDETERMINED if self.told is None else self.told.found.verdict
        compared, checked = ({row.verdict for row in rows} for rows in (self.compared, self.checked))
        differs = Verdict.VIOLATED in compared and classified is not Verdict.UNDETERMINED
        if differs or Verdict.VIOLATED in {classified, *checked}:
            return Verdict.VIOLATED
        open_ = self.errors or any(self.left_out.values()) or self.vacuous
        holds = classified is Verdict.HOLDS and compared == checked == {Verdict.HOLDS}
        return Verdict.HOLDS if holds and not open_ else Verdict.UNDETERMINED

    @property
    def vacuous(self) -> tuple[str, ...]:
        """What no row puts to the test though it applies at one.

        As in a check, nothing is said of a section that was cut: more time may tell.
        """
        left_out = {name for name, rows in self.left_out.items() if rows}
        found: list[str] = []
        if LOCKSTEP not in left_out and all(row.complete for row in self.compared):
            found += [f"in lockstep, {one}" for one in _untaken(row.agreement.figures.taken for row in self.compared)]
        if PROPERTIES not in left_out and all(row.complete for row in self.checked):
            found += self._untested()
        return tuple(found)

    def _untested(self) -> list[str]:
        """Of rows that were searched completely; of one row alone it is what a check says."""
        results = [row.searched.result for row in self.checked]
        if len(results) == 1:
            return list(results[0].vacuous)
        found = _untaken({action.name: action.taken for action in result.figures.actions} for result in results)
        for one in (judged.result for judged in self.judged):
            if one.status is Status.NOT_REACHED and one.kind == "reachable":
                found.append(f"witness {one.name} is never reached")
            elif one.status is Status.VACUOUS:
                found.append(f"{one.name}: {one.reason}")
        return found

    def inherited(self, one: Judged) -> bool:
        """Whether the nearest profile, without flips, goes the way of the shortest trace, too, and violates it at the end."""
        trace = one.result.trace
        if trace is None or self.told is None:
            return False
        bound = one.at.model.bound
        release = BoundSpec(bound.spec, {**bound.values, **self.told.found.nearest.mix})
        try:
            return shows(release, rerun(release, trace))
        except (ReplayError, SpecError):
            return False

    @property
    def judged(self) -> tuple[Judged, ...]:
        """Every property with what is known of it over all rows that were searched."""
        by_name: dict[str, list[tuple[Checked, PropertyResult]]] = {}
        for row in self.checked:
            for result in row.searched.result.properties:
                by_name.setdefault(result.name, []).append((row, result))
        return tuple(map(_judged, by_name.values()))


TELLING = (
    Status.VIOLATED,
    Status.LATENT,
    Status.UNDETERMINED,
    Status.HOLDS,
    Status.REACHED,
    Status.VACUOUS,
    Status.NOT_REACHED,
    Status.NOT_APPLICABLE,
)
"""What is known of a property at one row, the more telling first."""


def _untaken(rows: Iterable[Mapping[str, int]]) -> list[str]:
    """The actions that apply at some row and are taken at none, from how often each is taken."""
    taken: Counter[str] = Counter()
    for row in rows:
        taken.update(row)
    return [f"action {name} is never taken" for name, times in taken.items() if not times]


def _judged(rows: Sequence[tuple[Checked, PropertyResult]]) -> Judged:
    status = min((result.status for _, result in rows), key=TELLING.index)
    saying = [(row, result) for row, result in rows if result.status is status]
    at, result = min(saying, key=lambda one: one[1].depth or 0)
    return Judged(result, status, at, len(saying))
