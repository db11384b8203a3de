"""The engine's switches are spelled like the spec's, and every bound of the spec reaches the engine, or is listed here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, get_args

import pytest
from fencepost.impl.drivers.reference import ReferenceDriver, engine_config
from fencepost.impl.engine.config import CHOICES, EngineConfig, KVRole, Mechanisms
from fencepost.spec.lang import Switch

from .runs import FAULTS, KV, PROFILES, Values

SWITCHES = {name: bound for name, bound in KV.bounds.items() if isinstance(bound, Switch)}
DEFAULTS = KV.values({})
ROLE = "kv-role"
INTENDED = "intended-free-order"

NOT_READ = {
    "requests": "how many names the spec has for requests that are alive at a time; an engine has ids without end",
    "prompt-tokens-least": "what clients send: the domain of submit",
    "reset-running": "whether the environment resets the cache while requests run",
    "aborts": "whether clients disconnect",
    INTENDED: "what the authors of a release meant, which changes nothing that it does",
}
"""Bounds of the spec that no driver needs to know, and why."""

SIZES: Mapping[str, tuple[str, int | str, Any]] = {
    "blocks": ("num_gpu_blocks", 7, 8),
    "block-size": ("block_size", 3, 3),
    "max-num-seqs": ("max_num_seqs", 3, 3),
    "max-num-batched-tokens": ("max_num_batched_tokens", 5, 5),
    "enable-prefix-caching": ("enable_prefix_caching", 1, True),
    "scheduler-reserve-full-isl": ("scheduler_reserve_full_isl", 0, False),
    "watermark": ("watermark", 2, 2),
    "async-scheduling": ("async_scheduling", 0, False),
    "steps-in-flight": ("max_concurrent_batches", 3, 3),
    "empty-steps": ("max_empty_batches", 1, 1),
    ROLE: ("kv_role", "kv_consumer", "kv_consumer"),
}
"""Bounds that are fields of the engine's config: the field, another value than the default, and what the field is then."""

OF_THE_DRIVER = {
    "max-tokens": "every request is submitted with it",
    "remote-tokens": "what the connector's remote side has",
    "prompt-tokens": "how long the shared texts are",
    "prefix-groups": "how many there are",
}
"""Bounds that the driver uses for what it submits, and what stands at the far side of the connector."""


class Reading(Mapping[str, int | str]):
    """Values that remember which of them were read."""

    def __init__(self, values: Values) -> None:
        self.values_, self.read = values, set[str]()

    def __getitem__(self, name: str) -> int | str:
        self.read.add(name)
        return self.values_[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)


def test_mechanisms_have_the_names_choices_and_defaults_of_the_switches() -> None:
    switches = {name: switch.choices for name, switch in SWITCHES.items() if name not in (ROLE, INTENDED)}
    assert dict(CHOICES) == switches
    assert [f.default for f in fields(Mechanisms)] == [SWITCHES[name].default for name in CHOICES]


def test_the_role_is_a_field_of_the_config_with_the_same_choices() -> None:
    switch = SWITCHES[ROLE]
    assert get_args(KVRole) == switch.choices
    assert EngineConfig(2).kv_role == switch.default


def test_every_choice_reaches_the_engine_under_its_own_name() -> None:
    for name, choices in CHOICES.items():
        for choice in choices:
            mechanisms = engine_config({**DEFAULTS, name: choice}).mechanisms
            assert mechanisms == Mechanisms.of({name: choice})
            assert getattr(mechanisms, name.replace("-", "_")) == choice
    for choice in SWITCHES[ROLE].choices:
        assert engine_config({**DEFAULTS, ROLE: choice}).kv_role == choice


@pytest.mark.parametrize("switches", [*PROFILES.values(), *(fault["switch"] for fault in FAULTS.values())], ids=str)
def test_every_profile_and_fault_can_be_said_of_the_engine(switches: Values) -> None:
    mechanisms = ReferenceDriver(KV.values(switches)).config.mechanisms
    assert mechanisms == Mechanisms.of({name: str(choice) for name, choice in switches.items() if name != INTENDED})


@pytest.mark.parametrize("name", SIZES)
def test_every_size_is_the_field_of_the_config_that_it_should_be(name: str) -> None:
    field, other, made = SIZES[name]
    before, after = engine_config(DEFAULTS), engine_config({**DEFAULTS, name: other})
    assert getattr(after, field) == made
    assert [f.name for f in fields(EngineConfig) if getattr(after, f.name) != getattr(before, f.name)] == [field]


def test_every_field_of_the_config_is_set_by_a_bound() -> None:
    assert {f.name for f in fields(EngineConfig)} == {field for field, _, _ in SIZES.values()} | {"mechanisms"}


def test_every_bound_is_read_or_listed_with_a_reason() -> None:
    given = Reading(DEFAULTS)
    ReferenceDriver(given)
    assert set(KV.bounds) - given.read == set(NOT_READ)
    assert given.read == set(SIZES) | set(OF_THE_DRIVER) | set(CHOICES)
