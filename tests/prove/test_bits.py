"""Terms as bit-vectors and as integers: every operation is that of whole numbers, also below zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from fencepost.checker.prove.bits import Bits
from fencepost.checker.prove.integers import Integers
from fencepost.checker.prove.solver import z3
from fencepost.checker.prove.terms import Term, Terms, evaluate
from hypothesis import given, settings
from hypothesis import strategies as st

from .drawn import RANGES, drawn


def value_of(bits: Bits, term: Term, at: dict[str, int], variables: Sequence[Term]) -> int:
    """What Z3 makes of a term where its variables have these values."""
    pairs: list[tuple[Any, Any]] = []
    for variable in variables:
        made = bits.of(variable)
        value = at[variable.value]
        number = z3.IntVal(value) if z3.is_int(made) else z3.BitVecVal(value, made.size()) if z3.is_bv(made) else None
        pairs.append((made, z3.BoolVal(bool(value)) if number is None else number))
    found = z3.simplify(z3.substitute(bits.of(term), *pairs))
    if term.sort == "truth":
        return int(z3.is_true(found))
    if z3.is_int(found):
        return found.as_long()
    return found.as_signed_long() if bits.spans[term.core][0] < 0 else found.as_long()


@pytest.mark.parametrize("lowering", [Bits, Integers])
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_every_operation_is_that_of_whole_numbers(lowering: type[Bits], data: st.DataObject) -> None:
    made, bits = drawn(data), lowering()
    at = made.values(data)
    roots = [*made.numbers, *made.conditions]
    for root, expected in zip(roots, evaluate(roots, at), strict=True):
        assert value_of(bits, root, at, made.variables) == expected


@pytest.mark.parametrize("lowering", [Bits, Integers])
@pytest.mark.parametrize("ends", RANGES)
def test_a_variable_has_the_values_of_its_range(ends: tuple[int, int], lowering: type[Bits]) -> None:
    terms, bits, solver = Terms(), lowering(), z3.Solver()
    variable = terms.variable("v", *ends)
    for fact in bits.within(variable):
        solver.add(fact)
    found: set[int] = set()
    while solver.check() == z3.sat:
        value = bits.value(variable, solver.model())
        found.add(value)
        solver.add(z3.Not(bits.same(variable, terms.number(value))))
    assert found == set(range(ends[0], ends[1] + 1))
