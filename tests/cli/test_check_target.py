"""`fencepost check --target` on the command line: JSON, traces, profiles, and drivers that are at fault."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.cli.check_target import chosen
from fencepost.checker.cli.errors import UsageError
from fencepost.checker.cli.main import main
from fencepost.checker.cli.target import Wanted
from fencepost.checker.report.schema import ResultDocument

HERE = Path(__file__).parent
SPEC, DRIVERS = HERE / "specs" / "lending.py", HERE / "drivers" / "fenced_engine.py"
ON = ("--bounds", "fence=on")
SMALL = ("--bounds", "blocks=2,prompt-tokens=1,max-tokens=1")


def check(*words: str | Path) -> int:
    return main(["check", *map(str, words)])


def result(capsys: pytest.CaptureFixture[str], *words: str | Path) -> dict[str, Any]:
    check(*words, "--json")
    text = capsys.readouterr().out
    ResultDocument.model_validate_json(text)
    return json.loads(text)


def test_json_names_the_implementation_and_what_is_real(capsys: pytest.CaptureFixture[str]) -> None:
    made = result(capsys, "kv", "--target", "reference", *SMALL)
    assert (made["verdict"], made["engine"]) == ("UNDETERMINED", "implementation")  # a witness needs larger bounds
    about = made["implementation"]
    assert about["name"] == "reference"
    assert "the worker is simulated" in about["title"]
    assert about["spec_states"] == made["distinct"]
    assert (about["paths"], about["ended"]) == ({}, None)


def test_json_has_the_path_and_where_the_spec_says_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    made = result(capsys, SPEC, "--target", f"{DRIVERS}:Forgetful", *ON)
    assert (made["verdict"], made["exit_code"], made["replay"]) == ("VIOLATED", 1, None)
    path = made["implementation"]["paths"]["no-free-block-is-written"]
    assert path["otherwise"] == {"step": 5, "why": "it does not allow this event there", "differences": []}
    states = made["trace"]["states"]
    assert states[-1]["free"] == [{"#bigint": "0"}] or states[-1]["free"] == [0]
    assert states[-1]["writing"] != {"#set": []}


def test_json_says_what_is_no_state(capsys: pytest.CaptureFixture[str]) -> None:
    ended = result(capsys, SPEC, "--target", f"{DRIVERS}:Growing", *ON)["implementation"]["ended"]
    assert (ended["kind"], ended["message"]) == ("BEYOND", "free: expected a list of at most 2 elements")
    assert ended["otherwise"]["differences"] == [{"path": "free", "spec": [1, 0], "implementation": [1, 0, 2]}]
    assert len(ended["trace"]["states"]) == 3


def test_json_has_the_error_of_an_implementation(capsys: pytest.CaptureFixture[str]) -> None:
    made = result(capsys, SPEC, "--target", f"{DRIVERS}:Failing", *ON)
    assert made["implementation"]["paths"]["no-error"]["message"] == "AssertionError: one write at a time"
    assert [p["reason"] for p in made["properties"] if p["name"] == "no-error"] == [
        "The implementation says: AssertionError: one write at a time"
    ]


def test_a_fault_is_found_in_the_implementation_and_its_trace_replays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "b11.itf.json"
    assert check("--fault", "B11", "--target", "reference", "--trace-out", file) == 1
    out = capsys.readouterr().out
    assert "VIOLATED for reference: free-order" in out
    assert "The spec takes the same steps." in out
    assert "--target reference" in out.splitlines()[-1]
    assert json.loads(file.read_text())["#meta"]["fencepost"]["engine"] == "implementation"
    assert main(["replay", str(file), "--quiet"]) == 0


def test_a_property_can_be_named_and_a_limit_given(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("kv", "--target", "reference", "--property", "free-order", "--bounds", "uncached-free-order=tail")
    assert check(*words, "--quiet", "--max-depth", "2") == 3
    assert "UNDETERMINED for reference: depth limit of 2 (--max-depth)" in capsys.readouterr().out
    assert check(*words, "--quiet") == 1


def test_a_config_is_searched_too(capsys: pytest.CaptureFixture[str]) -> None:
    config = HERE.parents[1] / "examples" / "decode-consumer.yaml"
    made = result(capsys, config, "--target", "reference", "--profile", "vllm-0.27", "--max-depth", "12")
    assert made["verdict"] == "VIOLATED"
    assert made["model"]["derived"]


@pytest.mark.parametrize("option", [("--engine", "reference"), ("--check-symmetry",)])
def test_options_of_the_spec_s_engines_are_refused(option: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert check("kv", "--target", "reference", *option) == 2
    assert "leave them out with --target" in capsys.readouterr().err


def test_a_release_that_is_not_there_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"--target vllm==/nowhere/at/all"):
        chosen("vllm==/nowhere/at/all", Wanted(("kv",)), "native", compare=False)


def test_the_reference_implementation_follows_the_profile_that_is_asked_for() -> None:
    _, wanted = chosen("reference", Wanted(("kv",), "vllm-0.27"), "native", compare=False)
    assert wanted.profile == "vllm-0.27"


UNSTABLE = """
import itertools

from fenced_engine import Fenced


class Unstable(Fenced):
    count = itertools.count()

    def digest(self, names=None):
        return next(self.count)


class Broken(Fenced):
    def digest(self, names=None):
        return [].pop()
"""


@pytest.mark.parametrize(("name", "said"), [("Unstable", "is not the one that was saved"), ("Broken", "pop from empty list")])
def test_a_driver_at_fault_is_named_with_exit_code_2(
    name: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(DRIVERS.parent))  # type: ignore[no-untyped-call]
    (tmp_path / "unstable.py").write_text(UNSTABLE)
    assert check(SPEC, "--target", f"{tmp_path}/unstable.py:{name}", *ON) == 2
    error = capsys.readouterr().err
    assert f"--target {tmp_path}/unstable.py:{name}" in error
    assert said in error
