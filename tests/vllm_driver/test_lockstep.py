"""Four unmodified releases held against their profiles, and against each other's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from fencepost.spec import kv

from .running import ENDS, RELEASES, fencepost, profile_of, snippet

pytestmark = pytest.mark.vllm
QUICK = 10_000
ROWS: list[dict[str, Any]] = yaml.safe_load((Path(str(kv.__file__)).parent / "data" / "conform.yaml").read_text())["exhaustive"]
CONSUMER = "kv-role=kv_consumer,enable-prefix-caching=1,blocks=3,prompt-tokens=2,prompt-tokens-least=2,remote-tokens=2"
NAMES = ("spec_states", "product_states", "transitions", "depth")


def quick_rows(profile: str) -> dict[str, dict[str, int]]:
    """The small rows of the manifest with their figures, which are those of the reference implementation."""
    rows = {row["name"]: row["figures"].get(profile) for row in ROWS}
    return {name: figures for name, figures in rows.items() if figures and figures["transitions"] <= QUICK}


@pytest.mark.parametrize("version", RELEASES)
def test_the_small_rows_agree(version: str) -> None:
    """Every transition, with the same figures as the reference implementation has."""
    code, result = fencepost("conform", "--target", f"vllm=={version}", "--quick")
    assert (code, result["verdict"]) == (0, "HOLDS")
    assert f"vLLM {version} (real: scheduler, block pool" in result["target"]["title"]
    found = {row["name"]: {name: row[name] for name in NAMES} for row in result["rows"]}
    assert found == quick_rows(profile_of(version))


@pytest.mark.slow
@pytest.mark.parametrize("version", RELEASES)
def test_every_row_agrees(version: str) -> None:
    code, result = fencepost("conform", "--target", f"vllm=={version}")
    assert (code, result["verdict"]) == (0, "HOLDS")
    assert sum(row["transitions"] for row in result["rows"]) > 900_000


@pytest.mark.parametrize("version", ENDS)
def test_other_profiles_differ(version: str) -> None:
    """The same comparison finds that a release is not another one."""
    for other in RELEASES:
        if other != version:
            words = (
                "--target",
                f"vllm=={version}",
                "--profile",
                profile_of(other),
                "--bounds",
                "kv-role=kv_consumer,remote-tokens=2",
            )
            code, result = fencepost("conform", *words)
            assert (code, result["verdict"]) == (1, "VIOLATED"), other


@pytest.mark.parametrize("version", ENDS)
def test_late_output_of_a_producer(version: str) -> None:
    """Since 0.27 the output of a preempted request is dropped where its role hands KV off, else delivered late."""
    words = ("--target", f"vllm=={version}", "--bounds", "kv-role=kv_producer,blocks=3,prompt-tokens=2")
    code, result = fencepost("conform", *words)
    assert (code, result["verdict"]) == (0, "HOLDS")
    dropped = snippet(DROPPED, version, "kv-role=kv_producer,blocks=3,prompt-tokens=2")
    assert dropped == (version in ("0.27.0", "0.33.0"))


DROPPED = """
for event in (("submit", (0, 1, 0, False)), ("submit", (1, 2, 0, False)), ("schedule", ()), ("schedule", ())):
    driver.take(*event)
shown = driver.observe()["requests"][1]
assert shown["status"] == "PREEMPTED"
print(json.dumps(shown["dropping"]))
"""


@pytest.mark.parametrize("version", ENDS)
def test_random_runs_at_large_sizes(version: str) -> None:
    words = ("--target", f"vllm=={version}", "--random", "20000", "--seed", "1")
    bounds = "kv-role=kv_consumer,requests=24,blocks=80,block-size=4,prompt-tokens=24,max-tokens=12,steps-in-flight=2"
    more = ",max-num-batched-tokens=48,max-num-seqs=16,enable-prefix-caching=1,prefix-groups=3,remote-tokens=16"
    code, result = fencepost("conform", *words, "--bounds", bounds + more)
    assert (code, result["verdict"]) == (0, "HOLDS"), result


@pytest.mark.parametrize("version", ENDS)
def test_workers_find_the_same(version: str) -> None:
    """States that were saved in one process are restored in another."""
    bounds = "kv-role=kv_consumer,blocks=4,prompt-tokens=2,remote-tokens=2,requests=3"
    made = [
        fencepost("conform", "--target", f"vllm=={version}", "--bounds", bounds, "--workers", n, "--max-states", "4000")
        for n in "12"
    ]
    (_, one), (_, two) = made
    assert [one["rows"][0][name] for name in NAMES] == [two["rows"][0][name] for name in NAMES]
    assert one["rows"][0]["product_states"] > 1500
