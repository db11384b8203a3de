"""What came of holding a spec against a protocol, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field

from ...spec.fence.finite import State
from ...spec.fence.runs import shown
from ...traces.origin import version
from ..model import Model
from ..report import text
from ..report.schema import SCHEMA_VERSION, Part, PropertyPart, property_part
from ..report.terminal import columns
from ..report.words import count, number
from ..result import Verdict
from .refine import PROTOCOLS, Refusal
from .refine_search import Refined

if TYPE_CHECKING:
    from rich.console import Console


def verdict_of_refined(out: Console, model: Model, found: Refined, bounds: str) -> None:
    """The verdict line; it never says HOLDS without the bounds it holds at."""
    from rich.text import Text

    name, protocol = model.spec.name, found.protocol
    if found.verdict is Verdict.HOLDS:
        rest = f": {name} refines {protocol} at {bounds}: each of its transitions is a row of actions that {protocol} allows, "
        rest += "or changes nothing that it knows of; nothing is said of other bounds"
    elif found.verdict is Verdict.VIOLATED:
        rest = f": {name} does not refine {protocol} at {bounds}"
    else:
        rest = f": {found.reason}; at {bounds}"
    out.print(Text.assemble((found.verdict.value, text.STYLES[found.verdict]), rest))


def print_refined(out: Console, model: Model, found: Refined, bounds: str, replay: Mapping[str, str]) -> None:
    """The whole report."""
    verdict_of_refined(out, model, found, bounds)
    if found.refusal is not None and found.violation is not None:
        text.violation(out, model, found.violation)
        _refusal(out, found, found.refusal)
    states = "states up to symmetry" if found.symmetry else "states"
    actions = sum(found.taken.values())
    out.print(
        f"{number(found.distinct)} distinct {states}, {number(found.generated)} transitions, depth {found.depth}; "
        f"{count(actions, 'action')} of {found.protocol}, {count(found.stutters, 'transition')} without one"
    )
    table = columns("", "", "")
    taken = ", ".join(f"{name} {number(times)}" for name, times in found.taken.items() if times)
    table.add_row("", "taken", taken or "none")
    if found.unused:
        table.add_row("", "not exercised", ", ".join(found.unused))
    out.print(table)
    text.commands(out, replay)


def _refusal(out: Console, found: Refined, refusal: Refusal) -> None:
    """The last transition in the protocol's actions, up to what is not allowed, and the protocol's state before it."""
    last = f"Transition {len(found.trace)}" if found.trace else "The initial state"
    out.print(f"{last} in the actions of {found.protocol}:", style="bold")
    if found.note:
        out.print(f"  {found.note}")
    table = columns("", "", "")
    rows = [*(taken.told() for taken in refusal.taken), *([refusal.call] if refusal.action else [])]
    for place, told in enumerate(rows, 1):
        call, _, sentence = told.partition("  ")
        refused = refusal.action is not None and place == len(rows)
        table.add_row(str(place), call, f"NOT ALLOWED: {sentence}" if refused else sentence)
    if not rows:
        table.add_row("", "none", "")
    out.print(table)
    out.print("The protocol's state before it:")
    table = columns("", "", "")
    for name, held in told_state(found.protocol, refusal.before).items():
        table.add_row("", name, held)
    out.print(table)
    out.print()


def told_state(protocol: str, state: State) -> dict[str, str]:
    """What each relation of a protocol holds of, in its own names."""
    relations = PROTOCOLS[protocol].protocol.relations.values()
    return {relation.name: shown(relation, held) for relation, held in zip(relations, state, strict=True)}


class RefusalPart(Part):
    """Why the last transition of the trace is none of the protocol."""

    action: str | None = Field(description="the protocol's action that is not allowed; null: they lead to another state")
    guards: list[str] = Field(description="the guards of it, or axioms, that are false")
    reason: str
    taken: list[str] = Field(description="the actions before it, in words")
    before: dict[str, str] = Field(description="what each relation of the protocol holds of before the transition")
    note: str = Field(description="how members are named")


class RefinementDocument(Part):
    """The whole result of `check --refines`."""

    schema_version: int
    fencepost: str
    protocol: str
    verdict: str
    exit_code: int
    reason: str | None
    model: dict[str, Any]
    distinct: int
    generated: int
    depth: int
    per_depth: list[int]
    symmetry: bool
    taken: dict[str, int] = Field(description="how often each action of the protocol was taken; 0: nothing is said of it")
    stutters: int = Field(description="transitions that are none of its actions")
    cut: str | None
    refusal: RefusalPart | None
    violation: PropertyPart | None
    seconds: dict[str, float]
    peak_memory_bytes: int


def document_of(
    identity: Mapping[str, Any], model: Model, found: Refined, source: str | None, replay: Mapping[str, str]
) -> RefinementDocument:
    """Put a result into its JSON form; `identity` says which model it is of, `source` which file its spec is."""
    violation = found.violation
    return RefinementDocument(
        schema_version=SCHEMA_VERSION,
        fencepost=version(),
        protocol=found.protocol,
        verdict=found.verdict.value,
        exit_code=found.exit_code,
        reason=found.reason,
        model=dict(identity),
        distinct=found.distinct,
        generated=found.generated,
        depth=found.depth,
        per_depth=list(found.per_depth),
        symmetry=found.symmetry,
        taken=dict(found.taken),
        stutters=found.stutters,
        cut=found.cut,
        refusal=None if found.refusal is None else _part(found, found.refusal),
        violation=None if violation is None else property_part(model, violation, "native", source, replay),
        seconds=dict(found.seconds),
        peak_memory_bytes=found.peak_memory_bytes,
    )


def _part(found: Refined, refusal: Refusal) -> RefusalPart:
    return RefusalPart(
        action=refusal.action,
        guards=list(refusal.guards),
        reason=refusal.reason,
        taken=[taken.told() for taken in refusal.taken],
        before=told_state(found.protocol, refusal.before),
        note=found.note,
    )
