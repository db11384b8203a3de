"""Compiled steps from single states say what the interpreter says; the names of a representative lead to it."""

import ctypes
import itertools
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from fencepost.checker.explore.native.canon import canon_source
from fencepost.checker.explore.native.machine import Unit, build
from fencepost.checker.explore.native.pack import CellLayout
from fencepost.checker.explore.native.stepper import Stepper, cell_struct
from fencepost.spec.lang import BoundsError, BoundSpec, Rule, SpecError, State, load_file, load_module
from fencepost.spec.lang.bind import Arguments
from fencepost.spec.lang.layout import ArrayShape, SetShape, Shape
from fencepost.spec.lang.symmetry import Symmetry
from hypothesis import given, settings
from hypothesis import strategies as st

from ...lang import agreement
from ...lang.shapes import Permutations, cases, record, states
from ...models.random_specs import Writer
from ...models.test_random_specs import accepted
from .test_canon import KV, KV_SIZES, Canonical

Successors = list[tuple[Rule, Arguments, State]]

TESTS = Path(__file__).resolve().parents[2]
MODELS = TESTS / "models" / "specs"
EVERYTHING = TESTS / "lang" / "specs" / "everything.py"
CONSUMER: dict[str, int | str] = {
    "kv-role": "kv_consumer",
    "requests": 3,
    "blocks": 5,
    "prompt-tokens": 2,
    "prompt-tokens-least": 2,
    "remote-tokens": 2,
    "max-num-batched-tokens": 3,
}
LARGE: dict[str, int | str] = {"requests": 48, "blocks": 512, "block-size": 4, "prompt-tokens": 40, "steps-in-flight": 3}


def kv(at: dict[str, int | str], *, enumerable: bool = True) -> BoundSpec:
    return BoundSpec(load_module("fencepost.spec.kv.kv", "kv"), at, enumerable=enumerable)


Outcome = State | Successors | tuple[str, str, object] | None


def outcome(run: Callable[..., State | Successors | None], *args: object) -> Outcome:
    """What a call returns, or the spec error that it raises."""
    try:
        return run(*args)
    except SpecError as error:
        return "error", error.rule, error.place


def listed(bound: BoundSpec, state: State) -> Successors:
    """The successors as the interpreter finds them."""
    return list(bound.transitions(state))


def shuffled(sizes: dict[str, int], choose: random.Random) -> Permutations:
    """A permutation for each index."""
    return {name: tuple(choose.sample(range(size), size)) for name, size in sizes.items()}


def compare(bound: BoundSpec, states: list[State]) -> tuple[int, int]:
    """Assert agreement on every action instance in every state; returns how many successors and errors there were."""
    stepper, symmetry = Stepper(bound), Symmetry(bound.shape, bound.permutable())
    choose = random.Random(0)
    found = errors = 0
    for state in states:
        assert outcome(stepper.successors, state) == outcome(listed, bound, state)
        for rule in bound.actions:
            for args in rule.choices():
                after = outcome(bound.after, state, rule, args)
                assert outcome(stepper.after, state, rule, args) == after
                found, errors = found + (after is not None), errors + (after is not None and after[0] == "error")
        form, names = stepper.canonical(state)
        assert symmetry.permute(state, names) == form
        other = symmetry.permute(state, shuffled(bound.permutable(), choose))
        assert stepper.canonical(other)[0] == form
    return found - errors, errors


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.py")), ids=lambda path: path.stem)
def test_models(path: Path) -> None:
    bound = BoundSpec(load_file(path), {})
    found, _ = compare(bound, agreement.reached(bound, 30))
    assert found


@pytest.mark.parametrize("kind", ["above", "outside-sequence", "overflow-append", "none-index", "zero"])
def test_spec_errors_are_those_of_the_interpreter(kind: str) -> None:
    bound = BoundSpec(load_file(MODELS / "spec_errors.py"), {"kind": kind})
    _, errors = compare(bound, agreement.reached(bound, 30))
    assert errors


def test_all_of_the_language_in_any_state() -> None:
    bound = BoundSpec(load_file(EVERYTHING), {})
    found, errors = compare(bound, agreement.random_states(bound, 30))
    assert found > 100
    assert errors > 20


