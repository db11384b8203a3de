"""Actions and properties in single states: interpreter, compiled code, terms, bit-vectors and integers say the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.explore.native.stepper import Stepper
from fencepost.checker.prove.bits import Bits
from fencepost.checker.prove.integers import Integers
from fencepost.checker.prove.solver import z3
from fencepost.checker.prove.terms import Term, Terms, assignment, evaluate, symbolic_cells
from fencepost.spec.lang import BoundSpec, Property, Rule, SpecError, State, load_file, load_module
from fencepost.spec.lang.evaluate import Evaluator, Obligation, Outcome
from hypothesis import given, settings
from hypothesis import strategies as st

from ..lang import agreement

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests" / "models" / "specs"
CASES: dict[str, tuple[Path | None, dict[str, int | str]]] = {
    **{path.stem: (path, {}) for path in sorted(MODELS.glob("*.py"))},
    "everything": (ROOT / "tests" / "lang" / "specs" / "everything.py", {"people": 2, "seats": 2}),
    "kvfence": (ROOT / "benchmarks" / "kvfence.py", {"requests": 2, "blocks": 2, "steps": 2, "per_request": 2}),
    "kv": (None, {"requests": 2, "blocks": 2, "prompt-tokens": 1, "kv-role": "kv_both", "remote-tokens": 1}),
}


def bound_of(name: str) -> BoundSpec:
    """The spec of a case at its bounds."""
    path, bounds = CASES[name]
    return BoundSpec(load_module("fencepost.spec.kv.kv", "kv") if path is None else load_file(path), bounds)


class Symbolic:
    """A spec evaluated from a state of which only the ranges are known, each action and property once."""

    def __init__(self, name: str) -> None:
        self.bound, self.terms = bound_of(name), Terms()
        self.evaluator = Evaluator(self.bound, self.terms)
        self.cells, self.next = (symbolic_cells(self.bound, self.terms, mark) for mark in ("", "t"))
        self.stepper = Stepper(self.bound, symmetry=False)
        self.lowerings: tuple[Bits, ...] = (Bits(), Integers())
        self.reached = agreement.reached(self.bound, 200)

    @cache  # noqa: B019 - one for each case, for as long as the tests run
    def outcome(self, rule: Rule, args: tuple[int, ...]) -> Outcome[Term]:
        """What an action instance does."""
        return self.evaluator.action(self.cells, rule, self.evaluator.arguments(rule, args))

    @cache  # noqa: B019
    def holds(self, prop: Property) -> tuple[Term, tuple[Obligation[Term], ...]]:
        """What a property says."""
        return self.evaluator.holds(prop, self.cells, self.next if prop.kind == "step" else None)

    def check(self, roots: Sequence[Term], at: dict[str, int], expected: Sequence[int]) -> None:
        """Assert that terms have these values where their variables have those."""
        assert tuple(evaluate(roots, at)) == tuple(expected)
        for lowering in self.lowerings:
            wanted = [self._is(lowering, root, value) for root, value in zip(roots, expected, strict=True)]
            pairs = [pair for cell in (*self.cells, *self.next) for pair in self._pairs(lowering, cell, at)]
            assert z3.is_true(z3.simplify(z3.substitute(z3.And(z3.BoolVal(True), *wanted), *pairs)))

    def _is(self, lowering: Bits, root: Term, value: int) -> Any:
        if root.sort == "set":
            members = [self._is(lowering, member, value >> i & 1) for i, member in enumerate(root.args)]
            return z3.And(z3.BoolVal(value >> len(members) == 0), *members)
        return lowering.same(root, self.terms.truth(bool(value)) if root.sort == "truth" else self.terms.number(value))

    def _pairs(self, lowering: Bits, cell: Term, at: dict[str, int]) -> list[tuple[Any, Any]]:
        parts = cell.args if cell.sort == "set" else (cell,)
        variables = [part for part in parts if part.op == "variable" and part.value in at]
        made = [(lowering.of(part), at[part.value]) for part in variables]
        return [(one, z3.BoolVal(bool(value)) if z3.is_bool(one) else one.sort().cast(value)) for one, value in made]


symbolic = cache(Symbolic)


def state_of(case: Symbolic, choose: random.Random) -> State:
    """A reachable state, or any."""
    return choose.choice(case.reached) if choose.random() < 0.5 else agreement.random_state(case.bound.shape, choose)


def compiled(case: Symbolic, state: State, rule: Rule, args: tuple[int, ...]) -> tuple[str, State | None]:
    """What compiled code does: as `agreement.expected`."""
    try:
        after = case.stepper.after(state, rule, args)
    except SpecError:
        return "error", None
    return ("disabled", None) if after is None else ("enabled", after)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(choose=st.randoms(use_true_random=False))
def test_an_action_does_the_same_everywhere(name: str, choose: random.Random) -> None:
    case = symbolic(name)
    state, rule = state_of(case, choose), choose.choice(case.bound.actions)
    args = tuple(choose.choice(domain) for domain in rule.domains)
    expected = agreement.expected(case.bound, rule, args, state)
    assert compiled(case, state, rule, args) == expected
    made, at = case.outcome(rule, args), assignment(case.bound, state)
    conditions = [o.condition for o in made.obligations]
    fine = all(evaluate(conditions, at))
    assert fine == (expected[0] != "error")
    case.check(conditions, at, evaluate(conditions, at))
    if fine:
        case.check([made.enabled], at, [int(expected[0] == "enabled")])
    if expected[1] is not None:
        case.check(made.cells, at, expected[1])


@pytest.mark.parametrize("name", [name for name in CASES if bound_of(name).properties])
@settings(max_examples=30, deadline=None, derandomize=True)
@given(choose=st.randoms(use_true_random=False))
def test_a_property_says_the_same_everywhere(name: str, choose: random.Random) -> None:
    case = symbolic(name)
    state, prop = state_of(case, choose), choose.choice(case.bound.properties)
    after = state_of(case, choose) if prop.kind == "step" else None
    holds, obligations = case.holds(prop)
    at = assignment(case.bound, state) | ({} if after is None else assignment(case.bound, after, "t"))
    conditions = [o.condition for o in obligations]
    fine, expected = all(evaluate(conditions, at)), agreement.truth(case.bound, prop, state, after)
    assert fine == (expected != "error")
    case.check(conditions, at, evaluate(conditions, at))
    if fine:
        case.check([holds], at, [int(expected == "True")])
