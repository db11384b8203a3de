"""The four releases that profiles describe: whole, of the known layout, and loaded as a user's process would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fencepost.impl.vllm import layout
from fencepost.impl.vllm.fetch import damage
from fencepost.impl.vllm.find import fetched, releases_folder

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
