"""Which configurations need the fence, as text and as one JSON object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from ...traces.origin import version
from ..report import text
from ..report.schema import SCHEMA_VERSION, Part, PropertyPart, SpecPart, property_part
from ..report.terminal import columns
from ..report.words import bounds, count, number
from ..result import Verdict
from .condition import Combination, Condition
from .configs import CORRUPTION, Answer, Decision, Need, Release, Row

if TYPE_CHECKING:
    from rich.console import Console

SHORT = {
    "kv-role": "kv-role",
    "remote-tokens": "loads",
    "steps-in-flight": "steps",
    "enable-prefix-caching": "caching",
    "async-scheduling": "async",
}
"""Headers of features; `loads` has the value of remote-tokens."""
CELLS = {
    Need.HAS: "on",
    Need.OFF: "OFF",
    Need.FAILS: "FAILS",
    Need.IDLE: "idle",
    Need.NONE: "-",
    Need.UNDECIDED: "?",
}
"""What stands for a release's row where several releases are compared."""
LEGEND = (
    "on: needed, and the gate is on   OFF: needed, and it is off   idle: on for nothing   -: not needed, and off\n"
    "FAILS: needed, on, and not enough   ?: undecided"
)
STYLES = {Need.OFF: "bold red", Need.FAILS: "bold red", Need.HAS: "green", Need.UNDECIDED: "yellow"}
Replay = Mapping[tuple[str, Combination], str]
"""For each row in which something is corrupted, by release and combination, the command that replays its trace."""


def verdict_of_configs(out: Console, answer: Answer) -> None:
    """The verdict line, with the sizes that it is of."""
    from rich.text import Text

    out.print(Text.assemble((answer.verdict.value, text.STYLES[answer.verdict]), f": {reason(answer)}; at {sizes(answer)}"))


def sizes(answer: Answer) -> str:
    """The bounds that all combinations share."""
    return bounds(answer.sizes)


def reason(answer: Answer) -> str:
    """The verdict in words."""
    several = len(answer.releases) > 1
    every = sum(len(r.rows) for r in answer.releases)
    if answer.verdict is Verdict.VIOLATED:
        total = count(len(answer.releases[0].rows), "combination")
        told = [f"{len(r.open)}" + f" ({r.name})" * several for r in answer.releases if r.open]
        return f"of {total}{' each' * several}, data can be corrupted in {', '.join(told)}"
    if answer.verdict is Verdict.UNDETERMINED:
        rows = [row for r in answer.releases for row in r.having(Need.UNDECIDED)]
        why = next(w for row in rows for w in (row.at_once.reason, row.as_is.reason) if w)
        return f"{len(rows)} of {every} combinations are undecided: {why}"
    needed = sum(len(r.having(Need.HAS)) for r in answer.releases)
    return f"what needs the fence has it: {needed} of {every} combinations need it; nothing is said of other sizes"


def print_configs(out: Console, answer: Answer, replay: Replay, *, verbose: bool) -> None:
    """The whole report; with `verbose`, also the states of each combination, and the command that replays each trace."""
    verdict_of_configs(out, answer)
    for note in answer.notes:
        out.print(f"note: {note}")
    out.print()
    _table(out, answer, verbose=verbose)
    _conditions(out, answer)
    _traces(out, answer, replay, verbose=verbose)


def _table(out: Console, answer: Answer, *, verbose: bool) -> None:
    compared = len(answer.releases) > 1
    names = [SHORT[feature.name] for feature in answer.features]
    last = [r.name.removeprefix("vllm-") for r in answer.releases] if compared else ["frees that wait", "so the fence is"]
    heads = [*names, "freed at once", *last, *["states"] * verbose]
    table = columns(*heads, whole=tuple(heads))
    for rows in zip(*(release.rows for release in answer.releases), strict=True):
        cells = [*map(str, rows[0].combination), _at_once(rows)]
        table.add_row(*cells, *_said(rows, compared=compared), *[number(sum(_states(row) for row in rows))] * verbose)
    out.print(table)
    out.print()
    out.print(f"freed at once: whether {', '.join(CORRUPTION)} can fail then, and after how many transitions")
    if compared:
        out.print(LEGEND)


def _at_once(rows: Sequence[Row]) -> str:
    words = dict.fromkeys(_word(row.at_once) for row in rows)
    if len(words) == 1:
        return next(iter(words))
    plain = dict.fromkeys(word.partition(" ")[0] for word in words)
    return next(iter(plain)) if len(plain) == 1 else "differs"


def _word(decision: Decision) -> str:
    if decision.verdict is Verdict.VIOLATED:
        return f"unsafe ({len(decision.trace or ())})"
    return "safe" if decision.verdict is Verdict.HOLDS else "undecided"


def _said(rows: Sequence[Row], *, compared: bool) -> Iterator[Any]:
    from rich.text import Text

    if not compared:
        row = rows[0]
        waits = [path.removesuffix("-free") for path in row.deferred]
        yield "all" if len(waits) == 3 else ", ".join(waits) or "none"
    for row in rows:
        yield Text((CELLS if compared else _WORDS)[row.need], STYLES.get(row.need, ""))


_WORDS = {need: need.value for need in Need}


def _states(row: Row) -> int:
    return row.at_once.distinct + (row.as_is.distinct if row.deferred else 0)


