"""What docs/findings.md says was seen, seen again."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .running import fencepost, profile_of, snippet

pytestmark = pytest.mark.vllm
ROOT = Path(__file__).parents[2]
BIDIRECTIONAL = """
import json, logging, sys
from fencepost.impl.vllm import find, loading
from fencepost.impl.vllm.build import Settings
from fencepost.impl.vllm.engine import ReleaseEngine

loading.load(find.fetched("0.33.0"))
engine = ReleaseEngine(Settings(
    num_gpu_blocks=6, block_size=1, max_num_seqs=8, max_num_batched_tokens=8, enable_prefix_caching=False,
    scheduler_reserve_full_isl=True, watermark=0, async_scheduling=True, max_concurrent_batches=2, max_empty_batches=0,
    kv_role=sys.argv[1], remote_tokens=0, max_tokens=4, stop_token=1,
    connector="vllm.distributed.kv_transfer.kv_connector.v1.nixl:NixlConnector",
    connector_config={"bidirectional_kv_xfer": True, "kv_recompute_threshold": 0},
))
engine.submit("A", [10, 11], remote=False)
step = engine.schedule().output
written = step.scheduled_new_reqs[0].block_ids[0]
turn = engine.new_request("B", [20, 21, 22])
turn.kv_transfer_params = dict(
    do_remote_decode=True, do_remote_prefill=False, remote_block_ids=([7, 8],), remote_num_tokens=2,
    remote_engine_id="decode", remote_request_id="B0", remote_host="localhost", remote_port=1, tp_size=1,
)
engine.scheduler.add_request(turn)
engine.abort("A")
metadata = engine.schedule().output.kv_connector_metadata
targets = [block for group in metadata.reqs_to_recv["B"].local_block_ids for block in group]
print(json.dumps([type(engine.scheduler.connector).__name__, engine.scheduler.defer_block_free, written, targets]))
"""


def bidirectional(role: str) -> list[Any]:
    """The connector, whether there is a fence, blocks of the step in flight, and targets of the load."""
    done = subprocess.run([sys.executable, "-c", BIDIRECTIONAL, role], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_producer_that_loads_has_no_fence() -> None:
    connector, fence, written, targets = bidirectional("kv_producer")
    assert connector == "NixlPullConnector"
    assert not fence
    assert sorted(targets) == sorted(written)


def test_a_consumer_has_one() -> None:
    _, fence, written, targets = bidirectional("kv_consumer")
    assert fence
    assert not set(targets) & set(written)


def test_the_search_finds_the_producer_that_loads() -> None:
    bounds = "kv-role=kv_producer,remote-tokens=2,prompt-tokens=2"
    words = ("kv", "--target", "vllm==0.33.0", "--profile", "vllm-0.33", "--bounds", bounds)
    code, result = fencepost("check", *words, "--property", "no-unordered-write-in-flight")
    assert (code, result["verdict"]) == (1, "VIOLATED")
    assert len(result["trace"]["states"]) == 6


@pytest.mark.parametrize("version", ["0.25.0", "0.27.0", "0.33.0"])
def test_a_running_reset_raises_under_the_fence(version: str) -> None:
    code = """
driver.take("submit", (0, 1, 0, False))
driver.take("schedule", ())
try:
    driver.take("reset_running", ())
    found = None
except Exception as error:
    found = [error.kind, str(error)]
request = driver.engine.scheduler.requests["0#1"]
print(json.dumps([found, request.status.name]))
"""
    (kind, said), status = snippet(code, version, "kv-role=kv_consumer,reset-running=1,remote-tokens=2,blocks=3")
    assert kind == "RESET"
    assert said.startswith("RuntimeError: Failed to reset KV cache even when all the running requests are preempted")
    assert status == "PREEMPTED"


DEADLOCK = """
nobody = frozenset()
events = [
    ("submit", (0, 2, 0, False)), ("submit", (1, 2, 0, True)), ("schedule", ()), ("schedule", ()), ("schedule", ()),
    # The queue is full. The load's completion comes with the oldest output; then A finds no block and gives its own up.
    ("land", (1,)), ("run_step", ()), ("process", (nobody,)), ("report", (1,)), ("schedule", ()),
    ("run_step", ()), ("process", (nobody,)), ("abort", (1,)), ("submit", (1, 2, 0, True)), ("schedule", ()),
    # A was skipped, and B's blocks are those that A will lack.
    ("run_step", ()), ("process", (nobody,)), ("schedule", ()),
    ("land", (1,)), ("run_step", ()), ("process", (nobody,)), ("report", (1,)), ("schedule", ()),
]
for action, arguments in events[: int(sys.argv[4])]:
    driver.take(action, arguments)

