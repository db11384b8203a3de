"""kvfence.yaml against an independent program, and against the spec in our language."""

from __future__ import annotations

from pathlib import Path

import plain
import pytest
from fencepost.checker.explore.reference import ReferenceEngine
from fencepost.checker.model import Model, Options
from fencepost.spec.lang import Spec, load_file
from harness.expected import HERE, SIZES, Bounds, Case, case, load

CANON: dict[str, plain.Canon] = {"none": lambda s: s, "requests": plain.up_to_requests, "both": plain.up_to_both}
HEAVY = {("medium", 1), ("medium", 2), ("large", 1)}
OUT_OF_REACH = {("large", "none"), ("large", "requests")}
"""Too many states for plain Python; SPIN and Rumur count them (`--row counts`)."""


def cases(*, heavy: bool) -> list[Case]:
    """The cases that plain Python can do, quickly or not."""
    chosen = [each for each in load() if ((each.size, each.bounds.fence) in HEAVY) is heavy]
    return [each for each in chosen if not (each.bounds.fence == 1 and (each.size, each.symmetry) in OUT_OF_REACH)]


def agrees(each: Case) -> None:
    """Compare one case with the plain program."""
    size = plain.Size(*vars(each.bounds).values())
    assert tuple(plain.search(size, CANON[each.symmetry])) == tuple(vars(each.counts).values())


@pytest.mark.parametrize("each", cases(heavy=False), ids=lambda each: each.name)
def test_the_plain_program_counts_the_same(each: Case) -> None:
    agrees(each)


@pytest.mark.slow
@pytest.mark.parametrize("each", cases(heavy=True), ids=lambda each: each.name)
def test_the_plain_program_counts_the_same_at_length(each: Case) -> None:
    agrees(each)


def test_every_size_fence_and_symmetry_has_its_row() -> None:
    rows = {(each.size, each.bounds.fence, each.symmetry) for each in load()}
    assert rows == {(size, fence, kind) for size in SIZES for fence in (0, 1, 2) for kind in CANON}
    assert len(load()) == len(rows)


def test_the_lengths_are_those_of_the_closed_form() -> None:
    for each in load():
        bounds = each.bounds
        want = {0: 4, 1: None, 2: bounds.per_request + bounds.steps + 2}[bounds.fence]
        assert each.counts.trace == want, each.name


@pytest.fixture(scope="module")
def spec() -> Spec:
    return load_file(HERE / "kvfence.py")


def found(spec: Spec, bounds: Bounds, *, symmetry: bool) -> tuple[int, int, int]:
    """What the reference engine counts."""
    findings = ReferenceEngine(Model.of(spec, vars(bounds))).run(Options(symmetry=symmetry))
    return findings.distinct, findings.generated, findings.depth


@pytest.mark.parametrize("fence", [0, 1, 2])
@pytest.mark.parametrize("kind", ["none", "both"])
def test_the_reference_engine_counts_the_same(spec: Spec, kind: str, fence: int) -> None:
    each = case("tiny", fence, kind)
    want = (each.counts.distinct, each.counts.generated, each.counts.depth)
    assert found(spec, each.bounds, symmetry=kind == "both") == want


def test_both_indices_stay_permutable(spec: Spec) -> None:
    model = Model.of(spec, vars(case("tiny").bounds))
    assert set(model.bound.permutable()) == {"requests", "blocks"}


def test_every_witness_is_reached_in_tiny(spec: Spec) -> None:
    model = Model.of(spec, vars(case("tiny").bounds))
    findings = ReferenceEngine(model).run(Options(symmetry=True))
    assert set(findings.reached) == {p.name for p in model.bound.properties if p.kind == "reachable"}


def test_the_folder_is_the_one_of_this_checkout() -> None:
    assert Path(__file__).resolve().parents[2] / "benchmarks" == HERE
