"""What of a KV state an implementation can show; plain Python for lockstep, no part of the spec's rules.

An observation has these parts (requests by number, blocks without the null block, from 0):

- `error`: what stopped the engine; with anything but NONE nothing else is shown;
- `requests`: for each live request its status, sizes, counters and table (of one that is only held: status and table);
- `texts`: for each live request its prompt's length and text (0: its own); also of one that has ended, while steps in
  flight or transfers may still write it where others could find it;
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

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..lang import abstraction, observed

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
        "texts": dict(_texts(s)),
        "waiting": s["waiting"],
        "holding": s["holding"],
        "running": s["running"],
        "free": s["free"],
        "refs": s["refs"],
        "hashes": hashes,
        "hits": _hits(s["cached"], hashes),
        "parked": list(_parked(s)),
        "flight": [_step(step) for step in s["flight"]],
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


def _texts(s: View) -> Iterator[tuple[int, tuple[int, int]]]:
    for r, status in enumerate(s["status"]):
        named = s["orphan"][r] or any(r in step["owners"] for step in s["flight"])
        if status in _LIVE or (s["prompt"][r] > 0 and named):
            yield r, (s["prompt"][r], s["group"][r])


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
    """The order in which prefixes are shown: position, text, request (none first).

    It has a twin in `impl/drivers/kv_names.py`, on purpose: the spec and the drivers import nothing of each other.
    """
    text, r, position = prefix
    return position, text, -1 if r is None else r


def _parked(s: View) -> Iterator[tuple[int, list[int]]]:
    at = 0
    for entry in s["entries"]:
        yield entry["fence"], s["parked"][at : at + entry["size"]]
        at += entry["size"]


def _step(step: View) -> dict[str, Any]:
    rows = [(r, step["start"][r], step["count"][r], r in step["samples"], step["table"][r]) for r in step["owners"]]
    return {"ran": step["ran"], "rows": rows}


@abstraction
def state_of(shown: View, values: Mapping[str, int | str], before: View | None) -> dict[str, Any]:
    """The decoded state that an observation stands for: the inverse of `observe`, up to what makes no difference.

    Of hashes of different requests' own texts at one position it takes those of requests that stand first in the lists as the
    older ones, and it knows no text of an ended request that nothing can write any more. An engine that has stopped shows its
    error only: the rest is as it was before.
    """
    if shown["error"] != "NONE":
        if before is None:
            raise ValueError(f"the engine has stopped ({shown['error']}) before anything happened")
        return {**before, "error": shown["error"]}
    requests = range(int(values["requests"]))
    hashes = [prefix or (0, None, 0) for prefix in shown["hashes"]]
    return {
        **_lives(shown, requests),
        "job": [shown["loads"].get(r, "NONE") for r in requests],
        "orphan": [shown["orphans"].get(r, []) for r in requests],
        **{name: shown[name] for name in ("waiting", "holding", "running", "free", "refs", "foreign", "misread", "error")},
        "good": [good or 0 for good in shown["content"]],
        "key": [text for text, _, _ in hashes],
        "key_of": [owner for _, owner, _ in hashes],
        "key_at": [position for _, _, position in hashes],
        "cached": [b for _, blocks in sorted(shown["hits"], key=_listed(shown)) for b in blocks],
        "parked": [b for _, blocks in shown["parked"] for b in blocks],
        "entries": [{"fence": fence, "size": len(blocks)} for fence, blocks in shown["parked"]],
        "flight": [_scheduled(step, requests) for step in shown["flight"]],
    }


def _listed(shown: View) -> Callable[[tuple[Any, list[int]]], tuple[int, int, int]]:
    """The order of hits: by position, text, and where the request of an own text stands in the scheduler's lists."""
    places = {r: place for place, r in enumerate([*shown["running"], *shown["holding"], *shown["waiting"]])}

    def order(hit: tuple[Any, list[int]]) -> tuple[int, int, int]:
        (text, owner, position), _ = hit
        return position, text, places.get(owner, -1)

    return order


_COUNTERS = {
    "remote": "remote",
    "known": "outputs",
    "computed": "computed",
    "prefilling": "reserving",
    "places": "placeholders",
    "stale": "late",
}
"""Variables of live requests, and how an observation calls them."""
_ENDED = {"status": "ENDED", "remote": False, "outputs": 0, "computed": 0, "reserving": False, "placeholders": 0, "late": 0}


def _lives(shown: View, requests: range) -> dict[str, list[Any]]:
    """The variables of requests; what an observation says nothing of is that of an ended one."""
    lives = [{**_ENDED, **shown["requests"].get(r, {})} for r in requests]
    texts = [shown["texts"].get(r, (0, 0)) for r in requests]
    return {
        "status": [life["status"] for life in lives],
        "prompt": [prompt for prompt, _ in texts],
        "group": [group for _, group in texts],
        **{name: [life[word] for life in lives] for name, word in _COUNTERS.items()},
        "drop": [int(life.get("dropping", False)) for life in lives],
        "table": [life.get("table", []) for life in lives],
    }


_UNNAMED: tuple[int, int, list[int]] = (0, 0, [])


def _scheduled(step: View, requests: range) -> dict[str, Any]:
    rows = {r: (start, count, table) for r, start, count, _, table in step["rows"]}
    return {
        "owners": [row[0] for row in step["rows"]],
        "samples": frozenset(row[0] for row in step["rows"] if row[3]),
        "start": [rows.get(r, _UNNAMED)[0] for r in requests],
        "count": [rows.get(r, _UNNAMED)[1] for r in requests],
        "table": [rows.get(r, _UNNAMED)[2] for r in requests],
        "ran": step["ran"],
    }
