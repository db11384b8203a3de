"""With plain values, the evaluator executes a spec exactly as Python does."""

from pathlib import Path

import pytest
from fencepost.spec.lang import BoundSpec, Spec, load_file, load_module
from fencepost.spec.lang.domain import ConcreteDomain
from fencepost.spec.lang.evaluate import Evaluator

from . import agreement

ROOT = Path(__file__).resolve().parents[2]
EVERYTHING = Path(__file__).parent / "specs" / "everything.py"
KVFENCE = ROOT / "benchmarks" / "kvfence.py"
MODELS = sorted((ROOT / "tests" / "models" / "specs").glob("*.py"))
TINY = {"requests": 2, "blocks": 2, "steps": 2, "per_request": 2}
STATES = 40


def compare(bound: BoundSpec, states: list[tuple[int, ...]]) -> dict[str, int]:
    """Assert agreement on all actions and properties; returns how often each outcome was seen."""
    evaluator = Evaluator(bound, ConcreteDomain())
    counts: dict[str, int] = {}

    def tell(rule: agreement.Rule, args: tuple[int, ...], state: tuple[int, ...]) -> agreement.Told:
        outcome = evaluator.action(evaluator.cells(state), rule, evaluator.arguments(rule, args))
        return bool(outcome.enabled), outcome.cells, not outcome.obligations

    agreement.compare_actions(bound, states, tell, counts)
    for prop in bound.properties:
        for state, after in agreement.pairs(bound, prop, states):
            value, obligations = evaluator.holds(prop, state, after)
            outcome = agreement.truth(bound, prop, state, after)
            assert ("error" if obligations else str(bool(value))) == outcome, (prop.name, state, after)
            counts[outcome] = counts.get(outcome, 0) + 1
            if prop.condition is not None and outcome != "error":
                assert bool(evaluator.condition(prop, state)[0]) == bound.condition_holds(prop, state)
    return counts


def test_initial_states() -> None:
    bound = BoundSpec(load_file(EVERYTHING), {})
    evaluator = Evaluator(bound, ConcreteDomain())
    for rule, args, state in bound.initial():
        assert rule is not None
        outcome = evaluator.action(bound.shape.blank, rule, evaluator.arguments(rule, args))
        assert (outcome.enabled, outcome.cells, outcome.obligations) == (1, state, ())


@pytest.mark.parametrize("mode", ["plain", "odd"])
@pytest.mark.parametrize("size", [1, 3])
def test_all_of_the_language(size: int, mode: str) -> None:
    bound = BoundSpec(load_file(EVERYTHING), {"size": size, "mode": mode, "people": 2, "seats": 2})
    counts = compare(bound, agreement.random_states(bound, STATES))
    assert min(counts[outcome] for outcome in ("error", "disabled", "enabled", "True", "False")) > 20


@pytest.mark.parametrize("fence", [0, 1, 2])
def test_kvfence(fence: int) -> None:
    bound = BoundSpec(load_file(KVFENCE), {**TINY, "fence": fence})
    counts = compare(bound, agreement.reached(bound, STATES))
    assert "error" not in counts


def test_kvfence_all_states() -> None:
    bound = BoundSpec(load_file(KVFENCE), TINY)
    states = agreement.reached(bound, 100_000)
    assert len(states) == 328
    compare(bound, states)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_models(path: Path) -> None:
    bound = BoundSpec(load_file(path), {})
    compare(bound, agreement.reached(bound, STATES))


KV = [
    {},
    {"requests": 2, "kv-role": "kv_both", "remote-tokens": 2},
    {"requests": 2, "blocks": 3, "enable-prefix-caching": 1, "kv-role": "kv_both", "remote-tokens": 1, "reset-running": 1},
]


@pytest.mark.parametrize("given", KV, ids=["local", "remote", "caching"])
def test_kv(given: dict[str, int | str]) -> None:
    bound = BoundSpec(kv(), given)
    compare(bound, agreement.reached(bound, 20))


def kv() -> Spec:
    """The KV spec."""
    return load_module("fencepost.spec.kv.kv", "kv")


def test_long_loop(tmp_path: Path) -> None:
    path = tmp_path / "counting.py"
    path.write_text(agreement.COUNTING)
    bound = BoundSpec(load_file(path), {})
    evaluator = Evaluator(bound, ConcreteDomain())
    assert evaluator.action([9_000], bound.actions[0], ()).cells == (9_000,)
