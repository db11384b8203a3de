"""`state_of` is the inverse of `observe`: over all reachable states, up to what makes no difference to any property."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from fencepost.checker.cli import kvdata
from fencepost.checker.explore.native.stepper import Stepper
from fencepost.checker.explore.watch import Watch
from fencepost.spec.lang import BoundSpec, State, load_module
from fencepost.spec.lang.layout import decode, encode

KV = load_module("fencepost.spec.kv.kv", "kv")
LEFT_OUT = {
    "cached": "of hashes of requests' own texts at one position, which is older: each is only hit by its own request",
}
"""What an observation says nothing of, and why that makes no difference."""
MOST = 1_500
"""States of a row: enough to reach everything that a row is about, few enough to be quick."""
PROFILES = ("vllm-0.33", "vllm-0.27", "vllm-0.23")
"""Profiles that between them have every mechanism."""
ROWS = [row for row in kvdata.conform() if row.profile in PROFILES]


def bound_of(row: kvdata.Conform) -> BoundSpec:
    given: dict[str, int | str] = dict(kvdata.profile(row.profile or "").switches)
    given |= dict(text.split("=") for text in row.bounds)
    return BoundSpec(KV, given)


def reachable(bound: BoundSpec, most: int) -> Iterator[State]:
    """States breadth-first, one of each class under symmetry, as they were reached."""
    steps = Stepper(bound)
    queue = [bound.initial()[0][2]]
    seen = {steps.canonical(queue[0])[0]}
    for state in queue:
        yield state
        for _, _, after in steps.successors(state):
            canonical = steps.canonical(after)[0]
            if canonical not in seen and len(seen) < most:
                seen.add(canonical)
                queue.append(after)


def shown(bound: BoundSpec, state: State) -> dict[str, Any]:
    assert KV.observed is not None
    return dict(KV.observed(decode(bound.shape, state), bound.values))


def meant(bound: BoundSpec, observation: Mapping[str, Any], before: Any = None) -> State:
    assert KV.abstraction is not None
    return encode(bound.shape, KV.abstraction(observation, bound.values, before))


def without_order(bound: BoundSpec, state: State) -> dict[str, Any]:
    """A state in which requests' own hashes at one position are in the order of the requests (LEFT_OUT)."""
    made = decode(bound.shape, state)
    own = int(bound.values["prefix-groups"]) + 1
    made["cached"] = sorted(
        made["cached"],
        key=lambda b: (made["key_at"][b], made["key"][b], made["key_of"][b] if made["key"][b] == own else -1),
    )
    return made


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=f"{row.profile}: {row.name}", marks=[pytest.mark.slow] if row.profile == "vllm-0.27" else [])
        for row in ROWS
    ],
)
def test_a_state_comes_back_from_what_is_shown_of_it(row: kvdata.Conform) -> None:
    bound = bound_of(row)
    watch = Watch(bound, set())
    for state in reachable(bound, MOST):
        observation = shown(bound, state)
        if observation["error"] != "NONE":
            continue
        back = meant(bound, observation)
        if back != state:
            assert shown(bound, back) == observation
            assert watch.check(back) == watch.check(state)
            assert without_order(bound, back) == without_order(bound, state)


@pytest.mark.parametrize("profile", [PROFILES[0], *(pytest.param(name, marks=pytest.mark.slow) for name in PROFILES[1:])])
def test_step_properties_say_the_same_of_what_is_shown(profile: str) -> None:
    row = next(r for r in ROWS if r.profile == profile and r.name == "no connector, caching on")
    bound = bound_of(row)
    steps, watch = Stepper(bound), Watch(bound, set())
    compared = 0
    for state in reachable(bound, MOST):
        for _, _, after in steps.successors(state):
            before_shown, after_shown = shown(bound, state), shown(bound, after)
            if "NONE" == before_shown["error"] == after_shown["error"]:
                back = meant(bound, before_shown), meant(bound, after_shown)
                if back != (state, after):
                    compared += 1
                    assert watch.check_step(*back) == watch.check_step(state, after)
    assert compared


def test_a_stopped_engine_is_as_it_was_before_but_for_its_error() -> None:
    bound = BoundSpec(KV, kvdata.fault("B13").values)
    steps = Stepper(bound)
    found = 0
    for state in reachable(bound, 3_000):
        before = decode(bound.shape, state)
        if before["error"] != "NONE":
            continue
        for _, _, after in steps.successors(state):
            error = decode(bound.shape, after)["error"]
            if error != "NONE":
                found += 1
                assert decode(bound.shape, meant(bound, shown(bound, after), before)) == {**before, "error": error}
    assert found


def test_an_engine_that_has_stopped_before_anything_happened_is_nowhere() -> None:
    bound = BoundSpec(KV, {})
    with pytest.raises(ValueError, match=r"has stopped \(RESET\) before anything happened"):
        meant(bound, {"error": "RESET"})
