"""A classification as one JSON object, as `docs/json-result.md` explains it.

`SCHEMA_VERSION` changes when a field goes away or changes its meaning; new fields do not change it.
"""

from __future__ import annotations

from collections.abc import Callable

from pydantic import Field

from ...traces.origin import version
from ..report.schema import Part, SpecPart
from .classify import Finding
from .classify_report import Told, length, sharing
from .experiments import Experiment, Row
from .schema import MismatchPart, TargetPart, mismatch_part

SCHEMA_VERSION = 1


class PlacePart(Part):
    """Where something differs: the row, the number of the event, and the difference with its trace."""

    row: str
    event_number: int
    mismatch: MismatchPart
    again: str = Field(description="the command that finds the same again")


class ProfilePart(Part):
    """A profile, and where the implementation differs from it first; null where nothing was found."""

    name: str
    differs: PlacePart | None


class ToldPart(Part):
    """A choice that the implementation contradicts."""

    choice: str | int
    evidence: PlacePart


class UntoldPart(Part):
    """A choice that nothing tells apart from the one that was found, and why."""

    choice: str | int
    why: str


class SwitchPart(Part):
    """What is known of one switch."""

    name: str
    choice: str | int
    profiles: list[str]
    told: list[ToldPart]
    untold: list[UntoldPart]


class BehavesPart(Part):
    """A mix of switches: the nearest profile, and what is otherwise in it."""

    profile: str
    switches: dict[str, str | int]


class ComparedPart(Part):
    """A row of bounds at which the mix was compared to the end, or why it was not."""

    name: str
    bounds: dict[str, int | str]
    longest: int | None
    transitions: int
    cut: str | None


class ClassificationPart(Part):
    """A classification; `behaves_as` is null where the implementation is unlike any mix, or where it was not found out."""

    verdict: str
    reason: str | None
    behaves_as: BehavesPart | None
    nearest: BehavesPart
    profiles: list[ProfilePart]
    rows: list[ComparedPart]
    switches: list[SwitchPart]
    unlike: PlacePart | None
    transitions: int


class ClassifyDocument(Part):
    """The whole result of `fencepost vllm classify`."""

    schema_version: int
    fencepost: str
    exit_code: int
    spec: SpecPart
    target: TargetPart
    classification: ClassificationPart
    seconds: float


def classification_part(told: Told, rows: tuple[Row, ...]) -> ClassificationPart:
    """Put a classification into its JSON form."""
    found = told.found
    mix = BehavesPart(profile=found.nearest.name, switches=found.flips)
    compared = {experiment.row.name: experiment for experiment in found.experiments}
    return ClassificationPart(
        verdict=found.verdict.value,
        reason=found.reason if found.unlike is None else None,
        behaves_as=mix if found.verdict.value == "HOLDS" else None,
        nearest=mix,
        profiles=[
            ProfilePart(name=name, differs=None if e is None else _place(e, told.again)) for name, e in found.profiles.items()
        ],
        rows=[_compared(row, compared.get(row.name)) for row in rows],
        switches=[_switch(told, finding) for finding in found.findings],
        unlike=None if found.unlike is None else _place(found.unlike, told.again),
        transitions=told.transitions,
    )


def whole(spec: SpecPart, target: TargetPart, made: ClassificationPart, exit_code: int, seconds: float) -> ClassifyDocument:
    """The whole result."""
    return ClassifyDocument(
        schema_version=SCHEMA_VERSION,
        fencepost=version(),
        exit_code=exit_code,
        spec=spec,
        target=target,
        classification=made,
        seconds=seconds,
    )


def _compared(row: Row, experiment: Experiment | None) -> ComparedPart:
    return ComparedPart(
        name=row.name,
        bounds=dict(row.bounds),
        longest=row.longest,
        transitions=0 if experiment is None else experiment.transitions,
        cut="not compared to the end with any mix" if experiment is None else experiment.cut,
    )


def _switch(told: Told, finding: Finding) -> SwitchPart:
    return SwitchPart(
        name=finding.switch,
        choice=finding.choice,
        profiles=sharing(finding, told.profiles),
        told=[ToldPart(choice=other, evidence=_place(e, told.again)) for other, e in finding.told.items()],
        untold=[UntoldPart(choice=other, why=why) for other, why in finding.untold.items()],
    )


def _place(experiment: Experiment, again: Callable[[Experiment], str]) -> PlacePart:
    found = experiment.mismatch
    assert found is not None
    return PlacePart(
        row=experiment.row.name,
        event_number=length(found),
        mismatch=mismatch_part(experiment.model, found, None, ""),
        again=again(experiment),
    )
