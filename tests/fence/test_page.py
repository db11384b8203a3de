"""docs/fence.md names everything that the protocols have."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.checker.prove.protocol_fence import WEAKER
from fencepost.spec.fence.protocol import fence
from fencepost.spec.fence.queue import queue
from fencepost.spec.fence.variants import fence_variants, queue_variants

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "fence.md").read_text()
NAMES = [
    *(variant.name for variant in (*fence_variants(), *queue_variants())),
    *(name for part in (fence.actions, fence.conjuncts, fence.claims, fence.axioms, WEAKER.axioms) for name in part),
    *queue.claims,
]


@pytest.mark.parametrize("name", dict.fromkeys(NAMES))
def test_the_page_names_it(name: str) -> None:
    assert f"`{name}`" in PAGE


def test_the_page_counts_right() -> None:
    assert f"({len(fence.actions)} times {len(fence.conjuncts)})" in PAGE
