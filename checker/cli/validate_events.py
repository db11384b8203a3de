"""`fencepost validate` of a recording of KV events: is there a run of the spec that publishes exactly these events?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..report.words import count, number

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from ..conform.kv_events import Recording
    from ..conform.published import Explanation
    from .target import Target

JSON_FORMAT = 1
"""Changes when a field of the JSON goes away or changes its meaning."""
SHOWN = 20
"""Alternatives that are shown; --json has all."""


def explained(found: Target, path: Path, most: int, *, trace: bool) -> tuple[Recording, Explanation]:
    """Read a recording and look for a run of the spec."""
    from ..conform.kv_events import read
    from ..conform.published import explain
    from ..explore.memory import default_budget
    from ..model import Limits
    from .interrupt import Interrupts

    recording = read(path)
    with Interrupts() as interrupts:
        limits = Limits(max_states=most, max_bytes=default_budget(), cancelled=lambda: interrupts.asked)
        return recording, explain(recording, found.model.bound, limits, trace=trace)


def print_explanation(out: Console, found: Target, recording: Recording, result: Explanation, *, quiet: bool) -> None:
    """Print the verdict, and what the spec allows at the first event that no run of it publishes."""
    from rich.text import Text

    from ..report.text import STYLES

    if not quiet:
        fault = f", fault {found.model.fault}" if found.model.fault else ""
        out.print(f"{recording.path}, a recording of KV events, against {found.origin}{fault}", style="bold")
        for note in found.notes:
            out.print(f"note: {note}")
        for medium, times in recording.elsewhere.items():
            out.print(f"note: {count(times, 'event')} of medium {medium} left out; the spec has the cache of the device only")
        out.print()
    verdict = result.verdict
    out.print(Text.assemble((verdict.value, STYLES[verdict]), f": {_outcome(recording, result)}; at {found.bounds}"))
    if quiet:
        return
    if result.unpublished is not None:
        _instead(out, result)
    out.print(f"{count(result.states, 'state')} looked at. Not checked: {result.unseen}.")


def _outcome(recording: Recording, result: Explanation) -> str:
    lost = result.unpublished
    if lost is not None:
        where = f"{recording.path}: batch {lost.batch}"
        if lost.words is None:
            return (
                f"{where} ends after event {lost.event - 1}: no run of the spec that publishes all of it so far ends it there"
            )
        return f"{where}, event {lost.event}: {lost.words}: no run of the spec that publishes all before it publishes this"
    done = f"{count(result.events, 'event')} in {number(result.batches)} whole batch{'es' * (result.batches != 1)}"
    if result.cut is None:
        return f"a run of the spec publishes exactly these events: {done}" if result.events else str(result.reason)
    return f"{result.cut}; {done} before it explained"


def _instead(out: Console, result: Explanation) -> None:
    lost = result.unpublished
    assert lost is not None
    is_are = "is" if lost.states == 1 else "are"
    out.print(f"After all before it, {count(lost.states, 'state')} {is_are} possible; what runs of the spec publish there:")
    for words in lost.allowed[:SHOWN] or ("nothing more",):
        out.print(f"  {words}")
    if len(lost.allowed) > SHOWN:
        out.print(f"  and {number(len(lost.allowed) - SHOWN)} more (all of them: --json)")


def document(found: Target, recording: Recording, result: Explanation) -> dict[str, Any]:
    """The result as one JSON object (docs/logs.md)."""
    from ...traces.origin import version

    lost = result.unpublished
    made: dict[str, Any] = {
        "format": JSON_FORMAT,
        "version": version(),
        "verdict": result.verdict.value,
        "reason": result.reason if lost is None else None,
        "recording": str(recording.path),
        **found.identity(),
        "events": result.events,
        "batches": result.batches,
        "states": result.states,
        "left_out": recording.elsewhere,
        "not_checked": result.unseen,
        "violation": None,
    }
    if lost is not None:
        made["violation"] = {
            "batch": lost.batch,
            "event": lost.event,
            "what": lost.words,
            "states": lost.states,
            "allowed": list(lost.allowed),
        }
    return made
