"""Settings of the reference implementation: the mechanisms are spelled like the spec's, wrong values are named."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from fencepost.impl.engine.config import CHOICES, EngineConfig, KVRole, Mechanisms
from fencepost.spec import kv
from fencepost.spec.lang import Switch, load_module

ELSEWHERE = {"kv-role", "intended-free-order"}
"""Switches of the spec that are no mechanism: one is a setting of its own, the other an intention."""
DATA = Path(str(kv.__file__)).parent / "data"


def spec_switches() -> dict[str, tuple[str, ...]]:
    """Every mechanism switch of the KV spec with its choices, the default first."""
    spec = load_module("fencepost.spec.kv.kv", "kv")
    switches = [bound for bound in spec.bounds.values() if isinstance(bound, Switch)]
    assert all(switch.default == switch.choices[0] for switch in switches)
    return {switch.name: switch.choices for switch in switches if switch.name not in ELSEWHERE}


def data_switches() -> list[dict[str, str]]:
    """The mechanism switches of every profile and every fault."""
    profiles: dict[str, Any] = yaml.safe_load((DATA / "profiles.yaml").read_text())["profiles"]
    faults: list[dict[str, Any]] = yaml.safe_load((DATA / "faults.yaml").read_text())["faults"]
    rows = [profile["switches"] for profile in profiles.values()] + [fault["switch"] for fault in faults]
    return [{name: choice for name, choice in row.items() if name not in ELSEWHERE} for row in rows]


def test_the_mechanisms_are_the_switches_of_the_spec() -> None:
    assert dict(CHOICES) == spec_switches()


def test_the_first_choice_is_the_default() -> None:
    mechanisms = Mechanisms()
    assert {f.name: getattr(mechanisms, f.name) for f in fields(mechanisms)} == {
        name.replace("-", "_"): choices[0] for name, choices in CHOICES.items()
    }


def test_every_profile_and_fault_can_be_chosen() -> None:
    rows = data_switches()
    assert len(rows) > 10
    for row in rows:
        mechanisms = Mechanisms.of(row)
        assert all(getattr(mechanisms, name.replace("-", "_")) == choice for name, choice in row.items())


def test_a_wrong_choice_is_named_with_the_right_ones() -> None:
    with pytest.raises(ValueError, match="finish_free: 'never' is none of fenced, at-once"):
        Mechanisms.of({"finish-free": "never"})


@pytest.mark.parametrize("name", ["finish_free", "kv-role", "intended-free-order"])
def test_an_unknown_mechanism_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=f"no such mechanism: {name}; there are finish-free"):
        Mechanisms.of({name: "none"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_gpu_blocks", 1),
        ("block_size", 0),
        ("max_num_seqs", 0),
        ("max_num_batched_tokens", 0),
        ("watermark", -1),
        ("max_concurrent_batches", 0),
        ("max_empty_batches", -1),
        ("kv_role", "kv_reader"),
    ],
)
def test_a_wrong_size_is_named(name: str, value: Any) -> None:
    sizes: dict[str, Any] = {"num_gpu_blocks": 2, name: value}
    with pytest.raises(ValueError, match=f"^{name}: "):
        EngineConfig(**sizes)


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize(("role", "loads"), [("none", False), ("kv_consumer", True), ("kv_both", True), ("kv_producer", False)])
def test_the_fence_needs_several_steps_and_a_role_that_loads(steps: int, role: KVRole, loads: bool) -> None:
    assert EngineConfig(2, max_concurrent_batches=steps, kv_role=role).fence == (loads and steps > 1)
