"""What of a KV state an implementation can show; plain Python for lockstep, no part of the spec's rules.

An observation has these parts (requests by number, blocks without the null block, from 0):

- `error`: what stopped the engine; with anything but NONE nothing else is shown;
- `requests`: for each live request its status, sizes, counters and table (of one that is only held: status and table);
- `waiting`, `holding`, `running`: the scheduler's lists, in order;
- `free`: the free queue, next block first; `refs`: the reference count of each block;
- `hashes`: for each block None or what its hash stands for: (text, request, position), a shared text without a request;
  `hits`: each such prefix with the blocks that can be hit, first the one that is, by position, text and request;
- `parked`: deferred frees, oldest first: (processed steps still to wait for, blocks in allocation order);
- `flight`: steps not processed yet, oldest first: whether the device ran it, and for each request in it (request, first
  token, tokens, whether it yields one, blocks);
- `loads`: for each request with a transfer how far it is; `orphans`: targets, still to be written, that the request
  gave back;
- `content`: for each block how many leading slots hold what is expected of it, of a block that nobody expects anything of
  whatever it holds; `foreign`, `misread`: whether a write hit a block of somebody else, a kept result read a wrong slot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..lang import observed

View = Mapping[str, Any]
_LIVE = ("WAITING", "LOADING", "RUNNING", "PREEMPTED")


@observed
def observe(s: View, values: Mapping[str, int | str]) -> dict[str, Any]:
    """The observation of a decoded state."""
    if s["error"] != "NONE":
        return {"error": s["error"]}
    own = int(values["prefix-groups"]) + 1
    hashes = [_prefix(s, b, own) for b in range(len(s["refs"]))]
    return {
        "error": "NONE",
        "requests": dict(_requests(s)),
        "waiting": s["waiting"],
        "holding": s["holding"],
        "running": s["running"],
        "free": s["free"],
        "refs": s["refs"],
        "hashes": hashes,
        "hits": _hits(s["cached"], hashes),
        "parked": list(_parked(s)),
        "flight": [_step(step, int(values["block-size"])) for step in s["flight"]],
        "loads": {r: job for r, job in enumerate(s["job"]) if job != "NONE"},
        "orphans": {r: blocks for r, blocks in enumerate(s["orphan"]) if blocks},
        "content": s["good"],
        "foreign": s["foreign"],
        "misread": s["misread"],
    }


def _requests(s: View) -> Iterator[tuple[int, dict[str, Any]]]:
    for r, status in enumerate(s["status"]):
        if status in _LIVE:
            yield (
                r,
                {
                    "status": status,
                    "prompt": s["prompt"][r],
                    "remote": s["remote"][r],
                    "outputs": s["known"][r],
                    "computed": s["computed"][r],
                    "reserving": s["prefilling"][r],
                    "placeholders": s["places"][r],
                    "late": s["stale"][r],
                    "dropping": bool(s["drop"][r]),
                    "table": s["table"][r],
                },
            )
        elif status == "HELD":
            yield r, {"status": status, "table": s["table"][r]}
        elif status == "STOPPED":
            yield r, {"status": status}


def _prefix(s: View, b: int, own: int) -> tuple[int, int | None, int] | None:
    """What a block's hash stands for; the hash of an ended request's own text stands for nothing that can come again."""
    text = s["key"][b]
    if text == 0:
        return None
    return text, s["key_of"][b] if text == own else None, s["key_at"][b]


def _hits(cached: list[int], hashes: list[Any]) -> list[tuple[Any, list[int]]]:
    found: dict[Any, list[int]] = {}
    for b in cached:
        found.setdefault(hashes[b], []).append(b)
    return sorted(found.items(), key=lambda item: by_position(item[0]))


def by_position(prefix: tuple[int, int | None, int]) -> tuple[int, int, int]:
    """The order in which prefixes are shown: position, text, request (none first)."""
    text, r, position = prefix
    return position, text, -1 if r is None else r


def _parked(s: View) -> Iterator[tuple[int, list[int]]]:
    at = 0
    for entry in s["entries"]:
        yield entry["fence"], s["parked"][at : at + entry["size"]]
        at += entry["size"]


def _step(step: View, block_size: int) -> dict[str, Any]:
    rows: list[tuple[int, int, int, bool, list[int]]] = []
    at = 0
    for r in step["owners"]:
        start, count = step["start"][r], step["count"][r]
        size = -(-(start + count) // block_size)
        rows.append((r, start, count, r in step["samples"], step["blocks"][at : at + size]))
        at += size
    return {"ran": step["ran"], "rows": rows}
