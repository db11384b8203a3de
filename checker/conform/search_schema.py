"""The search of an implementation as JSON: the part `implementation` of the result of `fencepost check --target`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ...traces.itf import document
from ...traces.origin import Origin
from ..model import Model
from ..report.schema import Part
from .schema import DifferencePart, TargetPart, sides
from .search import ENGINE, Ended, Shown
from .search_report import Subject


class OtherwisePart(Part):
    """Where the spec does not go the way of the implementation."""

    step: int = Field(description="the number of the transition, 0 for the initial state")
    why: str
    differences: list[DifferencePart]


class PathPart(Part):
    """A path of the implementation that violates a property."""

    message: str = Field(description="what the implementation said where the last event stopped it")
    otherwise: OtherwisePart | None = Field(description="null where the spec takes the same steps")
    by_spec: bool = Field(
        description="whether the states of the trace are the spec's, which takes the steps and shows the same"
    )


class EndedPart(Part):
    """A shortest path to where no property can be judged."""

    kind: str = Field(description="BEYOND or UNJUDGED")
    meaning: str
    message: str
    trace: dict[str, Any] = Field(description="an ITF object")
    otherwise: OtherwisePart | None


class ImplementationPart(TargetPart):
    """The implementation whose states were searched."""

    spec_states: int = Field(description="distinct states of the spec that its states stand for")
    refusals: int = Field(description="events that were tried and had no effect")
    paths: dict[str, PathPart] = Field(description="by the name of the property that each violates")
    ended: EndedPart | None


def implementation_part(model: Model, subject: Subject, source: str | None) -> ImplementationPart:
    """Put the search of an implementation into its JSON form."""
    searched = subject.searched
    return ImplementationPart(
        name=subject.name,
        title=searched.title,
        spec_states=searched.states,
        refusals=searched.refusals,
        paths={
            name: PathPart(message=p.message, otherwise=_otherwise(p), by_spec=p.by_spec) for name, p in searched.paths.items()
        },
        ended=None if searched.ended is None else _ended(model, searched.ended, source),
    )


def _otherwise(path: Shown) -> OtherwisePart | None:
    found = path.otherwise
    if found is None:
        return None
    differing = [DifferencePart(**sides(one, "spec", "implementation")) for one in found.differences]
    return OtherwisePart(step=found.step, why=found.why, differences=differing)


def _ended(model: Model, found: Ended, source: str | None) -> EndedPart:
    trace = found.path.trace
    origin = Origin.of(model.bound, "", source=source, profile=model.profile, fault=model.fault, engine=ENGINE)
    return EndedPart(
        kind=found.kind.name,
        meaning=found.kind.value,
        message=found.message,
        trace=document(model.bound, trace, origin),
        otherwise=_otherwise(found.path),
    )
