"""Where each cell of a state lies in native memory: unpacked, as bytes to work on, and packed, as bits to store.

Unpacked, a state is a struct without padding: each cell takes 1, 2, 4 or 8 bytes by its declared range, and elements
of an array or sequence all have one size, so that multiplication finds them. Packed, a cell takes as many bits
as its range needs, the low ones of its value; equal states are equal words, unused bits are 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

from ....spec.lang.errors import BoundsError
from ....spec.lang.layout import ArrayShape, Leaf, RecordShape, SeqShape, SetShape, Shape, State, leaves

WORD = 64
MAX_SET = 63
_MASK = (1 << WORD) - 1
_LINES = 250
"""Lines of one function at most; longer ones take the compiler more than linear time."""


@lru_cache(maxsize=4096)
def cell_range(cell: Leaf | SetShape) -> tuple[int, int]:
    """The least and the greatest value of a cell; `BoundsError` where 64 bits cannot hold it."""
    if isinstance(cell, SetShape):
        if cell.count > MAX_SET:
            raise BoundsError(
                f"a set over {cell.index} has {cell.count} members, and the native engine takes {MAX_SET} at most; "
                "lower it, or give --engine reference"
            )
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
        self._offsets: dict[int, tuple[RecordShape, dict[str, int]]] = {}

    @cached_property
    def bytes(self) -> int:
        """Bytes of a whole state, rounded up to 8."""
        return -(-_size(self.shape) // 8) * 8

    @cached_property
    def cells(self) -> tuple[tuple[int, Leaf | SetShape], ...]:
        """Every cell in order: its byte offset and what it holds (the length of a sequence is an int leaf)."""
        at = 0
        found: list[tuple[int, Leaf | SetShape]] = []
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
        if id(shape) not in self._offsets:  # a shape is slow to hash
            sizes = accumulate((_size(inner) for _, _, inner in shape.fields), initial=0)
            self._offsets[id(shape)] = shape, dict(zip((known for known, _, _ in shape.fields), sizes, strict=False))
        return self._offsets[id(shape)][1][name]

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
            whole |= (value & one.mask) << one.position
        return tuple(whole >> WORD * i & _MASK for i in range(self.words))

    def from_words(self, words: tuple[int, ...]) -> State:
        """The inverse of `to_words`; words may be signed or unsigned."""
        whole = sum((word & _MASK) << WORD * i for i, word in enumerate(words))
        return tuple(one.low + ((whole >> one.position) - one.low & one.mask) for one in self.placed)

    def source(self) -> str:
        """Dialect text of `pack(cells, words)` and `unpack(words, cells)`."""
        pack: list[list[str]] = [[]]
        unpack: list[list[str]] = [[]]
        for word in range(self.words):
            pieces = list(self._pieces(word))
            if len(pack[-1]) + len(pieces) > _LINES:
                pack, unpack = [*pack, []], [*unpack, []]
            terms = [piece.gather() for piece in pieces]
            pack[-1] += [f"w {'+=' if i else '='} {term}" for i, term in enumerate(terms)]
            pack[-1].append(f"store64(words + {8 * word}, {'w' if terms else 0})")
            unpack[-1].append(f"w = load64(words + {8 * word})")
            unpack[-1] += (line for piece in pieces for line in piece.scatter())
        lifts = [line for one in self.placed for line in self._lift(one)]
        room = max(0, _LINES - len(unpack[-1]))
        unpack[-1] += lifts[:room]
        unpack += (lifts[i : i + _LINES] for i in range(room, len(lifts), _LINES))
        return _functions("pack", "cells, words", pack) + "\n" + _functions("unpack", "words, cells", unpack)

    def _pieces(self, word: int) -> Iterator[_Piece | _Crossing]:
        """What a word holds: pieces of up to 8 neighbouring bytes of the struct each, and cells that cross words."""
        piece: _Piece | None = None
        for one in self._by_word[word]:
            shift = one.position - word * WORD
            if shift < 0 or shift + one.bits > WORD:
                if piece:
                    yield piece
                piece = None
                yield _Crossing(one, word, self.layout)
                continue
            if piece is None or one.offset + self.layout.width(one.cell) > piece.offset + 8:
                if piece:
                    yield piece
                piece = _Piece(one.offset, shift, self.layout.bytes)
            piece.add(one, self.layout.width(one.cell))
        if piece:
            yield piece

    @cached_property
    def _by_word(self) -> list[list[_Bits]]:
        """The cells that have a bit in each word."""
        held: list[list[_Bits]] = [[] for _ in range(self.words)]
        for one in self.placed:
            if one.bits:
                for word in range(one.position // WORD, (one.position + one.bits - 1) // WORD + 1):
                    held[word].append(one)
        return held

    def _lift(self, one: _Bits) -> Iterator[str]:
        """Lines that turn the low bits of a value back into the value, where its least is not 0."""
        at = f"cells + {one.offset}"
        if not one.bits:
            yield self.layout.store(one.cell, at, str(one.low))
        elif one.low:
            bits = f"({self.layout.load(one.cell, at)} - {one.low} & {_signed(one.mask)})"
            yield self.layout.store(one.cell, at, f"{bits} + {one.low}")


class _Piece:
    """Neighbouring cells within 8 bytes of the struct whose bits are neighbours in one word."""

    def __init__(self, offset: int, shift: int, end: int) -> None:
        self.offset, self.shift, self._end = offset, shift, end
        self._mask = 0
        self._bytes = 0

    def add(self, one: _Bits, width: int) -> None:
        """Take in the next cell."""
        inside = one.offset - self.offset
        self._mask |= one.mask << 8 * inside
        self._bytes = inside + width

    def gather(self) -> str:
        """The bits of the cells, at their place in the word."""
        back = max(0, self.offset + 8 - self._end)
        bits = f"pext(load64(cells + {self.offset - back}), {_signed(self._mask << 8 * back)})"
        return f"({bits} << {self.shift})" if self.shift else bits

    def scatter(self) -> Iterator[str]:
        """Lines that write the cells; they may write cells further on, which follow."""
        bits = f"pdep(lshr(w, {self.shift}), {_signed(self._mask)})"
        if self.offset + 8 <= self._end:
            yield f"store64(cells + {self.offset}, {bits})"
            return
        yield f"v = {bits}"
        done = 0
        for width in (4, 2, 1):
            if self._bytes - done >= width:
                yield f"store{8 * width}(cells + {self.offset + done}, lshr(v, {8 * done}))"
                done += width


class _Crossing:
    """The part in one word of a cell that lies in two."""

    def __init__(self, one: _Bits, word: int, layout: CellLayout) -> None:
        self._one, self._word, self._layout = one, word, layout
        self._shift = one.position - word * WORD
        self._at = f"cells + {one.offset}"

    def gather(self) -> str:
        """Its bits in this word."""
        value = f"({self._layout.load(self._one.cell, self._at)} & {_signed(self._one.mask)})"
        return f"({value} << {self._shift})" if self._shift > 0 else f"lshr({value}, {-self._shift})"

    def scatter(self) -> Iterator[str]:
        """A line that writes the cell, from the first of its words."""
        if self._shift > 0:
            rest = f"load64(words + {8 * self._word + 8}) << {WORD - self._shift}"
            value = f"(lshr(w, {self._shift}) | {rest}) & {_signed(self._one.mask)}"
            yield self._layout.store(self._one.cell, self._at, value)


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
