"""The result of `fencepost conform` as one JSON object, as `docs/json-result.md` explains it.

`SCHEMA_VERSION` changes when a field goes away or changes its meaning; new fields do not change it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from pydantic import Field

from ...traces.itf import document
from ...traces.origin import Origin, hash_of_bounds, version
from ...traces.short import shorten
from ..model import Model
from ..report.schema import Part, SpecPart
from .report import reason
from .result import Agreement, Difference, Hidden, Mismatch
from .unreached import FileCoverage

SCHEMA_VERSION = 1


class TargetPart(Part):
    """Which implementation: the name it was asked for by, and what of it is real."""

    name: str
    title: str


class DifferencePart(Part):
    """A place at which two values differ; what has no form in JSON is text."""

    path: str
    spec: Any
    implementation: Any


class EventPart(Part):
    """An event with its arguments by name, members by their labels."""

    action: str
    arguments: dict[str, Any]


class MismatchPart(Part):
    """The first difference, at the end of a shortest trace."""

    kind: str = Field(description="OBSERVATION, REFUSED, STOPPED or NOT_QUIET")
    meaning: str
    length: int
    event: EventPart
    message: str
    differences: list[DifferencePart]
    trace: dict[str, Any] = Field(description="an ITF object")
    replay: str


class DigestPart(Part):
    """A place at which the digests of two implementation states differ."""

    path: str
    one: Any
    other: Any


class HiddenPart(Part):
    """Spec states in which the implementation was in several states of its own, with an example: two short traces."""

    states: int
    most: int
    paths: list[str]
    differences: list[DigestPart]


class SampledPart(Part):
    """What random runs drew: the seed, the runs, how many ended early; the events of the run that found a difference before
    it was shortened, and why that was not done to the end."""

    seed: int
    runs: int
    ended: int
    events: int | None
    shrinking: str | None


class RowPart(Part):
    """One comparison: a model and what came out."""

    name: str
    verdict: str
    reason: str | None
    profile: str | None
    fault: str | None
    bounds: dict[str, int | str]
    bounds_sha256: str
    target_bounds: dict[str, int | str] = Field(description="values that only the implementation had")
    spec_states: int
    product_states: int
    transitions: int
    refusals: int
    after_stop: int
    depth: int
    actions: dict[str, int]
    cut: str | None
    vacuous: list[str]
    mismatch: MismatchPart | None
    hidden: HiddenPart | None
    sampled: SampledPart | None = Field(description="set for random runs")
    expected: dict[str, int]
    unexpected: list[str]
    again: str
    seconds: float


class GapPart(Part):
    """Lines that nothing reached, or a branch that nothing took."""

    file: str
    line: int
    last: int
    to: int | None = Field(description="of a branch: the line it leads to, 0 where it leaves the function")
    function: str
    text: str
    why: str = Field(description="TOO_SMALL, BEYOND or UNEXPLAINED")
    reason: str


class FilePart(Part):
    """One file: the statements and branches in its functions, and how many of them were reached and taken."""

    file: str
    statements: int
    reached: int
    branches: int
    taken: int
    needless: list[int] = Field(description="lines of explanations of what is reached")


class CoveragePart(Part):
    """What of an implementation the compared transitions run through."""

    complete: bool = Field(description="whether everything was compared that was asked for")
    files: list[FilePart]
    gaps: list[GapPart]


class ConformDocument(Part):
    """The whole result."""

    schema_version: int
    fencepost: str
    verdict: str
    exit_code: int
    spec: SpecPart
    target: TargetPart
    symmetry: bool = Field(description="whether states are counted up to symmetry")
    rows: list[RowPart]
    left_out: list[str] = Field(description="rows that were not begun after Ctrl-C")
    coverage: CoveragePart | None = Field(description="set with --coverage")
    seconds: float


@dataclass(frozen=True)
class Said:
    """What a comparison is reported with: names, the spec's file, values that only the implementation had, recorded figures
    and what of them differs, and the commands that repeat it and replay its trace."""

    name: str
    source: str | None
    different: Mapping[str, int | str]
    expected: Mapping[str, int]
    unexpected: Sequence[str]
    again: str
    replay: str


def row_part(model: Model, agreement: Agreement, said: Said) -> RowPart:
    """Put one comparison into its JSON form."""
    figures = agreement.figures
    return RowPart(
        name=said.name,
        verdict=agreement.verdict.value,
        reason=reason(agreement),
        profile=model.profile,
        fault=model.fault,
        bounds=dict(model.bound.values),
        bounds_sha256=hash_of_bounds(model.bound.values),
        target_bounds=dict(said.different),
        spec_states=figures.spec_states,
        product_states=figures.product_states,
        transitions=figures.transitions,
        refusals=figures.refusals,
        after_stop=figures.after_stop,
        depth=figures.depth,
        actions=dict(figures.taken),
        cut=agreement.cut,
        vacuous=list(agreement.vacuous),
        mismatch=None if agreement.mismatch is None else mismatch_part(model, agreement.mismatch, said.source, said.replay),
        hidden=None if agreement.hidden is None else _hidden(model, agreement.hidden),
        sampled=None if agreement.sampled is None else SampledPart(**asdict(agreement.sampled)),
        expected=dict(said.expected),
        unexpected=list(said.unexpected),
        again=said.again,
        seconds=figures.seconds,
    )


def whole(model: Model, source: str | None, target: TargetPart, rows: list[RowPart], **rest: Any) -> ConformDocument:
    """The whole result; `rest` are symmetry, verdict, exit_code, left_out, coverage and seconds."""
    spec = SpecPart.of(model, source)
    return ConformDocument(schema_version=SCHEMA_VERSION, fencepost=version(), spec=spec, target=target, rows=rows, **rest)


def coverage_part(covered: Sequence[FileCoverage], complete: bool) -> CoveragePart:
    """Put the coverage of an implementation into its JSON form."""
    files = [{name: value for name, value in asdict(one).items() if name != "gaps"} for one in covered]
    gaps: list[dict[str, Any]] = [{**asdict(gap), "why": gap.why.name} for one in covered for gap in one.gaps]
    return CoveragePart(complete=complete, files=[FilePart(**one) for one in files], gaps=[GapPart(**gap) for gap in gaps])


def mismatch_part(model: Model, found: Mismatch, source: str | None, replay: str) -> MismatchPart:
    """Put a difference into its JSON form; `replay` is the command that shows its trace in the spec."""
    action, arguments = found.event
    rule = next((rule for rule in model.bound.actions if rule.name == action), None)  # "reset" is no action
    return MismatchPart(
        kind=found.kind.name,
        meaning=found.kind.value,
        length=len(found.trace),
        event=EventPart(action=action, arguments=model.bound.show_arguments(rule, arguments) if rule else {}),
        message=found.message,
        differences=[DifferencePart(**sides(one, "spec", "implementation")) for one in found.differences],
        trace=document(model.bound, found.trace, origin(model, found, source)),
        replay=replay,
    )


def origin(model: Model, found: Mismatch, source: str | None) -> Origin:
    """Where the trace of a mismatch comes from, for its file."""
    return Origin.of(model.bound, found.trace.property, source=source, profile=model.profile, fault=model.fault)


def _hidden(model: Model, found: Hidden) -> HiddenPart:
    return HiddenPart(
        states=found.states,
        most=found.most,
        paths=[shorten(model.bound, trace) for trace in found.paths],
        differences=[DigestPart(**sides(one, "one", "other")) for one in found.differences],
    )


def sides(one: Difference, first: str, second: str) -> dict[str, Any]:
    """A difference with its two sides under these names, as JSON has them."""
    return {"path": one.path, first: plain(one.spec), second: plain(one.implementation)}


def plain(given: Any) -> Any:
    """A value as JSON has it: sets are sorted lists, bytes are hexadecimal, names are text, anything else its text."""
    match given:
        case None | bool() | int() | float() | str():
            return given
        case bytes():
            return given.hex()
        case Mapping():
            return {str(name): plain(inner) for name, inner in cast("Mapping[Any, Any]", given).items()}
        case list() | tuple():
            return [plain(inner) for inner in cast("Sequence[Any]", given)]
        case set() | frozenset():
            return sorted((plain(inner) for inner in cast("frozenset[Any]", given)), key=str)
        case _:
            return str(given)
