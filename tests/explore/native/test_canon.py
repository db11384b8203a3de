"""The canonical form in compiled code: the same for all relabellings, one of them, and the same orbits as in Python."""

import ctypes
from itertools import combinations, permutations, product

import pytest
from fencepost.checker.explore.native.canon import canon_source
from fencepost.checker.explore.native.machine import Unit, build
from fencepost.checker.explore.native.pack import CellLayout
from fencepost.spec.lang.errors import BoundsError
from fencepost.spec.lang.layout import ArrayShape, Leaf, SeqShape, SetShape, Shape, State, encode
from fencepost.spec.lang.symmetry import Symmetry
from hypothesis import given, settings
from hypothesis import strategies as st

from ...lang.shapes import all_permutations, cases, member, record, states


class Canonical:
    """The compiled `canon` of a shape, called on states."""

    def __init__(self, shape: Shape, sizes: dict[str, int]) -> None:
        self.layout = CellLayout(shape)
        library = build([Unit("canon", canon_source(shape, sizes, self.layout))], ["canon"])
        self._canon = library.function("canon")

    def __call__(self, state: State) -> State:
        before = self.layout.to_bytes(state)
        size = len(before)
        cells = ctypes.create_string_buffer(before, size)
        out = ctypes.create_string_buffer(b"\xaa" * (size + 16), size + 16)
        self._canon(ctypes.addressof(cells), ctypes.addressof(out))
        assert cells.raw == before
        assert out.raw[size:] == b"\xaa" * 16
        return self.layout.from_bytes(out.raw[:size])


def check(canonical: Canonical, symmetry: Symmetry, sizes: dict[str, int], state: State) -> None:
    everything = {symmetry.permute(state, to) for to in all_permutations(sizes)}
    found = canonical(state)
    assert found in everything
    assert {canonical(other) for other in everything} == {found}


@settings(max_examples=15, deadline=None)
@given(cases(), st.data())
def test_canonical_form_is_one_relabelling_and_the_same_for_all(
    case: tuple[Shape, dict[str, int], State], data: st.DataObject
) -> None:
    shape, sizes, first = case
    if not shape.size:
        return
    canonical, symmetry = Canonical(shape, sizes), Symmetry(shape, sizes)
    for state in (first, *(data.draw(states(shape, busy)) for busy in (1, 3, 10))):
        check(canonical, symmetry, sizes, state)


@settings(max_examples=5, deadline=None)
@given(cases())
def test_an_index_that_is_not_reduced_is_left_alone(case: tuple[Shape, dict[str, int], State]) -> None:
    shape, sizes, state = case
    if shape.size:
        reduced = {"blocks": sizes["blocks"]}
        check(Canonical(shape, reduced), Symmetry(shape, reduced), reduced, state)


KV_SIZES = {"requests": 3, "blocks": 4}
KV = record(
    status=ArrayShape(3, Leaf("int", 0, 2), "requests"),
    table=ArrayShape(3, SeqShape(2, member("blocks", 4)), "requests"),
    waiting=SeqShape(3, member("requests", 3)),
    free=SeqShape(4, member("blocks", 4)),
    flight=SeqShape(2, record(owners=SetShape("requests", 3), used=ArrayShape(3, SetShape("blocks", 4), "requests"))),
    owner=ArrayShape(4, member("requests", 3, maybe=True), "blocks"),
    after=ArrayShape(4, member("blocks", 4, maybe=True), "blocks"),
    seen=ArrayShape(3, ArrayShape(4, Leaf("int", 0, 1), "blocks"), "requests"),
)
_KV = Canonical(KV, KV_SIZES)
_KV_SYMMETRY = Symmetry(KV, KV_SIZES)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([0, 1, 2, 4, 8]).flatmap(lambda busy: states(KV, busy)))
def test_states_like_those_of_a_block_pool(state: State) -> None:
    check(_KV, _KV_SYMMETRY, KV_SIZES, state)


@settings(deadline=None)
@given(states(KV, 1), states(KV, 1))
def test_orbits_are_those_of_the_reference(left: State, right: State) -> None:
    assert (_KV(left) == _KV(right)) == (_KV_SYMMETRY.canonical(left) == _KV_SYMMETRY.canonical(right))
    assert _KV_SYMMETRY.canonical(_KV(left)) == _KV_SYMMETRY.canonical(left)


@pytest.mark.parametrize(("nodes", "classes"), [(2, 2), (4, 11), (5, 34)])
def test_graphs_are_counted_up_to_isomorphism(nodes: int, classes: int) -> None:
    # The numbers of graphs with n nodes: https://oeis.org/A000088
    shape = record(near=ArrayShape(nodes, SetShape("nodes", nodes), "nodes"))
    canonical = Canonical(shape, {"nodes": nodes})
    pairs = list(combinations(range(nodes), 2))
    found: set[State] = set()
    for use in product([False, True], repeat=len(pairs)):
        edges = [pair for pair, on in zip(pairs, use, strict=True) if on]
        both = [*edges, *((b, a) for a, b in edges)]
        near = [frozenset(b for a, b in both if a == node) for node in range(nodes)]
        found.add(canonical(encode(shape, {"near": near})))
    assert len(found) == classes


def test_facts_of_three_members() -> None:
    sizes = {"requests": 2, "blocks": 3}
    shape = record(link=ArrayShape(2, ArrayShape(3, member("blocks", 3, maybe=True), "blocks"), "requests"))
    canonical, symmetry = Canonical(shape, sizes), Symmetry(shape, sizes)
    everything = {state: canonical(state) for state in product(range(-1, 3), repeat=6)}
    orbits = {symmetry.canonical(state) for state in everything}
    assert len(set(everything.values())) == len(orbits)
    assert all(everything[form] == form for form in everything.values())


@pytest.mark.parametrize("size", [13, 63])
def test_large_indices(size: int) -> None:
    shape = record(
        queue=SeqShape(size, member("blocks", size)),
        kind=ArrayShape(size, Leaf("int", 0, 2), "blocks"),
        busy=SetShape("blocks", size),
    )
    canonical, symmetry = Canonical(shape, {"blocks": size}), Symmetry(shape, {"blocks": size})
    kind = [i % 3 for i in range(size)]
    state = encode(shape, {"queue": list(range(0, size, 4)), "kind": kind, "busy": frozenset(range(5))})
    turned = symmetry.permute(state, {"blocks": [(i * 2) % size for i in range(size)]})
    assert canonical(state) == canonical(turned)
    assert symmetry.canonical(canonical(state)) == symmetry.canonical(state)


def test_members_that_are_tied_in_pairs_are_found_equal_quickly() -> None:
    sizes = {"requests": 8, "blocks": 8}
    shape = record(held=ArrayShape(8, SeqShape(2, member("blocks", 8)), "requests"))
    canonical = Canonical(shape, sizes)
    forms = {canonical(encode(shape, {"held": [[b] for b in to]})) for to in list(permutations(range(8)))[:2000]}
    assert len(forms) == 1


def test_too_many_members() -> None:
    with pytest.raises(BoundsError, match="blocks has 64 members, and symmetry in the native engine takes 63 at most"):
        canon_source(record(b=member("blocks", 64)), {"blocks": 64})
