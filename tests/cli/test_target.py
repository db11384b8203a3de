"""From what is named on a command line to a model: precedence, and what a replay needs to find the model again."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.checker.cli import kvdata
from fencepost.checker.cli.errors import UsageError
from fencepost.checker.cli.target import Target, Wanted, again, resolve

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "decode-consumer.yaml"
LENDING = str(ROOT / "tests" / "cli" / "specs" / "lending.py")
SERVE = ("vllm", "serve", "some/model", "--no-enable-prefix-caching", "--kv-transfer-config")
TRANSFER = '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'


def config(*bounds: str, profile: str | None = "vllm-0.33", words: tuple[str, ...] = (str(EXAMPLE),)) -> Target:
    """The model of the example config."""
    return resolve(Wanted(words, profile, None, bounds))


def test_a_config_decides_bounds_and_the_profile_its_switches() -> None:
    values = config(profile="vllm-0.23").model.bound.values
    assert values["kv-role"] == "kv_consumer"
    assert values["enable-prefix-caching"] == 0
    assert values["finish-free"] == "at-once"
    assert config().model.bound.values["finish-free"] == "fenced"


def test_flags_come_before_the_file_and_the_file_before_defaults() -> None:
    assert config().model.bound.values["requests"] == 3
    changed = config("requests=2,finish-free=at-once", "kv-role=none").model.bound.values
    assert (changed["requests"], changed["finish-free"], changed["kv-role"]) == (2, "at-once", "none")


@pytest.mark.parametrize("words", [(*SERVE, TRANSFER), (f"{' '.join(SERVE)} '{TRANSFER}'",)])
def test_a_pasted_command_line_is_a_config_too(words: tuple[str, ...]) -> None:
    values = config(words=words).model.bound.values
    assert values["kv-role"] == "kv_consumer"
    assert values["enable-prefix-caching"] == 0


def test_names_of_files_may_have_spaces_and_even_the_word_vllm(tmp_path: Path) -> None:
    path = tmp_path / "my vllm config.yaml"
    path.write_text(EXAMPLE.read_text())
    assert config(words=(str(path),)).model.bound.values == config().model.bound.values


def test_a_config_without_a_profile_gets_one() -> None:
    assert config(profile=None).model.profile in kvdata.profiles()


def test_the_bounds_in_words_leave_out_what_the_profile_says() -> None:
    words = config().bounds
    assert words.startswith("profile vllm-0.33, ")
    assert "requests=3" in words
    assert "finish-free" not in words
    assert "finish-free=at-once" in config("finish-free=at-once").bounds


@pytest.mark.parametrize("fault", kvdata.faults())
def test_every_fault_is_a_model(fault: str) -> None:
    made = resolve(Wanted(fault=fault.lower()))
    assert made.model.fault == fault
    assert [p.name for p in made.model.bound.properties] == [kvdata.faults()[fault].breaks]
    assert again(made, "kv:x") == f"fencepost replay kv:x --fault {fault}"


def test_a_replay_is_given_what_differs() -> None:
    assert again(config(), "kv:x").startswith("fencepost replay kv:x --profile vllm-0.33 --bounds ")
    made = resolve(Wanted((LENDING,), bounds=("requests=3",)))
    assert again(made, "lending:x") == f"fencepost replay lending:x --spec {LENDING} --bounds requests=3"
    assert again(resolve(Wanted((LENDING,))), "lending:x") == f"fencepost replay lending:x --spec {LENDING}"


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        (Wanted((str(EXAMPLE),), fault="B01"), "--fault brings its own"),
        (Wanted(fault="B01", profile="vllm-0.23"), "--fault brings its own"),
        (Wanted(("kv",), profile="vllm-1.0"), "is no profile"),
        (Wanted(("kv",), bounds=("a=1,,b=2",)), "'' is not of the form name=value"),
        (Wanted(("kv",), bounds=("requests",)), "'requests' is not of the form"),
        (Wanted(("kv",), properties=("no-such-thing",)), "has no property 'no-such-thing'"),
        (Wanted(("kv",), properties=("fence-sound",)), "does not apply at these bounds"),
    ],
)
def test_what_contradicts_itself_is_refused(wanted: Wanted, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        resolve(wanted)
