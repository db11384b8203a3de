"""The state of a release: nothing is left out unnoticed, and everything is put back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .running import ENDS, snippet

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


@pytest.mark.parametrize("version", ENDS)
def test_no_unknown_field_ever_changes(version: str) -> None:
    """Every field that changes in these runs is shown, digested, or left out for a stated reason."""
    code = """
found = set()
steps = 0
for state in walk(40, 60):
    digest = driver.digest(None)
    if digest:
        steps += 1
        found |= {name for name, _ in digest[-1]}
        found |= {name for request in digest[1] for name, _ in (request[-1] if len(request) > 2 else ())}
print(json.dumps([steps, sorted(found)]))
"""
    steps, found = snippet(WALK + code, version, BOUNDS)
    assert steps > 1000
    assert found == []


@pytest.mark.parametrize("version", ENDS)
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


def driven(tmp_path: Path, module: str, source: str, code: str, **classes: str) -> Any:
    """What a snippet prints whose driver has classes of such a module, by the names of a `VllmDriver`'s parameters."""
    (tmp_path / f"{module}.py").write_text(source)
    chosen = ", ".join(f'{place}="{module}:{name}"' for place, name in classes.items())
    start = f"""
sys.path.insert(0, sys.argv[4])
from fencepost.impl.drivers.vllm import VllmDriver
from fencepost.traces.driver import Stopped
driver = VllmDriver(bound.values, driver.release, {chosen})
"""
    return snippet(start + code, "0.33.0", BOUNDS, str(tmp_path))


def forked(tmp_path: Path, name: str, code: str) -> Any:
    """What a snippet prints that has a driver of a scheduler class of that name."""
    return driven(tmp_path, "a_fork", FORK, code, scheduler_cls=name)


def test_fields_of_ones_own_are_state(tmp_path: Path) -> None:
    """A fork's fields are saved, restored, and part of the digest, also what is nested in them; under the names of members."""
    code = """
start, before = driver.save(), driver.digest(None)[-1]
driver.take("submit", (1, 1, 0, False))
driver.take("schedule", ())
first = driver.digest(None)[-1]
driver.restore(start)
print(json.dumps([driver.title, before, first, driver.digest(None)[-1]]))
"""
    title, before, first, again = forked(tmp_path, "Counting", code)
    assert "with scheduler a_fork:Counting" in title
    found = dict(first)
    assert found["scheduler.turns"] == [1, 1, 0]  # with the names of request 1 and of block 1
    assert found["scheduler.seen"] == ["set", ["(request)", 1]]
    assert found["scheduler.nested[0][0]"] == ["list", [1, 1, 0]]
    assert found["scheduler.plan.steps"] == ["list", [2, 1]]
    assert again == before == [["scheduler.turns", [0, -1]]]  # a number that can be the same again names, too


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


def test_values_that_differ_have_different_digests() -> None:
    """Of each pair, something may decide differently: kinds, orders, contents, and what only looks like a request."""
    code = """
import enum, functools, types
from array import array
from collections import OrderedDict, deque
from dataclasses import dataclass
from random import Random
import marshal, torch
import numpy as np
Mode = enum.Enum("Mode", "A B")
Level = enum.IntEnum("Level", "A B")
Word = enum.StrEnum("Word", "A B")
Named = type("Named", (str,), {})
Blocks = type(driver.engine.manager.empty_kv_cache_blocks)
blocks = driver.engine.pool.blocks

@dataclass
class Track:
    request_id: str
    block_id: int
    count: int

def counting(count):
    def more():
        return count
    return more

PAIRS = {
    "enum": (Mode.A, Mode.B), "int enum": (Level.A, Level.B), "str enum": (Word.A, Word.B),
    "str": (Named("a"), Named("b")), "ordered": (OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)),
    "dict": (dict(a=1, b=2), dict(b=2, a=1)), "bytearray": (bytearray(b"a"), bytearray(b"b")),
    "tensor": (torch.zeros(1), torch.ones(1)), "array": (np.zeros(1), np.ones(1)), "scalar": (np.int64(1), np.int64(2)),
    "objects": (np.array([[1]], dtype=object), np.array([[2]], dtype=object)), "range": (range(2), range(3)),
    "partial": (functools.partial(int, "1"), functools.partial(int, "2")), "closure": (counting(1), counting(2)),
    "function": (len, max), "class": (int, str), "random": (Random(1), Random(2)), "bytes": (array("i", [1]), array("i", [2])),
    "space": (types.SimpleNamespace(a=1), types.SimpleNamespace(b=1)), "track": (Track("0#0", 1, 1), Track("0#0", 1, 2)),
    "blocks": (Blocks(([blocks[1]],)), Blocks(([blocks[2]],))), "gone": (["5#1", "5#1"], ["5#1", "5#2"]),
    "view": ({"a": 1}.values(), {"a": 2}.values()),
}
print(json.dumps([
    name for name, pair in PAIRS.items()
    if len({marshal.dumps(driver.state.frozen(one, [0, 1], [-1, 0, 1, 2, 3])) for one in pair}) == 1
]))
"""
    assert snippet(code, "0.33.0", BOUNDS) == []


