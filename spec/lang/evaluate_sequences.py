"""Evaluation of what is done to places as a whole: methods of sequences and sets, comparison, membership."""

from __future__ import annotations

from typing import TypeVar

from . import tree as t
from .errors import Place
from .evaluate_base import Evaluation
from .evaluate_memory import Location
from .layout import ArrayShape, Leaf, SeqShape

V = TypeVar("V")


class Sequences(Evaluation[V]):
    """Positions are domain values; elements beyond the length are blank, which makes both ends cheap."""

    def element_at(self, container: Location, index: V, place: Place) -> Location:
        """The place of an element, which must exist."""
        domain, shape = self.domain, container.shape
        assert isinstance(shape, ArrayShape | SeqShape)
        least, greatest = domain.range(index)
        if isinstance(shape, ArrayShape):
            low, high, rule = max(0, least), min(greatest, shape.count - 1), f"an index is outside an array of {shape.count}"
            index = self.ranged(index, 0, shape.count - 1, place, rule)
        else:
            length = self.memory.length(container)
            low, high = max(0, least), min(greatest, domain.range(length)[1] - 1, shape.capacity - 1)
            holds = domain.less(index, length)
            if least < 0:
                holds = domain.both(domain.at_most(domain.number(0), index), holds)
            holds = holds if low <= high else self.false
            self.oblige(holds, place, "an index is outside a sequence")
            low, high = (1, 0) if self.never(holds) else (low, high)
        if low > high:
            return self.nowhere(shape.item)
        return self.memory.element(container, domain.within(index, low, high), low, high)

    def equal_places(self, one: Location, two: Location) -> V:
        """Whether two places of one type have the same contents."""
        same, domain = self.true, self.domain
        for left, right in zip(self.memory.contents(one), self.memory.contents(two), strict=True):
            same = domain.both(same, domain.equal(left, right))
        return same

    def is_in(self, item: V, kind: t.Scalar, container: Location) -> V:
        """Whether a scalar is in a sequence or array of scalars."""
        domain, shape = self.domain, container.shape
        assert isinstance(shape, ArrayShape | SeqShape)
        length, found = self.memory.length(container), self.false
        for i in range(domain.range(length)[1]):
            here = self._matches(item, kind, container, i)
            found = domain.either(found, domain.both(domain.less(domain.number(i), length), here))
        return found

    def _matches(self, item: V, kind: t.Scalar, container: Location, i: int) -> V:
        shape = container.shape
        assert isinstance(shape, ArrayShape | SeqShape)
        assert isinstance(shape.item, Leaf)
        held = self.memory.load(self.memory.element(container, self.domain.number(i), i, i))
        return self.same(held, t.Scalar(kind.kind, maybe=shape.item.maybe), item, kind)

    # ---- insertion

    def insert(self, name: str, base: Location, at: V | None, new: list[V], place: Place) -> V:
        """append, push_front and insert of an element given by its cells; returns the length before."""
        domain, shape = self.domain, base.shape
        assert isinstance(shape, SeqShape)
        length = self.memory.length(base)
        if at is not None:
            at = self._position(at, length, place)
        before, length = length, self.room(base, length, new, place)
        if self.never(domain.less(before, domain.number(shape.capacity))):
            return length
        pick, number = self.memory.pick_cells, domain.number

        def slot(old: list[list[V]], i: int) -> list[V]:
            if name == "push_front":
                return old[i - 1] if i else new
            if name == "append":
                return pick(domain.equal(length, number(i)), new, old[i])
            assert at is not None
            moved = pick(domain.equal(at, number(i)), new, old[i - 1])
            return pick(domain.less(number(i), at), old[i], moved)

        self.memory.reshape(base, domain.add(length, number(1)), slot)
        return length

    def room(self, base: Location, length: V, new: list[V], place: Place) -> V:
        """The length of a sequence in which there must be room for an element given by its cells."""
        assert isinstance(base.shape, SeqShape)
        capacity = base.shape.capacity
        return self.ranged(length, 0, capacity - 1, place, f"a sequence of capacity {capacity} overflows")

    def _position(self, at: V, length: V, place: Place) -> V:
        domain = self.domain
        holds = domain.both(domain.at_most(domain.number(0), at), domain.at_most(at, length))
        self.oblige(holds, place, "a position is outside a sequence")
        low, high = domain.range(at)
        low, high = max(0, low), min(high, domain.range(length)[1])
        return domain.number(0) if low > high else domain.within(at, low, high)

    def grow(self, base: Location, place: Place) -> Location:
        """Add a blank element at the end; returns its place."""
        shape = base.shape
        assert isinstance(shape, SeqShape)
        length = self.insert("append", base, None, self.memory.blank(shape.item), place)
        if shape.capacity == 0:
            return self.nowhere(shape.item)
        low, high = self.domain.range(length)
        return self.memory.element(base, length, low, min(high, shape.capacity - 1))

    # ---- removal

    def take(self, name: str, base: Location, argument: V | None, node: t.Method) -> V | None:
        """pop_front, pop_back, drop_front, drop_back, remove and remove_at; returns what a pop takes out."""
        domain, shape = self.domain, base.shape
        assert isinstance(shape, SeqShape)
        if name == "remove":
            assert argument is not None
            self._remove(base, argument, node)
            return None
        length = self.memory.length(base)
        if name == "remove_at":
            assert argument is not None
            at, rule = argument, "an index is outside a sequence"
            holds = domain.both(domain.at_most(domain.number(0), at), domain.less(at, length))
        else:
            at, rule = domain.number(0), "pop from an empty sequence"
            holds = domain.less(at, length)
        self.oblige(holds, node.place, rule)
        if self.never(holds) or shape.capacity == 0:
            return domain.number(0)
        low, high = domain.range(length)
        length = domain.within(length, max(1, low), high)
        if name.endswith("back"):
            at = domain.subtract(length, domain.number(1))
        popped = self.memory.load(self.memory.element(base, at, *domain.range(at))) if name.startswith("pop") else None
        self._cut(base, length, at, at_end=name.endswith("back"))
        return popped

    def _cut(self, base: Location, length: V, at: V, *, at_end: bool) -> None:
        domain, pick = self.domain, self.memory.pick_cells

        def slot(old: list[list[V]], i: int) -> list[V]:
            if at_end:
                return pick(domain.equal(at, domain.number(i)), old[-1], old[i])
            return pick(domain.less(domain.number(i), at), old[i], old[i + 1])

        self.memory.reshape(base, domain.subtract(length, domain.number(1)), slot)

    def _remove(self, base: Location, item: V, node: t.Method) -> None:
        domain, shape = self.domain, base.shape
        assert isinstance(shape, SeqShape)
        kind, length = node.arguments[0].type, self.memory.length(base)
        found, after = self.false, list[V]()
        for i in range(shape.capacity):
            here = self._matches(item, kind, base, i)
            found = domain.either(found, domain.both(domain.less(domain.number(i), length), here))
            after.append(found)
        self.oblige(found, node.place, "a value is not in the sequence it is removed from")
        if self.never(found):
            return
        low, high = domain.range(length)
        shorter = domain.subtract(domain.within(length, max(1, low), high), domain.number(1))
        self.memory.reshape(base, shorter, lambda old, i: self.memory.pick_cells(after[i], old[i + 1], old[i]))
