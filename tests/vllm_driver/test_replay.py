"""The traces of the corpus on four releases of vLLM: who shows the bug, and who does something else for which mechanism."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.vllm
CORPUS = Path(__file__).parents[2] / "traces" / "corpus"
RELEASES = ("0.23.0", "0.25.0", "0.27.0", "0.33.0")
SHOWS = "shows"

# For each trace what each release does: it shows the bug, or something else, which the spec does with these switches. Of
# those after a slash it does the whole trace, and it is harmless with them; after a tilde the property does not apply.
TABLE: dict[str, tuple[str, ...]] = {
    "B01": (SHOWS, "finish-free=fenced", "finish-free=fenced", "finish-free=fenced"),
    "B03-abort": (
        "~finish-free=at-once and preemption-free=at-once",
        "abort-free=fenced",
        "abort-free=fenced",
        "abort-free=fenced",
    ),
    "B03-finish": (
        "~abort-free=at-once and preemption-free=at-once",
        "finish-free=fenced",
        "finish-free=fenced",
        "finish-free=fenced",
    ),
    "B03-preemption": (
        "stale-output=counted",
        "stale-output=counted and preemption-free=fenced and victim-rule=any",
        "preemption-free=fenced and victim-rule=any",
        "preemption-free=fenced",
    ),
    "B11": ("/intended-free-order=tail", "uncached-free-order=head", SHOWS, "uncached-free-order=head"),
    "B13": ("preempt-skips-ended=yes",) * 4,
    "B17-count": ("stale-output=counted", "stale-output=counted", "capacity-counts-hits=no", "capacity-counts-hits=no"),
    "B17-pin": ("pin-before-test=no",) * 4,
    "B22": ("abort-of-load=hold",) * 4,
    "B23": ("abort-after-report=free",) * 4,
    "B37": (SHOWS, SHOWS, "stale-output=marked", "stale-output=marked"),
    "B40": (
        "stale-output=counted and preemption-free=at-once",
        "stale-output=counted",
        SHOWS,
        "victim-rule=not-fenced",
    ),
    "B41": ("admission-reservation=on",) * 4,
    "B47": ("/ended-rows=written",) * 4,
}

RUN = """\
import contextlib, io, json, sys
from fencepost.checker.cli.main import main

made = {}
for path in sys.argv[2:]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main(["replay", path, "--target", sys.argv[1]])
    made[path] = [code, out.getvalue()]
print(json.dumps(made))
"""


@cache
def replayed(version: str) -> dict[str, tuple[int, str]]:
    """For each trace the exit code and the report on this release, in a process of its own."""
    paths = [str(CORPUS / f"{fault}.itf.json") for fault in TABLE]
    words = [sys.executable, "-c", RUN, f"vllm=={version}", *paths]
    wide = {**os.environ, "COLUMNS": "120"}
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600, env=wide)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout.splitlines()[-1])
    return {Path(path).name.removesuffix(".itf.json"): (code, report) for path, (code, report) in made.items()}


@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize("fault", TABLE)
def test_what_a_release_does(fault: str, version: str) -> None:
    expected = TABLE[fault][RELEASES.index(version)]
    code, report = replayed(version)[fault]
    verdict = report.strip().splitlines()[-1]
    assert (code == 0) == (expected == SHOWS), verdict
    if expected == SHOWS:
        assert f"on vllm=={version}: it shows " in verdict
    elif expected.startswith("/"):
        assert f"it does all of it, which with {expected[1:]} does not violate " in verdict
    elif expected.startswith("~"):
        assert f"it does all of it; with {expected[1:]} no-reuse-in-flight does not apply, " in verdict
    else:
        assert verdict.endswith(f"; the spec does the same with {expected}")


def test_the_table_has_every_trace() -> None:
    assert {path.name.removesuffix(".itf.json") for path in CORPUS.glob("*.itf.json")} == set(TABLE)


def test_the_race_in_the_releases_own_objects() -> None:
    """The block of vLLM #45357 in 0.23.0: still to be written by a step for the request that ended, and given to a load."""
    report = " ".join(replayed("0.23.0")["B01"][1].split())
    assert "In the implementation's own objects, of block 1 and requests A (0), B (1):" in report
    assert "block 1: block_pool.blocks[2] block_id=2, ref_cnt=1" in report
    assert "num_scheduled_tokens['0#1']=1 writes token 1 into block_ids [2], reads block_ids [1, 2]" in report
    assert re.search(r"load of '1#2' still writes block_ids \[2\]", report)


def test_the_fix_is_named_with_its_source() -> None:
    report = " ".join(replayed("0.33.0")["B01"][1].split())
    assert "implementation: fenced vllm-0.33: v1/core/sched/scheduler.py: _free_request_blocks defers" in report
