"""Terms as clauses: every operation is that of whole numbers, and every condition is decided as Z3 decides it."""

from __future__ import annotations

import time

import pytest
from fencepost.checker.prove.clauses import FALSE, TRUE
from fencepost.checker.prove.deciders import DECIDERS, BySat, Making
from fencepost.checker.prove.terms import Term, Terms, evaluate
from hypothesis import given, settings
from hypothesis import strategies as st

from .drawn import RANGES, drawn


def is_value(terms: Terms, term: Term, value: int) -> Term:
    """That a term has a value."""
    return terms.equal(term, terms.truth(bool(value)) if term.sort == "truth" else terms.number(value))


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_every_operation_is_that_of_whole_numbers(data: st.DataObject) -> None:
    """Where all variables are set, each term has the bits of its value, and can have no others."""
    made = drawn(data)
    decider = BySat()
    at = made.values(data)
    for variable in made.variables:
        decider.add(made.terms.is_value(variable, at[variable.value]))
    roots = [*made.numbers, *made.conditions]
    values = evaluate(roots, at)
    for root, value in zip(roots, values, strict=True):
        bits = [decider.clauses.of(root)] if root.sort == "truth" else decider.clauses.bits(root)
        for i, bit in enumerate(bits):
            wanted = bit if value >> i & 1 else -bit
            assert decider.solver.solve(assumptions=[wanted])
            assert not decider.solver.solve(assumptions=[-wanted])


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_condition_can_hold_for_one_solver_as_for_the_others(data: st.DataObject) -> None:
    made = drawn(data)
    conditions = data.draw(st.lists(st.sampled_from(made.conditions), min_size=1, max_size=4))
    known = data.draw(st.sampled_from(made.conditions))
    said: dict[str, str] = {}
    for name, maker in DECIDERS.items():
        decider = maker(lambda: False)
        decider.add(known)
        said[name], found = decider.check(conditions, 20.0)
        if found is not None:
            at = {v.value: v.low for v in made.variables} | dict(found)
            assert all(v.low <= at[v.value] <= v.high for v in made.variables)
            assert all(evaluate([known, *conditions], at))
    assert len({*said.values()} - {"unknown"}) <= 1, said
    assert said["sat"] != "unknown"


@pytest.mark.parametrize("ends", RANGES)
def test_a_variable_has_the_values_of_its_range(ends: tuple[int, int]) -> None:
    terms, decider = Terms(), BySat()
    variable = terms.variable("v", *ends)
    decider.clauses.bits(variable)
    found: set[int] = set()
    while (model := decider.check([], 5.0)[1]) is not None:
        found.add(model["v"])
        decider.add(terms.negation(terms.equal(variable, terms.number(model["v"]))))
    assert found == set(range(ends[0], ends[1] + 1))


def test_gates_are_what_they_say() -> None:
    """Of all literals of two variables and the constants, for every way to set the variables."""
    literals = [TRUE, FALSE, 2, -2, 3, -3, 4, -4]
    for number in range(8):
        decider = BySat()
        gates = decider.clauses.gates
        assert [gates.fresh() for _ in range(3)] == [2, 3, 4]
        holds = {TRUE: True} | {2 + i: bool(number >> i & 1) for i in range(3)}
        holds |= {-one: not value for one, value in holds.items()}
        decider.solver.append_formula([[one if holds[one] else -one] for one in (2, 3, 4)])
        for a in literals:
            for b in literals:
                expected = [(gates.both(a, b), holds[a] and holds[b]), (gates.differ(a, b), holds[a] != holds[b])]
                for c in literals:
                    expected.append((gates.choose(c, a, b), holds[a] if holds[c] else holds[b]))
                    expected.append((gates.every([a, b, c]), holds[a] and holds[b] and holds[c]))
                for made, value in expected:
                    assert decider.solver.solve(assumptions=[made if value else -made])
                    assert not decider.solver.solve(assumptions=[-made if value else made])


def pigeons(terms: Terms, count: int) -> list[Term]:
    """One more than there are holes, each in one: a SAT solver takes for ever to see that it cannot be."""
    places = [terms.variable(f"p{i}", 0, count - 2) for i in range(count)]
    return [terms.negation(terms.equal(a, b)) for i, a in enumerate(places) for b in places[:i]]


@pytest.mark.parametrize("maker", DECIDERS.values(), ids=DECIDERS)
def test_no_answer_in_time_is_unknown(maker: Making) -> None:
    terms = Terms()
    decider = maker(lambda: False)
    for part in pigeons(terms, 14):
        decider.add(part)
    begun = time.monotonic()
    assert decider.check([], 0.3) == ("unknown", None)
    assert time.monotonic() - begun < 30


def test_a_search_is_stopped() -> None:
    terms, asked = Terms(), list[float]()

    def stopped() -> bool:
        asked.append(time.monotonic())
        return len(asked) == 2

    decider = BySat(stopped)
    for part in pigeons(terms, 14):
        decider.add(part)
    assert decider.check([], 3_600.0) == ("unknown", None)
    assert len(asked) == 2
