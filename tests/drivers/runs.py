"""Runs of the reference driver beside the KV spec: drawn events, and observations under other names."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import yaml
from fencepost.checker.conform.draw import Dice, Drawer
from fencepost.impl.drivers.reference import ReferenceDriver
from fencepost.spec import kv
from fencepost.spec.lang import Arguments, BoundSpec, Rule, SetOf, State, load_module
from fencepost.spec.lang.layout import decode
from fencepost.spec.lang.symmetry import Symmetry
from fencepost.spec.lang.types import Member
from fencepost.traces.driver import ANYTHING, Observation, Stopped, UpTo

DATA = Path(str(kv.__file__)).parent / "data"
KV = load_module("fencepost.spec.kv.kv", "kv")
PROFILES: dict[str, dict[str, str]] = {
    name: profile["switches"] for name, profile in yaml.safe_load((DATA / "profiles.yaml").read_text())["profiles"].items()
}
FAULTS: dict[str, dict[str, Any]] = {
    fault["id"]: fault for fault in yaml.safe_load((DATA / "faults.yaml").read_text())["faults"]
}

Values = Mapping[str, int | str]
Names = Mapping[str, Sequence[int]]
"""Member x of an index is called `names[index][x]`."""


def bound_at(profile: str = "reference", *more: Values) -> BoundSpec:
    """The KV spec with a profile's switches and further values."""
    given: dict[str, int | str] = dict(PROFILES[profile])
    for part in more:
        given |= part
    return BoundSpec(KV, given)


def driver_of(bound: BoundSpec, **switches: str) -> ReferenceDriver:
    """A driver at the bounds of a spec, some of its switches set otherwise (`victim_rule="any"`)."""
    return ReferenceDriver({**bound.values, **{name.replace("_", "-"): choice for name, choice in switches.items()}})


def expected(bound: BoundSpec, state: State) -> Observation:
    """What the spec says is shown in a state."""
    observe = bound.spec.observed
    assert observe is not None
    return observe(decode(bound.shape, state), bound.values)


def take(driver: ReferenceDriver, bound: BoundSpec, rule: Rule, args: Arguments) -> bool:
    """Let an event happen that the spec allows; whether it stopped the engine."""
    try:
        driver.take(rule.name, bound.arguments(rule, args))
    except Stopped:
        return True
    return False


def draw(bound: BoundSpec, seed: int, length: int, state: State | None = None) -> Iterator[tuple[Rule, Arguments, State]]:
    """Events enabled one after another, drawn at random, with the states they lead to; none after an error."""
    drawer = Drawer(bound, bound.after, Dice(seed))
    now = bound.initial()[0][2] if state is None else state
    for _ in range(length):
        drawn = drawer.draw(now)
        if drawn is None:
            return
        yield drawn
        now = drawn[2]
        if decode(bound.shape, now)["error"] != "NONE":
            return


def renamed_event(rule: Rule, args: Arguments, names: Names) -> Arguments:
    """Arguments with members under new names."""
    made: list[int] = []
    for parameter, value in zip(rule.declared.parameters, args, strict=True):
        kind = parameter.type
        if isinstance(kind, Member) and kind.index.name in names:
            made.append(names[kind.index.name][value])
        elif isinstance(kind, SetOf) and kind.index.name in names:
            made.append(sum(1 << new for old, new in enumerate(names[kind.index.name]) if value >> old & 1))
        else:
            made.append(value)
    return tuple(made)


def exact(shown: Observation) -> dict[str, Any]:
    """An observation in which what is not compared, or only up to a number, is a value like others."""
    if "content" not in shown:
        return dict(shown)
    content = [
        "any" if slot is ANYTHING else ("up to", slot.most) if isinstance(slot, UpTo) else slot for slot in shown["content"]
    ]
    return {**shown, "content": content}


def renamed(shown: Observation, requests: Sequence[int], blocks: Sequence[int]) -> dict[str, Any]:
    """An observation with requests and blocks under new names, in exact values."""
    if shown["error"] != "NONE":
        return dict(shown)
    same = exact(shown)

    def of(values: Sequence[int]) -> list[int]:
        return [blocks[b] for b in values]

    def moved(values: Sequence[Any]) -> list[Any]:
        return [value for _, value in sorted(zip(blocks, values, strict=True), key=lambda pair: pair[0])]

    def prefix(value: Any) -> Any:
        return None if value is None else (value[0], None if value[1] is None else requests[value[1]], value[2])

    def request(value: Mapping[str, Any]) -> dict[str, Any]:
        return {**value, "table": of(value["table"])} if "table" in value else dict(value)

    def step(value: Mapping[str, Any]) -> dict[str, Any]:
        rows: list[Any] = [(requests[r], start, count, samples, of(table)) for r, start, count, samples, table in value["rows"]]
        return {**value, "rows": rows}

    hits = [(prefix(found), of(held)) for found, held in same["hits"]]
    return {
        **same,
        "requests": {requests[r]: request(value) for r, value in same["requests"].items()},
        "texts": {requests[r]: text for r, text in same["texts"].items()},
        **{name: [requests[r] for r in same[name]] for name in ("waiting", "holding", "running")},
        "free": of(same["free"]),
        "refs": moved(same["refs"]),
        "hashes": moved([prefix(value) for value in same["hashes"]]),
        "hits": sorted(hits, key=lambda hit: (hit[0][2], hit[0][0], -1 if hit[0][1] is None else hit[0][1])),
        "parked": [(fence, of(held)) for fence, held in same["parked"]],
        "flight": [step(value) for value in same["flight"]],
        "loads": {requests[r]: job for r, job in same["loads"].items()},
        "orphans": {requests[r]: of(held) for r, held in same["orphans"].items()},
        "content": moved(same["content"]),
    }


def inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes another."""
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def number(bound: BoundSpec, name: str) -> int:
    """A bound's value."""
    return cast("int", bound.values[name])


class Relabellings:
    """All relabellings at some bounds, and the least state that they make of one."""

    def __init__(self, bound: BoundSpec) -> None:
        self.symmetry = Symmetry(bound.shape, bound.permutable())
        orders = [itertools.permutations(range(number(bound, index))) for index in ("requests", "blocks")]
        self.all = [{"requests": r, "blocks": b} for r, b in itertools.product(*orders)]

    def least(self, state: State) -> tuple[State, dict[str, tuple[int, ...]]]:
        """The state that stands for all relabellings, and the names that make it."""
        return min(((self.symmetry.permute(state, names), names) for names in self.all), key=lambda pair: pair[0])
