"""The proofs close for any size; nothing in them can be left out; and a faulty protocol, or a faulty solver, is found out."""

from __future__ import annotations

import dataclasses
from functools import cache

import pytest
from fencepost.checker.prove import protocol as proving
from fencepost.checker.prove.protocol import Proof, decide, prove
from fencepost.checker.prove.protocol_fence import WEAKER, FenceResult, prove_fence
from fencepost.checker.prove.protocol_obligations import Kind, Known, Obligation, Part, changes, obligations
from fencepost.checker.prove.protocol_solver import Answer, Solved
from fencepost.checker.prove.solver import Disagreement
from fencepost.checker.result import Verdict
from fencepost.spec.fence.declare import Protocol, claim
from fencepost.spec.fence.finite import Finite
from fencepost.spec.fence.logic import Formula, negated
from fencepost.spec.fence.protocol import Step, fence, issued, scheduler
from fencepost.spec.fence.queue import queue
from fencepost.spec.fence.variants import Variant, fence_variants, queue_variants

PROVED = {"scheduler": scheduler, "memory": fence, "weaker": WEAKER, "queue": queue}
FAULTY = [*fence_variants(), *queue_variants()]
GUARDS = [
    (whole, action.name, guard) for whole in (fence, queue) for action in whole.actions.values() for guard in action.guards
]

HARMLESS = {("land", "loading"), ("sent", "sending")}
"""Guards that rule out only what changes nothing."""


def failing(proof: Proof) -> list[str]:
    """The names of the queries that do not hold."""
    return [query.name for query in proof.queries if query.verdict is not Verdict.HOLDS]


@cache
def everything() -> FenceResult:
    """All that is proved of the fence, once."""
    return prove_fence()


@pytest.mark.parametrize("name", PROVED)
def test_every_query_holds_and_is_decidable(name: str) -> None:
    whole = PROVED[name]
    proof: Proof = getattr(everything(), name)
    assert proof.protocol is whole
    assert failing(proof) == []
    assert proof.verdict is Verdict.HOLDS
    assert [query.name for query in proof.queries if query.outside is not None] == []
    names = [query.name for query in proof.queries]
    assert len(set(names)) == len(names)
    pairs = {f"{action}/{conjunct}" for action in whole.actions for conjunct in whole.conjuncts}
    assert {query.name for query in proof.queries if query.kind is Kind.PRESERVED} == pairs
    assert {query.name for query in proof.queries if query.kind is Kind.INITIAL} == {f"init/{c}" for c in whole.conjuncts}
    assert {query.claim for query in proof.queries if query.kind is Kind.SAFE} == set(whole.claims)
    assert {f"possible/{action}" for action in ("init", *whole.actions)} <= set(names)


def test_what_can_be_is_shown_by_a_structure() -> None:
    for query in everything().memory.queries:
        assert (query.counterexample is not None) == (query.kind is Kind.POSSIBLE)


def test_without_an_axiom_only_memory_is_in_danger() -> None:
    proof = prove(fence.assuming())
    expected = ["safe/no-unordered-write-while-used", "allocate/no-reuse-while-used", "load/no-reuse-while-used"]
    assert failing(proof) == expected
    assert all(query.counterexample for query in proof.queries if query.name in expected)


@pytest.mark.parametrize(
    ("whole", "action", "guard"), GUARDS, ids=lambda value: value if isinstance(value, str) else value.name
)
def test_every_guard_is_needed_or_rules_out_only_what_changes_nothing(whole: Protocol, action: str, guard: str) -> None:
    lacking = whole.without_guard(action, guard)
    assert (action, guard) in HARMLESS or broken(lacking, action) or broken(weaker(lacking), action)
    assert (action, guard) not in HARMLESS or changes_nothing(whole, action, guard)


def broken(whole: Protocol, action: str) -> bool:
    """Whether something that an action must keep, or that is claimed of it, is refuted."""
    found = (o for o in obligations(whole) if o.kind is not Kind.POSSIBLE and o.action and o.action.name == action)
    return any(decide(whole, obligation, 10).verdict is Verdict.VIOLATED for obligation in found)


def weaker(whole: Protocol) -> Protocol:
    """The fence protocol with the weaker axiom: the other one stands in for a guard."""
    return whole.assuming(*WEAKER.axioms.values())


def changes_nothing(whole: Protocol, action: str, guard: str) -> bool:
    """Whether the action changes nothing where only this guard is false."""
    made = whole.without_guard(action, guard).actions[action]
    refused = Part(f"not {guard}", negated(whole.actions[action].guards[guard]))
    parts = (
        *Known(whole).invariant,
        *(Part("guard", g) for g in made.guards.values()),
        refused,
        Part("changes", changes(made)),
    )
    return decide(whole, Obligation(Kind.SAFE, guard, parts), 10).verdict is Verdict.HOLDS


