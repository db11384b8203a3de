"""The result of a check as one JSON object, as `docs/json-result.md` explains it.

`SCHEMA_VERSION` changes when a field goes away or changes its meaning; new fields do not change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ...traces.itf import document
from ...traces.origin import Origin, hash_of_bounds, version
from ..model import Model
from ..result import PropertyResult, Result

SCHEMA_VERSION = 1


class Part(BaseModel):
    """Base of all parts: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


class SpecPart(Part):
    """Which spec: `source` is its file as it was given (null: shipped with Fencepost)."""

    name: str
    source: str | None
    sha256: str

    @classmethod
    def of(cls, model: Model, source: str | None) -> SpecPart:
        """The spec of a model."""
        return cls(name=model.spec.name, source=source, sha256=model.spec.source_hash())


class ModelPart(Part):
    """Which model: what was asked for, and the value of every bound and switch."""

    target: str
    profile: str | None
    fault: str | None
    bounds: dict[str, int | str]
    bounds_sha256: str
    derived: list[dict[str, Any]] = Field(description="where each bound comes from, for a model derived from a config")


class ActionPart(Part):
    """How often an action was enabled (states) and taken (transitions)."""

    name: str
    enabled: int
    taken: int


class DegreesPart(Part):
    """Transitions out of an expanded state."""

    least: int
    mean: float
    greatest: int


class PropertyPart(Part):
    """What is known of one property: `depth` is the length of the shortest violation or witness."""

    name: str
    kind: str
    statement: str
    status: str
    depth: int | None
    reason: str | None
    trace: dict[str, Any] | None = Field(description="an ITF object")
    replay: str | None


class SecondsPart(Part):
    """Wall time: until the search began, compiling, searching, and the whole command."""

    start: float
    compile: float
    search: float
    total: float


class ResultDocument(Part):
    """The whole result."""

    schema_version: int
    fencepost: str
    verdict: str
    exit_code: int
    reason: str | None
    distinct: int
    generated: int
    depth: int
    symmetry: bool = Field(description="whether states are counted up to symmetry")
    engine: str
    spec: SpecPart
    model: ModelPart
    properties: list[PropertyPart]
    actions: list[ActionPart]
    per_depth: list[int]
    degrees: DegreesPart
    deadlocks: int
    cut: str | None
    vacuous: list[str]
    open: list[str]
    trace: dict[str, Any] | None = Field(description="the shortest counterexample, an ITF object")
    replay: str | None
    seconds: SecondsPart
    start_memory_bytes: int
    peak_memory_bytes: int
    notes: list[str]
    implementation: dict[str, Any] | None = Field(default=None, description="set with --target")


@dataclass(frozen=True)
class Said:
    """What a result is reported with: what was checked in words, the spec's file, the lines of the table of a derived model,
    the commands that replay its traces, notes, the seconds of the command until the search began and in all, and the
    implementation that was searched, if it was one."""

    target: str
    source: str | None
    derived: list[dict[str, Any]]
    replay: dict[str, str]
    notes: tuple[str, ...]
    start: float
    total: float
    implementation: dict[str, Any] | None = None


def result_document(model: Model, result: Result, said: Said) -> ResultDocument:
    """Put a result into its JSON form."""
    figures = result.figures
    properties = [property_part(model, p, result.engine, said.source, said.replay) for p in result.properties]
    first = result.violations[0].name if result.violations else None
    least, mean, greatest = figures.degrees
    spent = {name: figures.seconds.get(name, 0.0) for name in ("compile", "search")}
    return ResultDocument(
        schema_version=SCHEMA_VERSION,
        fencepost=version(),
        verdict=result.verdict.value,
        exit_code=result.exit_code,
        reason=result.reason,
        distinct=figures.distinct,
        generated=figures.generated,
        depth=figures.depth,
        symmetry=figures.symmetry,
        engine=result.engine,
        spec=SpecPart.of(model, said.source),
        model=_model(model, said.target, said.derived),
        properties=properties,
        actions=[ActionPart(name=a.name, enabled=a.enabled, taken=a.taken) for a in figures.actions],
        per_depth=list(figures.per_depth),
        degrees=DegreesPart(least=least, mean=mean, greatest=greatest),
        deadlocks=figures.deadlocks,
        cut=result.cut,
        vacuous=list(result.vacuous),
        open=list(result.open),
        trace=next((p.trace for p in properties if p.name == first), None),
        replay=said.replay.get(first) if first else None,
        seconds=SecondsPart(start=said.start, total=said.total, **spent),
        start_memory_bytes=figures.start_memory_bytes,
        peak_memory_bytes=max(figures.peak_memory_bytes, figures.start_memory_bytes),
        notes=list(said.notes),
        implementation=said.implementation,
    )


def _model(model: Model, target: str, derived: list[dict[str, Any]]) -> ModelPart:
    return ModelPart(
        target=target,
        profile=model.profile,
        fault=model.fault,
        bounds=dict(model.bound.values),
        bounds_sha256=hash_of_bounds(model.bound.values),
        derived=derived,
    )


def property_part(
    model: Model, prop: PropertyResult, engine: str, source: str | None, replay: Mapping[str, str]
) -> PropertyPart:
    """One property, its trace as an ITF object: `engine` found it, `source` is the spec's file."""
    made = None
    if prop.trace is not None:
        origin = Origin.of(model.bound, prop.name, source=source, profile=model.profile, fault=model.fault, engine=engine)
        made = document(model.bound, prop.trace, origin)
    return PropertyPart(
        name=prop.name,
        kind=prop.kind,
        statement=prop.statement,
        status=prop.status.value,
        depth=prop.depth,
        reason=prop.reason,
        trace=made,
        replay=replay.get(prop.name),
    )
