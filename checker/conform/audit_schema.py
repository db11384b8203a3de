"""An audit as one JSON object, as `docs/json-result.md` explains it.

`SCHEMA_VERSION` changes when a field goes away or changes its meaning; new fields do not change it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...traces.itf import document as itf
from ...traces.origin import Origin, version
from ..report.schema import Part
from ..result import Status
from .audit import Audit, Checked, Compared, Judged
from .audit_report import open_questions
from .classify_schema import ClassificationPart
from .schema import MismatchPart, mismatch_part
from .search import ENGINE

SCHEMA_VERSION = 1


class LockstepPart(Part):
    """Lockstep at one row of bounds."""

    name: str
    verdict: str
    bounds: dict[str, int | str]
    spec_states: int
    product_states: int
    transitions: int
    refusals: int
    depth: int
    cut: str | None
    mismatch: MismatchPart | None
    again: str
    seconds: float


class SearchedPart(Part):
    """The search of the implementation at one row of bounds."""

    name: str
    verdict: str
    bounds: dict[str, int | str]
    distinct: int
    generated: int
    depth: int
    cut: str | None
    again: str


class PropertyPart(Part):
    """A property over all rows; `row` is where its shortest trace is, or the first row that says so, `rows` how many say so.

    `like_spec` of a violation: whether the spec with the same switches takes the same steps and violates it, too;
    `inherited`: whether the nearest release does.
    """

    name: str
    kind: str
    statement: str
    status: str
    row: str
    rows: int
    depth: int | None
    reason: str | None
    trace: dict[str, Any] | None
    like_spec: bool | None
    inherited: bool | None
    again: str | None


class AuditDocument(Part):
    """The whole audit; a section that failed is null or empty, and its error is in `errors`."""

    schema_version: int
    fencepost: str
    verdict: str
    exit_code: int
    target: str
    subject: list[str]
    against: str
    classification: ClassificationPart | None
    lockstep: list[LockstepPart]
    searched: list[SearchedPart]
    properties: list[PropertyPart]
    vacuous: list[str]
    not_covered: list[str]
    left_out: dict[str, list[str]]
    errors: dict[str, str]
    again: str
    seconds: float


@dataclass(frozen=True)
class Request:
    """What was audited: the target's name, the mix that it was held against, and the command that audits it again."""

    target: str
    against: str
    again: str


def document(
    audit: Audit, asked: Request, classification: ClassificationPart | None, more: list[str], exit_code: int, seconds: float
) -> AuditDocument:
    """Put an audit into its JSON form; `more` are lines of what was not covered that the audit does not know of."""
    return AuditDocument(
        schema_version=SCHEMA_VERSION,
        fencepost=version(),
        verdict=audit.verdict.value,
        exit_code=exit_code,
        target=asked.target,
        subject=list(audit.subject),
        against=asked.against,
        classification=classification,
        lockstep=list(map(_lockstep, audit.compared)),
        searched=list(map(_searched, audit.checked)),
        properties=[_property(audit, one) for one in audit.judged],
        vacuous=list(audit.vacuous),
        not_covered=[*more, *open_questions(audit)],
        left_out={name: list(rows) for name, rows in audit.left_out.items()},
        errors=dict(audit.errors),
        again=asked.again,
        seconds=seconds,
    )


def _lockstep(row: Compared) -> LockstepPart:
    figures, found = row.agreement.figures, row.agreement.mismatch
    return LockstepPart(
        name=row.name,
        verdict=row.verdict.value,
        bounds=dict(row.model.bound.values),
        spec_states=figures.spec_states,
        product_states=figures.product_states,
        transitions=figures.transitions,
        refusals=figures.refusals,
        depth=figures.depth,
        cut=row.agreement.cut,
        mismatch=None if found is None else mismatch_part(row.model, found, None, ""),
        again=row.again,
        seconds=figures.seconds,
    )


def _searched(row: Checked) -> SearchedPart:
    figures = row.searched.result.figures
    return SearchedPart(
        name=row.name,
        verdict=row.verdict.value,
        bounds=dict(row.model.bound.values),
        distinct=figures.distinct,
        generated=figures.generated,
        depth=figures.depth,
        cut=row.searched.result.cut,
        again=row.again,
    )


def _property(audit: Audit, one: Judged) -> PropertyPart:
    result, model = one.result, one.at.model
    trace = None
    if result.trace is not None:
        trace = itf(model.bound, result.trace, Origin.of(model.bound, result.name, profile=model.profile, engine=ENGINE))
    return PropertyPart(
        name=result.name,
        kind=result.kind,
        statement=" ".join(result.statement.split()),
        status=one.status.value,
        row=one.at.name,
        rows=one.rows,
        depth=result.depth,
        reason=result.reason,
        trace=trace,
        like_spec=one.like_spec if one.status is Status.VIOLATED else None,
        inherited=audit.inherited(one) if one.status is Status.VIOLATED else None,
        again=one.at.again if one.status is Status.VIOLATED else None,
    )
