"""With terms, the evaluator says of all states at once what Python says of each."""

from pathlib import Path

import pytest
from fencepost.checker.prove.terms import Term, Terms, assignment, evaluate, reachable, symbolic_cells
from fencepost.spec.lang import BoundSpec, Property, Rule, State, load_file, load_module
from fencepost.spec.lang.evaluate import Evaluator, Outcome, UnboundedLoop

from . import agreement

ROOT = Path(__file__).resolve().parents[2]
EVERYTHING = Path(__file__).parent / "specs" / "everything.py"
KVFENCE = ROOT / "benchmarks" / "kvfence.py"
MODELS = sorted((ROOT / "tests" / "models" / "specs").glob("*.py"))
TINY = {"requests": 2, "blocks": 2, "steps": 2, "per_request": 2}
STATES = 25


class Symbolic:
    """A spec evaluated once, from a state about which only its ranges are known."""

    def __init__(self, bound: BoundSpec) -> None:
        self.bound, self.domain = bound, Terms()
        self.evaluator = Evaluator(bound, self.domain)
        self.cells = symbolic_cells(bound, self.domain)
        self.outcomes: dict[tuple[Rule, tuple[int, ...]], Outcome[Term]] = {}

    def outcome(self, rule: Rule, args: tuple[int, ...]) -> Outcome[Term]:
        """What an action instance does."""
        if (rule, args) not in self.outcomes:
            self.outcomes[rule, args] = self.evaluator.action(self.cells, rule, self.evaluator.arguments(rule, args))
        return self.outcomes[rule, args]

    def tell(self, rule: Rule, args: tuple[int, ...], state: State) -> agreement.Told:
        """The same in one state."""
        made = self.outcome(rule, args)
        roots = [made.enabled, *made.cells, *(o.condition for o in made.obligations)]
        enabled, *rest = evaluate(roots, assignment(self.bound, state))
        return bool(enabled), tuple(rest[: len(state)]), all(rest[len(state) :])

    def check_property(self, prop: Property, states: list[State]) -> None:
        """Assert that a property is said to be what it is in these states."""
        after_cells = symbolic_cells(self.bound, self.domain, "t") if prop.kind == "step" else None
        value, obligations = self.evaluator.holds(prop, self.cells, after_cells)
        for state, after in agreement.pairs(self.bound, prop, states):
            at = assignment(self.bound, state) | ({} if after is None else assignment(self.bound, after, "t"))
            holds, *fine = evaluate([value, *(o.condition for o in obligations)], at)
            assert (str(bool(holds)) if all(fine) else "error") == agreement.truth(self.bound, prop, state, after), prop.name


def compare(bound: BoundSpec, states: list[State]) -> Symbolic:
    """Assert agreement on all actions and properties."""
    symbolic = Symbolic(bound)
    agreement.compare_actions(bound, states, symbolic.tell, {})
    for prop in bound.properties:
        symbolic.check_property(prop, states)
    return symbolic


@pytest.mark.parametrize("mode", ["plain", "odd"])
@pytest.mark.parametrize("size", [1, 3])
def test_all_of_the_language(size: int, mode: str) -> None:
    bound = BoundSpec(load_file(EVERYTHING), {"size": size, "mode": mode, "people": 2, "seats": 2})
    compare(bound, agreement.random_states(bound, STATES))


@pytest.mark.parametrize("fence", [0, 1, 2])
def test_kvfence(fence: int) -> None:
    bound = BoundSpec(load_file(KVFENCE), {**TINY, "fence": fence})
    compare(bound, agreement.reached(bound, STATES))


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_models(path: Path) -> None:
    bound = BoundSpec(load_file(path), {})
    compare(bound, agreement.reached(bound, STATES))


def test_kv() -> None:
    given: dict[str, int | str] = {"requests": 2, "blocks": 3, "kv-role": "kv_both", "remote-tokens": 2}
    bound = BoundSpec(load_module("fencepost.spec.kv.kv", "kv"), given)
    compare(bound, agreement.reached(bound, STATES))


def test_size_of_terms() -> None:
    bound = BoundSpec(load_file(KVFENCE), {"requests": 4, "blocks": 8, "steps": 3, "per_request": 3})
    symbolic = Symbolic(bound)
    roots: list[Term] = []
    for rule in bound.actions:
        for args in rule.choices():
            made = symbolic.outcome(rule, args)
            roots += [made.enabled, *made.cells]
    assert sum(1 for _ in reachable(roots)) < 3_000


def test_loop_without_a_bound_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "counting.py"
    path.write_text(agreement.COUNTING)
    bound = BoundSpec(load_file(path), {})
    with pytest.raises(UnboundedLoop, match=r"counting.py:17: nothing bounds how often this loop runs"):
        Symbolic(bound).outcome(bound.actions[0], ())
