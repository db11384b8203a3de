"""Finite evaluation: every reachable state at small sizes; and solver and evaluation agree on structures drawn at random."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest
from fencepost.checker.prove.protocol_fence import WEAKER
from fencepost.checker.prove.protocol_solver import Symbols, as_member, as_tuples, at_most, sort_of
from fencepost.checker.prove.solver import z3
from fencepost.spec.fence.declare import Protocol
from fencepost.spec.fence.finite import Argument, Finite, State
from fencepost.spec.fence.logic import Action, Claim, Formula, LogicError, Parameter, Sort
from fencepost.spec.fence.protocol import Block, Request, Step, fence
from fencepost.spec.fence.queue import Block as Queued
from fencepost.spec.fence.queue import Moment, queue
from fencepost.spec.fence.runs import shortest
from hypothesis import given, settings
from hypothesis import strategies as st

REACHED = {(1, 1, 1): 50, (2, 1, 1): 240, (1, 2, 1): 658, (1, 1, 2): 377}
"""States that can be reached with so many requests, blocks and steps."""
BIG = {(2, 1, 2): 3193, (2, 2, 1): 16678, (1, 1, 3): 2490}
SIZES: dict[Protocol, dict[type[Sort], int]] = {
    fence: {Request: 2, Block: 2, Step: 3},
    queue: {Queued: 3, Moment: 3},
}


def sized(requests: int, blocks: int, steps: int) -> dict[type[Sort], int]:
    """Sizes of the sorts of the fence protocol."""
    return {Request: requests, Block: blocks, Step: steps}


def every_state_is_right(finite: Finite) -> int:
    """Check invariant, axioms and claims in every reachable state, and return how many there are."""
    whole, taken, states = finite.protocol, Counter[str](), 0
    for state, out in finite.reachable():
        states += 1
        assert finite.assumed(state)
        assert finite.violated(whole.conjuncts.values(), state) == []
        taken.update(action.name for action, _, after in out if after != state)
    assert set(taken) == set(whole.actions)
    return states


@pytest.mark.parametrize("sizes", REACHED)
def test_every_reachable_state_satisfies_the_invariant(sizes: tuple[int, int, int]) -> None:
    assert every_state_is_right(Finite(fence, sized(*sizes))) == REACHED[sizes]


@pytest.mark.slow
@pytest.mark.parametrize("sizes", BIG)
def test_every_reachable_state_satisfies_the_invariant_at_more_sizes(sizes: tuple[int, int, int]) -> None:
    assert every_state_is_right(Finite(fence, sized(*sizes))) == BIG[sizes]


@pytest.mark.parametrize("sizes", REACHED)
def test_no_run_violates_a_claim(sizes: tuple[int, int, int]) -> None:
    assert shortest(Finite(fence, sized(*sizes))) is None


def test_the_weaker_axiom_reaches_more_states() -> None:
    assert every_state_is_right(Finite(WEAKER, sized(1, 1, 2))) > REACHED[1, 1, 2]


@st.composite
def moments(draw: st.DrawFn, whole: Protocol) -> tuple[Finite, State, Action, tuple[Argument, ...]]:
    """A state, whether reachable or not, and an action with arguments."""
    finite = Finite(whole, {sort: draw(st.integers(1, most)) for sort, most in SIZES[whole].items()})
    state = tuple(draw(st.frozensets(st.sampled_from(finite.tuples(relation)))) for relation in finite.relations)
    action = draw(st.sampled_from(list(whole.actions.values())))
    arguments: list[Argument] = []
    for parameter in action.parameters:
        if isinstance(parameter, Sort):
            arguments.append(draw(st.integers(0, finite.sizes[type(parameter)] - 1)))
        else:
            arguments.append(draw(st.frozensets(st.sampled_from(finite.tuples(parameter)))))
    return finite, state, action, tuple(arguments)


def solver_says(finite: Finite, state: State, values: dict[Parameter, Argument], formula: Formula) -> bool:
    """Whether a formula is true in exactly this structure, as the solver sees it."""
    symbols, solver = Symbols(), z3.Solver()
    members = {sort: [z3.Const(f"{sort.__name__}{i}", sort_of(sort)) for i in range(n)] for sort, n in finite.sizes.items()}
    for sort, names in members.items():
        anybody = z3.Const("anybody", sort_of(sort))
        solver.add(z3.Distinct(*names), z3.ForAll([anybody], z3.Or([anybody == name for name in names])))
        if sort.ordered:
            pairs = product(enumerate(names), repeat=2)
            solver.add(*(at_most(sort)(a, b) == z3.BoolVal(i <= j) for (i, a), (j, b) in pairs))
    relations: list[tuple[Any, Any]] = list(zip(finite.relations, state, strict=True))
    for parameter, value in [*relations, *values.items()]:
        if isinstance(parameter, Sort):
            solver.add(symbols.term(parameter, {}) == members[type(parameter)][as_member(value)])
        else:
            for place in finite.tuples(parameter):
                here = symbols.relation(parameter)(*(members[sort][i] for sort, i in zip(parameter.sorts, place, strict=True)))
                solver.add(here == z3.BoolVal(place in as_tuples(value)))
    assert solver.check() == z3.sat
    solver.add(symbols.of(formula))
    return solver.check() == z3.sat


@pytest.mark.parametrize("whole", [fence, queue], ids=lambda whole: whole.name)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_solver_and_evaluation_agree(whole: Protocol, data: st.DataObject) -> None:
    finite, state, action, arguments = data.draw(moments(whole))
    values = dict(zip(action.parameters, arguments, strict=True))
    told: list[Claim] = [*whole.conjuncts.values(), *whole.axioms.values(), *whole.initial_claims(), *WEAKER.axioms.values()]
    claim = data.draw(st.sampled_from([made for made in told if made.name not in WEAKER.axioms or whole is fence]))
    guard = data.draw(st.sampled_from(list(action.guards)))
    after = finite.apply(action, state, arguments)
    assert solver_says(finite, state, values, claim.formula) == finite.holds(claim.formula, state)
    assert solver_says(finite, state, values, action.guards[guard]) == (guard not in finite.refused(action, state, arguments))
    afterwards = action.after(claim.formula)
    assert solver_says(finite, state, values, afterwards) == finite.holds(claim.formula, after)
    assert finite.holds(afterwards, state, values) == finite.holds(claim.formula, after)


def test_a_sort_needs_members() -> None:
    with pytest.raises(LogicError, match="fence has no members of Step; give it at least one"):
        Finite(fence, {Request: 1, Block: 1, Step: 0})


def test_a_variable_without_a_value_is_refused() -> None:
    finite = Finite(fence, sized(1, 1, 1))
    (state,) = finite.initial()
    with pytest.raises(LogicError, match="variable s has no value"):
        finite.holds(fence.relations["issued"](Step("s")), state)


def test_an_action_says_what_it_changes_and_why_it_is_refused() -> None:
    finite = Finite(fence, sized(2, 1, 1))
    (state,) = finite.initial()
    allocate, load = fence.actions["allocate"], fence.actions["load"]
    held = finite.apply(allocate, state, (1, 0))
    names = list(fence.relations)
    assert held[names.index("owns")] == {(1, 0)}
    assert [name for name, a, b in zip(names, state, held, strict=True) if a != b] == ["owns"]
    assert finite.refused(load, state, (0, 0)) == []
    assert finite.refused(load, held, (0, 0)) == ["in-pool"]
    assert finite.refused(fence.actions["free"], state, (0, 0)) == ["owned"]
