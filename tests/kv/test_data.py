"""Profiles, faults and expected results of the KV spec, read from its data files; every row is a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from fencepost.checker.explore.conclude import conclude
from fencepost.checker.explore.findings import Engine
from fencepost.checker.explore.native.engine import NativeEngine
from fencepost.checker.explore.reference import ReferenceEngine
from fencepost.checker.model import Limits, Model, Options
from fencepost.checker.result import Result, Status
from fencepost.spec import kv
from fencepost.spec.lang import Spec, Switch, load_module

DATA = Path(str(kv.__file__)).parent / "data"
INTERPRETED = 700
"""Rows with more states are left to the native engine where time matters; `-m slow` runs the rest."""


def read(name: str) -> Any:
    """One data file."""
    return yaml.safe_load((DATA / f"{name}.yaml").read_text())


PROFILES: dict[str, Any] = read("profiles")["profiles"]
FAULTS: list[dict[str, Any]] = read("faults")["faults"]
EXPECTED: list[dict[str, Any]] = read("expected")["expected"]


@pytest.fixture(scope="module")
def spec() -> Spec:
    return load_module("fencepost.spec.kv.kv", "kv")


def model(spec: Spec, profile: str, *more: dict[str, Any]) -> Model:
    """The spec with a profile's switches and further values."""
    values = {**PROFILES[profile]["switches"]}
    for part in more:
        values |= part
    return Model.of(spec, values)


def search(made: Model, engine: str, options: Options) -> Result:
    """Search with exactly this engine."""
    chosen: Engine = NativeEngine(made) if engine == "native" else ReferenceEngine(made)
    if isinstance(chosen, NativeEngine):
        chosen.load(options)
    return conclude(made, chosen, chosen.run(options, None), options, {})


def status(result: Result, name: str) -> tuple[Status, int | None]:
    """What became of one property."""
    found = next(p for p in result.properties if p.name == name)
    return found.status, found.depth


def test_there_are_profiles_faults_and_expected_results() -> None:
    assert {"reference", "vllm-0.23", "vllm-0.25", "vllm-0.27", "vllm-0.33"} == set(PROFILES)
    bugs = {fault["id"].split("-")[0] for fault in FAULTS}
    assert bugs == {"B01", "B03", "B11", "B13", "B17", "B22", "B23", "B37", "B40", "B41", "B47"}
    assert len(EXPECTED) > 15


def test_switches_and_choices_exist(spec: Spec) -> None:
    for row in [*PROFILES.values(), *FAULTS]:
        switches: dict[str, str] = row.get("switches") or row.get("switch") or {}
        for name, choice in switches.items():
            bound = spec.bounds[name]
            assert isinstance(bound, Switch), name
            assert choice in bound.choices, (name, choice)


@pytest.mark.parametrize("name", PROFILES)
def test_every_switch_of_a_profile_has_its_source(name: str) -> None:
    assert set(PROFILES[name]["switches"]) <= set(PROFILES[name]["sources"])


@pytest.mark.parametrize("engine", ["reference", "native"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault["id"])
def test_a_fault_is_found_at_its_depth(spec: Spec, fault: dict[str, Any], engine: str) -> None:
    made = model(spec, fault["base"], fault["bounds"], fault["switch"])
    options = Options(keep_going=True, limits=Limits(max_depth=fault["depth"]))
    assert status(search(made, engine, options), fault["property"]) == (Status.VIOLATED, fault["depth"])


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault["id"])
def test_a_fault_is_gone_when_its_switch_is_turned_back(spec: Spec, fault: dict[str, Any]) -> None:
    made = model(spec, fault["base"], fault["bounds"])
    result = search(made, "native", Options(keep_going=True))
    assert status(result, fault["property"])[0] is Status.HOLDS
    assert not [p.name for p in result.properties if p.status is Status.VIOLATED]


def agrees(spec: Spec, row: dict[str, Any], engine: str) -> None:
    """Compare one row with what an engine finds."""
    result = search(model(spec, row["profile"], row["bounds"]), engine, Options(deadlock=False))
    figures = result.figures
    assert (figures.distinct, figures.generated, figures.depth) == (row["distinct"], row["generated"], row["depth"])
    assert result.verdict.value == row["verdict"]


def name(row: dict[str, Any]) -> str:
    """How a row is called."""
    return f"{row['profile']}: {row['name']}"


SMALL = [row for row in EXPECTED if row["distinct"] <= INTERPRETED]
LARGE = [row for row in EXPECTED if INTERPRETED < row["distinct"] <= 5000]


@pytest.mark.parametrize("row", SMALL, ids=name)
def test_the_reference_engine_finds_what_is_expected(spec: Spec, row: dict[str, Any]) -> None:
    agrees(spec, row, "reference")


@pytest.mark.slow
@pytest.mark.parametrize("row", LARGE, ids=name)
def test_the_reference_engine_finds_what_is_expected_at_length(spec: Spec, row: dict[str, Any]) -> None:
    agrees(spec, row, "reference")


@pytest.mark.parametrize("row", EXPECTED, ids=name)
def test_the_native_engine_finds_what_is_expected(spec: Spec, row: dict[str, Any]) -> None:
    agrees(spec, row, "native")


@pytest.mark.parametrize("row", EXPECTED, ids=name)
def test_what_a_profile_violates(spec: Spec, row: dict[str, Any]) -> None:
    result = search(model(spec, row["profile"], row["bounds"]), "native", Options(keep_going=True, deadlock=False))
    assert [p.name for p in result.properties if p.status is Status.VIOLATED] == row["violates"]
