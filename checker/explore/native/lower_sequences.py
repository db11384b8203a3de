"""Lowering of what is done to places as a whole: lengths, slots, insertion, removal, copies, comparison."""

from __future__ import annotations

from typing import Any

from ....spec.lang.layout import ArrayShape, Leaf, SeqShape, SetShape, Shape, leaves
from .emit import Address, Emitter, Value, number, truth
from .pack import CellLayout, length_of


class Sequences:
    """Text for sequences and other containers; bytes are moved in whole elements, blank tails included."""

    def __init__(self, layout: CellLayout, emitter: Emitter) -> None:
        self.layout, self.emit = layout, emitter

    def length(self, container: Address) -> Value:
        """The number of elements of an array or sequence."""
        shape = container.shape
        if isinstance(shape, ArrayShape):
            return number(shape.count)
        assert isinstance(shape, SeqShape)
        if shape.capacity == 0:
            return number(0)
        return Value(self.layout.load(length_of(shape), container.text), 0, shape.capacity)

    def set_length(self, container: Address, value: str) -> None:
        """Store the length of a sequence."""
        assert isinstance(container.shape, SeqShape)
        self.emit.line(self.layout.store(length_of(container.shape), container.text, value))

    def slot(self, container: Address, i: str, known: int | None = None) -> Address:
        """The place of element i, which must exist."""
        shape = container.shape
        assert isinstance(shape, ArrayShape | SeqShape)
        stride, head = self.layout.stride(shape), self.layout.head(shape)
        if known is not None:
            return container.plus(head + known * stride, shape.item)
        return container.plus(head, shape.item, i if stride == 1 else f"{i} * {stride}")

    def copy(self, to: Address, source: Address) -> None:
        """Copy the bytes of a place; the two do not overlap."""
        size = self.layout.size(to.shape)
        if size:
            self.emit.line(f"copy({to.text}, {source.text}, {size})")

    def hold(self, source: Address) -> Address:
        """A copy of a place, out of reach of what is done to the state."""
        held = self.room(self.layout.size(source.shape), source.shape)
        self.copy(held, source)
        return held

    def room(self, size: int, shape: Shape) -> Address:
        """Bytes of the function's own."""
        name = self.emit.name("a")
        self.emit.line(f"{name} = alloca({max(8, size)})")
        return Address(name, shape)

    def fresh(self, shape: Shape) -> Address:
        """A blank local container."""
        made = self.room(self.layout.size(shape), shape)
        self.blank(made)
        return made

    def blank(self, place: Address) -> None:
        """Make a place blank: zeros, and what is not zero in a blank cell."""
        shape = place.shape
        size = self.layout.size(shape)
        if not size:
            return
        self.emit.line(f"clear({place.text}, {size})")
        offset = 0
        for _, cell in leaves(shape):
            if cell.blank[0] and not (isinstance(cell, SetShape)):
                self.emit.line(self.layout.store(cell, place.plus(offset, cell).text, str(cell.blank[0])))
            offset += self.layout.width(cell)

    def equal_places(self, one: Address, two: Address) -> Value:
        """Whether two places of one type have the same contents."""
        size = self.layout.size(one.shape)
        if not size:
            return number(1)
        name, at, terms = self.emit.name(), 0, list[str]()
        while at < size:
            width = next(w for w in (8, 4, 2, 1) if at + w <= size)
            load = f"load{8 * width}"
            first, second = one.plus(at, one.shape).text, two.plus(at, two.shape).text
            terms.append(f"({load}({first}) ^ {load}({second}))")
            at += width
        self.emit.line(f"{name} = 0")
        for i in range(0, len(terms), 8):
            self.emit.line(f"{name} = {name} | " + " | ".join(terms[i : i + 8]))
        return truth(f"({name} == 0)")

    def open(self, name: str, base: Address, at: Value | None, place: Any) -> Address:
        """Make room for one element of a sequence and count it: at the end, at the front or before position `at`."""
        shape = base.shape
        assert isinstance(shape, SeqShape)
        n = self.emit.keep(self.length(base))
        if at is not None:
            self.emit.fail_if(f"ult({n.text}, {at.text})", place, "a position is outside a sequence")
        overflow = f"a sequence of capacity {shape.capacity} overflows"
        self.emit.fail_if(f"{n.text} == {shape.capacity}", place, overflow)
        if name == "append":
            slot = self.slot(base, n.text)
        elif name == "push_front":
            self._shift(base, 0, 1)
            slot = self.slot(base, "0", 0)
        else:
            assert at is not None
            self._shift_from(base, at.text, n.text, up=True)
            slot = self.slot(base, at.text)
        self.set_length(base, f"{n.text} + 1")
        return slot

    def grow(self, base: Address, place: Any) -> Address:
        """Add a blank element at the end."""
        slot = self.open("append", base, None, place)
        name = self.emit.name("g")
        self.emit.line(f"{name} = {slot.text}")
        return Address(name, slot.shape)

    def _shift(self, base: Address, start: int, to: int) -> None:
        """Move all elements but the last by one slot, from `start` to `to` (0 and 1, or 1 and 0); the rest is blank."""
        shape = base.shape
        assert isinstance(shape, SeqShape)
        stride = self.layout.stride(shape)
        size = (shape.capacity - 1) * stride
        if size > 0:
            held = self.room(size, shape)
            self.emit.line(f"copy({held.text}, {self.slot(base, '', start).text}, {size})")
            self.emit.line(f"copy({self.slot(base, '', to).text}, {held.text}, {size})")
        if to == 0:
            self.blank(self.slot(base, "", shape.capacity - 1))

    def _shift_from(self, base: Address, at: str, n: str, *, up: bool) -> None:
        """Move elements from position `at` on by one slot: up to make room, or down over the element at `at`."""
        shape = base.shape
        assert isinstance(shape, SeqShape)
        i = self.emit.name("i")
        if up:
            with self.emit.block(f"for {i} in range({n} - {at}):"):
                source = self.slot(base, f"({n} - 1 - {i})")
                self.emit.line(f"copy({self.slot(base, f'({n} - {i})').text}, {source.text}, {self.layout.stride(shape)})")
        else:
            with self.emit.block(f"for {i} in range({at}, {n} - 1):"):
                source = self.slot(base, f"({i} + 1)")
                self.emit.line(f"copy({self.slot(base, i).text}, {source.text}, {self.layout.stride(shape)})")

    def take(self, name: str, base: Address, arguments: list[Value], place: Any) -> Value | None:
        """pop_front, pop_back, drop_front, drop_back, remove and remove_at; the popped value, if any."""
        shape = base.shape
        assert isinstance(shape, SeqShape)
        n = self.emit.keep(self.length(base))
        if name in ("remove_at", "remove"):
            at = self._find(base, n, arguments[0], place) if name == "remove" else arguments[0]
            if name == "remove_at":
                self.emit.fail_if(f"not ult({at.text}, {n.text})", place, "an index is outside a sequence")
            self._shift_from(base, at.text, n.text, up=False)
            self.blank(self.slot(base, f"({n.text} - 1)"))
            self.set_length(base, f"{n.text} - 1")
            return None
        self.emit.fail_if(f"{n.text} == 0", place, "pop from an empty sequence")
        front = name.endswith("front")
        popped = None
        if name.startswith("pop"):
            slot = self.slot(base, "0", 0) if front else self.slot(base, f"({n.text} - 1)")
            popped = self._popped(slot)
        if front and shape.capacity:
            self._shift(base, 1, 0)
        elif not front:
            self.blank(self.slot(base, f"({n.text} - 1)"))
        self.set_length(base, f"{n.text} - 1")
        return popped

    def _popped(self, slot: Address) -> Value:
        assert isinstance(slot.shape, Leaf)
        name = self.emit.name("p")
        self.emit.line(f"{name} = {self.layout.load(slot.shape, slot.text)}")
        return Value(name, slot.shape.low, slot.shape.high)

    def _find(self, base: Address, n: Value, item: Value, place: Any) -> Value:
        shape = base.shape
        assert isinstance(shape, SeqShape)
        assert isinstance(shape.item, Leaf)
        at = self.emit.name("at")
        self.emit.line(f"{at} = 0")
        load = self.layout.load(shape.item, self.slot(base, at).text)
        with self.emit.block(f"while {at} < {n.text} and {load} != {item.text}:"):
            self.emit.line(f"{at} = {at} + 1")
        self.emit.fail_if(f"{at} == {n.text}", place, "a value is not in the sequence it is removed from")
        return Value(at, 0, shape.capacity)
