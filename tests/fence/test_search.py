"""Faults are found by two roads: the solver, in runs with no bounds but their length, and evaluation of every state."""

from __future__ import annotations

import pytest
from fencepost.checker.prove import protocol_search as searching
from fencepost.checker.prove.protocol_search import search
from fencepost.checker.prove.solver import Disagreement
from fencepost.spec.fence.finite import Finite
from fencepost.spec.fence.protocol import fence
from fencepost.spec.fence.queue import queue
from fencepost.spec.fence.runs import Run, shortest
from fencepost.spec.fence.variants import Variant, fence_variants, queue_variants

LENGTHS = {
    "no-fence": 4,
    "fence-too-early": 8,
    "drain-too-early": 5,
    "first-fence-only": 8,
    "output-out-of-order": 8,
    "step-out-of-order": 8,
    "stale-table": 2,
    "aborted-load": 4,
    "hit-while-loading": 3,
    "scheduled-while-loading": 2,
    "freed-while-sent": 4,
    "output-is-not-done": 5,
    "tail": 3,
    "not-reversed": 4,
}
"""How many actions it takes for a fault to show."""
VARIANTS = {variant.name: variant for variant in (*fence_variants(), *queue_variants())}
QUICK = [name for name, length in LENGTHS.items() if length <= 5]


def confirmed(run: Run) -> bool:
    """Take a run again, action by action; whether every one is possible, and the claim false at the end."""
    state, finite = run.start, run.finite
    assert state in list(finite.initial())
    before = state
    for taken in run.steps:
        before = state
        assert finite.refused(taken.action, state, taken.arguments) == []
        state = finite.apply(taken.action, state, taken.arguments)
        assert state == taken.after
        assert finite.assumed(state)
    if run.violated.before:
        values = dict(zip(run.steps[-1].action.parameters, run.steps[-1].arguments, strict=True))
        return not finite.holds(run.violated.formula, before, values)
    return not finite.holds(run.violated.formula, state)


def by_evaluation(variant: Variant) -> Run:
    """A shortest run at the variant's size."""
    run = shortest(Finite(variant.protocol.claiming(variant.claim), variant.sizes))
    assert run is not None
    return run


def test_every_variant_has_a_length() -> None:
    assert list(LENGTHS) == list(VARIANTS)


@pytest.mark.parametrize("name", LENGTHS)
def test_evaluation_finds_the_fault(name: str) -> None:
    run = by_evaluation(VARIANTS[name])
    assert len(run.steps) == LENGTHS[name]
    assert run.violated.name == VARIANTS[name].claim
    assert confirmed(run)


@pytest.mark.parametrize("name", QUICK)
def test_the_solver_finds_it_with_as_many_actions(name: str) -> None:
    the_solver_agrees(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in LENGTHS if name not in QUICK])
def test_the_solver_finds_it_with_many_actions(name: str) -> None:
    the_solver_agrees(name)


def the_solver_agrees(name: str) -> None:
    """The solver finds the fault after as many actions, and none earlier, at any size."""
    variant = VARIANTS[name]
    found = search(variant.protocol.claiming(variant.claim), LENGTHS[name], 300)
    assert found.complete
    assert found.depth == LENGTHS[name]
    assert found.run is not None
    assert found.run.violated.name == variant.claim
    assert confirmed(found.run)
    assert all(found.run.finite.sizes[sort] <= size for sort, size in variant.sizes.items())


def test_a_run_is_told_in_words() -> None:
    told = """\
1  allocate(r=A, b=0)  Request A is given block 0 from the pool, to be overwritten.
2  issue(s=1, plan={A 0})  Step 1 is built and sent to the device; it reads and writes {A 0}.
3  free(r=A, b=0)  Request A gives up block 0 at once: it finished, was aborted or preempted, or its window slid on.
4  load(r=A, b=0)  Request A is given block 0 from the pool, and a transfer starts to write it.
violated: no-unordered-write-while-used (r=A, q=A, b=0, s=1)
  No block is the target of a transfer while the device may still touch it for a step."""
    variant = VARIANTS["no-fence"]
    found = search(variant.protocol.claiming(variant.claim), 4)
    assert found.run is not None
    assert found.run.lines() == told.splitlines()
    assert by_evaluation(variant).lines() == told.splitlines()


@pytest.mark.parametrize("whole", [fence, queue], ids=lambda whole: whole.name)
def test_nothing_is_found_where_nothing_is_wrong(whole: searching.Protocol) -> None:
    found = search(whole, 3)
    assert (found.run, found.depth, found.complete) == (None, 3, True)


def test_a_search_that_runs_out_of_time_says_how_far_it_came() -> None:
    found = search(fence, 50, 1.5)
    assert found.run is None
    assert not found.complete
    assert found.depth < 50


def test_a_run_that_evaluation_does_not_confirm_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> list[str]:
        return ["in-pool"]

    monkeypatch.setattr(Finite, "refused", refuse)
    with pytest.raises(Disagreement, match="step 1 of the solver's run is no step of allocate"):
        search(VARIANTS["no-fence"].protocol, 4)
