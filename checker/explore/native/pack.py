"""Where each cell of a state lies in native memory: unpacked, as bytes to work on, and packed, as bits to store.

Unpacked, a state is a struct without padding: each cell takes 1, 2, 4 or 8 bytes by its declared range, and elements
of an array or sequence all have one size, so that multiplication finds them. Packed, a cell takes as many bits
as its range needs and holds its value minus the least one; equal states are equal words, unused bits are 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ....spec.lang.errors import BoundsError
from ....spec.lang.layout import ArrayShape, Leaf, RecordShape, SeqShape, SetShape, Shape, State, leaves

WORD = 64
MAX_SET = 63
_MASK = (1 << WORD) - 1
_CHUNK = 400
"""Cells that one function packs; longer functions take the compiler more than linear time."""


@lru_cache(maxsize=4096)
def cell_range(cell: Leaf | SetShape) -> tuple[int, int]:
    """The least and the greatest value of a cell; `BoundsError` where 64 bits cannot hold it."""
    if isinstance(cell, SetShape):
        if cell.count > MAX_SET:
            raise BoundsError(f"a set over {cell.index} has {cell.count} members, the native engine holds {MAX_SET}")
        return 0, (1 << cell.count) - 1
    if cell.low < -(1 << 63) or cell.high >= 1 << 63:
        raise BoundsError(f"the range {cell.low}..{cell.high} does not fit 64 bits")
    return cell.low, cell.high


@lru_cache(maxsize=4096)
def _form(cell: Leaf | SetShape) -> tuple[int, bool]:
    """Bytes of an unpacked cell, and whether it is signed (only where it can be negative)."""
    low, high = cell_range(cell)
    for width in (1, 2, 4):
        bits = 8 * width
        if low < 0 and low >= -(1 << bits - 1) and high < 1 << bits - 1:
            return width, True
        if low >= 0 and high < 1 << bits:
            return width, False
    return 8, True


@lru_cache(maxsize=4096)
def _size(shape: Shape) -> int:
    match shape:
        case Leaf() | SetShape():
            return _form(shape)[0]
        case ArrayShape(count, item, _):
            return count * _size(item)
        case SeqShape(capacity, item):
            return _size(length_of(shape)) + capacity * _size(item)
        case RecordShape():
            return sum(_size(inner) for _, _, inner in shape.fields)


def length_of(shape: SeqShape) -> Leaf:
    """The cell that holds the length of a sequence."""
    return Leaf("int", 0, shape.capacity)


class CellLayout:
    """The unpacked struct of a shape: byte where its cells lie, and how dialect text reads and writes them."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    @cached_property
    def bytes(self) -> int:
        """Bytes of a whole state, rounded up to 8."""
        return -(-_size(self.shape) // 8) * 8

    @cached_property
    def cells(self) -> tuple[tuple[int, Leaf | SetShape], ...]:
        """Every cell in order: its byte offset and what it holds (the length of a sequence is an int leaf)."""
        at, found = 0, []
        for _, cell in leaves(self.shape):
            found.append((at, cell))
            at += self.width(cell)
        return tuple(found)

    def size(self, shape: Shape) -> int:
        """Bytes of a part of the state; not rounded."""
        return _size(shape)

    def stride(self, shape: ArrayShape | SeqShape) -> int:
        """Bytes from one element of an array or sequence to the next."""
        return _size(shape.item)

    def head(self, shape: ArrayShape | SeqShape) -> int:
        """Bytes before the first element: 0 for an array, the length cell for a sequence."""
        return _size(length_of(shape)) if isinstance(shape, SeqShape) else 0

    def field_offset(self, shape: RecordShape, name: str) -> int:
        """Bytes before a field of a record; `KeyError` if it has no such field."""
        at = 0
        for known, _, inner in shape.fields:
            if known == name:
                return at
            at += _size(inner)
        raise KeyError(name)

    def width(self, cell: Leaf | SetShape) -> int:
        """Bytes of a cell: 1, 2, 4 or 8."""
        return _form(cell)[0]

    def load(self, cell: Leaf | SetShape, address: str) -> str:
        """Dialect text that reads a cell at an address."""
        width, signed = _form(cell)
        return f"load{'' if signed else 'u'}{8 * width}({address})"

    def store(self, cell: Leaf | SetShape, address: str, value: str) -> str:
        """Dialect text that writes a cell at an address."""
        return f"store{8 * _form(cell)[0]}({address}, {value})"

    def to_bytes(self, state: State) -> bytes:
        """The unpacked struct of a state."""
        parts = (
            value.to_bytes(self.width(cell), "little", signed=value < 0)
            for value, (_, cell) in zip(state, self.cells, strict=True)
        )
        return b"".join(parts).ljust(self.bytes, b"\0")

    def from_bytes(self, data: bytes) -> State:
        """The inverse of `to_bytes`."""
        return tuple(
            int.from_bytes(data[at : at + width], "little", signed=signed)
            for at, cell in self.cells
            for width, signed in (_form(cell),)
        )


@dataclass(frozen=True)
class _Bits:
    """A packed cell: its byte offset unpacked, its first bit packed, its bits, its least value, and the cell."""

    offset: int
    position: int
    bits: int
    low: int
    cell: Leaf | SetShape

    @property
    def mask(self) -> int:
        return (1 << self.bits) - 1


def _placed(layout: CellLayout, straddle: bool) -> Iterator[_Bits]:
    position = 0
    for offset, cell in layout.cells:
        low, high = cell_range(cell)
        bits = (high - low).bit_length()
        if not straddle and position % WORD + bits > WORD:
            position += -position % WORD
        yield _Bits(offset, position, bits, low, cell)
        position += bits


def _words(placed: list[_Bits]) -> int:
    return max(1, -(-(placed[-1].position + placed[-1].bits) // WORD)) if placed else 1


class Packing:
    """The packed form of a state; a cell crosses from one word to the next only where that saves a word."""

    def __init__(self, layout: CellLayout) -> None:
        self.layout = layout
        loose, tight = (list(_placed(layout, straddle)) for straddle in (False, True))
        self.placed = loose if _words(loose) == _words(tight) else tight
        self.words = _words(self.placed)
        """64-bit words of a packed state."""

    @property
    def bits(self) -> int:
        """Bits that carry information."""
        return sum(one.bits for one in self.placed)

    def to_words(self, state: State) -> tuple[int, ...]:
        """A state as unsigned 64-bit words; `ValueError` where a cell is out of its range."""
        whole = 0
        for value, one in zip(state, self.placed, strict=True):
            if not 0 <= value - one.low <= one.mask:
                raise ValueError(f"{value} does not fit {one.cell}")
            whole |= (value - one.low) << one.position
        return tuple(whole >> WORD * i & _MASK for i in range(self.words))

    def from_words(self, words: tuple[int, ...]) -> State:
        """The inverse of `to_words`; words may be signed or unsigned."""
        whole = sum((word & _MASK) << WORD * i for i, word in enumerate(words))
        return tuple((whole >> one.position & one.mask) + one.low for one in self.placed)

    def source(self) -> str:
        """Dialect text of `pack(cells, words)` and `unpack(words, cells)`."""
        pack: list[list[str]] = [[]]
        unpack: list[list[str]] = [[]]
        cells = 0
        for word in range(self.words):
            held = self._held(word)
            cells += len(held)
            if cells > _CHUNK:
                pack, unpack, cells = [*pack, []], [*unpack, []], len(held)
            pack[-1] += self._pack_word(word, held)
            unpack[-1] += self._unpack_word(word, held)
        return _functions("pack", "cells, words", pack) + "\n" + _functions("unpack", "words, cells", unpack)

    def _held(self, word: int) -> list[_Bits]:
        """The cells that have a bit in a word."""
        first, last = word * WORD, (word + 1) * WORD
        return [one for one in self.placed if one.bits and one.position < last and one.position + one.bits > first]

    def _pack_word(self, word: int, held: list[_Bits]) -> list[str]:
        lines: list[str] = []
        terms: list[str] = []
        low = 0
        for one in held:
            read = self.layout.load(one.cell, f"cells + {one.offset}")
            shift = one.position - word * WORD
            if shift < 0:
                terms.append(f"lshr({read} - {one.low}, {-shift})")
                continue
            low += one.low << shift
            terms.append(f"({read} << {shift})" if shift else read)
        for i in range(0, len(terms), 4):
            lines.append(f"w {'+=' if i else '='} " + " + ".join(terms[i : i + 4]))
        value = f"w - {_signed(low)}" if low & _MASK else "w"
        return [*lines, f"store64(words + {8 * word}, {value if terms else 0})"]

    def _unpack_word(self, word: int, held: list[_Bits]) -> list[str]:
        lines = [f"w = load64(words + {8 * word})"]
        for one in held:
            shift = one.position - word * WORD
            if shift < 0:
                continue
            value = f"lshr(w, {shift})" if shift else "w"
            if shift + one.bits > WORD:
                value = f"({value} | load64(words + {8 * word + 8}) << {WORD - shift})"
            if shift + one.bits != WORD:
                value = f"({value} & {_signed(one.mask)})"
            lines.append(self._write(one, value))
        if word == 0:
            lines += [self._write(one, "0") for one in self.placed if not one.bits]
        return lines

    def _write(self, one: _Bits, value: str) -> str:
        return self.layout.store(one.cell, f"cells + {one.offset}", f"{value} + {one.low}" if one.low else value)


def _signed(number: int) -> int:
    number &= _MASK
    return number - (1 << WORD) if number >> WORD - 1 else number


def _functions(name: str, parameters: str, parts: list[list[str]]) -> str:
    if len(parts) == 1:
        return _function(name, parameters, parts[0])
    calls = [f"{name}_{i}({parameters})" for i in range(len(parts))]
    split = ("@noinline\n" + _function(f"{name}_{i}", parameters, part) for i, part in enumerate(parts))
    return "\n".join((*split, _function(name, parameters, calls)))


def _function(name: str, parameters: str, lines: list[str]) -> str:
    return f"def {name}({parameters}):\n" + "".join(f"    {line}\n" for line in lines or ["pass"])


def pack_source(shape: Shape, layout: CellLayout | None = None) -> tuple[str, int]:
    """Dialect text of `pack` and `unpack` for a shape, and the words of a packed state."""
    packing = Packing(layout or CellLayout(shape))
    return packing.source(), packing.words
