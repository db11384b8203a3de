"""Dialect text that walks a state for its canonical form: reading facts, relabelling, comparing elements of arrays.

All walks go over the unpacked struct, through sequences only up to their length. Members of all indices share one
numbering; `owner` texts are such numbers. Names in the text: `cells` the state, `c` the working memory of `canon.py`,
`s` the sum of what belongs to the one owner at hand, `list_2` where the next fact of two members goes, `used_0` the
members of the first index that some cell mentions.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from ....spec.lang.layout import ArrayShape, Leaf, RecordShape, SeqShape, SetShape, Shape, leaves
from .pack import CellLayout, cell_range, length_of

_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Group:
    """An index: its place among the indices, its first member in the common numbering, and its size."""

    number: int
    first: int
    size: int


Groups = Mapping[str, Group]


def constant(number: int) -> int:
    """A fixed odd 64-bit number that looks random, for each number another (splitmix64)."""
    x = (number + 1) * 0x9E3779B97F4A7C15 & _MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _MASK
    x = (x ^ x >> 31) | 1
    return x - (1 << 64) if x >> 63 else x


class Text:
    """Lines of dialect text with their indentation, and fresh names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 0
        self._names = 0

    def put(self, *lines: str) -> None:
        """Add lines."""
        self.lines += ("    " * self._depth + line for line in lines)

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        """Add a line that opens a block; an empty block gets a `pass`."""
        self.put(head)
        self._depth += 1
        size = len(self.lines)
        yield
        if len(self.lines) == size:
            self.put("pass")
        self._depth -= 1

    @contextmanager
    def block_if(self, condition: str | None) -> Generator[None]:
        """Open an `if`; without a condition, what follows stands as it is."""
        if condition is None:
            yield
        else:
            with self.block(f"if {condition}:"):
                yield

    def name(self, stem: str) -> str:
        """A new name."""
        self._names += 1
        return f"{stem}_{self._names}"

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"


class Walk:
    """What all walks share: the layout, the indices, and which parts mention no member."""

    def __init__(self, layout: CellLayout, groups: Groups) -> None:
        self.layout, self.groups = layout, groups
        self.text = Text()

    def group(self, name: str | None) -> Group | None:
        """The reduced index of this name, if it is one."""
        return self.groups.get(name) if name is not None else None

    def is_plain(self, shape: Shape) -> bool:
        """Whether nothing in a part of the state is a member, or belongs to one."""
        match shape:
            case Leaf() | SetShape():
                return shape.index not in self.groups
            case ArrayShape(_, item, index):
                return index not in self.groups and self.is_plain(item)
            case SeqShape(_, item):
                return self.is_plain(item)
            case RecordShape():
                return all(self.is_plain(inner) for _, _, inner in shape.fields)

    def fields(self, shape: RecordShape) -> Iterator[tuple[int, Shape]]:
        """Byte offset and shape of each field."""
        for name, _, inner in shape.fields:
            yield self.layout.field_offset(shape, name), inner

    def step(self, shape: ArrayShape | SeqShape, at: str, i: str) -> str:
        """The address of element i."""
        head, stride = self.layout.head(shape), self.layout.stride(shape)
        return plus(at, head) + f" + {i}" + (f" * {stride}" if stride != 1 else "")

    def count(self, shape: ArrayShape | SeqShape, at: str) -> str:
        """The number of elements: for a sequence, its length."""
        return self.layout.load(length_of(shape), at) if isinstance(shape, SeqShape) else str(shape.count)


def plus(at: str, offset: int) -> str:
    """An address some bytes further on."""
    return f"{at} + {offset}" if offset else at


