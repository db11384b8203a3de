"""Proofs by induction: what is proved holds in every state, what is not has a counterexample that the interpreter confirms."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.explore import explore
from fencepost.checker.model import SPEC_ERROR, Limits, Model, Options
from fencepost.checker.prove import induction
from fencepost.checker.prove.arbitrary import Arbitrary
from fencepost.checker.prove.asked import Goal
from fencepost.checker.prove.case import Case
from fencepost.checker.prove.deciders import DECIDERS, Assignment
from fencepost.checker.prove.induction import Induced, Induction
from fencepost.checker.prove.proof import Proof, Told, prove
from fencepost.checker.prove.reached import Near, reached
from fencepost.checker.prove.solver import Disagreement
from fencepost.checker.prove.suggest import suggestions
from fencepost.checker.prove.terms import Terms, assignment, evaluate
from fencepost.checker.result import Status, Verdict
from fencepost.spec.lang import BoundSpec, State, load_file, load_module
from fencepost.spec.lang.symmetry import Symmetry

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests" / "models" / "specs"
KVFENCE = ROOT / "benchmarks" / "kvfence.py"
TINY = {"requests": 2, "blocks": 2, "steps": 2, "per_request": 2, "fence": 1}
SMALL: list[tuple[Path, dict[str, int | str]]] = [
    *((MODELS / f"{name}.py", {}) for name in ("counter", "lossy_queue", "mutex", "peterson", "token_ring", "two_phase")),
    (KVFENCE, {**TINY}),
]
KV: dict[str, int | str] = {"blocks": 2, "prompt-tokens": 1, "kv-role": "kv_consumer", "remote-tokens": 1}


def model_of(path: Path, bounds: dict[str, int | str] | None = None) -> Model:
    return Model.of(load_file(path), bounds or {})


def kv(**bounds: int | str) -> Model:
    return Model.of(load_module("fencepost.spec.kv.kv", "kv"), {**KV, **{n.replace("_", "-"): v for n, v in bounds.items()}})


def proof_of(model: Model, each: float = 60.0, seconds: float | None = None) -> Proof:
    return prove(model, Limits(max_seconds=seconds), each=each, told=Told())


def induced(model: Model) -> Induced:
    return Induction(model, Limits()).run()


@pytest.mark.parametrize(("path", "bounds"), SMALL)
def test_what_is_proved_holds_in_every_state(path: Path, bounds: dict[str, int | str]) -> None:
    found = induced(model_of(path, bounds))
    searched = explore(model_of(path, bounds), Options(deadlock=False, keep_going=True), "reference")
    violated = {p.name for p in searched.properties if p.status is Status.VIOLATED}
    assert not violated & {*found.kept, *found.stepped}
    assert all(a.unkept is not None for a in found.missing)


def said_by(solver: str, model: Model) -> tuple[dict[tuple[str, str], str], tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """What a proof comes to where its questions are decided so."""
    found = Induction(model, Limits(), decider=DECIDERS[solver]).run()
    return {(a.fact, a.action): a.answer for a in found.answers}, found.kept, found.stepped, found.vacuous


@pytest.mark.parametrize("solver", [name for name in DECIDERS if name != "sat"])
@pytest.mark.parametrize(("path", "bounds"), SMALL)
def test_solvers_say_the_same(path: Path, bounds: dict[str, int | str], solver: str) -> None:
    assert said_by(solver, model_of(path, bounds)) == said_by("sat", model_of(path, bounds))


@pytest.mark.parametrize(("name", "bounds"), [("lockers", {"lockers": 3}), ("rounds", {})])
def test_solvers_say_the_same_of_tracked_members(
    name: str, bounds: dict[str, int | str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(induction, "WHOLE_CELLS", 0)
    said = [
        said_by(solver, model_of(Path(__file__).parent / "specs" / f"{name}.py", bounds)) for solver in ("sat", "bit-vectors")
    ]
    assert said[0] == said[1]


@pytest.mark.slow
def test_solvers_say_the_same_of_the_kv_spec() -> None:
    assert said_by("sat", kv(blocks=3)) == said_by("bit-vectors", kv(blocks=3))


@pytest.mark.parametrize("name", ["mutex", "token_ring", "lossy_queue"])
def test_a_spec_is_proved(name: str) -> None:
    proof = proof_of(model_of(MODELS / f"{name}.py"))
    assert (proof.verdict, proof.gaps, proof.bounded) == (Verdict.HOLDS, (), None)
    assert [p.name for p in proof.proved] == [p.name for p in proof.properties]


def test_a_counterexample_to_induction_is_a_step_of_the_spec() -> None:
    model = model_of(MODELS / "peterson.py")
    proof = proof_of(model)
    (gap,) = proof.gaps
    found = gap.unkept
    assert proof.verdict is Verdict.UNDETERMINED
    assert found is not None
    prop = next(p for p in model.bound.properties if p.name == gap.name)
    assert model.bound.holds(prop, found.before)
    rule = next(rule for rule in model.bound.actions if rule.name == found.action)
    assert model.bound.after(found.before, rule, found.arguments) == found.after
    assert found.after is not None
    assert not model.bound.holds(prop, found.after)
    assert gap.reachable is False


def test_a_lemma_that_is_suggested_closes_the_proof(tmp_path: Path) -> None:
    proof = proof_of(model_of(MODELS / "peterson.py"))
    assert proof.reached is not None
    states = sorted(proof.reached.states)
    bound = model_of(MODELS / "peterson.py").bound
    found = {candidate.words for candidate in suggestions(bound, proof.gaps[0], states)}
    assert "implies(s.at[i] == At.INSIDE, s.flag[i])" in found
    text = (MODELS / "peterson.py").read_text()
    lemmas = '''

@always(lemma=True)
def who_comes_wants(s):
    """Who is not away has said so."""
    return all(s.flag[i] or s.at[i] == At.AWAY for i in range(2))


@always(lemma=True)
def the_other_has_no_turn(s):
    """Who is inside with another that waits has the turn."""
    return all(not (s.at[i] == At.INSIDE and s.at[1 - i] == At.WAITING) or s.turn == i for i in range(2))
'''
    (tmp_path / "peterson.py").write_text(text + lemmas)
    better = proof_of(model_of(tmp_path / "peterson.py", {"order": "right"}))
    assert better.verdict is Verdict.HOLDS, better.reason
    assert [p.status for p in better.lemmas] == [Status.HOLDS, Status.HOLDS]


def test_a_suggestion_is_true_in_all_states_and_false_in_the_counterexample() -> None:
    model = model_of(MODELS / "two_phase.py")
    proof = proof_of(model)
    gap = proof.gaps[0]
    assert proof.reached is not None
    assert gap.unkept is not None
    found = suggestions(model.bound, gap, sorted(proof.reached.states))
    assert found
    sizes = model.bound.indices()
    for candidate in found:
        members = range(sizes[candidate.index]) if candidate.index else range(1)
        assert all(candidate.holds(state, i) for state in proof.reached.states for i in members)
        assert not all(candidate.holds(gap.unkept.before, i) for i in members)


# ---- what cannot be proved


def test_a_real_violation_is_found_with_its_shortest_trace() -> None:
    proof = proof_of(model_of(KVFENCE, {**TINY, "fence": 0}))
    searched = explore(model_of(KVFENCE, {**TINY, "fence": 0}), Options(deadlock=False), "reference")
    assert proof.verdict is Verdict.VIOLATED
    assert proof.violations[0].depth == searched.violations[0].depth
    assert proof.exit_code == 1


def test_a_violation_near_the_start_is_the_answer_unless_the_proof_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "grown.py"
    path.write_text(GROWN)
    model = model_of(path)
    stopped = proof_of(model)
    assert (stopped.stopped, stopped.proved, stopped.lemmas, stopped.gaps) == (True, (), (), ())
    went_on = prove(model, Limits(), each=60.0, told=Told(), keep_going=True)
    searched = explore(model, Options(deadlock=False, keep_going=True), "reference")
    assert not went_on.stopped
    for made in (stopped, went_on):
        assert made.verdict is Verdict.VIOLATED
        assert (
            [(p.name, p.depth) for p in made.violations] == [(p.name, p.depth) for p in searched.violations] == [("small", 3)]
        )
    assert [p.name for p in went_on.proved] == ["within"]
    assert "small" not in {answer.fact for answer in went_on.induced.answers}


GROWN = '''"""A number that grows."""
from fencepost.spec.lang import Int, action, always, require, state


@state
class Grown:
    n: Int(0, 9)


@action
def grow(s):
    """One more, up to five."""
    require(s.n < 5)
    s.n += 1


@always
def small(s):
    """It is less than three."""
    return s.n < 3


@always
def within(s):
    """It is at most five."""
    return s.n <= 5
'''


def test_a_violation_that_a_short_search_does_not_come_to_is_found_path_by_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.checker.prove.reached.MOST_LOOKED_AT", 3)
    model = model_of(KVFENCE, {**TINY, "fence": 0})
    found, searched = proof_of(model), explore(model, Options(deadlock=False), "reference")
    assert not found.stopped
    assert found.bounded is not None
    assert [(p.name, p.depth) for p in found.bounded.violations] == [(p.name, p.depth) for p in searched.violations]


def test_leaving_the_bounds_of_a_spec_is_no_proof(tmp_path: Path) -> None:
    spec = tmp_path / "grows.py"
    spec.write_text(
        """from fencepost.spec.lang import Int, action, always, state