OWN = """import numpy
import time
import time as clock
from time import perf_counter
from types import SimpleNamespace
from fencepost.impl.vllm.remote_connector import RemotePrefillConnector
from vllm.v1.core.sched.async_scheduler import AsyncScheduler


class Told(RemotePrefillConnector):
    def __init__(self, config, *args, **kwargs):
        config.kv_transfer_config.kv_connector_extra_config["remote_tokens"] = 2
        super().__init__(config, *args, **kwargs)

    def build_connector_meta(self, scheduler_output):
        assert not scheduler_output.finished_req_ids
        return super().build_connector_meta(scheduler_output)


class Timed(AsyncScheduler):
    def schedule(self, *args, **kwargs):
        import time as later

        self.at = time.time(), perf_counter(), clock.monotonic_ns(), later.process_time()
        return super().schedule(*args, **kwargs)

    def reset_prefix_cache(self, *args, **kwargs):
        end = time.monotonic() + 5
        while time.monotonic() < end:
            pass
        return super().reset_prefix_cache(*args, **kwargs)


class Nothing:
    def __getattr__(self, name):
        raise KeyError(name)


class Odd(AsyncScheduler):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.hand, self.maybe, self.words, self.number, self.nothing = 1, None, {}, 0.0, None
        self.buffers = SimpleNamespace(one=[], two=[])
        self.current = self.first = []
        self.second = []
        model = self.vllm_config.model_config
        self.asked = lambda: model

    def schedule(self, *args, **kwargs):
        self.hand = (self.hand + 1) % 4
        self.oldest = next((request.request_id for request in self.requests.values()), None)
        return super().schedule(*args, **kwargs)


class Asking(AsyncScheduler):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.own, self.last, self.number = SimpleNamespace(steps=0), None, 0

    def schedule(self, *args, **kwargs):
        assert all(request.num_preemptions < 3 for request in self.requests.values())
        self.last = super().schedule(*args, **kwargs)
        self.own.steps += 1
        self.number = numpy.sum([self.number, 1])
        return self.last
"""


def test_what_a_connector_is_told_of_is_state(tmp_path: Path) -> None:
    """Who has ended since the step before is told by the next step: none, one, or several that are gone."""
    code = """
found = []
for _ in range(4):
    found.append(driver.digest(None)[-1])
    driver.take("submit", (0, 1, 0, False))
    driver.take("abort", (0,))
driver.take("submit", (0, 1, 0, False))
print(json.dumps(found))
"""
    found = driven(tmp_path, "own", OWN, code, connector="Told")
    ended = [dict(one).get("scheduler.finished_req_ids") for one in found]
    assert ended == [None, ["set", ["(gone)", 0]], ["set", ["(gone)", 0], ["(gone)", 1]], ["set", ["(gone)", 0], ["(gone)", 1]]]


def test_a_left_out_field_counts_where_a_fork_names_it(tmp_path: Path) -> None:
    """Also its own fields of types that a release only keeps constants of are saved and told apart."""
    code = """
driver.take("submit", (0, 1, 0, False))
start, before = driver.save(), driver.digest(None)
driver.take("schedule", ())
driver.take("run_step", ())
driver.take("process", (frozenset(),))
driver.take("reset_running", ())
digest = driver.digest(None)
driver.restore(start)
asked = sorted(driver.state.asked & {"num_preemptions", "num_cached_tokens"})
print(json.dumps([asked, digest, driver.digest(None) == before]))
"""
    asked, digest, restored = driven(tmp_path, "own", OWN, code, scheduler_cls="Asking")
    assert asked == ["num_preemptions"]
    assert ["request.num_preemptions", [1, 0]] in digest[1][0][-1]
    found = dict(digest[-1])
    assert found["scheduler.own.steps"] == [1, 0]  # with the name of block 1
    assert [".num_scheduled_tokens", ["dict", [["(request)", 0], [1, 0]]]] in found["scheduler.last"]
    assert restored


