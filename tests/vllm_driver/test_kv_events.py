"""KV events that releases of vLLM really publish, over ZeroMQ, recorded by the example script, and validated."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.vllm
RECORDER = Path(__file__).parents[2] / "examples/record_kv_events.py"
RELEASES = ("0.23.0", "0.25.0", "0.27.0", "0.33.0")
BOUNDS = "requests=2,blocks=4,prompt-tokens=4,block-size=2,enable-prefix-caching=1"

RUN = """\
import json, subprocess, sys, time
from pathlib import Path
from fencepost.checker.cli.kvdata import profiles
from fencepost.checker.conform.draw import Dice, Drawer
from fencepost.impl.drivers.vllm import VllmDriver
from fencepost.impl.vllm.find import fetched
from fencepost.spec.lang import BoundSpec, load_module

version, recorder, folder, bounds, seed = sys.argv[1:]
given = dict(one.split("=") for one in bounds.split(","))
switches = profiles()["vllm-" + version.rpartition(".")[0]].switches
bound = BoundSpec(load_module("fencepost.spec.kv.kv", "kv"), {**switches, **{k: int(v) for k, v in given.items()}})
driver = VllmDriver(bound.values, fetched(version))

from vllm.config.kv_events import KVEventsConfig
from vllm.distributed.kv_events import EventPublisherFactory

endpoints = [f"ipc://{folder}/events", f"ipc://{folder}/replay"]
config = KVEventsConfig(enable_kv_cache_events=True, endpoint=endpoints[0], replay_endpoint=endpoints[1])
publisher = EventPublisherFactory.create(config)
driver.engine.pool.enable_kv_cache_events = True
driver.engine.scheduler.kv_event_publisher = publisher
file = Path(folder, "events.bin")
recording = subprocess.Popen([sys.executable, recorder, endpoints[0], str(file), endpoints[1]])
drawer, state = Drawer(bound, bound.after, Dice(int(seed))), bound.initial()[0][2]
for _ in range(90):
    rule, args, state = drawer.draw(state)
    driver.take(rule.name, bound.arguments(rule, args))

# One more batch at a time, until the recorder is there and has all of them.
def recorded():
    data, count = file.read_bytes() if file.exists() else b"", 0
    while data:
        data, count = data[16 + int.from_bytes(data[8:16], "big"):], count + 1
    return count

published = lambda: publisher._buffer[-1][0] + 1
sending = lambda: publisher._event_queue.unfinished_tasks  # a batch is sent first and put into the buffer afterwards
deadline = time.monotonic() + 60
while (sending() or recorded() < published()) and time.monotonic() < deadline:
    drawn = drawer.draw(state) if not sending() and not recorded() else None
    if drawn is not None:
        rule, args, state = drawn
        driver.take(rule.name, bound.arguments(rule, args))
    time.sleep(0.05)
print(json.dumps([recorded(), published()]))
recording.terminate()
recording.wait()
publisher.shutdown()
"""


@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize("seed", [4, pytest.param(5, marks=pytest.mark.slow)])
def test_what_a_release_publishes_is_what_its_profile_publishes(version: str, seed: int, tmp_path: Path) -> None:
    from fencepost.checker.cli.main import main

    words = [sys.executable, "-c", RUN, version, str(RECORDER), str(tmp_path), BOUNDS, str(seed)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    recorded, published = json.loads(done.stdout.splitlines()[-1])
    assert recorded == published > 5
    against = ["validate", str(tmp_path / "events.bin"), "--spec", "kv", "--bounds", BOUNDS, "--profile"]
    assert main([*against, f"vllm-{version.rpartition('.')[0]}", "--max-states", "1M"]) == 0
