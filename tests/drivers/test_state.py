"""Saved states are whole, also in another process; the driver's attributes are all known."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping

import pytest
from fencepost.checker.conform.draw import Dice
from fencepost.impl.drivers.reference import ReferenceDriver
from fencepost.impl.engine.errors import ResetWhileHeld

from .graph import ROOTS, graph, graph_of_saved
from .runs import PROFILES, Values, bound_at, draw, driver_of, exact, take

NOT_STATE = {
    "config": "never changes",
    "block_size": "never changes",
    "blocks": "never changes",
    "caching": "never changes",
    "max_tokens": "never changes",
    "remote_tokens": "never changes",
    "own": "never changes",
    "has_fence": "never changes",
    "shared_hashes": "never changes",
    "shared_tags": "never changes",
    "lives": "who is or was called what: it only grows, and is asked only for those who are there",
    "_contents": "worked out of the state when it is asked for",
    "stops": "set by each event that uses it",
}
"""Attributes of a driver that are no part of its state, and why."""

SIZES: Mapping[str, Values] = {
    "loads": {"kv-role": "kv_consumer", "requests": 3, "blocks": 5, "block-size": 2, "prompt-tokens": 4, "remote-tokens": 3},
    "cache": {"requests": 3, "blocks": 5, "enable-prefix-caching": 1, "max-tokens": 3, "prefix-groups": 2, "reset-running": 1},
    "both": {
        "kv-role": "kv_both",
        "requests": 3,
        "blocks": 4,
        "block-size": 2,
        "prompt-tokens": 5,
        "remote-tokens": 4,
        "enable-prefix-caching": 1,
        "steps-in-flight": 3,
        "empty-steps": 1,
        "reset-running": 1,
        "max-tokens": 3,
    },
    "late": {"ended-rows": "dropped", "requests": 3, "blocks": 4, "enable-prefix-caching": 1, "max-tokens": 3},
}
"""Bounds that between them bring about whatever the engine can do."""

CASES = [(profile, size) for profile in PROFILES for size in SIZES if profile == "reference" or size == "both"]


def test_every_attribute_of_a_driver_is_saved_or_said_to_be_no_state() -> None:
    assert set(vars(driver_of(bound_at()))) == {*ROOTS, *NOT_STATE}


def run_on(driver: ReferenceDriver, profile: str, size: str, seed: int, length: int) -> None:
    """Let a driver run from the start; it may stop."""
    bound = bound_at(profile, SIZES[size])
    driver.reset()
    for rule, args, _ in draw(bound, seed, length):
        if take(driver, bound, rule, args):
            return


@pytest.mark.parametrize(("profile", "size"), CASES)
def test_a_restored_state_is_the_state_that_was_saved(profile: str, size: str) -> None:
    """Whatever happened in between: nothing is forgotten, nothing is left over, and the saved state is not touched."""
    bound = bound_at(profile, SIZES[size])
    driver, dice = driver_of(bound), Dice(7)
    elsewhere = driver_of(bound)
    for seed in range(2):
        driver.reset()
        for rule, args, state in draw(bound, seed, 60):
            if take(driver, bound, rule, args):
                break
            if not dice.chance(0.15):
                continue
            before, shown, digest = graph(driver), exact(driver.observe()), driver.digest()
            saved = driver.save()
            whole = graph_of_saved(saved)
            assert graph(driver) == before
            for other, more, _ in draw(bound, dice.below(1000), 12, state):
                if take(driver, bound, other, more):
                    break
            driver.restore(saved)
            assert graph(driver) == before
            assert (exact(driver.observe()), driver.digest()) == (shown, digest)
            run_on(elsewhere, profile, size, 100 + dice.below(1000), 20)
            elsewhere.restore(saved)
            assert graph(elsewhere) == before
            assert (exact(elsewhere.observe()), elsewhere.digest()) == (shown, digest)
            assert graph_of_saved(saved) == whole


@pytest.mark.parametrize(("profile", "size"), CASES)
def test_a_restored_engine_goes_on_as_one_that_was_never_saved(profile: str, size: str) -> None:
    bound = bound_at(profile, SIZES[size])
    restored, straight = driver_of(bound), driver_of(bound)
    for rule, args, _ in draw(bound, 11, 120):
        saved = restored.save()
        restored.reset()
        restored.restore(saved)
        assert take(restored, bound, rule, args) == take(straight, bound, rule, args)
        assert exact(restored.observe()) == exact(straight.observe())
        assert restored.digest() == straight.digest()
    assert graph(restored) == graph(straight)


def test_a_stopped_engine_stays_stopped_when_it_is_restored() -> None:
    bound = bound_at("vllm-0.33", SIZES["both"])
    stopped = 0
    for seed in range(40):
        driver = driver_of(bound)
        if not any(take(driver, bound, rule, args) for rule, args, _ in draw(bound, seed, 80)):
            continue
        stopped += 1
        saved = driver.save()
        driver.reset()
        driver.restore(saved)
        assert driver.observe() == {"error": "RESET"}
        with pytest.raises(ResetWhileHeld):
            driver.engine.schedule()
    assert stopped > 0


CHILD = """
import pickle, sys
from fencepost.impl.drivers.reference import ReferenceDriver
values, runs = pickle.load(sys.stdin.buffer)
driver = ReferenceDriver(values)
told = []
for saved, events in runs:
    driver.restore(saved)
    told.append((repr(driver.observe()), driver.digest()))
    for event in events:
        driver.take(*event)
        told.append((repr(driver.observe()), driver.digest()))