def chunks(at: str, size: int) -> Iterator[tuple[str, int]]:
    """Reads of up to 8 bytes each that cover `size` bytes: text and number of bytes."""
    offset = 0
    while offset < size:
        length = min(8, size - offset)
        parts: list[str] = []
        inside = 0
        for width in (8, 4, 2, 1):
            while length - inside >= width:
                read = f"load{'' if width == 8 else 'u'}{8 * width}({plus(at, offset + inside)})"
                parts.append(f"({read} << {8 * inside})" if inside else read)
                inside += width
        yield " | ".join(parts), length
        offset += length


@dataclass(frozen=True)
class Spot:
    """Where a walk is: address, the number of the path to here, the positions on the way, and the owners."""

    at: str
    path: tuple[int, ...]
    steps: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()


class ReadWalk(Walk):
    """Writes `canon_read(c, cells)`: sums of facts of one member, lists of facts of several, members mentioned."""

    def __init__(self, layout: CellLayout, groups: Groups) -> None:
        super().__init__(layout, groups)
        self.capacity: dict[int, int] = {}
        """For each number of members from 2 on, how many facts there can be."""
        self._paths: dict[tuple[int, ...], int] = {}
        self._times = 1

    def write(self, lists: Mapping[int, int], used: int) -> str:
        """The function; `lists` says where the end of each list is kept in the working memory, `used` the mentions."""
        with self.text.block("def canon_read(c, cells):"):
            self.text.put(*(f"list_{arity} = load64(c + {at})" for arity, at in lists.items()))
            self.text.put(*(f"used_{group.number} = 0" for group in self.groups.values()))
            self._read(self.layout.shape, Spot("cells", ()))
            self.text.put(*(f"store64(c + {at}, list_{arity})" for arity, at in lists.items()))
            self.text.put(*(f"store64(c + {used + 8 * g.number}, used_{g.number})" for g in self.groups.values()))
        return str(self.text)

    def _key(self, spot: Spot, more: int = 0) -> str:
        """A number for the path and the positions on it."""
        number = self._paths.setdefault((*spot.path, more), len(self._paths))
        base = constant(16 * number + 1024)
        if not spot.steps:
            return str(base)
        terms = "".join(f" + {step} * {constant(16 * number + 1025 + i)}" for i, step in enumerate(spot.steps))
        return f"canon_mix({base}{terms})"

    def _read(self, shape: Shape, spot: Spot) -> None:
        if self.is_plain(shape):
            self._read_plain([shape], spot)
            return
        match shape:
            case Leaf() | SetShape():
                self._read_member(shape, spot)
            case ArrayShape():
                self._read_array(shape, spot)
            case SeqShape():
                self._read_sequence(shape, spot)
            case RecordShape():
                self._read_record(shape, spot)

    def _read_record(self, shape: RecordShape, spot: Spot) -> None:
        """Read field by field; neighbours that mention no member are read together."""
        together: list[Shape] = []
        start = 0
        for number, (offset, inner) in enumerate(self.fields(shape)):
            if self.is_plain(inner):
                start = start if together else offset
                together.append(inner)
                continue
            self._read_plain(together, Spot(plus(spot.at, start), (*spot.path, number, 0), spot.steps, spot.owners))
            together = []
            self._read(inner, Spot(plus(spot.at, offset), (*spot.path, number, 1), spot.steps, spot.owners))
        self._read_plain(together, Spot(plus(spot.at, start), (*spot.path, -1), spot.steps, spot.owners))

    def _read_plain(self, shapes: list[Shape], spot: Spot) -> None:
        if not spot.owners or all(is_fixed(shape) for shape in shapes):
            return
        size = sum(self.layout.size(shape) for shape in shapes)
        blank = b"".join(CellLayout(shape).to_bytes(shape.blank)[: self.layout.size(shape)] for shape in shapes)
        for number, (read, length) in enumerate(chunks(spot.at, size)):
            key = self._key(spot, number)
            if len(spot.owners) == 1:
                self.text.put(f"s += ({read}) * {key}" if length == 1 else f"s += canon_mix(({read}) + {key})")
                continue
            empty = int.from_bytes(blank[8 * number : 8 * number + length], "little", signed=length == 8)
            value = self.text.name("v")
            self.text.put(f"{value} = ({read}) ^ {empty}" if empty else f"{value} = {read}")
            with self.text.block(f"if {value}:"):
                self._fact(f"canon_mix({value} + {key})", spot.owners)

    def _read_member(self, shape: Leaf | SetShape, spot: Spot) -> None:
        assert shape.index is not None
        group, value = self.groups[shape.index], self.text.name("v")
        key, used = self._key(spot), f"used_{group.number}"
        self.text.put(f"{value} = {self.layout.load(shape, spot.at)}")
        if isinstance(shape, SetShape):
            member = self.text.name("m")
            self.text.put(f"{used} |= {value}")
            with self._repeated(shape.count), self.text.block(f"while {value}:"):
                self.text.put(f"{member} = ctz({value}) + {group.first}", f"{value} &= {value} - 1")
                self._fact(key, (*spot.owners, member))
            return
        with self.text.block_if(f"{value} >= 0" if shape.maybe else None):
            self.text.put(f"{used} |= 1 << {value}")
            self._fact(key, (*spot.owners, f"({value} + {group.first})" if group.first else value))

    def _fact(self, key: str, members: tuple[str, ...]) -> None:
        arity = len(members)
        if arity == 1:
            self.text.put(f"canon_add(c, {members[0]}, {key})")
            return
        self.capacity[arity] = self.capacity.get(arity, 0) + self._times
        pointer = f"list_{arity}"
        self.text.put(f"store64({pointer}, {key})")
        self.text.put(*(f"store32({pointer} + {8 + 4 * i}, {member} << 3)" for i, member in enumerate(members)))
        self.text.put(f"{pointer} += {fact_size(arity)}")

    def _read_array(self, shape: ArrayShape, spot: Spot) -> None:
        group, i = self.group(shape.index), self.text.name("i")
        with self._repeated(shape.count), self.text.block(f"for {i} in range({shape.count}):"):
            at = self.step(shape, spot.at, i)
            if group is None:
                self._read(shape.item, Spot(at, spot.path, (*spot.steps, i), spot.owners))
            else:
                owner = f"({i} + {group.first})" if group.first else i
                if not spot.owners:
                    self.text.put("s = 0")
                self._read(shape.item, Spot(at, spot.path, spot.steps, (*spot.owners, owner)))
                if not spot.owners:
                    self.text.put(f"canon_add(c, {owner}, s)")

    def _read_sequence(self, shape: SeqShape, spot: Spot) -> None:
        if shape.capacity == 0:
            return
        self._read_plain([length_of(shape)], Spot(spot.at, (*spot.path, 0), spot.steps, spot.owners))
        i = self.text.name("i")
        inside = Spot(self.step(shape, spot.at, i), (*spot.path, 1), (*spot.steps, i), spot.owners)
        with self._repeated(shape.capacity), self.text.block(f"for {i} in range({self.count(shape, spot.at)}):"):
            self._read(shape.item, inside)

    @contextmanager
    def _repeated(self, times: int) -> Generator[None]:
        before = self._times
        self._times *= times
        yield
        self._times = before


