"""A spec unrolled for Z3: at every length of path the states are those that the interpreter reaches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.prove.solver import z3
from fencepost.checker.prove.terms import Term
from fencepost.checker.prove.unroll import Unrolled
from fencepost.spec.lang import BoundSpec, State, load_file, load_module
from fencepost.spec.lang.symmetry import Symmetry

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests" / "models" / "specs"
KVFENCE = ROOT / "benchmarks" / "kvfence.py"
TINY = {"requests": 2, "blocks": 2, "steps": 2, "per_request": 2}
CASES: list[tuple[Path, dict[str, int | str], int]] = [
    (KVFENCE, {**TINY, "fence": 1}, 4),
    (KVFENCE, {**TINY, "fence": 0}, 4),
    (MODELS / "vacuity.py", {"empty": "action"}, 3),
    *((path, {}, 4) for path in sorted(MODELS.glob("*.py")) if path.stem != "spec_errors"),
]


def levels(bound: BoundSpec, depth: int) -> list[set[State]]:
    """The states after exactly so many transitions."""
    found = [{state for _, _, state in bound.initial()}]
    for _ in range(depth):
        found.append({after for state in found[-1] for _, _, after in bound.transitions(state)})
    return found


def states(unrolled: Unrolled, solver: Any, at: int) -> set[State]:
    """Every state of a frame that the solver finds, one after the other."""
    found: set[State] = set()
    solver.push()
    while solver.check() == z3.sat:
        model = solver.model()
        start, path = unrolled.path(model)
        state = unrolled.initial(start)[2]
        for rule, arguments in path[:at]:
            after = unrolled.bound.after(state, rule, arguments)
            assert after is not None, f"{rule.name}{arguments} is disabled"
            state = after
        found.add(state)
        solver.add(z3.Not(z3.And([z3.BoolVal(True), *equal(unrolled, unrolled.frames[at], state)])))
    solver.pop()
    return found


def equal(unrolled: Unrolled, cells: tuple[Term, ...], state: State) -> list[Any]:
    """That cells are those of a state."""
    made: list[Any] = []
    for cell, value in zip(cells, unrolled.evaluator.cells(state), strict=True):
        if cell.sort == "set":
            width = max(len(cell.args), len(value.args))
            pairs = [(unrolled.terms.has(cell, i), unrolled.terms.has(value, i)) for i in range(width)]
        else:
            pairs = [(cell, value)]
        made += [unrolled.bits.same(one, other) for one, other in pairs]
    return made


@pytest.mark.parametrize(("path", "bounds", "depth"), CASES)
def test_states_at_every_depth(path: Path, bounds: dict[str, int | str], depth: int) -> None:
    bound = BoundSpec(load_file(path), bounds)
    solver = z3.SolverFor("QF_FD")
    unrolled = Unrolled(bound, solver.add, symmetry=False)
    for at, expected in enumerate(levels(bound, depth)):
        if at:
            unrolled.extend()
        assert states(unrolled, solver, at) == expected


@pytest.mark.parametrize(("path", "bounds", "depth"), CASES)
def test_with_symmetry_none_is_lost_but_for_names(path: Path, bounds: dict[str, int | str], depth: int) -> None:
    bound = BoundSpec(load_file(path), bounds)
    symmetry = Symmetry(bound.shape, bound.permutable())
    solver = z3.SolverFor("QF_FD")
    unrolled = Unrolled(bound, solver.add)
    for at, expected in enumerate(levels(bound, depth)):
        if at:
            unrolled.extend()
        found = states(unrolled, solver, at)
        assert found <= expected
        assert {symmetry.canonical(state) for state in found} == {symmetry.canonical(state) for state in expected}


def test_the_kv_spec_a_few_steps_deep() -> None:
    bounds = {"requests": 2, "blocks": 2, "prompt-tokens": 1, "max-tokens": 1, "kv-role": "kv_consumer", "remote-tokens": 1}
    bound = BoundSpec(load_module("fencepost.spec.kv.kv", "kv"), bounds)
    solver = z3.SolverFor("QF_FD")
    unrolled = Unrolled(bound, solver.add, symmetry=False)
    for at, expected in enumerate(levels(bound, 4)):
        if at:
            unrolled.extend()
        assert states(unrolled, solver, at) == expected