sys.stdout.buffer.write(pickle.dumps(told))
"""


@pytest.mark.parametrize("size", SIZES)
def test_a_saved_state_is_restored_in_another_process(size: str) -> None:
    bound = bound_at("reference", SIZES[size])
    runs: list[tuple[object, list[tuple[str, tuple[object, ...]]]]] = []
    told: list[tuple[str, object]] = []
    driver = driver_of(bound)
    for seed in range(5):
        driver.reset()
        for number, (rule, args, _) in enumerate(draw(bound, seed, 50)):
            event = rule.name, bound.arguments(rule, args)
            if number == 10 + 5 * seed:
                runs.append((driver.save(), []))
                told.append((repr(driver.observe()), driver.digest()))
            driver.take(*event)
            if number >= 10 + 5 * seed:
                runs[-1][1].append(event)
                told.append((repr(driver.observe()), driver.digest()))
    assert len(runs) == 5
    made = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=pickle.dumps((bound.values, runs)),
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "4711"},
    )
    assert pickle.loads(made.stdout) == told


def test_an_engine_that_stopped_in_the_midst_of_a_step_is_restored_whole() -> None:
    """Blocks handed out for a step that never came to be are not taken for those of the next."""
    bound = bound_at("reference", {"enable-prefix-caching": 1, "capacity-counts-hits": "yes", "blocks": 3, "prompt-tokens": 2})
    driver, stopped = driver_of(bound), 0
    for seed in range(30):
        driver.reset()
        for rule, args, _ in draw(bound, seed, 60):
            before, saved = graph(driver), driver.save()
            if take(driver, bound, rule, args):
                stopped += driver.observe() == {"error": "ALLOCATION"}
                driver.restore(saved)
                assert graph(driver) == before
    assert stopped > 0


def test_a_load_that_was_planned_and_never_begun_is_forgotten() -> None:
    """A step that broke off after it had planned a load leaves nothing behind for the next one."""
    driver = driver_of(bound_at("reference", SIZES["loads"]))
    driver.submit(0, 3, 0, True)
    saved = driver.save()
    assert driver.connector is not None
    request = driver.engine.scheduler.requests[driver.current[0]]
    request.num_computed_tokens = 3
    driver.connector.update_state_after_alloc(request, ([1, 2],), 3)
    driver.restore(saved)
    assert driver.connector.build_connector_meta().loads == []