def is_fixed(shape: Shape) -> bool:
    """Whether a part can hold nothing but its blank value."""
    return all(low == high for low, high in (cell_range(cell) for _, cell in leaves(shape)))


def fact_size(arity: int) -> int:
    """Bytes of a fact: its key, and four for each member (its number times 8)."""
    return 8 + 4 * arity


class RelabelWalk(Walk):
    """Writes `canon_relabel(cells, rank, out)`: the state with every member x of an index replaced by `rank[x]`."""

    def write(self) -> str:
        """The function."""
        self.text.put("@noinline")
        with self.text.block("def canon_relabel(cells, rank, out):"):
            self.text.put(f"copy(out, cells, {self.layout.bytes})")
            self._move(self.layout.shape, "cells", "out")
        return str(self.text)

    def _move(self, shape: Shape, old: str, new: str) -> None:
        """Relabel a part whose bytes were copied to the new place already."""
        if self.is_plain(shape):
            return
        match shape:
            case Leaf() | SetShape():
                self._move_member(shape, old, new)
            case RecordShape():
                for offset, inner in self.fields(shape):
                    self._move(inner, plus(old, offset), plus(new, offset))
            case ArrayShape() | SeqShape():
                self._move_elements(shape, old, new)

    def _move_elements(self, shape: ArrayShape | SeqShape, old: str, new: str) -> None:
        if is_fixed(shape):
            return
        group = self.group(shape.index) if isinstance(shape, ArrayShape) else None
        stride, i = self.layout.stride(shape), self.text.name("i")
        with self.text.block(f"for {i} in range({self.count(shape, old)}):"):
            source = self.step(shape, old, i)
            if group is None:
                self._move(shape.item, source, self.step(shape, new, i))
                return
            to = self.text.name("t")
            target = self.step(shape, new, to)
            self.text.put(f"{to} = load64(rank + {8 * group.first} + {i} * 8)")
            self.text.put(f"copy({target}, {source}, {stride})")
            self._move(shape.item, source, target)

    def _move_member(self, shape: Leaf | SetShape, old: str, new: str) -> None:
        assert shape.index is not None
        first, value = 8 * self.groups[shape.index].first, self.text.name("v")
        self.text.put(f"{value} = {self.layout.load(shape, old)}")
        if isinstance(shape, SetShape):
            moved = self.text.name("m")
            self.text.put(f"{moved} = 0")
            with self.text.block(f"while {value}:"):
                self.text.put(f"{moved} |= 1 << load64(rank + {first} + ctz({value}) * 8)", f"{value} &= {value} - 1")
            self.text.put(self.layout.store(shape, new, moved))
            return
        with self.text.block_if(f"{value} >= 0" if shape.maybe else None):
            self.text.put(self.layout.store(shape, new, f"load64(rank + {first} + {value} * 8)"))


