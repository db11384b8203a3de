"""The state of a release: nothing is left out unnoticed, and everything is put back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .running import RELEASES, snippet

pytestmark = pytest.mark.vllm
BOUNDS = "kv-role=kv_consumer,enable-prefix-caching=1,blocks=4,prompt-tokens=2,remote-tokens=2,requests=3,steps-in-flight=3"

WALK = """
import random
from fencepost.checker.conform.observer import Observer
rng = random.Random(7)

def walk(runs, length):
    for _ in range(runs):
        driver.reset()
        state = bound.initial()[0][2]
        for _ in range(length):
            options = [step for step in bound.transitions(state)]
            if not options:
                break
            rule, arguments, state = rng.choice(options)
            try:
                driver.take(rule.name, bound.arguments(rule, arguments))
            except Exception:
                break
            yield state
"""


@pytest.mark.parametrize("version", RELEASES)
def test_no_unknown_field_ever_changes(version: str) -> None:
    """Every field that changes in these runs is shown, digested, or left out for a stated reason."""
    code = """
found = set()
steps = 0
for state in walk(40, 60):
    digest = driver.digest(None)
    if digest:
        steps += 1
        found |= {(role, name) for role, name, _ in digest[-1]}
        found |= {(role, name) for request in digest[1] for role, name, _ in (request[-1] if len(request) > 2 else ())}
print(json.dumps([steps, sorted(found)]))
"""
    steps, found = snippet(WALK + code, version, BOUNDS)
    assert steps > 1000
    assert found == []


@pytest.mark.parametrize("version", RELEASES)
def test_restored_states_are_what_they_were(version: str) -> None:
    """From anywhere back to any saved state."""
    code = """
kept = []
wrong = 0
for number, state in enumerate(walk(12, 40)):
    if number % 5 == 0:
        kept.append((driver.save(), driver.observe(), driver.digest(None)))
    if kept and number % 3 == 0:
        here = driver.save()
        before = driver.observe(), driver.digest(None)
        saved, shown, digest = rng.choice(kept)
        driver.restore(saved)
        wrong += (driver.observe(), driver.digest(None)) != (shown, digest)
        driver.restore(here)
        wrong += (driver.observe(), driver.digest(None)) != before
print(json.dumps([len(kept), wrong]))
"""
    kept, wrong = snippet(WALK + code, version, BOUNDS)
    assert kept > 40
    assert wrong == 0


FORK = """\
from vllm.v1.core.sched.async_scheduler import AsyncScheduler


class Plan:
    def __init__(self):
        self.steps = []


class Counting(AsyncScheduler):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.turns = 0
        self.seen = set()
        self.nested = {"a": []}
        self.plan = Plan()

    def schedule(self, *args, **kwargs):
        output = super().schedule(*args, **kwargs)
        self.turns = (self.turns + 1) % 3
        self.seen = set(output.num_scheduled_tokens)
        self.nested["a"].append(len(self.running))
        self.plan.steps.append(2)
        return output


class Twice(AsyncScheduler):
    def _free_request_blocks(self, request):
        super()._free_request_blocks(request)
        self.kv_cache_manager.block_pool.free_blocks(self.kv_cache_manager.block_pool.blocks[1:2])


class Failing(AsyncScheduler):
    def schedule(self, *args, **kwargs):
        output = super().schedule(*args, **kwargs)
        if len(self.running) > 1:
            raise KeyError("broken")
        return output
"""


def forked(tmp_path: Path, name: str, code: str) -> Any:
    """What a snippet prints that has a driver of a scheduler class of that name."""
    (tmp_path / "a_fork.py").write_text(FORK)
    start = f"""
sys.path.insert(0, sys.argv[4])
from fencepost.impl.drivers.vllm import VllmDriver
from fencepost.traces.driver import Stopped
driver = VllmDriver(bound.values, driver.release, scheduler_cls="a_fork:{name}")
"""
    return snippet(start + code, "0.33.0", BOUNDS, str(tmp_path))


def test_fields_of_ones_own_are_state(tmp_path: Path) -> None:
    """A fork's fields are saved, restored, and part of the digest, also what is nested in them; under the names of members."""
    code = """
start = driver.save()
driver.take("submit", (1, 1, 0, False))
driver.take("schedule", ())
first = driver.digest(None)[-1]
driver.restore(start)
print(json.dumps([driver.title, first, driver.digest(None)[-1]]))
"""
    title, first, again = forked(tmp_path, "Counting", code)
    assert "with scheduler a_fork:Counting" in title
    found = {name: value for _, name, value in first[:-1]}
    assert found["turns"] == 1
    assert found["seen"] == ["set", ["request", 1]]
    assert found["nested"] == ["dict", ["a", ["list", 1]]]
    assert found["plan"] == ["Plan", ["list", 2]]
    assert first[-1][0] == "names"
    assert again == []


def test_a_reference_that_is_given_back_twice_is_an_error(tmp_path: Path) -> None:
    """The releases do not look; the driver does after every event."""
    code = """
driver.take("submit", (0, 1, 0, False))
try:
    for event in (("schedule", ()), ("run_step", ()), ("process", (frozenset({0}),))):
        driver.take(*event)
    found = None
except Stopped as error:
    found = [error.kind, str(error)]
print(json.dumps([found, driver.observe()["error"]]))
"""
    found, shown = forked(tmp_path, "Twice", code)
    assert found == ["DOUBLE_FREE", "block 1 has the reference count -1"]
    assert shown == "DOUBLE_FREE"


def test_nothing_is_left_over_of_an_event_that_failed(tmp_path: Path) -> None:
    """Blocks that were handed out before the exception are forgotten as the state is restored."""
    code = """
driver.take("submit", (0, 1, 0, False))
driver.take("schedule", ())
before = driver.save()
driver.take("submit", (1, 1, 0, True))
driver.take("submit", (2, 1, 0, False))
try:
    driver.take("schedule", ())
    found = None
except Stopped as error:
    found = [error.kind, str(error)]
driver.restore(before)
driver.take("run_step", ())
driver.take("process", (frozenset(),))
driver.take("schedule", ())
print(json.dumps([found, driver.observe()["loads"]]))
"""
    found, loads = forked(tmp_path, "Failing", code)
    assert found == ["INTERNAL", "KeyError: 'broken'"]
    assert loads == {}