@state
class S:
    n: Int(0, 3)


@action
def more(s):
    s.n += 1


@always
def small(s):
    return s.n <= 3
"""
    )
    proof = proof_of(model_of(spec))
    assert proof.exit_code == 2
    assert [p.name for p in proof.violations] == [SPEC_ERROR]


def test_leaving_the_bounds_on_the_way_to_a_requirement_that_fails_is_no_proof(tmp_path: Path) -> None:
    spec = tmp_path / "early.py"
    spec.write_text(
        """from fencepost.spec.lang import Int, action, always, require, state


@state
class S:
    n: Int(0, 3)


@action
def turn(s):
    s.n = 3 - s.n


@action
def more(s):
    s.n += 1
    require(s.n < 4)
    s.n = 0


@always
def small(s):
    return s.n == 0 or s.n == 3
"""
    )
    proof = proof_of(model_of(spec))
    searched = explore(model_of(spec), Options(deadlock=False), "reference")
    assert [p.name for p in searched.violations] == [SPEC_ERROR]
    assert [p.name for p in proof.violations] == [SPEC_ERROR]
    assert proof.exit_code == searched.exit_code == 2


def nothing_seen(model: Model, limits: Limits, left: float) -> Near:
    return Near(frozenset(), frozenset(), ())


def test_a_proof_that_a_search_refutes_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def always_proved(*given: Any) -> tuple[str, None]:
        return "unsat", None

    monkeypatch.setattr(induction.Asked, "query", always_proved)
    monkeypatch.setattr("fencepost.checker.prove.proof.near_start", nothing_seen)
    with pytest.raises(Disagreement, match="a search finds violated"):
        proof_of(model_of(MODELS / "peterson.py", {"order": "broken"}))


def test_an_action_that_is_never_enabled_makes_a_proof_vacuous() -> None:
    proof = proof_of(model_of(MODELS / "vacuity.py", {"empty": "action"}))
    assert proof.verdict is Verdict.UNDETERMINED
    assert any("never enabled" in reason for reason in proof.induced.vacuous)


def test_a_left_side_that_never_holds_makes_a_proof_vacuous() -> None:
    proof = proof_of(model_of(MODELS / "vacuity.py", {"empty": "implication"}))
    assert any("left side" in reason for reason in proof.vacuous)
    assert proof.exit_code == 3


def test_no_answer_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*given: Any) -> tuple[str, None]:
        return "unknown", None

    monkeypatch.setattr(induction.Asked, "query", unknown)
    proof = proof_of(model_of(MODELS / "mutex.py"))
    assert proof.verdict is Verdict.UNDETERMINED
    assert "no answer in time" in str(proof.reason)


def test_a_limit_of_time_is_no_proof() -> None:
    proof = proof_of(kv(requests=2, blocks=3), seconds=0.01)
    assert (proof.verdict, proof.exit_code) == (Verdict.UNDETERMINED, 3)
    assert "--max-time" in str(proof.reason)


def test_the_interpreter_has_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(self: BoundSpec, *given: Any) -> None:
        return None

    def no_states(self: BoundSpec) -> list[Any]:
        return []

    model = model_of(MODELS / "peterson.py")
    monkeypatch.setattr(BoundSpec, "after", nothing)
    monkeypatch.setattr(BoundSpec, "initial", no_states)
    with pytest.raises(Disagreement, match="does not allow"):
        Induction(model, Limits()).run()


# ---- several processes


@pytest.mark.parametrize("path", [MODELS / "peterson.py", MODELS / "two_phase.py", KVFENCE])
def test_several_processes_say_what_one_says(path: Path) -> None:
    bounds = TINY if path == KVFENCE else {}
    one, two = (Induction(model_of(path, {**bounds}), Limits(), workers=workers).run() for workers in (1, 2))
    assert (one.kept, one.stepped, one.vacuous, one.longer) == (two.kept, two.stepped, two.vacuous, two.longer)
    assert [(a.fact, a.action, a.answer) for a in one.answers] == [(a.fact, a.action, a.answer) for a in two.answers]


def test_a_disagreement_in_another_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(self: BoundSpec, *given: Any) -> None:
        return None

    def no_states(self: BoundSpec) -> list[Any]:
        return []

    monkeypatch.setattr(BoundSpec, "after", nothing)
    monkeypatch.setattr(BoundSpec, "initial", no_states)
    with pytest.raises(Disagreement, match="does not allow"):
        Induction(model_of(MODELS / "peterson.py"), Limits(), workers=2).run()


# ---- parts, and names


def test_parts_give_the_same_answers_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = induced(model_of(MODELS / "lossy_queue.py"))
    asked = induction.Asked.query

    def only_in_parts(self: induction.Asked, case: Case, goal: Goal, most: float) -> tuple[str, Assignment | None]:
        return asked(self, case, goal, most) if case.lengths else ("unknown", None)

    monkeypatch.setattr(induction.Asked, "query", only_in_parts)
    split = induced(model_of(MODELS / "lossy_queue.py"))
    assert {(a.fact, a.action, a.answer) for a in whole.answers} == {(a.fact, a.action, a.answer) for a in split.answers}
    assert max(a.cases for a in split.answers) > 1


def permuted(bound: BoundSpec, state: State) -> Iterator[State]:
    symmetry = Symmetry(bound.shape, bound.permutable())
    names = bound.permutable()
    for choice in itertools.product(*(itertools.permutations(range(size)) for size in names.values())):
        yield symmetry.permute(state, {name: list(order) for name, order in zip(names, choice, strict=True)})


@pytest.mark.parametrize(
    "model",
    [model_of(KVFENCE, {**TINY}), model_of(MODELS / "mutex.py"), kv(requests=2, max_tokens=1)],
    ids=["kvfence", "mutex", "kv"],
)
def test_every_state_is_named_in_order_under_some_names(model: Model) -> None:
    terms = Terms()
    arbitrary = Arbitrary(model.bound, terms, named={})

    def in_order(state: State) -> bool:
        return all(evaluate(arbitrary.facts, assignment(model.bound, state)))

    states: Sequence[State] = sorted(reached(model.bound, most=300).states)
    assert all(any(in_order(other) for other in permuted(model.bound, state)) for state in states)
    assert not all(in_order(other) for state in states for other in permuted(model.bound, state))


# ---- the KV spec


@pytest.mark.slow
def test_the_kv_spec_with_one_request_is_kept() -> None:
    found = induced(kv(requests=1))
    names = {p.name for p in kv(requests=1).bound.every if p.kind in ("always", "quiescent")}
    assert set(found.kept) == names


@pytest.mark.slow
@pytest.mark.parametrize("role", [{}, {"kv_role": "none", "remote_tokens": 0}])
def test_the_kv_spec_is_proved(role: dict[str, Any]) -> None:
    proof = proof_of(kv(requests=2, blocks=3, **role))
    assert proof.verdict is Verdict.HOLDS, proof.reason
    assert all(p.status is Status.HOLDS for p in proof.lemmas)