def _conditions(out: Console, answer: Answer) -> None:
    first = answer.releases[0]
    same = all(release.unsafe == first.unsafe for release in answer.releases)
    out.print()
    if same:
        _condition(out, "Freeing at once is unsafe exactly where", first.unsafe, "")
    for release in answer.releases:
        out.print()
        out.print(release.name, style="bold")
        if not same:
            _condition(out, "  freeing at once is unsafe where", release.unsafe, "")
        _condition(out, "  frees wait where", release.gate, "")
        _condition(out, "  needed and missing where", release.exposed, _of(release.open))
        _condition(out, "  on for nothing where", release.idle, _of(release.having(Need.IDLE)))
    values = "; ".join(f"{f.name}: {', '.join(map(str, f.values))}" for f in answer.features)
    out.print()
    out.print(f"Every condition agrees with every combination of the table. Values: {values}.")
    out.print("Left out, since no engine is so: loads without a role; asynchronous scheduling with one step in flight.")


def _of(rows: Sequence[Row]) -> str:
    return f" ({count(len(rows), 'combination')})" if rows else ""


def _condition(out: Console, begin: str, condition: Condition | None, end: str) -> None:
    out.print(f"{begin}: {'not known, a combination is undecided' if condition is None else condition.words}{end}")


def _traces(out: Console, answer: Answer, replay: Replay, *, verbose: bool) -> None:
    compared = len(answer.releases) > 1
    for release in answer.releases:
        rows = release.open
        if not rows:
            continue
        if not compared:
            _shortest(out, answer, rows[0])
        else:
            out.print()
        out.print(f"{release.name}: " + ("each trace" if verbose or not compared else "the shortest trace"), style="bold")
        for row in rows if verbose or not compared else rows[:1]:
            out.print(f"  {replay[release.name, row.combination]}", soft_wrap=True)
        if compared and not verbose and len(rows) > 1:
            out.print(f"  and {len(rows) - 1} more (--verbose, or --json)")


def _shortest(out: Console, answer: Answer, row: Row) -> None:
    chosen = {f.name: v for f, v in zip(answer.features, row.combination, strict=True)}
    assert row.as_is.found is not None
    out.print()
    out.print(f"The shortest, at {bounds(chosen)}:")
    text.violation(out, row.model, row.as_is.found)


class DecisionPart(Part):
    """Whether anything is corrupted: HOLDS (not in any of the `distinct` states), VIOLATED or UNDETERMINED with a reason."""

    verdict: str
    distinct: int
    property: str | None
    depth: int | None
    reason: str | None


class RowPart(Part):
    """One combination: freed at once, and as the release is."""

    configuration: dict[str, int | str]
    at_once: DecisionPart
    deferred: list[str] = Field(description="the switches whose frees wait for the fence here")
    as_is: DecisionPart
    need: str
    violation: PropertyPart | None = Field(description="what is corrupted in the release as it is, with its trace")


class ConditionPart(Part):
    """A condition: any of `terms` holds, each the values that features may have. Both null: a combination is undecided."""

    words: str | None
    terms: list[dict[str, list[int | str]]] | None


class ReleasePart(Part):
    """One release: where freeing at once is unsafe, where it defers, and where these two differ."""

    profile: str
    switches: dict[str, int | str]
    unsafe: ConditionPart
    gate: ConditionPart
    exposed: ConditionPart
    idle: ConditionPart
    rows: list[RowPart]


class ConfigsDocument(Part):
    """The whole answer."""

    schema_version: int
    fencepost: str
    method: str
    verdict: str
    exit_code: int
    reason: str
    spec: SpecPart
    bounds: dict[str, int | str] = Field(description="what all combinations share")
    features: dict[str, list[int | str]]
    properties: list[str] = Field(description="those whose failure counts as unsafe")
    releases: list[ReleasePart]
    notes: list[str]


def document_of_configs(answer: Answer, replay: Replay) -> ConfigsDocument:
    """Put an answer into its JSON form."""
    return ConfigsDocument(
        schema_version=SCHEMA_VERSION,
        fencepost=version(),
        method="configs",
        verdict=answer.verdict.value,
        exit_code=answer.exit_code,
        reason=reason(answer),
        spec=SpecPart.of(answer.releases[0].rows[0].model, None),
        bounds=dict(answer.sizes),
        features={f.name: list(f.values) for f in answer.features},
        properties=list(CORRUPTION),
        releases=[_release(answer, release, replay) for release in answer.releases],
        notes=answer.notes,
    )


def _release(answer: Answer, release: Release, replay: Replay) -> ReleasePart:
    names = [f.name for f in answer.features]
    conditions = {name: _part(getattr(release, name)) for name in ("unsafe", "gate", "exposed", "idle")}
    rows = [_row(names, row, replay.get((release.name, row.combination))) for row in release.rows]
    return ReleasePart(profile=release.name, switches=dict(release.switches), rows=rows, **conditions)


def _part(condition: Condition | None) -> ConditionPart:
    return ConditionPart(words=condition and condition.words, terms=None if condition is None else condition.allowed())


def _row(names: Sequence[str], row: Row, replay: str | None) -> RowPart:
    found = row.as_is.found
    violation = None
    if found is not None:
        violation = property_part(row.model, found, "native", None, {found.name: replay} if replay else {})
    return RowPart(
        configuration=dict(zip(names, row.combination, strict=True)),
        at_once=_decision(row.at_once),
        deferred=list(row.deferred),
        as_is=_decision(row.as_is),
        need=row.need.value,
        violation=violation,
    )


def _decision(decision: Decision) -> DecisionPart:
    found = decision.found
    return DecisionPart(
        verdict=decision.verdict.value,
        distinct=decision.distinct,
        property=found and found.name,
        depth=found and found.depth,
        reason=decision.reason,
    )
