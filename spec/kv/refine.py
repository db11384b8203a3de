"""How the KV spec is an instance of the fence protocol: what of a state the protocol knows, and a transition in its actions.

Plain Python for `fencepost check --refines fence`, no part of the spec's rules. Nothing is read off but the state before and
the state after. Steps are numbered as they stand: 0 is every step that was processed (and one before the first), 1 the
oldest in flight. No history is needed: of a processed step nothing matters but that it is processed.

A transition is taken in this order: a step is executed, or processed and parked blocks drained, or a load lands; then
requests give their tables up; then they are given blocks, who is in the new step first and in its order, then loads; then
the step is issued. What was a hit and what was given from the pool is read off exactly: a request that is admitted starts
behind its hits, and one that loads, or was left with an error, has hashes on its hits only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..lang import refines

View = Mapping[str, Any]
Micro = tuple[str, tuple[Any, ...]]
"""An action of the protocol with its arguments."""
_BEGINNING: frozenset[tuple[int, int]] = frozenset()
"""The plan of the step before the first, which names nothing."""


@refines("fence")
def refine(values: Mapping[str, int | str]) -> Fenced:
    """The KV spec at these bounds as an instance of the fence protocol."""
    return Fenced(int(values["requests"]), int(values["blocks"]), int(values["steps-in-flight"]), int(values["block-size"]))


class Fenced:
    """The mapping at given bounds: sizes of the protocol's sorts, the actions to the first state, states, transitions."""

    note = "Step 1 stands for all that are processed, step 2 is the oldest in flight before the transition."
    start: tuple[Micro, ...] = (("issue", (0, _BEGINNING)), ("execute", (0,)), ("process", (0,)))

    def __init__(self, requests: int, blocks: int, steps: int, block_size: int) -> None:
        self.sizes = {"Request": requests, "Block": blocks, "Step": steps + 1}
        self.members = {"Request": "requests", "Block": "blocks"}
        self._block_size = block_size

    def state(self, s: View) -> dict[str, set[tuple[int, ...]]]:
        """What each relation of the protocol holds of in a decoded state."""
        flight = s["flight"]
        return {
            "issued": {(k,) for k in range(len(flight) + 1)},
            "executed": {(0,), *((k,) for k, step in enumerate(flight, 1) if step["ran"])},
            "processed": {(0,)},
            "names": {(k, r, b) for k, step in enumerate(flight, 1) for r, b in self._plan(step)},
            "owns": {(r, b) for r, table in enumerate(s["table"]) for b in table},
            "waits": {(b, k) for until, blocks in _parked(s, s["entries"]) for b in blocks for k in range(until + 1)},
            "loading": _loading(s),
            "sending": set(),
        }

    def steps(self, before: View, after: View, action: str, arguments: Mapping[str, Any]) -> list[Micro]:
        """The protocol's actions that make up a transition, in an order in which they can be taken."""
        micro: list[Micro] = []
        if action == "run_step":
            micro.append(("execute", (next(k for k, step in enumerate(before["flight"], 1) if not step["ran"]),)))
        elif action == "process":
            micro.append(("process", (1,)))
        drained = _drained(before) if action == "process" else 0
        micro += [("drain", (b, 1)) for b in _come_back(before, drained)]
        if before["job"] != after["job"]:
            micro += [("land", target) for target in sorted(_loading(before) - _loading(after)) if action == "land"]
        if before["table"] != after["table"]:
            micro += _given_up(before, after, drained, behind=int(action == "process"))
            micro += self._given(before, after)
        if len(after["flight"]) > len(before["flight"]):
            micro.append(("issue", (len(after["flight"]), frozenset(self._plan(after["flight"][-1])))))
        return micro

    def _plan(self, step: View) -> Iterator[tuple[int, int]]:
        """The blocks that a step names, each with the request that it is for."""
        for r in step["owners"]:
            for b in step["table"][r]:
                yield r, b

    def _given(self, before: View, after: View) -> Iterator[Micro]:
        """Blocks that tables have got: hits, targets of a load, and what is to be computed."""
        new: View | None = after["flight"][-1] if len(after["flight"]) > len(before["flight"]) else None
        loading = _loading(after)
        planned: list[int] = [] if new is None else new["owners"]
        for r in planned + [r for r in range(len(after["table"])) if r not in planned]:
            old, table = before["table"][r], after["table"][r]
            kept = len(old) if table[: len(old)] == old else 0
            if kept > 0:
                hits = kept
            elif new is not None and r in planned:
                hits = new["start"][r] // self._block_size
            else:
                hits = sum(1 for b in table if after["key"][b] > 0)
            for k in range(kept, len(table)):
                b = table[k]
                yield "hit" if k < hits else "load" if (r, b) in loading else "allocate", (r, b)


def _loading(s: View) -> set[tuple[int, int]]:
    """Blocks that transfers still write: of a table those that have no hash yet, and what an aborted load left behind."""
    found: set[tuple[int, int]] = set()
    for r, job in enumerate(s["job"]):
        if job == "MOVING":
            if s["status"][r] in ("LOADING", "HELD"):
                found |= {(r, b) for b in s["table"][r] if s["key"][b] == 0}
            found |= {(r, b) for b in s["orphan"][r]}
    return found


def _parked(s: View, entries: list[Any]) -> Iterator[tuple[int, list[int]]]:
    """The step that each of the last entries waits for, which counts steps with tokens only, and its blocks."""
    if entries:
        places = [0, *(k for k, step in enumerate(s["flight"], 1) if step["owners"])]
        at = len(s["parked"]) - sum(entry["size"] for entry in entries)
        for entry in entries:
            yield places[entry["fence"]], s["parked"][at : at + entry["size"]]
            at += entry["size"]


def _drained(before: View) -> int:
    """How many entries come back when the oldest step is processed: those at the front that wait for nothing after it."""
    if not before["flight"][0]["owners"]:
        return 0
    waiting = (i for i, entry in enumerate(before["entries"]) if entry["fence"] > 1)
    return next(waiting, len(before["entries"]))


def _come_back(before: View, drained: int) -> list[int]:
    """The blocks of drained entries that no other entry has."""
    if drained == 0:
        return []
    size = sum(entry["size"] for entry in before["entries"][:drained])
    return sorted(set(before["parked"][:size]) - set(before["parked"][size:]))


def _given_up(before: View, after: View, drained: int, behind: int) -> Iterator[Micro]:
    """Tables that requests have given up: parked where a new entry has their blocks, else freed.

    `behind` is how many steps the transition takes off the front. Of requests with the same table, those that steps in flight
    name are the ones that are parked.
    """
    entries = list(_parked(after, after["entries"][len(before["entries"]) - drained :]))
    named = {r for step in before["flight"] for r in step["owners"]}
    gone = [r for r, old in enumerate(before["table"]) if old and after["table"][r][: len(old)] != old]
    for r in sorted(gone, key=lambda r: r not in named):
        table = before["table"][r]
        entry = next((entry for entry in entries if entry[1] == table), None)
        if entry is None:
            for b in table:
                yield "free", (r, b)
        else:
            entries.remove(entry)
            for b in table:
                yield "park", (r, b, entry[0] + behind)