def shown():
    seen = driver.observe()
    statuses = [request["status"] for request in seen["requests"].values()]
    return {"statuses": statuses, "holding": seen["holding"], "free": seen["free"], "loads": seen["loads"], "all": repr(seen)}

def go_on():
    driver.take("run_step", ())
    driver.take("process", (nobody,))
    driver.take("schedule", ())
    return shown()

states = [shown(), go_on(), go_on(), go_on()]
driver.take("abort", (1,))
print(json.dumps([*states, go_on()]))
"""
ORDERLY = "kv-role=kv_consumer,remote-tokens=2,prompt-tokens=2,max-tokens=4,blocks=6,steps-in-flight=3,empty-steps=3"


def test_the_deadlock_of_two_waiting_queues() -> None:
    """Steps are processed in order, and a completion comes with an output, as vLLM's engine process has it."""
    first, *later, after = snippet(DEADLOCK, "0.27.0", ORDERLY, "23")
    assert first["statuses"] == ["PREEMPTED", "LOADING"]
    assert (first["holding"], first["loads"]) == ([0, 1], {"1": "REPORTED"})
    assert len(first["free"]) == 4
    assert later == [first] * 3
    assert after["statuses"] == ["RUNNING"], "it ends when the client of the request that holds the blocks disconnects"


def test_no_deadlock_since_there_is_a_queue_of_those_that_hold_blocks() -> None:
    """At the same events, up to where A finds no block, B goes on and A keeps its blocks."""
    first, second, *_ = snippet(DEADLOCK, "0.33.0", ORDERLY, "10")
    assert first["statuses"] == ["RUNNING", "RUNNING"]
    assert (first["holding"], first["loads"]) == ([], {})
    assert second != first


@pytest.mark.parametrize(("version", "leaks"), [("0.23.0", True), ("0.25.0", True), ("0.27.0", False), ("0.33.0", False)])
def test_block_ids_that_nobody_takes(version: str, leaks: bool) -> None:
    code = """
sizes = []
for _ in range(5):
    driver.take("submit", (0, 2, 0, False))
    driver.take("schedule", ())
    driver.take("run_step", ())
    driver.take("process", (frozenset({0}),))
    group = driver.engine.manager.coordinator.single_type_managers[0]
    sizes.append(len(group.new_block_ids))
print(json.dumps(sizes))
"""
    sizes = snippet(code, version, "blocks=4")
    assert sizes == ([2, 4, 6, 8, 10] if leaks else [0, 0, 0, 0, 0])


ROW = re.compile(r"^\| ((?:0\.\d\d\.0(?:, )?)+) \| `([a-z-]+)` \| (\d+) \| .* \| `(--property [^`]+)` \|$", re.MULTILINE)
TABLE = [
    (version, name, int(events), options)
    for versions, name, events, options in ROW.findall((ROOT / "docs" / "findings.md").read_text("utf-8"))
    for version in versions.split(", ")
]


def test_the_table_of_older_releases_is_read() -> None:
    assert len(TABLE) == 10
    assert all(f"--property {name} " in options for _, name, _, options in TABLE)


@pytest.mark.parametrize(("version", "name", "events", "options"), TABLE)
def test_what_older_releases_violate(version: str, name: str, events: int, options: str) -> None:
    code, found = fencepost("check", "kv", "--target", f"vllm=={version}", "--profile", profile_of(version), *options.split())
    (one,) = [prop for prop in found["properties"] if prop["name"] == name]
    assert (code, one["status"], one["depth"]) == (1, "violated", events)
