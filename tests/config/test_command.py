"""Command lines as people paste them."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.checker.config import ConfigError, Derived, derive_from_command

CONSUMER = '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'


def serve(*argv: str) -> Derived:
    """`vllm serve m …`."""
    return derive_from_command(["vllm", "serve", "m", *argv], profile="vllm-0.33")


@pytest.mark.parametrize(
    "argv",
    [
        ["--max-num-seqs", "2"],
        ["--max-num-seqs=2"],
        ["--max_num_seqs", "2"],
        ["--max_num_seqs=2"],
        ["--max-num-seq", "2"],
        ["--max-num-seqs", "64", "--max-num-active-seqs", "2"],
    ],
)
def test_spellings_of_one_value(argv: list[str]) -> None:
    assert serve(*argv).bounds["max-num-seqs"] == 2


@pytest.mark.parametrize(
    "argv",
    [
        ["--kv-transfer-config", CONSUMER],
        [f"--kv_transfer_config={CONSUMER}"],
        ["--kv-transfer-config.kv_connector", "NixlConnector", "--kv-transfer-config.kv_role=kv_consumer"],
        ["--kv_transfer_config.kv_role", "kv_consumer", "--kv_transfer_config.kv_connector", "NixlConnector"],
    ],
)
def test_spellings_of_one_transfer(argv: list[str]) -> None:
    result = serve(*argv)
    assert (result.role, result.connector, result.fence) == ("kv_consumer", "NixlConnector", True)


@pytest.mark.parametrize("argv", [["-pp", "2"], ["-pp=2"], ["--pipeline-parallel-size", "2"]])
def test_short_flags(argv: list[str]) -> None:
    assert serve(*argv, "-tp", "4", "-n2", "-O3", "-qfp8").steps_in_flight == 3


@pytest.mark.parametrize(("text", "tokens"), [("1", 1), ("2", 2), ("8192", 3), ("8k", 3), ("8K", 3), ("2.5k", 3)])
def test_budgets_with_suffixes(text: str, tokens: int) -> None:
    assert serve("--max-num-seqs", "1", "--max-num-batched-tokens", text).bounds["max-num-batched-tokens"] == tokens


@pytest.mark.parametrize(
    ("text", "config"), [("8k", "8000"), ("8K", "8192"), ("2.5k", "2500"), ("1M", str(2**20)), ("1m", "1000000")]
)
def test_suffixes_are_decimal_or_binary(text: str, config: str) -> None:
    assert serve("--max-num-batched-tokens", text).row("max-num-batched-tokens").config == config


@pytest.mark.parametrize(
    "argv",
    [
        ["vllm", "serve", "m", "--no-enable-prefix-caching"],
        ["/usr/local/bin/vllm", "serve", "m", "--no-enable-prefix-caching"],
        ["A=1", "env", "B=2", "vllm", "serve", "m", "--no-enable-prefix-caching"],
        ["python", "-m", "vllm.entrypoints.openai.api_server", "--model", "m", "--no-enable-prefix-caching"],
        ["python3.12", "-m", "vllm.entrypoints.cli.main", "serve", "m", "--no-enable-prefix-caching"],
        ["serve", "m", "--no-enable-prefix-caching"],
        ["--model", "m", "--no-enable-prefix-caching"],
        ["vllm", "serve", "m", "--disable-prefix-caching"],
        ["vllm serve m \\\n  --no-enable-prefix-caching  # off"],
    ],
)
def test_programs(argv: list[str]) -> None:
    result = derive_from_command(argv)
    assert result.model == "m"
    assert result.bounds["enable-prefix-caching"] == 0


def test_assignments_in_front_override_the_environment() -> None:
    argv = ["VLLM_USE_V2_MODEL_RUNNER=1", "vllm", "serve", "m", "-pp", "2"]
    old = {"VLLM_USE_V2_MODEL_RUNNER": "0"}
    assert derive_from_command(argv, old, profile="vllm-0.27").steps_in_flight == 3
    assert derive_from_command(argv[1:], old, profile="vllm-0.27").steps_in_flight == 2
    assert derive_from_command(argv).row("runner").source == "environment VLLM_USE_V2_MODEL_RUNNER"


def test_flags_override_the_file_and_the_file_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("max-num-seqs: 1\nblock-size: 1\nno-enable-prefix-caching: true\n")
    result = serve("--max-num-seqs", "2", "--config", str(file), "--enable-prefix-caching")
    assert result.bounds["max-num-seqs"] == 2
    assert result.row("max-num-seqs").source == "argument 4 (--max-num-seqs)"
    assert result.row("block-size").source == f"{file}:2"
    assert result.bounds["enable-prefix-caching"] == 1
    assert result.row("scheduler-reserve-full-isl").source == "default"
    assert any(f"overrides {file}:1" in warning for warning in result.warnings)


def test_the_model_on_the_command_line_counts(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("model: other\n")
    assert serve("--config", str(file)).model == "m"
    assert derive_from_command(["vllm", "serve", "--config", str(file)]).model == "other"


def test_vllm_serve_drops_a_false_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("async-scheduling: false\nenable_prefix_caching: false\n")
    result = serve("--config", str(file))
    assert (result.steps_in_flight, result.bounds["enable-prefix-caching"]) == (2, 1)
    assert [warning for warning in result.warnings if "drops" in warning and "no-async-scheduling: true" in warning]
    server = ["python", "-m", "vllm.entrypoints.openai.api_server", "--config", str(file)]
    result = derive_from_command(server)
    assert (result.steps_in_flight, result.bounds["enable-prefix-caching"]) == (1, 1)
    assert any("enable_prefix_caching" in warning for warning in result.warnings)


def test_a_glued_config_is_not_read_as_in_vllm(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("max-num-seqs: 1\n")
    result = serve(f"--config={file}")
    assert result.bounds["max-num-seqs"] == 3
    assert any("--config FILE" in warning for warning in result.warnings)


def test_the_later_of_two_values_counts_and_is_said() -> None:
    result = serve("--max-num-seqs", "1", "--max-num-seqs", "2")
    assert result.bounds["max-num-seqs"] == 2
    assert any("given twice" in warning for warning in result.warnings)


def test_dotted_words_replace_a_whole_object() -> None:
    result = serve("--kv-transfer-config.kv_role", "kv_both", "--kv-transfer-config", CONSUMER)
    assert (result.role, result.connector) == ("none", None)
    assert any("replace" in warning for warning in result.warnings)


def test_lists_and_values_like_paths() -> None:
    result = serve("--served-model-name", "a", "b", "--chat-template", "./x.jinja", "--hf-token", "--api-key", "k")
    assert {row.name for row in result.ignored} >= {"served-model-name", "chat-template", "hf-token", "api-key"}


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--async-scheduling", "--no-async-scheduling"], "contradict each other"),
        (["--max-num-sequences", "4"], "did you mean '--max-num-seqs'"),
        (["--kv-transfer-confg", CONSUMER], "did you mean '--kv-transfer-config'"),
        (["--max-num", "4"], "beginning of several options"),
        (["--max-num-seqs"], "needs a value"),
        (["--max-num-seqs", "--port", "80"], "needs a value"),
        (["--max-num-seqs", "0"], "at least 1"),
        (["--max-num-seqs", "-4"], "at least 1"),
        (["--max-num-seqs", "9" * 30], "a number of 30 digits"),
        (["--max-num-seqs", "9" * 5000], "takes a whole number"),
        (["--max-num-seqs", "many"], "takes a whole number"),
        (["--max-num-seqs", "None"], "takes a whole number"),
        (["--max-num-batched-tokens", "2.5K"], "takes a whole number"),
        (["--watermark", "1.0"], "less than 1"),
        (["--watermark", "nan"], "not a finite number"),
        (["--num-gpu-blocks-override", "1"], "at least 2"),
        (["--gpu-memory-utilization", "1.5"], "at most 1"),
        (["--block-size", "0"], "at least 1"),
        (["-pp", "0"], "at least 1"),
        (["--kv-offloading-size", "0"], "greater than 0"),
        (["--kv-offloading-size", "8", "--kv-offloading-backend", "nativ"], "did you mean 'native'"),
        (["--scheduling-policy", "priorty"], "did you mean 'priority'"),
        (["--enforce-eager", "true"], "belongs to no option"),
        (["--enforce-eager=true"], "takes no value"),
        (["--kv-transfer-config", "{bad"], "not valid JSON"),
        (["--kv-transfer-config", "[1]"], "takes a JSON object, not a list"),
        (["--kv-transfer-config", '{"a":' * 5000], "JSON"),
        (["--kv-transfer-config", '{"kv_role":"kv_consumr"}'], "did you mean 'kv_consumer'"),
        (["--kv-transfer-config", '{"kv_connector":"NixlConnector"}'], "kv_role is missing"),
        (["--kv-transfer-config", '{"kv_connector":"Nixl","kv_role":"kv_both"}'], "did you mean 'NixlConnector'"),
        (["--kv-transfer-config", '{"kv_conector":"NixlConnector"}'], "did you mean 'kv_connector'"),
        (["--kv-transfer-config", '{"kv_connector":3,"kv_role":"kv_both"}'], "must be a text"),
        (["--kv-transfer-config", '{"kv_port":true}'], "must be a number"),
        (["--kv-transfer-config", '{"kv_load_failure_policy":"retry"}'], "neither fail nor recompute"),
        (
            ["--kv-transfer-config", '{"kv_connector":"MultiConnector","kv_role":"kv_both"}'],
            "needs a list of connectors",
        ),
        (["--max-num-seqs", "64", "--max-num-batched-tokens", "32"], "is smaller than --max-num-seqs 64"),
        (["--max-num-seqs", "4", "--max-num-active-seqs", "8"], "is greater than --max-num-seqs 4"),
        (
            ["--no-enable-chunked-prefill", "--max-num-batched-tokens", "512", "--max-model-len", "4k"],
            "chunked prefill is off",
        ),
        (["--max-num-partial-prefills", "2"], "is gone"),
        (["--config"], "needs a file"),
        (["--config", "a.yaml", "--config", "b.yaml"], "takes one file"),
        (["--config", "nowhere.yaml"], "no such file"),
        (["--config", "c.json"], "only .yaml and .yml"),
        (["other"], "belongs to no option"),
    ],
)
def test_what_is_refused_names_place_rule_and_fix(argv: list[str], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        serve(*argv)
    error = caught.value
    assert says in str(error)
    assert error.place
    assert error.rule
    assert error.fix
    assert error.exit_code == 2


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([], "nothing was given"),
        ([""], "does not start vLLM"),
        (["vlm", "serve", "m"], "did you mean 'vllm'"),
        (["vllm", "bench", "serve"], "only `vllm serve`"),
        (["vllm"], "only `vllm serve`"),
        (["vllm serve 'm"], "close the quotes"),
        (["VLLM_USE_V2_MODEL_RUNNER=yes", "vllm", "serve", "m"], "is not a number"),
    ],
)
def test_commands_that_are_none(argv: list[str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        derive_from_command(argv)
