"""Settings of the reference implementation: wrong values are named, and what follows from them."""

from __future__ import annotations

from typing import Any

import pytest
from fencepost.impl.engine.config import EngineConfig, KVRole, Mechanisms


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