class SameWalk(Walk):
    """Writes `canon_same_N(cells, x, y)`: whether two members have equal bytes in every array over their index."""

    def __init__(self, layout: CellLayout, groups: Groups, name: str) -> None:
        super().__init__(layout, groups)
        self._name = name

    def write(self) -> str:
        """The function."""
        with self.text.block(f"def canon_same_{self.groups[self._name].number}(cells, x, y):"):
            self.text.put("d = 0")
            self._compare(self.layout.shape, "cells")
            self.text.put("return d == 0")
        return str(self.text)

    def _compare(self, shape: Shape, at: str) -> None:
        if not has_array(shape, self._name):
            return
        match shape:
            case ArrayShape(index=self._name, item=item):
                left, right = (chunks(self.step(shape, at, i), self.layout.size(item)) for i in "xy")
                for (one, _), (two, _) in zip(left, right, strict=True):
                    self.text.put(f"d |= ({one}) ^ ({two})")
                if not has_array(item, self._name):
                    return
            case _:
                pass
        match shape:
            case RecordShape():
                for offset, inner in self.fields(shape):
                    self._compare(inner, plus(at, offset))
            case ArrayShape() | SeqShape():
                i = self.text.name("i")
                with self.text.block(f"for {i} in range({self.count(shape, at)}):"):
                    self._compare(shape.item, self.step(shape, at, i))
            case _:
                pass


def has_array(shape: Shape, name: str, inside: bool = False) -> bool:
    """Whether a part holds an array over this index; with `inside`, one within another."""
    match shape:
        case ArrayShape(_, item, index):
            if index == name:
                return has_array(item, name) if inside else True
            return has_array(item, name, inside)
        case SeqShape(_, item):
            return has_array(item, name, inside)
        case RecordShape():
            return any(has_array(inner, name, inside) for _, _, inner in shape.fields)
        case _:
            return False
