"""The fence gate and the steps in flight, against the tables of real releases written out as data."""

from __future__ import annotations

import itertools
import json

import pytest
from fencepost.checker.config import ConfigError, Derived, derive_from_command

EXAMPLE = {"kv_connector": "ExampleConnector", "kv_role": "kv_both"}
NIXL = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
ROLES = ("none", "kv_producer", "kv_consumer", "kv_both")

# max_concurrent_batches: (async, runner, stages) -> steps, as probed on 0.33.0 and read in 0.23.0 to 0.33.0.
STEPS = {
    (True, "V2", 1): 2,
    (True, "V2", 2): 3,
    (True, "V2", 4): 5,
    (True, "V1", 1): 2,
    (False, "V2", 1): 1,
    (False, "V2", 2): 2,
    (False, "V2", 4): 4,
    (False, "V1", 1): 1,
    (False, "V1", 2): 2,
    (False, "V1", 4): 4,
}
# Only releases before 0.33.0 start with async scheduling, the V1 runner and several stages.
OLD_STEPS = {**STEPS, (True, "V1", 2): 2, (True, "V1", 4): 4}


def command(role: str, on: bool | None, stages: int, runner: str | None = None) -> list[str]:
    """A command line with these settings; None leaves the default."""
    argv = [f"VLLM_USE_V2_MODEL_RUNNER={int(runner == 'V2')}"] if runner else []
    argv += ["vllm", "serve", "m", "-pp", str(stages)]
    if on is not None:
        argv.append("--async-scheduling" if on else "--no-async-scheduling")
    if role != "none":
        argv += ["--kv-transfer-config", json.dumps({"kv_connector": "NixlConnector", "kv_role": role})]
    return argv


def derived(role: str, on: bool | None, stages: int, runner: str | None = None, profile: str = "vllm-0.33") -> Derived:
    """What these settings make."""
    return derive_from_command(command(role, on, stages, runner), profile=profile)


@pytest.mark.parametrize(("case", "steps"), STEPS.items(), ids=str)
@pytest.mark.parametrize("profile", ["vllm-0.33", "reference"])
def test_steps_in_flight(case: tuple[bool, str, int], steps: int, profile: str) -> None:
    on, runner, stages = case
    assert derived("none", on, stages, runner, profile).steps_in_flight == steps


@pytest.mark.parametrize(("case", "steps"), OLD_STEPS.items(), ids=str)
@pytest.mark.parametrize("profile", ["vllm-0.23", "vllm-0.25", "vllm-0.27"])
def test_steps_in_flight_of_older_releases(case: tuple[bool, str, int], steps: int, profile: str) -> None:
    on, runner, stages = case
    assert derived("none", on, stages, runner, profile).steps_in_flight == steps


@pytest.mark.parametrize(("role", "on", "stages"), list(itertools.product(ROLES, (True, False), (1, 2))))
def test_the_gate_is_on_iff_several_steps_meet_a_loading_role(role: str, on: bool, stages: int) -> None:
    result = derived(role, on, stages)
    assert result.fence == (role in ("kv_consumer", "kv_both") and (on or stages > 1))
    assert result.fence_reason.startswith("on: " if result.fence else "off: ")
    assert result.role == result.bounds["kv-role"] == role


def test_async_scheduling_is_on_by_default() -> None:
    assert derived("kv_consumer", None, 1).steps_in_flight == 2
    assert derived("kv_consumer", None, 1).fence


def test_the_v1_runner_with_stages_switches_async_off_by_default() -> None:
    result = derived("kv_consumer", None, 2, "V1")
    assert result.row("async-scheduling").config == "off"
    assert result.steps_in_flight == 2
    assert result.fence


def test_the_v1_runner_with_stages_refuses_async_since_0_33() -> None:
    with pytest.raises(ConfigError, match="V1 runner does not support it with several pipeline stages"):
        derived("none", True, 2, "V1")


def test_an_unknown_runner_is_assumed_to_be_the_one_with_more_steps() -> None:
    row = derived("none", None, 2, profile="vllm-0.27").row("steps-in-flight")
    assert (row.model, row.how) == (3, "assumed")


def test_the_first_ray_executor_has_no_async_scheduling() -> None:
    argv = ["VLLM_USE_RAY_V2_EXECUTOR_BACKEND=0", "vllm", "serve", "m", "--distributed-executor-backend", "ray"]
    assert derive_from_command(argv, profile="vllm-0.27").steps_in_flight == 1
    assert derive_from_command(argv[1:], profile="vllm-0.27").steps_in_flight == 2
    assert derive_from_command(argv, profile="vllm-0.33").steps_in_flight == 2


@pytest.mark.parametrize(
    ("argv", "connector"),
    [
        (["vllm", "serve", "m"], "OffloadingConnector"),
        (["VLLM_USE_SIMPLE_KV_OFFLOAD=1", "vllm", "serve", "m"], "SimpleCPUOffloadConnector"),
        (["vllm", "serve", "m", "--kv-offloading-backend", "lmcache"], "LMCacheMPConnector"),
    ],
)
def test_offloading_turns_the_fence_on(argv: list[str], connector: str) -> None:
    result = derive_from_command([*argv, "--kv-offloading-size", "8"])
    assert (result.connector, result.role, result.fence) == (connector, "kv_both", True)
    assert result.bounds["remote-tokens"] == result.bounds["prompt-tokens"]


def test_offloading_replaces_a_connector_and_says_so() -> None:
    argv = [*command("kv_producer", None, 1), "--kv-offloading-size", "8"]
    result = derive_from_command(argv)
    assert (result.connector, result.role) == ("OffloadingConnector", "kv_both")
    assert any("replaces" in warning for warning in result.warnings)


def test_a_role_without_connector_has_no_effect() -> None:
    result = derive_from_command(["vllm", "serve", "m", "--kv-transfer-config", '{"kv_role": "kv_consumer"}'])
    assert (result.role, result.fence) == ("none", False)
    assert any("kv_connector" in warning for warning in result.warnings)


def test_a_release_without_a_fence_says_so() -> None:
    result = derived("kv_consumer", None, 1, profile="vllm-0.23")
    assert result.fence
    assert "0.23.0 has no fence" in result.fence_reason


@pytest.mark.parametrize(
    ("connector", "extra", "remote"),
    [
        ("ExampleConnector", {}, 0),
        ("NixlConnector", {}, 2),
        (
            "MultiConnector",
            {"connectors": [EXAMPLE, NIXL]},
            2,
        ),
        ("MultiConnector", {"connectors": [EXAMPLE]}, 0),
    ],
)
def test_only_asynchronous_loads_are_unordered_writes(connector: str, extra: dict[str, object], remote: int) -> None:
    config = {"kv_connector": connector, "kv_role": "kv_consumer", "kv_connector_extra_config": extra}
    result = derive_from_command(["vllm", "serve", "m", "--kv-transfer-config", json.dumps(config)])
    assert result.bounds["remote-tokens"] == remote
    assert result.fence


def test_a_connector_of_ones_own_is_taken_to_load_asynchronously() -> None:
    config = {"kv_connector": "Mine", "kv_role": "kv_both", "kv_connector_module_path": "my.connectors"}
    result = derive_from_command(["vllm", "serve", "m", "--kv-transfer-config", json.dumps(config)])
    assert result.bounds["remote-tokens"] == 2
