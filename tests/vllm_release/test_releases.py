"""The four releases that profiles describe: whole, of the known layout, and loaded as a user's process would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fencepost.impl.vllm import layout
from fencepost.impl.vllm.find import fetched, releases_folder
from fencepost.impl.vllm.record import damage

pytestmark = pytest.mark.vllm

VERSIONS = ("0.23.0", "0.25.0", "0.27.0", "0.33.0")

LOAD = """
import json, socket, sys

def refuse(*arguments, **named):
    raise AssertionError("the network")

socket.socket.connect = socket.getaddrinfo = refuse
from fencepost.impl.vllm import standins
from fencepost.impl.vllm.errors import ReleaseError
from fencepost.impl.vllm.find import fetched
from fencepost.impl.vllm.loading import load
release = fetched(sys.argv[1])
load(release)
try:
    load(fetched(sys.argv[2]))
    second = "loaded"
except ReleaseError as error:
    second = str(error)
import vllm
from vllm.platforms import current_platform
from vllm.v1.core.sched.scheduler import Scheduler
print(json.dumps({
    "version": vllm.__version__,
    "platform": type(current_platform).__name__,
    "scheduler": sys.modules[Scheduler.__module__].__file__,
    "stood in": standins.stood_in(),
    "seen by others": [name for name in sys.modules if name.partition(".")[0] in standins.stood_in()],
    "second": second,
}))
"""


CONNECTOR = """
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorBase_V1

class Plain(KVConnectorBase_V1):
    def __init__(self, vllm_config, role, kv_cache_config):
        super().__init__(vllm_config, role, kv_cache_config)

    def nothing(self, *_, **__): ...

    get_num_new_matched_tokens = update_state_after_alloc = build_connector_meta = nothing
    start_load_kv = wait_for_layer_load = save_kv_layer = wait_for_save = nothing
"""
HYBRID = """
import sys
from dataclasses import replace
from fencepost.impl.vllm.build import Settings, build_scheduler
from fencepost.impl.vllm.find import fetched
from fencepost.impl.vllm.loading import load
load(fetched(sys.argv[1]))
sys.path.insert(0, sys.argv[2])
given = Settings(5, 2, 2, 4, False, False, 0, False, 1, 0, "kv_consumer", 2, 2, 0)
for connector in (None, "s_own:Plain"):
    made = build_scheduler(replace(given, connector=connector))
    print(type(made.connector).__name__, made.vllm_config.scheduler_config.disable_hybrid_kv_cache_manager)
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_the_hybrid_manager_is_off_for_a_connector_that_does_not_support_it(version: str, tmp_path: Path) -> None:
    (tmp_path / "s_own.py").write_text(CONNECTOR)
    done = subprocess.run([sys.executable, "-c", HYBRID, version, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "RemotePrefillConnector False\nPlain True\n"


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_whole_and_laid_out_as_known(version: str) -> None:
    release = fetched(version)
    assert damage(release.path) == []
    assert layout.missing(release) == []


@pytest.mark.parametrize(("version", "other"), list(zip(VERSIONS, VERSIONS[1:] + VERSIONS[:1], strict=True)))
def test_it_loads_quietly_and_alone(version: str, other: str, tmp_path: Path) -> None:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("VLLM_", "HF_", "XDG_"))}
    variables |= {"HOME": str(tmp_path), "FENCEPOST_CACHE": str(releases_folder().parent)}
    done = subprocess.run(
        [sys.executable, "-c", LOAD, version, other], capture_output=True, text=True, check=False, env=variables
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)  # one object, and nothing else
    assert found["version"] == version
    assert found["platform"] == "UnspecifiedPlatform"
    assert Path(found["scheduler"]).is_relative_to(releases_folder() / version)
    assert found["seen by others"] == []
    assert f"vLLM {other}" in found["second"]
    assert "process of its own" in found["second"]
    assert list(tmp_path.iterdir()) == []  # nothing is written to the home folder
