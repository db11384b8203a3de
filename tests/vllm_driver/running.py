"""Commands and snippets that load a vLLM release, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

RELEASES = ("0.23.0", "0.25.0", "0.27.0", "0.33.0")
ENDS = [v if v in (RELEASES[0], RELEASES[-1]) else pytest.param(v, marks=pytest.mark.slow) for v in RELEASES]
"""The oldest and the newest release; those between only where there is time."""
PREAMBLE = """\
import json, sys
from fencepost.checker.cli.drivers import find
from fencepost.checker.cli.target import Wanted, resolve
version, profile, bounds = sys.argv[1:4]
model = resolve(Wanted(("kv",), profile, None, (bounds,))).model
bound = model.bound
driver = find("vllm==" + version, "kv").make(bound.values)
"""


def profile_of(version: str) -> str:
    """The profile of a release."""
    return f"vllm-{version.rpartition('.')[0]}"


def fencepost(*words: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the JSON result of a command."""
    command = [sys.executable, "-m", "fencepost.checker.cli.main", *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode in (0, 1, 3), done.stderr
    return done.returncode, json.loads(done.stdout)


def snippet(code: str, version: str, bounds: str, *more: str, profile: str | None = None) -> Any:
    """What a piece of Python prints as JSON in its last line; it has `driver`, `model` and `bound` at these bounds."""
    command = [sys.executable, "-c", PREAMBLE + code, version, profile or profile_of(version), bounds, *more]
    wide = {**os.environ, "COLUMNS": "120"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env=wide)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
