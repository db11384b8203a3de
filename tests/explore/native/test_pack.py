"""Native memory of states: the struct of cells and the packed words, in Python and in compiled code alike."""

import ctypes

import pytest
from fencepost.checker.explore.native.machine import Unit, build
from fencepost.checker.explore.native.pack import CellLayout, Packing, cell_range
from fencepost.spec.lang.errors import BoundsError
from fencepost.spec.lang.layout import ArrayShape, Leaf, SeqShape, SetShape, Shape, State, leaves
from hypothesis import given, settings
from hypothesis import strategies as st

from ...lang.shapes import cases, record

WIDE = record(
    narrow=ArrayShape(3, Leaf("int", 5, 5), None),
    below=Leaf("int", -7, 1000),
    whole=Leaf("int", -(1 << 63), (1 << 63) - 1),
    set=SetShape("blocks", 63),
    above=Leaf("int", 70_000, 70_002),
    tiny=Leaf("index", -1, 3, "blocks", True),
)


class Compiled:
    """`pack` and `unpack` of a shape, called on bytes and words."""

    def __init__(self, shape: Shape) -> None:
        self.layout = CellLayout(shape)
        self.packing = Packing(self.layout)
        library = build([Unit("pack", self.packing.source())], ["pack", "unpack"])
        self._pack, self._unpack = library.function("pack"), library.function("unpack")

    def pack(self, state: State) -> tuple[int, ...]:
        cells = ctypes.create_string_buffer(self.layout.to_bytes(state), self.layout.bytes)
        words = (ctypes.c_uint64 * self.packing.words)(*[0xABCDEF] * self.packing.words)
        self._pack(ctypes.addressof(cells), ctypes.addressof(words))
        return tuple(words)

    def unpack(self, packed: tuple[int, ...]) -> State:
        guard = 64
        cells = ctypes.create_string_buffer(b"\xaa" * (self.layout.bytes + guard), self.layout.bytes + guard)
        words = (ctypes.c_uint64 * self.packing.words)(*packed)
        self._unpack(ctypes.addressof(words), ctypes.addressof(cells))
        assert cells.raw[self.layout.bytes :] == b"\xaa" * guard
        return self.layout.from_bytes(cells.raw[: self.layout.bytes])


def check(compiled: Compiled, state: State) -> None:
    packing, layout = compiled.packing, compiled.layout
    packed = packing.to_words(state)
    assert packing.from_words(packed) == state
    assert layout.from_bytes(layout.to_bytes(state)) == state
    assert compiled.pack(state) == packed
    assert compiled.unpack(packed) == state


@settings(max_examples=25, deadline=None)
@given(cases())
def test_compiled_code_packs_as_python_does(case: tuple[Shape, dict[str, int], State]) -> None:
    shape, _, state = case
    if shape.size:
        check(Compiled(shape), state)


def test_extreme_values_of_every_width() -> None:
    compiled = Compiled(WIDE)
    ranges = [cell_range(cell) for _, cell in leaves(WIDE)]
    for state in (tuple(low for low, _ in ranges), tuple(high for _, high in ranges)):
        check(compiled, state)


@settings(deadline=None)
@given(st.data())
def test_values_of_every_width(data: st.DataObject) -> None:
    check(_WIDE, tuple(data.draw(st.integers(*cell_range(cell))) for _, cell in leaves(WIDE)))


_WIDE = Compiled(WIDE)


def test_a_large_state_is_packed_in_parts() -> None:
    shape = record(rows=ArrayShape(1000, record(a=Leaf("int", 0, 5), b=Leaf("int", 0, 900), c=Leaf("int", -1, 2)), None))
    compiled = Compiled(shape)
    assert "pack_1" in compiled.packing.source()
    check(compiled, tuple((i * 7) % 6 if i % 3 == 0 else (i * 31) % 901 if i % 3 == 1 else i % 4 - 1 for i in range(3000)))


def test_elements_lie_at_equal_distances() -> None:
    item = record(a=Leaf("int", 0, 300), b=SeqShape(2, Leaf("int", 0, 1)))
    sequence = SeqShape(4, item)
    shape = record(x=Leaf("bool", 0, 1), q=sequence)
    layout = CellLayout(shape)
    start = layout.field_offset(shape, "q") + layout.head(sequence)
    offsets = [at for at, _ in layout.cells][2:]
    assert (start, layout.stride(sequence)) == (2, 5)
    assert offsets == [start + 5 * i + inside for i in range(4) for inside in (0, 2, 3, 4)]


def test_equal_states_are_equal_words_and_unused_bits_are_zero() -> None:
    packing = Packing(CellLayout(record(a=Leaf("int", 3, 9), b=SetShape("blocks", 5))))
    assert packing.words == 1
    assert packing.to_words((9, 31))[0] < 1 << packing.bits == 1 << 8


def test_a_cell_crosses_words_only_where_that_saves_one() -> None:
    roomy = Packing(CellLayout(record(a=Leaf("int", 0, (1 << 60) - 1), b=Leaf("int", 0, 255))))
    tight = Packing(CellLayout(record(a=ArrayShape(3, Leaf("int", 0, (1 << 42) - 1), None))))
    assert [one.position for one in roomy.placed] == [0, 64]
    assert (tight.words, [one.position for one in tight.placed]) == (2, [0, 42, 84])


def test_values_out_of_range_are_not_packed() -> None:
    with pytest.raises(ValueError, match="4 does not fit"):
        Packing(CellLayout(record(a=Leaf("int", 0, 3)))).to_words((4,))


def test_sets_have_at_most_63_members() -> None:
    with pytest.raises(BoundsError, match="a set over blocks has 64 members, and the native engine takes 63 at most"):
        Packing(CellLayout(record(a=SetShape("blocks", 64))))