def test_what_a_fork_could_decide_by_is_told_apart(tmp_path: Path) -> None:
    """Which of two equal lists it is, a field that is gone, the order of requests, a block that is again the first one."""
    code = """
import own
it = driver.engine.scheduler
driver.take("submit", (0, 1, 0, True))
driver.take("submit", (1, 1, 0, False))
driver.take("submit", (2, 1, 0, False))
driver.take("abort", (2,))
it.words = {"(gone)": 7, "gone": 7, "who": ["2#2"]}
start = driver.save()
before = driver.digest(None)

def other(**fields):
    vars(it).update(fields)

def turned():
    first = next(iter(it.requests))
    it.requests[first] = it.requests.pop(first)

CASES = {
    "which list": lambda: other(current=it.second),
    "no field": lambda: vars(it).pop("maybe"),
    "a field more": lambda: (vars(it).pop("maybe"), other(more=1)),
    "a word": lambda: other(words={"(gone)": 7, "gone": 9, "who": ["2#2"]}),
    "the order of requests": turned,
    "what a request says of its load": lambda: next(iter(it.requests.values())).kv_transfer_params.update(tries=1),
    "not a number": lambda: other(number=float("nan")),
    "an object that knows nothing": lambda: other(nothing=own.Nothing()),
    "a slice": lambda: other(nothing=slice(1, 2)),
    "another slice": lambda: other(nothing=slice(1, 3)),
}
found = {}
for name, change in CASES.items():
    driver.restore(start)
    change()
    found[name] = driver.digest(None)
    assert found[name] == driver.digest(None), name
driver.restore(start)
blocks = [driver.digest({"requests": (0, 1, 2), "blocks": names})[-1] for names in ((0, 1, 2, 3), (1, 0, 2, 3))]
print(json.dumps([
    [name for name, digest in found.items() if digest == before], len(set(found.values())), driver.digest(None) == before,
    [dict(one)["scheduler.hand"] for one in blocks],
]))
"""
    same, different, restored, hand = driven(tmp_path, "own", OWN, code, scheduler_cls="Odd")
    assert same == []
    assert different == 10
    assert restored
    assert hand == [[1, 1, 0], [1, 1, 1]]  # with the names of request 1 and of block 1


def test_the_clock_stands_still(tmp_path: Path) -> None:
    """No state depends on how fast it was reached; who waits for a deadline comes to it; and only in events is it so."""
    code = """
import time
found = []
for _ in range(2):
    driver.reset()
    driver.take("schedule", ())
    found.append(driver.digest(None)[-1])
    time.sleep(0.01)
driver.take("reset", ())
print(json.dumps([found[0] == found[1], found[0], time.time()]))
"""
    same, found, now = driven(tmp_path, "own", OWN, code, scheduler_cls="Timed")
    assert same
    assert found == [["scheduler.at", ["tuple", 1e6, 1e6, 10**15, 1e6]]]
    assert now > 1e9


LOADS = "kv-role=kv_consumer,requests=2,blocks=2,prompt-tokens=1,max-tokens=2,remote-tokens=1"


@pytest.mark.parametrize("version", ENDS)
def test_the_scheduler_side_of_nixl_ends(version: str) -> None:
    """Every transition agrees with it, and what it keeps of requests that are gone does not grow for ever."""
    code = """
from fencepost.checker.conform.product import conform
from fencepost.checker.model import Limits
from fencepost.impl.drivers.vllm import VllmDriver
nixl = VllmDriver(bound.values, driver.release, connector="vllm.distributed.kv_transfer.kv_connector.v1.nixl:NixlConnector")
found = conform(model, nixl, Limits(max_states=20_000))
plain = conform(model, driver, Limits(max_states=20_000))
loads = [one.engine.would_load(5) for one in (nixl, driver)]
print(json.dumps([found.verdict.value, found.figures.spec_states, plain.figures.spec_states,
                  found.hidden is not None and [one.implementation for one in found.hidden.differences], loads]))
"""
    verdict, states, plain, hidden, loads = snippet(code, version, LOADS)
    assert verdict == "HOLDS"
    assert states == plain
    assert "_reqs_need_recv" in str(hidden) or "_heartbeat" in str(hidden)
    assert loads == [5, 1]
