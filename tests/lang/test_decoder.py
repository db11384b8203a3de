"""The generated decoder of a shape does the same as `decode`, for large shapes too."""

import random
import time
from enum import IntEnum

import pytest
from fencepost.spec.lang import BoundSpec, load_module
from fencepost.spec.lang.decoder import decoder
from fencepost.spec.lang.layout import MAX_CELLS, ArrayShape, Leaf, RecordShape, SeqShape, SetShape, Shape, State, decode
from hypothesis import given, settings
from hypothesis import strategies as st

from . import agreement
from .shapes import cases, member, record, states


class Kind(IntEnum):
    IDLE = 0
    BUSY = 1
    DONE = 2


ENTRY = record(
    n=Leaf("int", -2, 3),
    kind=Leaf("enum", 0, 2, enum=Kind),
    next=Leaf("enum", -1, 2, maybe=True, enum=Kind),
    who=member("requests", 5, maybe=True),
    far=Leaf("int", -1, 100_000, maybe=True),
    on=Leaf("bool", 0, 1),
    held=SetShape("blocks", 48),
)


def check(shape: Shape, every: list[State]) -> None:
    """Assert the same values of the same types: 0 == False, and neither may stand for the other."""
    made = decoder(shape)
    for state in every:
        assert repr(made(state)) == repr(decode(shape, state))
        assert made(state) == decode(shape, state)


@settings(max_examples=60, deadline=None)
@given(cases(), st.data())
def test_random_shapes(case: tuple[Shape, dict[str, int], State], data: st.DataObject) -> None:
    shape, _, first = case
    check(shape, [first, *(data.draw(states(shape, busy)) for busy in (1, 5, 10))])


@pytest.mark.parametrize("count", [0, 1, 3, 40])
def test_all_kinds_of_cells_in_arrays_and_sequences(count: int) -> None:
    inner = record(
        row=ArrayShape(count, ENTRY, "requests"), queue=SeqShape(count, ENTRY), numbers=SeqShape(count, Leaf("int", 0, 9))
    )
    shape = record(
        one=ENTRY,
        many=ArrayShape(count, inner, "blocks"),
        line=SeqShape(2, inner),
        kinds=ArrayShape(count, Leaf("enum", 0, 2, enum=Kind), None),
        flags=SeqShape(count, Leaf("bool", 0, 1)),
        sets=SeqShape(count, SetShape("blocks", 60)),
        numbers=ArrayShape(count, Leaf("int", 5, 9), None),
        nothing=ArrayShape(count, RecordShape("Empty", (), 0), None),
        tables=ArrayShape(count, SeqShape(count, member("blocks", 7)), "requests"),
    )
    choose = random.Random(count)
    check(shape, [shape.blank, *(agreement.random_state(shape, choose) for _ in range(10))])


def test_what_is_decoded_is_new_each_time() -> None:
    shape = record(queue=SeqShape(2, Leaf("int", 0, 3)), row=ArrayShape(2, Leaf("int", 0, 3), None))
    made = decoder(shape)
    made((1, 2, 0, 1, 1))["queue"].append(7)
    assert made((1, 2, 0, 1, 1)) == {"queue": [2], "row": [1, 1]}


def test_large_shapes_have_short_sources() -> None:
    shape = record(pool=ArrayShape(20, ArrayShape(MAX_CELLS // 20 // ENTRY.size, ENTRY, None), "requests"))
    begin = time.process_time()
    made = decoder(shape)
    assert time.process_time() - begin < 0.5
    assert len(made.__code__.co_code) < 2000
    choose = random.Random(0)
    check(shape, [agreement.random_state(shape, choose)])


def test_it_is_many_times_faster() -> None:
    bound = BoundSpec(load_module("fencepost.spec.kv.kv", "kv"), {"requests": 3, "blocks": 5})
    state = bound.initial()[0][2]
    made = decoder(bound.shape)
    seconds: dict[bool, float] = {}
    for generated in (False, True):
        rounds: list[float] = []
        for _ in range(5):
            begin = time.perf_counter()
            for _ in range(50):
                made(state) if generated else decode(bound.shape, state)
            rounds.append(time.perf_counter() - begin)
        seconds[generated] = min(rounds)
    assert seconds[True] < seconds[False] / 4
