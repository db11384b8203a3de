"""Each release is classified as its own profile, by experiment, and a scheduler class of a user's is audited."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fencepost.checker.cli.classifying import switches
from fencepost.checker.conform.audit_schema import AuditDocument
from fencepost.checker.conform.classify_schema import ClassifyDocument

from .running import RELEASES, fencepost, profile_of

pytestmark = pytest.mark.vllm
UNTOLD = {
    "0.23.0": {"intended-free-order", "victim-rule", "waiting-queues"},
    "0.25.0": {"intended-free-order", "waiting-queues"},
    "0.27.0": {"intended-free-order"},
    "0.33.0": {"intended-free-order"},
}
"""What has no effect in a release (tests/conform/test_classify.py says why)."""

LONG = ("0.23.0", "0.25.0", "0.27.0")
"""Releases whose classification takes about a minute."""

PLUGIN = '''\
"""A scheduler that defers no free, whatever is in flight."""

from vllm.v1.core.sched.async_scheduler import AsyncScheduler


class Hasty(AsyncScheduler):
    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.defer_block_free = False


class NoScheduler:
    pass
'''


@pytest.mark.parametrize("version", [pytest.param(v, marks=[pytest.mark.slow] * (v in LONG)) for v in RELEASES])
def test_a_release_is_classified_as_its_profile(version: str) -> None:
    code, made = fencepost("vllm", "classify", version)
    found = ClassifyDocument.model_validate(made).classification
    assert (code, found.verdict) == (0, "HOLDS")
    assert found.behaves_as is not None
    assert (found.behaves_as.profile, found.behaves_as.switches) == (profile_of(version), {})
    assert {switch.name for switch in found.switches} == set(switches())
    assert {switch.name for switch in found.switches if switch.untold} == UNTOLD[version]
    assert all(switch.told or switch.untold for switch in found.switches)
    assert {profile.name for profile in found.profiles if profile.differs is None} == {profile_of(version)}


def audit(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Audit a class of plugin.py in this folder, in a process that is there."""
    (folder / "plugin.py").write_text(PLUGIN)
    command = [sys.executable, "-m", "fencepost.checker.cli.main", "audit", "--vllm", "0.33.0", *words]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=1800, env={**os.environ, "COLUMNS": "120"}
    )


@pytest.mark.slow
def test_a_scheduler_class_that_frees_at_once_is_found_out(tmp_path: Path) -> None:
    done = audit(tmp_path, "--scheduler-cls", "plugin:Hasty", "--json")
    assert done.returncode == 1, done.stderr
    made = AuditDocument.model_validate_json(done.stdout)
    assert made.errors == {}
    assert made.classification is not None
    assert made.classification.behaves_as is not None
    assert made.classification.behaves_as.profile == "vllm-0.33"
    frees = ("finish-free", "abort-free", "preemption-free")
    assert made.classification.behaves_as.switches == dict.fromkeys(frees, "at-once")
    assert {row.verdict for row in made.lockstep} == {"HOLDS"}
    violated = {one.name for one in made.properties if one.status == "violated"}
    assert "no-unordered-write-in-flight" in violated


def test_a_class_that_is_no_scheduler_is_an_input_error(tmp_path: Path) -> None:
    done = audit(tmp_path, "--scheduler-cls", "plugin:NoScheduler")
    assert (done.returncode, done.stdout) == (2, "")
    assert "error: --vllm 0.33.0: --scheduler-cls plugin:NoScheduler: it does not derive from SchedulerInterface" in done.stderr
