"""Random specs: bounded search finds what an exhaustive search of the same depth finds.

More of them: `pytest tests/prove/test_bmc_random.py -m slow`.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from fencepost.checker.explore.reference import ReferenceEngine
from fencepost.checker.model import Limits, Model, Options
from fencepost.checker.prove.bmc import BoundedSearch
from fencepost.checker.result import Status
from fencepost.spec.lang.evaluate import UnboundedLoop

from ..models.random_specs import Writer
from ..models.test_random_specs import accepted

DEPTH = 2


def compare(seed: int, folder: Path) -> bool:
    """Search a random spec both ways; false where it is refused, or where a loop cannot be unrolled."""
    spec = accepted(Writer(random.Random(seed).choice).spec(), folder)
    if spec is None:
        return False
    model, limits = Model.of(spec, {"reqs": 2, "blks": 2, "mode": "two"}), Limits(max_depth=DEPTH)
    engine = ReferenceEngine(model)
    expected = engine.run(Options(symmetry=False, deadlock=False, keep_going=True, limits=limits))
    try:
        found = BoundedSearch(model, limits, keep_going=True).run()
    except UnboundedLoop:
        return False
    assert {p.name: p.depth for p in found.violations} == {name: f.length for name, f in expected.failures.items()}
    reached = {p.name: p.depth for p in found.properties if p.status in (Status.REACHED, Status.LATENT)}
    assert reached == expected.reached
    return True


def test_random_specs(tmp_path: Path) -> None:
    assert sum(compare(seed, tmp_path) for seed in range(20)) >= 15


@pytest.mark.slow
def test_many_random_specs(tmp_path: Path) -> None:
    assert sum(compare(seed, tmp_path) for seed in range(20, 200)) >= 130
