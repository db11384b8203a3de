"""Scaling, what is left out, what is refused, profiles, and the examples."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.checker.config import ConfigError, Derived, UnsupportedError, derive_from_command, derive_from_file
from fencepost.checker.config.options import all_options, spellings
from fencepost.checker.config.profiles import choose, nearest_to
from fencepost.checker.config.treatment import REFUSALS, unknown_names
from fencepost.spec.kv import bounds as kv

EXAMPLES = Path(__file__).parents[2] / "examples"
CONFIGS = sorted(EXAMPLES.glob("*.yaml"))
PROFILES = ("vllm-0.23", "vllm-0.25", "vllm-0.27", "vllm-0.33", "reference")


def serve(*argv: str, profile: str = "vllm-0.33") -> Derived:
    """`vllm serve m …`."""
    return derive_from_command(["vllm", "serve", "m", *argv], profile=profile)


@pytest.mark.parametrize(
    ("option", "value", "bound", "model", "how"),
    [
        ("--num-gpu-blocks-override", "2", "blocks", 1, "derived"),
        ("--num-gpu-blocks-override", "5", "blocks", 4, "derived"),
        ("--num-gpu-blocks-override", "7", "blocks", 5, "scaled"),
        ("--num-gpu-blocks-override", "2", "block-size", 4, "scaled"),
        ("--num-gpu-blocks-override", "3", "block-size", 2, "scaled"),
        ("--block-size", "1", "block-size", 1, "taken"),
        ("--block-size", "32", "block-size", 1, "scaled"),
        ("--max-num-seqs", "1", "max-num-seqs", 1, "taken"),
        ("--max-num-seqs", "512", "max-num-seqs", 3, "scaled"),
        ("-pp", "8", "steps-in-flight", 3, "scaled"),
        ("--watermark", "0.01", "watermark", 1, "scaled"),
        ("--watermark", "0.6", "watermark", 3, "scaled"),
        ("--watermark", "0", "watermark", 0, "taken"),
        ("--max-num-batched-tokens", "4096", "max-num-batched-tokens", 3, "scaled"),
        ("--max-num-scheduled-tokens", "2", "max-num-batched-tokens", 2, "taken"),
    ],
)
def test_sizes(option: str, value: str, bound: str, model: int, how: str) -> None:
    row = serve(option, value).row(bound)
    assert (row.model, row.how) == (model, how)
    assert row.source.startswith("argument 4") or row.source == "default"


@pytest.mark.parametrize(
    ("flag", "bound", "model"),
    [
        ("--no-enable-prefix-caching", "enable-prefix-caching", 0),
        ("--no-enable-prefix-caching", "prefix-groups", 0),
        ("--enable-prefix-caching", "prefix-groups", 1),
        ("--no-scheduler-reserve-full-isl", "scheduler-reserve-full-isl", 0),
        ("--no-enable-chunked-prefill", "max-num-batched-tokens", 8),
    ],
)
def test_switches(flag: str, bound: str, model: int) -> None:
    assert serve(flag).bounds[bound] == model


def test_context_parallel_ranks_share_a_block() -> None:
    assert serve("-dcp", "2", "--block-size", "16").row("block-size").config == "32"


def test_bounds_are_those_of_the_kv_spec() -> None:
    names = {getattr(value, "name", None) for value in vars(kv).values()}
    assert set(serve().bounds) <= names


def test_tables_name_only_options_that_exist() -> None:
    assert unknown_names() == set()


def test_every_option_is_accepted_in_some_form() -> None:
    values = {"int": "1", "float": "0.5", "size": "8k", "size-or-auto": "auto", "json": "{}", "json-or-text": "x"}
    refused = {refusal.option for refusal in REFUSALS}
    for option in all_options().values():
        if (
            option.until is not None
            or option.name in refused
            or option.name in ("config", "scheduler-cls", "prefix-match-unit")
        ):
            continue
        value = [option.choices[0] if option.choices else values.get(option.kind, "x")] if option.takes_value else []
        if option.least and option.least > 1:
            value = ["8"]
        serve("--kv-offloading-size=1", f"--{option.name}", *value)


def test_spellings_are_unique_and_long_names_are_dashed() -> None:
    assert len(all_options()) > 300
    assert {"--async-scheduling", "--no-async-scheduling", "-pp", "--disable-prefix-caching"} <= set(spellings())
    assert not [name for name in all_options() if "_" in name]


@pytest.mark.parametrize(
    "argv",
    [
        ["--speculative-config", '{"method": "eagle", "num_speculative_tokens": 3}'],
        ["-sc.method", "eagle"],
        ["--spec-tokens", "2"],
        ["--scheduling-policy", "priority"],
        ["--scheduler-cls", "mine.Scheduler"],
        ["--scheduler-cls", "vllm.v1.core.sched.scheduler.Scheduler"],
        ["--runner", "pooling"],
        ["--mamba-block-size", "64"],
        ["--mamba-cache-mode", "align"],
        ["--prefix-match-unit", "4"],
        ["--kv-transfer-config", '{"kv_connector": "HiSparseConnector", "kv_role": "kv_both"}'],
    ],
)
def test_what_would_make_the_verdict_wrong_is_refused(argv: list[str]) -> None:
    with pytest.raises(UnsupportedError, match="UNSUPPORTED") as caught:
        serve(*argv)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "argv",
    [
        ["--speculative-config", "None"],
        ["--scheduling-policy", "fcfs"],
        ["--scheduler-cls", "vllm.v1.core.sched.async_scheduler.AsyncScheduler"],
        ["--runner", "generate"],
        ["--mamba-cache-mode", "none"],
        ["--prefix-match-unit", "4", "--no-enable-prefix-caching"],
    ],
)
def test_the_modelled_form_of_a_refused_option_is_accepted(argv: list[str]) -> None:
    assert serve(*argv).bounds


def test_every_option_given_is_in_the_table_or_among_the_ignored() -> None:
    result = serve("--port", "80", "-tp", "2", "--long-prefill-token-threshold", "4", "--max-num-seqs", "2")
    reasons = {row.name: row.why for row in result.ignored}
    assert "neither the scheduler" in reasons["port"]
    assert "equal workers" in reasons["tensor-parallel-size"]
    assert "smaller chunks" in reasons["long-prefill-token-threshold"]
    assert "max-num-seqs" not in reasons
    assert all(row.how == "ignored" and row.model is None for row in result.ignored)


def test_sends_and_failed_loads_are_named_as_left_out() -> None:
    config = '{"kv_connector": "NixlConnector", "kv_role": "kv_both", "kv_load_failure_policy": "recompute"}'
    reasons = {row.name: row for row in serve("--kv-transfer-config", config).ignored}
    assert "sends" in reasons
    assert reasons["kv_load_failure_policy"].config == "recompute"


def test_an_option_newer_than_the_profile_is_left_out() -> None:
    result = serve("--watermark", "0.5")
    assert result.bounds["watermark"] == 2
    assert result.bounds_for("vllm-0.23")["watermark"] == 0
    old = result.for_profile("vllm-0.23")
    assert [row.why for row in old.ignored if row.name == "watermark"] == [
        "vLLM 0.23.0 has no such option (first seen in 0.25.0)"
    ]
    assert result.bounds_for("vllm-0.33") == result.bounds


def test_profiles() -> None:
    assert choose("vllm-0.25").release == "0.25.0"
    assert [nearest_to(v).name for v in ("0.9.1", "0.23.1", "0.24.0", "0.26.0", "0.33.0", "0.34.0rc1")] == [
        "vllm-0.23",
        "vllm-0.23",
        "vllm-0.23",
        "vllm-0.25",
        "vllm-0.33",
        "vllm-0.33",
    ]
    with pytest.raises(ConfigError, match=r"did you mean 'vllm-0\.33'"):
        choose("vllm-0.3")
    assert serve().profile == "vllm-0.33"


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
@pytest.mark.parametrize("profile", PROFILES)
def test_examples(path: Path, profile: str) -> None:
    result = derive_from_file(path, profile=profile)
    assert result.profile == profile
    assert result.warnings == ()
    assert {row.name: row.model for row in result.rows if row.name in result.bounds} == result.bounds


def test_the_decode_example() -> None:
    result = derive_from_file(EXAMPLES / "decode-consumer.yaml")
    assert (result.role, result.connector, result.steps_in_flight, result.fence) == (
        "kv_consumer",
        "NixlConnector",
        2,
        True,
    )
    assert result.bounds["enable-prefix-caching"] == 0
    assert result.row("enable-prefix-caching").source.endswith("decode-consumer.yaml:17")


def test_a_result_survives_json() -> None:
    result = serve("--max-num-seqs", "2")
    assert Derived.model_validate_json(result.model_dump_json()).model_dump() == result.model_dump()
