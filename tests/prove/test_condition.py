"""Conditions computed from tables are exact, and no shorter one is."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import pytest
from fencepost.checker.prove.condition import Combination, Condition, Feature, minimal
from hypothesis import given, settings
from hypothesis import strategies as st

ROLE = Feature("role", ("none", "reads", "both", "writes"))
STEPS = Feature("steps", (1, 2, 3))
LOADS = Feature("loads", (0, 1))


def table(features: Sequence[Feature], true: Iterable[Combination]) -> dict[Combination, bool]:
    """The truth table over all combinations."""
    return {c: c in set(true) for c in itertools.product(*(f.values for f in features))}


READS = {"reads", "both"}
SOME = {"reads", "both", "writes"}
Box = tuple[set[str], set[int], set[int]]
ALL: Box = ({*SOME, "none"}, {1, 2, 3}, {0, 1})


@pytest.mark.parametrize(
    ("boxes", "words"),
    [
        ([], "never"),
        ([ALL], "always"),
        ([(ALL[0], {2, 3}, {1})], "steps >= 2 and loads = 1"),
        ([(ALL[0], {1, 2}, {0, 1})], "steps <= 2"),
        ([(ALL[0], {1, 3}, {0, 1})], "steps != 2"),
        ([(READS, {2, 3}, {0, 1})], "role in {reads, both} and steps >= 2"),
        ([(SOME, {1, 2, 3}, {0, 1}), (ALL[0], {1, 2, 3}, {1})], "role != none or loads = 1"),
        ([(ALL[0], {1}, {0}), (ALL[0], {2, 3}, {1})], "(steps >= 2 and loads = 1) or (steps = 1 and loads = 0)"),
    ],
)
def test_words(boxes: list[Box], words: str) -> None:
    true = {c for box in boxes for c in itertools.product(*box)}
    assert minimal((ROLE, STEPS, LOADS), table((ROLE, STEPS, LOADS), true)).words == words


def test_a_literal_names_no_value_that_nothing_needs() -> None:
    roles = Feature("role", ("none", "reads", "writes"))
    truth: dict[Combination, bool] = {("none", 0): False, ("reads", 0): False, ("reads", 1): False}
    truth |= {("writes", 0): False, ("writes", 1): True}
    assert minimal((roles, LOADS), truth).words == "role = writes and loads = 1", "not role in {none, writes}"


def test_what_does_not_occur_is_left_open() -> None:
    truth: dict[Combination, bool] = {("none", 0): False, ("reads", 0): False, ("reads", 1): True}
    found = minimal((Feature("role", ("none", "reads")), LOADS), truth)
    assert found.words == "loads = 1", "nobody without a role loads, so the role need not be asked"
    assert found.allowed() == [{"loads": [1]}]


@st.composite
def tables(draw: st.DrawFn) -> tuple[tuple[Feature, ...], dict[Combination, bool]]:
    """Two or three features, and for each combination true, false or not there."""
    sizes = draw(st.sampled_from([(2, 2), (3, 2), (2, 2, 2), (3, 3), (4, 2)]))
    features = tuple(Feature(f"f{i}", tuple(range(size))) for i, size in enumerate(sizes))
    every = list(itertools.product(*(f.values for f in features)))
    given_ = draw(st.lists(st.sampled_from([True, False, None]), min_size=len(every), max_size=len(every)))
    return features, {c: true for c, true in zip(every, given_, strict=True) if true is not None}


def shortest(features: Sequence[Feature], truth: Mapping[Combination, bool]) -> tuple[int, int]:
    """Terms and literals of the shortest condition, by trying all choices of all terms there are."""
    subsets = [
        [frozenset(s) for n in range(1, len(f.values) + 1) for s in itertools.combinations(f.values, n)] for f in features
    ]
    sound = [Condition(tuple(features), (term,)) for term in itertools.product(*subsets)]
    sound = [one for one in sound if not any(one.holds(c) for c, true in truth.items() if not true)]
    masks = {one: frozenset(c for c, true in truth.items() if true and one.holds(c)) for one in sound}
    wanted = frozenset(c for c, true in truth.items() if true)
    for size in range(len(wanted) + 1):
        covers = [
            sum(one.literals for one in some)
            for some in itertools.combinations(sound, size)
            if frozenset[Combination]().union(*(masks[one] for one in some)) == wanted
        ]
        if covers:
            return size, min(covers)
    raise AssertionError("one term for each wanted combination is always enough")


@settings(max_examples=60, deadline=None)
@given(tables())
def test_exact_and_shortest(drawn: tuple[tuple[Feature, ...], dict[Combination, bool]]) -> None:
    features, truth = drawn
    found = minimal(features, truth)
    assert {c: found.holds(c) for c in truth} == truth
    assert (len(found.terms), found.literals) == shortest(features, truth)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.booleans(), min_size=48, max_size=48))
def test_exact_on_a_table_of_the_size_of_real_ones(given_: list[bool]) -> None:
    features = (ROLE, STEPS, LOADS, Feature("caching", (0, 1)))
    truth = dict(zip(table(features, set()), given_, strict=True))
    found = minimal(features, truth)
    assert {c: found.holds(c) for c in truth} == truth
    for gone in range(len(found.terms)):
        fewer = Condition(found.features, found.terms[:gone] + found.terms[gone + 1 :])
        assert any(true and not fewer.holds(c) for c, true in truth.items()), "every term is needed"
