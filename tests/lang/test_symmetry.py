"""The canonical form: the same for all relabellings of a state, and one of them; counts of orbits in small searches."""

from collections.abc import Callable
from itertools import combinations, permutations, product
from pathlib import Path

import pytest
from fencepost.spec.lang.bind import BoundSpec
from fencepost.spec.lang.layout import ArrayShape, Leaf, SeqShape, SetShape, Shape, State, decode, encode
from fencepost.spec.lang.spec import load_file
from fencepost.spec.lang.symmetry import Symmetry
from hypothesis import given, settings
from hypothesis import strategies as st

from .shapes import all_permutations, cases, member, record

KVFENCE = Path(__file__).parents[2] / "benchmarks" / "kvfence.py"


def orbit(symmetry: Symmetry, sizes: dict[str, int], state: State) -> set[State]:
    return {symmetry.permute(state, to) for to in all_permutations(sizes)}


@settings(max_examples=50, deadline=None)
@given(cases())
def test_canonical_form_is_one_relabelling_and_the_same_for_all(case: tuple[Shape, dict[str, int], State]) -> None:
    shape, sizes, state = case
    symmetry = Symmetry(shape, sizes)
    everything = orbit(symmetry, sizes, state)
    canonical = symmetry.canonical(state)
    assert canonical in everything
    assert {symmetry.canonical(other) for other in everything} == {canonical}


@settings(max_examples=50, deadline=None)
@given(cases(), st.data())
def test_permutations_compose_and_can_be_undone(case: tuple[Shape, dict[str, int], State], data: st.DataObject) -> None:
    shape, sizes, state = case
    symmetry = Symmetry(shape, sizes)
    first = {name: data.draw(st.permutations(range(size))) for name, size in sizes.items()}
    second = {name: data.draw(st.permutations(range(size))) for name, size in sizes.items()}
    both = {name: [second[name][x] for x in first[name]] for name in sizes}
    back = {name: [first[name].index(x) for x in range(size)] for name, size in sizes.items()}
    moved = symmetry.permute(state, first)
    assert symmetry.permute(moved, second) == symmetry.permute(state, both)
    assert symmetry.permute(moved, back) == state


@settings(max_examples=50, deadline=None)
@given(cases())
def test_an_index_that_is_not_reduced_is_left_alone(case: tuple[Shape, dict[str, int], State]) -> None:
    shape, sizes, state = case
    symmetry = Symmetry(shape, {"blocks": sizes["blocks"]})
    everything = {symmetry.permute(state, {"blocks": to}) for to in permutations(range(sizes["blocks"]))}
    assert symmetry.canonical(state) in everything
    assert len({symmetry.canonical(other) for other in everything}) == 1


def test_permute_moves_members_everywhere() -> None:
    shape = record(
        status=ArrayShape(3, Leaf("int", 0, 9), "requests"),
        queue=SeqShape(4, member("requests", 3)),
        last=member("requests", 3, maybe=True),
        busy=SetShape("requests", 3),
        cell=member("blocks", 2),
    )
    value = {"status": [7, 8, 9], "queue": [2, 0], "last": None, "busy": frozenset({0}), "cell": 1}
    moved = Symmetry(shape, {"requests": 3}).permute(encode(shape, value), {"requests": (1, 2, 0)})
    wanted = {"status": [9, 7, 8], "queue": [0, 1], "last": None, "busy": frozenset({1}), "cell": 1}
    assert decode(shape, moved) == wanted


def test_permute_refuses_what_is_no_permutation() -> None:
    symmetry = Symmetry(record(r=member("requests", 3)), {"requests": 3})
    with pytest.raises(ValueError, match="not a permutation of the 3 members of requests"):
        symmetry.permute((0,), {"requests": (0, 0, 1)})


def graphs(nodes: int) -> tuple[Shape, Callable[[set[tuple[int, int]]], State]]:
    """A state that is a graph: for each node the set of its neighbours."""
    shape = record(near=ArrayShape(nodes, SetShape("nodes", nodes), "nodes"))

    def state(edges: set[tuple[int, int]]) -> State:
        both = edges | {(b, a) for a, b in edges}
        return encode(shape, {"near": [frozenset(b for a, b in both if a == node) for node in range(nodes)]})

    return shape, state


@pytest.mark.parametrize(("nodes", "classes"), [(1, 1), (2, 2), (3, 4), (4, 11), (5, 34)])
def test_graphs_are_counted_up_to_isomorphism(nodes: int, classes: int) -> None:
    # The numbers of graphs with n nodes: https://oeis.org/A000088
    shape, state = graphs(nodes)
    symmetry = Symmetry(shape, {"nodes": nodes})
    pairs = list(combinations(range(nodes), 2))
    chosen = product([False, True], repeat=len(pairs))
    found = {symmetry.canonical(state({pair for pair, on in zip(pairs, use, strict=True) if on})) for use in chosen}
    assert len(found) == classes


def test_graphs_that_colours_cannot_tell_apart() -> None:
    shape, state = graphs(6)
    symmetry = Symmetry(shape, {"nodes": 6})
    ring = {(i, (i + 1) % 6) for i in range(6)}
    triangles = {(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)}
    assert symmetry.canonical(state(ring)) != symmetry.canonical(state(triangles))
    for edges in (ring, triangles):
        moved = {symmetry.canonical(symmetry.permute(state(edges), {"nodes": to})) for to in permutations(range(6))}
        assert len(moved) == 1


def reachable(bound: BoundSpec, canonical: Callable[[State], State]) -> set[State]:
    seen = {canonical(state) for _, _, state in bound.initial()}
    level = seen
    while level:
        level = {canonical(after) for state in level for _, _, after in bound.transitions(state)} - seen
        seen = seen | level
    return seen


@pytest.mark.parametrize("reduced", [("requests", "blocks"), ("requests",), ("blocks",)])
def test_kvfence_has_as_many_canonical_states_as_orbits(reduced: tuple[str, ...]) -> None:
    bound = BoundSpec(load_file(KVFENCE), {"requests": 2, "blocks": 2, "steps": 2, "per_request": 2, "fence": 1})
    sizes = {name: bound.indices()[name] for name in reduced}
    symmetry = Symmetry(bound.shape, sizes)
    everything = reachable(bound, lambda state: state)
    closed = {other for state in everything for other in orbit(symmetry, sizes, state)}
    orbits = {min(orbit(symmetry, sizes, state)) for state in closed}
    assert len(reachable(bound, symmetry.canonical)) == len(orbits)


@pytest.mark.slow
def test_kvfence_medium_has_13738_canonical_states() -> None:
    bound = BoundSpec(load_file(KVFENCE), {"requests": 3, "blocks": 4, "steps": 3, "per_request": 3, "fence": 1})
    symmetry = Symmetry(bound.shape, {"requests": 3, "blocks": 4})
    assert len(reachable(bound, symmetry.canonical)) == 13_738


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 8), st.integers(0, 3))
def test_many_interchangeable_members_take_no_time(members: int, busy: int) -> None:
    shape = record(held=ArrayShape(members, SeqShape(2, member("blocks", members)), "requests"))
    symmetry = Symmetry(shape, {"requests": members, "blocks": members})
    held = [[i] if i >= busy else [] for i in range(members)]
    canonical = symmetry.canonical(encode(shape, {"held": held}))
    assert canonical == symmetry.canonical(encode(shape, {"held": list(reversed(held))}))