def test_the_axiom_stands_in_for_one_guard_only() -> None:
    lacking = fence.without_guard("process", "issued")
    assert not broken(lacking, "process")
    assert broken(weaker(lacking), "process")


NEEDED_FOR = {
    "references-are-protected": "load/no-unordered-write-in-flight",
    "named-by-issued-steps": "drain/references-are-protected",
    "done-steps-were-issued": "issue/processed-in-order",
    "processed-in-order": "drain/references-are-protected",
    "load-target-is-owned": "load/load-target-has-one-owner",
    "load-target-has-one-owner": "issue/no-unordered-write-in-flight",
    "no-unordered-write-in-flight": "safe/no-unordered-write-while-used",
    "sent-block-is-owned": "allocate/no-reuse-while-sent",
    "in-one-line": "safe/in-one-line",
    "later-freed-is-ahead": "take/last-freed-first",
    "freed-is-ahead-of-fresh": "take/last-freed-first",
    "freed-in-the-past": "give-back/later-freed-is-ahead",
}


def test_every_conjunct_is_needed() -> None:
    assert list(NEEDED_FOR) == [*fence.conjuncts, *queue.conjuncts]


@pytest.mark.parametrize("conjunct", NEEDED_FOR)
def test_without_a_conjunct_another_obligation_fails(conjunct: str) -> None:
    whole = fence if conjunct in fence.conjuncts else queue
    lacking = whole.without_invariant(conjunct)
    (obligation,) = [found for found in obligations(lacking) if found.name == NEEDED_FOR[conjunct]]
    assert decide(lacking, obligation, 10).verdict is Verdict.VIOLATED


@pytest.mark.parametrize("variant", queue_variants(), ids=lambda variant: variant.name)
def test_other_orders_of_the_queue_are_refuted(variant: Variant) -> None:
    assert failing(prove(variant.protocol))[0] == "give-back/later-freed-is-ahead"


def test_a_failure_names_action_and_conjunct() -> None:
    query = prove(fence.without_guard("allocate", "in-pool"), first=True).queries[-1]
    assert query.verdict is Verdict.VIOLATED
    assert (query.name, query.action, query.claim) == (
        "allocate/load-target-has-one-owner",
        "allocate",
        "load-target-has-one-owner",
    )
    shown = query.counterexample
    assert shown is not None
    assert shown.after is not None
    assert sum(shown.sizes.values()) <= 5, "the smallest structure is shown"


@claim
def no_step_is_ever_issued(s: Step) -> Formula:
    """Nothing is ever issued."""
    return ~issued(s)


def test_a_vacuous_proof_is_a_failure() -> None:
    proof = prove(fence.assuming(no_step_is_ever_issued))
    assert proof.verdict is Verdict.VIOLATED
    found = failing(proof)
    assert "possible/issue" in found
    assert "possible/references-are-protected" in found
    assert all(query.kind is Kind.POSSIBLE and not query.counterexample for query in proof.queries if query.name in found)


def test_a_solver_that_gives_up_leaves_it_undetermined(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(*_: object) -> Solved:
        return Solved(Answer.UNKNOWN, 0.0)

    monkeypatch.setattr(proving, "solve", give_up)
    proof = prove(scheduler)
    assert proof.verdict is Verdict.UNDETERMINED
    assert {query.verdict for query in proof.queries} == {Verdict.UNDETERMINED}


def test_a_structure_that_evaluation_does_not_confirm_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    (obligation,) = [found for found in obligations(fence) if found.name == "possible/issue"]

    def deny(*_: object) -> bool:
        return False

    monkeypatch.setattr(Finite, "holds", deny)
    with pytest.raises(Disagreement, match=r"possible/issue: the solver's structure does not satisfy 'order of Step'"):
        decide(fence, obligation, 10)


def test_everything_at_once() -> None:
    result = everything()
    assert result.verdict is Verdict.HOLDS
    assert [query.verdict for query in result.axioms] == [Verdict.HOLDS] * 2
    assert [fault.variant.name for fault in result.faults] == [variant.name for variant in FAULTY]
    assert all(fault.run and fault.run.violated.name == fault.variant.claim for fault in result.faults)
    lost = dataclasses.replace(result, faults=(dataclasses.replace(result.faults[0], run=None),))
    assert lost.verdict is Verdict.UNDETERMINED
    failed = dataclasses.replace(result, weaker=prove(fence.assuming(), first=True))
    assert failed.verdict is Verdict.VIOLATED
