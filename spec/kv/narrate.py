"""A transition of the KV spec in words; plain Python for reports, no part of the spec's rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..lang import narrator
from .bounds import REQUESTS

View = Mapping[str, Any]
_ORDINALS = ("oldest", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


@narrator
def tell(before: View, after: View, action: str, arguments: Mapping[str, Any]) -> list[str]:
    """What happened, and what is now in danger."""
    told = list(_TELLERS[action](before, after, arguments))
    return [*told, *_moved_blocks(before, after), *_dangers(before, after)]


def _submit(before: View, after: View, arguments: Mapping[str, Any]) -> Iterator[str]:
    r = arguments["r"]
    text = f" of common text {arguments['group']}" if arguments["group"] else ""
    where = "; the remote side holds it" if arguments["remote"] else ""
    yield f"Request {_name(r)} arrives with a prompt of {_count(arguments['prompt'], 'token')}{text}{where}."


def _schedule(before: View, after: View, arguments: Mapping[str, Any]) -> Iterator[str]:
    for r in _changed(before, after, "status", "PREEMPTED"):
        yield f"Request {_name(r)} is preempted."
    for r in _changed(before, after, "status", "LOADING"):
        hits = [b for b in after["table"][r] if after["key"][b]]
        pinned = f" behind the hits {_blocks(hits)}" if hits else ""
        targets = [b for b in after["table"][r] if b not in hits]
        yield f"The load of request {_name(r)} is given {_blocks(targets)}{pinned}."
    for r, job in enumerate(before["job"]):
        if job == "REPORTED" and after["job"][r] == "NONE":
            yield f"The load of request {_name(r)} is complete."
    if len(after["flight"]) == len(before["flight"]):
        yield "No tokens are scheduled."
        return
    step = after["flight"][-1]
    parts = [f"{_name(r)} ({_tokens(step, r)}, {_blocks(step['table'][r])})" for r in step["owners"]]
    size = len(after["flight"])
    place = _ordinal(size - 1, size)
    yield f"A step is sent to the device: {', '.join(parts) or 'no tokens'}. It is the {place} step in flight."


def _run_step(before: View, after: View, arguments: Mapping[str, Any]) -> Iterator[str]:
    at = next(k for k, step in enumerate(before["flight"]) if not step["ran"])
    step = before["flight"][at]
    rows = ", ".join(f"{_name(r)} in {_blocks(step['table'][r])}" for r in step["owners"])
    place = _ordinal(at, len(before["flight"]))
    yield f"The device runs the {place} step in flight: it writes and reads {rows or 'nothing'}."


def _process(before: View, after: View, arguments: Mapping[str, Any]) -> Iterator[str]:
    step = before["flight"][0]
    yield "The output of the oldest step is processed."
    for r in step["owners"]:
        if before["status"][r] not in ("RUNNING", "PREEMPTED"):
            yield f"The token of {_name(r)} is ignored: it has ended."
        elif after["status"][r] in ("ENDED", "STOPPED"):
            yield f"Request {_name(r)} ends {'at a stop token' if r in arguments['stops'] else 'at its length'}."
        elif after["known"][r] > before["known"][r]:
            yield f"Request {_name(r)} has its token {after['known'][r]}."


def _land(before: View, after: View, arguments: Mapping[str, Any]) -> Iterator[str]:
    r = arguments["r"]
    blocks = [b for b in before["table"][r] if not before["key"][b]] or before["orphan"][r]
    yield f"The bytes of the load of request {_name(r)} arrive in {_blocks(blocks)}."


def _report(before: View, after: View, arguments: Mapping[str, Any]) -> Iterator[str]:
    yield f"The scheduler learns that the load of request {_name(arguments['r'])} is complete."


def _abort(before: View, after: View, arguments: Mapping[str, Any]) -> Iterator[str]:
    r = arguments["r"]
    held = f"; {_blocks(after['table'][r])} stay held" if after["status"][r] == "HELD" else ""
    yield f"The client of request {_name(r)} disconnects while it is {before['status'][r].lower()}{held}."


def _reset(before: View, after: View, arguments: Mapping[str, Any]) -> Iterator[str]:
    yield "The prefix cache is reset."
    for r in _changed(before, after, "status", "PREEMPTED"):
        yield f"Request {_name(r)} is preempted."


_TELLERS = {
    "submit": _submit,
    "schedule": _schedule,
    "run_step": _run_step,
    "process": _process,
    "land": _land,
    "report": _report,
    "abort": _abort,
    "reset_prefix_cache": _reset,
    "reset_running": _reset,
}


def _moved_blocks(before: View, after: View) -> Iterator[str]:
    """Blocks that were parked, freed or drained by the transition."""
    parked: list[int] = after["parked"][len(before["parked"]) :] if len(after["parked"]) > len(before["parked"]) else []
    if parked:
        fence = after["entries"][-1]["fence"]
        rest = "1 more step is" if fence == 1 else f"{fence} more steps are"
        yield f"{_blocks(parked).capitalize()} wait behind the fence until {rest} processed."
    freed = [b for b in after["free"] if b not in before["free"]]
    if freed:
        now = f"the free queue was {_queue(before)} and is now {_queue(after)}"
        yield f"{_blocks(freed).capitalize()} {'is' if len(freed) == 1 else 'are'} free again; {now}."


def _dangers(before: View, after: View) -> Iterator[str]:
    """Why the state after the transition is wrong, as far as it is new."""
    flight = after["flight"]
    for r, job in enumerate(after["job"]):
        if job != "MOVING" or before["job"][r] == "MOVING":
            continue
        for k, step in enumerate(flight):
            hit = [b for b in after["table"][r] if not after["key"][b] and any(b in row for row in step["table"])]
            if hit:
                yield (
                    f"The {_ordinal(k, len(flight))} step is still in flight and may write {_blocks(hit)}; "
                    f"the load of request {_name(r)} is given {_blocks(hit)}."
                )
    if after["foreign"] and not before["foreign"]:
        yield "A block that belongs to another request by now is written."
    if after["misread"] and not before["misread"]:
        yield "A running request reads a slot that does not hold its own content."
    if after["error"] != before["error"]:
        yield _ERRORS[after["error"]]


_ERRORS = {
    "PLACEHOLDERS": "The engine stops: a token arrives for which no placeholder is left.",
    "ALLOCATION": "The engine stops: it asks the pool for more blocks than are free.",
    "DOUBLE_FREE": "References that were given back already are given back again.",
    "COMPLETION": "The engine stops: a completion arrives for a request that it does not know.",
    "RESET": "The reset raises, and its caller gets the error: everybody was preempted, yet blocks are parked or held.",
}


def _tokens(step: View, r: int) -> str:
    first, last = step["start"][r], step["start"][r] + step["count"][r] - 1
    return f"token {first}" if first == last else f"tokens {first} to {last}"


def _changed(before: View, after: View, field: str, value: str) -> list[int]:
    return [r for r, now in enumerate(after[field]) if now == value and before[field][r] != value]


def _name(r: int) -> str:
    return REQUESTS.label(r)


def _blocks(blocks: Sequence[int]) -> str:
    return f"{'block' if len(blocks) == 1 else 'blocks'} {', '.join(map(str, blocks))}" if blocks else "no blocks"


def _queue(view: View) -> str:
    return "[" + " ".join(map(str, view["free"])) + "]"


def _ordinal(k: int, size: int) -> str:
    return "only" if size == 1 else _ORDINALS[k] if k < len(_ORDINALS) else f"{k + 1}th"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