@pytest.mark.parametrize("seed", range(4))
def test_random_specs(tmp_path: Path, seed: int) -> None:
    spec = accepted(Writer(random.Random(seed).choice).spec(), tmp_path)
    assert spec is not None
    bound = BoundSpec(spec, {"reqs": 2, "blks": 3})
    compare(bound, agreement.random_states(bound, 20))


def test_a_walk_through_the_kv_spec() -> None:
    bound = kv(CONSUMER)
    stepper, symmetry = Stepper(bound), Symmetry(bound.shape, bound.permutable())
    choose = random.Random(1)
    state = first = bound.initial()[0][2]
    taken: set[str] = set()
    for number in range(1500):
        found = stepper.successors(state)
        assert found == listed(bound, state)
        form, names = stepper.canonical(state)
        assert symmetry.permute(state, names) == form
        assert symmetry.canonical(form) == symmetry.canonical(state)
        assert stepper.canonical(symmetry.permute(state, shuffled(bound.permutable(), choose)))[0] == form
        rule, args, after = choose.choice(found)
        assert stepper.after(state, rule, args) == after
        taken.add(rule.name)
        state = after if number % 100 else first
    assert taken == {rule.name for rule in bound.actions}


def test_more_instances_than_can_be_listed() -> None:
    bound = kv(LARGE, enumerable=False)
    stepper = Stepper(bound, symmetry=False)
    choose = random.Random(1)
    state = bound.initial()[0][2]
    taken: set[str] = set()
    for _ in range(600):
        rule = choose.choice(bound.actions)
        args = tuple(choose.getrandbits(48) if len(domain) > 1 << 30 else choose.choice(domain) for domain in rule.domains)
        after = stepper.after(state, rule, args)
        assert after == bound.after(state, rule, args)
        if after is not None:
            state = after
            taken.add(rule.name)
    assert taken >= {"submit", "schedule", "run_step", "abort"}
    assert stepper.canonical(state)[0] == state
    with pytest.raises(ValueError, match="too many to list"):
        stepper.successors(state)


COUNTER = '''
"""Many choices."""
from fencepost.spec.lang import Array, Bool, Index, Int, SetOf, action, init, require, state

SEATS = Index("seats", default=3)


@state
class World:
    n: Int(-3, 70_000)
    far: Int(-5_000_000_000, 5_000_000_000)
    taken: Array[SEATS, Bool]


@init
def start(s, n: Int(0, 1)):
    """At 0 or 1."""
    s.n = n


@action
def go(s, by: Int(-3, 400), back: Bool):
    """A way."""
    require(s.n + by * 150 >= 0)
    s.n += by * 150
    s.far -= by * 10_000_000
    require(not back or by > 398)


@action
def sit(s, who: SEATS):
    """Takes a seat."""
    require(not s.taken[who])
    s.taken[who] = True


@action
def rise(s, who: SetOf[SEATS]):
    """Many rise."""
    require(len(who) > 0 and all(s.taken[x] for x in who))
    for x in who:
        s.taken[x] = False
'''


def counter(tmp_path: Path, seats: int = 3, *, enumerable: bool = True) -> BoundSpec:
    path = tmp_path / "many_choices.py"
    path.write_text(COUNTER)
    return BoundSpec(load_file(path), {"seats": seats}, enumerable=enumerable)


def test_the_buffer_grows_and_wide_cells_are_kept(tmp_path: Path) -> None:
    bound = counter(tmp_path)
    stepper = Stepper(bound)
    state = (450, 1, 1, 0, 1)
    found = stepper.successors(state)
    assert found == listed(bound, state)
    assert len(found) == 404 + 2 + 1 + 3
    assert min(after[1] for _, _, after in found) == 1 - 400 * 10_000_000
    assert stepper.successors(found[7][2]) == list(bound.transitions(found[7][2]))


