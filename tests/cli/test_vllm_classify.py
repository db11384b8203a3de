"""`fencepost vllm classify` beyond its output: what words name, JSON, and the commands that repeat an experiment."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.cli.audit_session import Asked, AuditSession
from fencepost.checker.cli.classifying import Classifying, expected, profiles, repeated, switches
from fencepost.checker.cli.drivers import Implementation, find
from fencepost.checker.cli.main import main
from fencepost.checker.cli.target import load_shipped
from fencepost.checker.cli.vllm_classify import target_name
from fencepost.checker.conform.classify_report import print_report
from fencepost.checker.conform.classify_schema import ClassifyDocument
from fencepost.checker.model import Limits
from fencepost.checker.report.terminal import console


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("0.33.0", "vllm==0.33.0"),
        ("0.34.1rc1", "vllm==0.34.1rc1"),
        ("reference", "reference"),
        ("vllm==0.27.0", "vllm==0.27.0"),
        ("driver.py:Mine", "driver.py:Mine"),
    ],
)
def test_a_version_names_a_release(name: str, target: str) -> None:
    assert target_name(name) == target


def test_a_folder_names_the_vllm_in_it(tmp_path: Path) -> None:
    assert target_name(str(tmp_path)) == f"vllm=={tmp_path}"


@pytest.mark.parametrize(
    ("version", "profile"),
    [
        ("0.23.0", "vllm-0.23"),
        ("0.26.1", "vllm-0.25"),
        ("0.27.0", "vllm-0.27"),
        ("0.32.1rc2", "vllm-0.27"),
        ("0.33.1.dev7+g0123456", "vllm-0.33"),
        ("0.41.0", "vllm-0.33"),
        ("0.1.dev1+g0123456", "vllm-0.33"),
        (None, "vllm-0.33"),
    ],
)
def test_a_vllm_is_expected_to_behave_as_the_release_that_it_comes_from(
    version: str | None, profile: str, tmp_path: Path
) -> None:
    package, notes = tmp_path / "vllm", tmp_path / f"vllm-{version}.dist-info"
    package.mkdir()
    (package / "__init__.py").touch()
    if version is not None:
        notes.mkdir()
        (notes / "METADATA").write_text(f"Version: {version}\n")
    assert expected(Implementation(f"vllm=={tmp_path}", find("reference", "kv").make)) == profile


def test_what_is_no_vllm_is_expected_to_behave_as_the_reference_implementation() -> None:
    assert expected(find("reference", "kv")) == "reference"
    assert expected(Implementation("driver.py:Mine", find("reference", "kv").make)) == "reference"


def test_a_search_without_time_has_looked_for_the_profile_of_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    target = replace(find("reference", "kv"), profile="vllm-0.27")
    told = Classifying(target, {}, Limits(max_seconds=1e-9)).run(quiet=True)
    assert told.found.nearest.name == told.profiles[0].name == "vllm-0.27"
    print_report(console(), told)
    shown = capsys.readouterr().out
    assert "the nearest so far is vllm-0.27; " in " ".join(shown.split())
    assert re.search(r"vllm-0\.27 +nowhere so far", shown)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (Asked(scheduler_cls="mine:Own"), "reference with scheduler class mine:Own"),
        (Asked(scheduler_cls="mine:Own", connector="mine:Kv"), "reference with scheduler class mine:Own and connector mine:Kv"),
    ],
)
def test_the_verdict_of_an_audit_names_the_classes_of_the_user(
    asked: Asked, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = AuditSession.of(Asked(target="reference"), Limits(max_seconds=1e-6), quiet=True, verbose=False)
    made.asked = asked
    made.run(json=False, quiet=True)
    assert capsys.readouterr().out.startswith(f"UNDETERMINED: {named}: ")
    made.run(json=True, quiet=False)
    assert json.loads(capsys.readouterr().out)["target"] == named


def commanded(words: str) -> dict[str, str]:
    """The options of a command by name."""
    given = shlex.split(words)[2:]
    return dict(zip(given[::2], given[1::2], strict=True))


def test_the_command_of_an_experiment_names_what_the_nearest_profile_has_otherwise() -> None:
    spec = load_shipped("kv")
    bounds: Mapping[str, int | str] = {"kv-role": "kv_consumer", "blocks": 2}
    values = spec.values({**profiles()[2].mix, **bounds, "victim-rule": "not-fenced"})
    options = commanded(repeated("conform", find("reference", "kv"), {}, values, bounds))
    assert options["--profile"] == "vllm-0.27"
    assert options["--bounds"] == "kv-role=kv_consumer,blocks=2,victim-rule=not-fenced"
    assert "uncached-free-order=head" in options["--target-bounds"]


def test_json_of_a_classification_that_has_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["vllm", "classify", "reference", "--max-states", "5", "--json"])
    found = ClassifyDocument.model_validate(json.loads(capsys.readouterr().out)).classification
    assert (code, found.verdict, found.reason) == (3, "UNDETERMINED", "more than 5 states (--max-states)")


@pytest.mark.slow
def test_json_of_a_classification(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["vllm", "classify", "reference", "--max-states", "40", "--json"])
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    found = ClassifyDocument.model_validate(made).classification
    assert (code, found.verdict, found.reason) == (3, "UNDETERMINED", "more than 40 states (--max-states)")
    assert {switch.name for switch in found.switches} == set(switches())
    (free,) = (switch for switch in found.switches if switch.name == "abort-free")
    (told,) = free.told
    assert (free.choice, told.choice, told.evidence.event_number) == ("fenced", "at-once", 3)
    assert told.evidence.mismatch.event.action == "abort"
    assert shlex.split(told.evidence.again)[:4] == ["fencepost", "conform", "--profile", "reference"]


def without_foreign(differences: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Differences but for `foreign`, which a classification leaves open and lockstep compares."""
    return [one for one in differences if one["path"] != "foreign"]


@pytest.mark.slow
def test_the_evidence_is_found_again_by_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vllm", "classify", "reference", "--target-bounds", "victim-rule=any", "--json"]) == 0
    found = ClassifyDocument.model_validate(json.loads(capsys.readouterr().out)).classification
    assert found.behaves_as is not None
    assert (found.behaves_as.profile, found.behaves_as.switches) == ("reference", {"victim-rule": "any"})
    for switch in found.switches:
        for told in switch.told:
            assert main([*shlex.split(told.evidence.again)[1:], "--json"]) == 1
            (row,) = json.loads(capsys.readouterr().out)["rows"]
            differences = [one.model_dump() for one in told.evidence.mismatch.differences]
            assert without_foreign(row["mismatch"]["differences"]) == without_foreign(differences)
