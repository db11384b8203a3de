"""Differences are named path by path, and there are some exactly where two values are not equal."""

from __future__ import annotations

from typing import Any

import pytest
from fencepost.checker.conform.differences import ABSENT, differences
from fencepost.traces.driver import ANYTHING
from hypothesis import given
from hypothesis import strategies as st


def shown(spec: Any, implementation: Any) -> list[tuple[str, Any, Any]]:
    return [(d.path, d.spec, d.implementation) for d in differences(spec, implementation)]


@pytest.mark.parametrize(
    ("spec", "implementation", "expected"),
    [
        ({"free": [1, 2]}, {"free": [2, 1]}, [("free", [1, 2], [2, 1])]),
        ({"open": True}, {"open": False}, [("open", True, False)]),
        ({"requests": {"A": {"status": "RUNNING"}}}, {"requests": {"A": {"status": "WAITING"}}},
         [("requests[A].status", "RUNNING", "WAITING")]),
        ({"requests": {0: {"table": [3, 4]}}}, {"requests": {0: {"table": [3]}}}, [("requests[0].table", [3, 4], [3])]),
        ({"tables": [[1], [2, 3]]}, {"tables": [[1], [2]]}, [("tables[1]", [2, 3], [2])]),
        ({"a": 1, "b": 2}, {"b": 3, "c": 4}, [("a", 1, ABSENT), ("b", 2, 3), ("c", ABSENT, 4)]),
        ({"flight": [{"ran": True}]}, {"flight": []}, [("flight[0]", {"ran": True}, ABSENT)]),
        ({"seen": frozenset({1})}, {"seen": frozenset({1, 2})}, [("seen", frozenset({1}), frozenset({1, 2}))]),
        ({"x": [1]}, {"x": (1,)}, [("x", [1], (1,))]),
        ({"x": None}, {"x": {"y": 1}}, [("x", None, {"y": 1})]),
        ((("free", (1,)), ("hidden", (("a", 1), ("b", 2)))), (("free", (1,)), ("hidden", (("a", 1), ("b", 3)))),
         [("hidden.b", 2, 3)]),
        ((("a", 1), ("b", 2)), (("b", 2), ("a", 1)), [("[0]", ("a", 1), ("b", 2)), ("[1]", ("b", 2), ("a", 1))]),
        (((1, 2), (3, 4)), ((1, 2), (3, 5)), [("[1]", (3, 4), (3, 5))]),
        (1, 2, [("value", 1, 2)]),
    ],
)  # fmt: skip
def test_paths(spec: Any, implementation: Any, expected: list[tuple[str, Any, Any]]) -> None:
    assert shown(spec, implementation) == expected


def test_what_is_not_promised_is_not_compared_but_must_be_there() -> None:
    assert shown({"a": [1], "b": 2}, {"a": ANYTHING, "b": 2}) == []
    assert shown({"a": [{"x": 1}, {"x": 2}]}, {"a": [{"x": ANYTHING}, {"x": 3}]}) == [("a[1].x", 2, 3)]
    assert [d.path for d in differences({}, {"a": ANYTHING})] == ["a"]


SCALARS = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(("a", "b"))
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.sampled_from(("x", "Y", 0)), inner, max_size=3)
        | st.frozensets(st.integers(0, 2))
        | st.lists(st.tuples(st.sampled_from(("x", "y", "z")), inner), max_size=3).map(tuple)
    ),
    max_leaves=8,
)


@given(VALUES, VALUES)
def test_there_is_a_difference_exactly_where_values_are_not_equal(one: Any, other: Any) -> None:
    assert bool(differences(one, other)) == (one != other)
    assert not differences(one, one)