def test_what_is_no_action_instance_is_left_to_the_interpreter(tmp_path: Path) -> None:
    bound = counter(tmp_path)
    stepper = Stepper(bound)
    start, go = bound.inits[0], bound.actions[0]
    assert stepper.after(bound.shape.blank, start, (1,)) == (1, 0, 0, 0, 0)
    assert stepper.after(bound.shape.blank, go, (401, 0)) == bound.after(bound.shape.blank, go, (401, 0))
    with pytest.raises(ValueError, match="shorter"):
        stepper.after(bound.shape.blank, go, (1,))


def test_more_than_63_members(tmp_path: Path) -> None:
    path = tmp_path / "many_seats.py"
    path.write_text(COUNTER.split("@action\ndef rise")[0])
    bound = BoundSpec(load_file(path), {"seats": 100})
    with pytest.raises(BoundsError, match="seats has 100 members, and symmetry in the native engine takes 63 at most"):
        Stepper(bound)
    stepper = Stepper(bound, symmetry=False)
    state = bound.initial()[0][2]
    assert stepper.successors(state) == listed(bound, state)
    assert stepper.canonical(state) == (state, {"seats": tuple(range(100))})


class Named:
    """The compiled `canon` of a shape that says the permutation too."""

    def __init__(self, shape: Shape, sizes: dict[str, int]) -> None:
        self.sizes, self.cells = sizes, cell_struct(CellLayout(shape))
        text = canon_source(shape, sizes, with_names=True)
        self._canon = build([Unit("canon", text)], ["canon"]).function("canon")

    def __call__(self, state: State) -> tuple[State, Permutations]:
        cells = ctypes.create_string_buffer(self.cells.pack(*state), self.cells.size)
        out = ctypes.create_string_buffer(self.cells.size)
        ranks = (ctypes.c_int64 * sum(self.sizes.values()))()
        self._canon(*(ctypes.addressof(one) for one in (cells, out, ranks)))
        left = iter(ranks)
        names = {name: tuple(itertools.islice(left, size)) for name, size in self.sizes.items()}
        return self.cells.unpack(out.raw), names


def check_named(shape: Shape, sizes: dict[str, int], every: list[State]) -> None:
    named, canonical, symmetry = Named(shape, sizes), Canonical(shape, sizes), Symmetry(shape, sizes)
    for state in every:
        form, names = named(state)
        assert form == canonical(state)
        assert symmetry.permute(state, names) == form


@settings(max_examples=8, deadline=None)
@given(cases(), st.data())
def test_names_lead_to_the_form_of_the_search(case: tuple[Shape, dict[str, int], State], data: st.DataObject) -> None:
    shape, sizes, first = case
    if shape.size:
        check_named(shape, sizes, [first, *(data.draw(states(shape, busy)) for busy in (1, 3, 10))])


def test_names_where_ties_are_searched() -> None:
    choose = random.Random(0)
    shape = record(near=ArrayShape(6, SetShape("nodes", 6), "nodes"))
    rings = [[0b000110, 0b000101, 0b000011, 0b110000, 0b101000, 0b011000], [34, 5, 10, 20, 40, 17]]
    symmetry = Symmetry(shape, {"nodes": 6})
    turned = [symmetry.permute(tuple(ring), shuffled({"nodes": 6}, choose)) for ring in rings for _ in range(30)]
    check_named(shape, {"nodes": 6}, turned)
    check_named(KV, KV_SIZES, [agreement.random_state(KV, choose) for _ in range(100)])


def test_a_set_of_more_than_63_members_as_an_argument(tmp_path: Path) -> None:
    with pytest.raises(BoundsError, match="a set over seats has 64 members"):
        Stepper(counter(tmp_path, 64, enumerable=False), symmetry=False)


def test_an_ordered_index_keeps_its_names() -> None:
    bound = BoundSpec(load_file(MODELS / "ordered.py"), {})
    form, names = Stepper(bound).canonical(bound.initial()[0][2])
    assert set(names) == {"readers"}
    assert form == bound.initial()[0][2]


def test_a_forked_child_goes_on(tmp_path: Path) -> None:
    bound = counter(tmp_path)
    stepper = Stepper(bound)
    state = bound.initial()[0][2]
    expected = stepper.successors(state)
    child = os.fork()
    if child == 0:
        os._exit(0 if stepper.successors(state) == expected and stepper.canonical(state)[0] == state else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert stepper.successors(state) == expected
