"""The result of `fencepost prove` as one JSON object, as `docs/json-result.md` explains it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from ...traces.origin import version
from ..model import Model
from ..report.schema import SCHEMA_VERSION, Part, PropertyPart, property_part
from ..report.show import Shower
from ..report.steps import call
from .asked import Answer
from .bmc import Bounded
from .proof import Gap, Proof


class GapPart(Part):
    """What is missing of the proof of a property or lemma; `before` and what follows are of a counterexample to induction."""

    name: str
    reason: str
    before: dict[str, str] | None
    action: str | None = Field(description="what leads from `before` to where the property fails")
    begins: str | None = Field(description="where `before` is the state, if the action is looked at in pieces")
    ends: str | None = Field(description="where the piece ends, likewise")
    reachable: bool | None


class AskedPart(Part):
    """What an action does to a fact: proved, unkept or unknown; in how many parts, and the seconds of the solver."""

    fact: str
    action: str
    answer: str
    parts: int
    seconds: float


class DepthPart(Part):
    """What was decided of paths of one length."""

    depth: int
    violated: list[str]
    reached: list[str]
    seconds: float


class ProofDocument(Part):
    """The whole result: `lemmas`, `gaps` and `asked` of an induction, `depths` of a bounded search."""

    schema_version: int
    fencepost: str
    method: str
    verdict: str
    exit_code: int
    reason: str | None
    model: dict[str, Any]
    properties: list[PropertyPart]
    lemmas: list[PropertyPart]
    gaps: list[GapPart]
    asked: list[AskedPart]
    depths: list[DepthPart]
    cut: str | None
    longer: dict[str, int] = Field(description="facts that one transition may break, and that paths of so many keep")
    vacuous: list[str]
    unseen: list[str]
    open: list[str]
    trace: dict[str, Any] | None = Field(description="the shortest counterexample, an ITF object")
    replay: str | None


def document_of(
    identity: Mapping[str, Any], model: Model, result: Bounded | Proof, source: str | None, replay: Mapping[str, str]
) -> ProofDocument:
    """Put a result into its JSON form; `identity` says which model it is of, `source` which file its spec is."""
    properties = [property_part(model, p, result.engine, source, replay) for p in result.properties]
    bounded = result if isinstance(result, Bounded) else result.bounded
    first = result.violations[0] if result.violations else None
    common: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "fencepost": version(),
        "verdict": result.verdict.value,
        "exit_code": result.exit_code,
        "reason": result.reason,
        "model": dict(identity),
        "properties": properties,
        "depths": [
            DepthPart(depth=d.depth, violated=list(d.violated), reached=list(d.reached), seconds=d.seconds)
            for d in (bounded.depths if bounded else ())
        ],
        "open": list(result.open),
        "trace": next((p.trace for p in properties if first and p.name == first.name), None),
        "replay": None if first is None else replay.get(first.name),
    }
    if isinstance(result, Bounded):
        return ProofDocument(
            method="bmc", lemmas=[], gaps=[], asked=[], longer={}, cut=result.cut, vacuous=[], unseen=[], **common
        )
    return ProofDocument(
        method="induction",
        lemmas=[property_part(model, p, result.engine, source, replay) for p in result.lemmas],
        gaps=[_gap(model, gap) for gap in result.gaps],
        asked=[_asked(answer) for answer in result.induced.answers],
        longer=result.induced.longer,
        cut=result.induced.cut,
        vacuous=list(result.vacuous),
        unseen=list(result.unseen),
        **common,
    )


def _asked(answer: Answer) -> AskedPart:
    return AskedPart(fact=answer.fact, action=answer.action, answer=answer.answer, parts=answer.cases, seconds=answer.seconds)


def _gap(model: Model, gap: Gap) -> GapPart:
    found = gap.unkept
    before = None if found is None else dict(Shower(model.bound).state(found.before))
    rule = next((rule for rule in model.bound.actions if found is not None and rule.name == found.action), None)
    action = None if found is None or rule is None else call(model.bound, rule, found.arguments)
    begins, ends = (None, None) if found is None else (found.begins, found.ends)
    return GapPart(
        name=gap.name, reason=gap.words, before=before, action=action, begins=begins, ends=ends, reachable=gap.reachable
    )
