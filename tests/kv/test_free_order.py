"""`free_order` speaks of any two blocks; here it is held against the same said of whole queues, in plain Python."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from itertools import accumulate, combinations
from typing import Any

import pytest
from fencepost.spec.lang import BoundSpec, State, load_module
from fencepost.spec.lang.layout import decode

KV = load_module("fencepost.spec.kv.kv", "kv")
LOADS: dict[str, int | str] = {"requests": 3, "blocks": 4, "kv-role": "kv_consumer", "remote-tokens": 2}
CACHED: dict[str, int | str] = {"blocks": 4, "prompt-tokens": 3, "enable-prefix-caching": 1}
CASES: dict[str, dict[str, int | str]] = {
    "loads": LOADS,
    "to the tail": {**LOADS, "uncached-free-order": "tail"},
    "other releases": {**LOADS, "intended-free-order": "tail", "victim-rule": "any"},
    "cached": CACHED,
    "cached, all to the tail": {**CACHED, "cached-free-order": "tail"},
}
RUNS, LENGTH = 20, 60


def well_ordered(s: Mapping[str, Any], t: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """What `free_order` says, of the queues as they are."""
    caching = values["enable-prefix-caching"] == 1
    before, after = s["free"], t["free"]

    def early(b: int) -> bool:
        return values["intended-free-order"] == "head" and not (caching and (s["key"][b] or t["key"][b]))

    kept = [b for b in after if b in before]
    if kept != ([b for b in before if b in kept] if caching else before[len(before) - len(kept) :]):
        return False
    ends = [1 if b in before else 0 if early(b) else 2 for b in after]
    if ends != sorted(ends):
        return False
    stops = list(accumulate(entry["size"] for entry in s["entries"]))
    entries = [s["parked"][stop - entry["size"] : stop] for stop, entry in zip(stops, s["entries"], strict=True)]
    for given_up in (*s["table"], *entries):
        alone = [b for b in given_up if b in after and b not in before and s["refs"][b] <= 1]
        if any(early(a) == early(b) and after.index(a) < after.index(b) for a, b in combinations(alone, 2) if a != b):
            return False
    return True


def transitions(bound: BoundSpec, pick: random.Random) -> Iterator[tuple[State, State]]:
    """Transitions of random runs."""
    for _ in range(RUNS):
        state = next(state for _, _, state in bound.initial())
        for _ in range(LENGTH):
            rule = pick.choice(bound.actions)
            afters = [after for made, _, after in bound.transitions(state) if made is rule]
            if afters:
                before, state = state, pick.choice(afters)
                yield before, state


@pytest.mark.parametrize("case", CASES)
def test_it_says_of_two_blocks_what_holds_of_queues(case: str) -> None:
    bound, pick = BoundSpec(KV, CASES[case]), random.Random(1)
    prop = next(p for p in bound.every if p.name == "free-order")
    found = bound.shape.field("free")
    assert found is not None
    seen = {True: 0, False: 0}
    for before, after in transitions(bound, pick):
        if before[found[0]] == after[found[0]] == 0:
            continue
        queue = list(after[found[0] + 1 :][: after[found[0]]])
        pick.shuffle(queue)
        other = (*after[: found[0] + 1], *queue, *after[found[0] + 1 + len(queue) :])
        for made in {after, other}:
            said = bound.holds(prop, before, made)
            assert said == well_ordered(decode(bound.shape, before), decode(bound.shape, made), bound.values), (before, made)
            seen[said] += 1
    assert min(seen.values()) > 50, seen
