"""Value domains: what the evaluator needs to know of the values that it works with.

A domain has three sorts of values: numbers, truth values and sets of members of an index (numbered from 0). With
`ConcreteDomain` they are plain integers; a symbolic domain has terms, a domain of columns could have arrays.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol, TypeVar

V = TypeVar("V")

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
"""The range of a number of which nothing is known."""


class Domain(Protocol[V]):
    """Operations on values; members without a body are primitive, the others are derived and may be replaced.

    A domain decides what it can: the evaluator takes a branch directly where `constant` knows the condition, leaves
    elements out that the `range` of an index excludes, and keeps what is the same object on two paths as it is.
    """

    # ---- what is known of a value

    @abstractmethod
    def constant(self, value: V) -> int | None:
        """The value as an integer if it is known (0 or 1 for a truth value, a bit mask for a set), else None."""
        ...

    @abstractmethod
    def range(self, value: V) -> tuple[int, int]:
        """The least and greatest that a number can be, as far as known."""
        ...

    @abstractmethod
    def within(self, value: V, low: int, high: int) -> V:
        """The same number, which is from `low` to `high` wherever it matters."""
        ...

    # ---- numbers

    @abstractmethod
    def number(self, value: int) -> V:
        """A constant."""
        ...

    @abstractmethod
    def add(self, left: V, right: V) -> V:
        """The sum."""
        ...

    @abstractmethod
    def subtract(self, left: V, right: V) -> V:
        """The difference."""
        ...

    @abstractmethod
    def multiply(self, left: V, right: V) -> V:
        """The product."""
        ...

    @abstractmethod
    def quotient(self, left: V, by: int) -> V:
        """The quotient by a positive constant, rounded down."""
        ...

    @abstractmethod
    def remainder(self, left: V, by: int) -> V:
        """The remainder that belongs to `quotient`, never negative."""
        ...

    @abstractmethod
    def less(self, left: V, right: V) -> V:
        """Whether the left number is less."""
        ...

    # ---- every sort

    @abstractmethod
    def equal(self, left: V, right: V) -> V:
        """Whether two values of one sort are equal."""
        ...

    @abstractmethod
    def choose(self, condition: V, then: V, otherwise: V) -> V:
        """One of two values of one sort."""
        ...

    # ---- truth values

    @abstractmethod
    def truth(self, value: bool) -> V:
        """A constant."""
        ...

    @abstractmethod
    def both(self, left: V, right: V) -> V:
        """And."""
        ...

    @abstractmethod
    def negation(self, value: V) -> V:
        """Not."""
        ...

    def either(self, left: V, right: V) -> V:
        """Or."""
        return self.negation(self.both(self.negation(left), self.negation(right)))

    def at_most(self, left: V, right: V) -> V:
        """Whether the left number is less or equal."""
        return self.negation(self.less(right, left))

    # ---- sets

    @abstractmethod
    def set_of(self, members: Sequence[V]) -> V:
        """The set of those i for which the i-th truth value holds."""
        ...

    @abstractmethod
    def width(self, chosen: V) -> int:
        """A number that every member is below."""
        ...

    @abstractmethod
    def has(self, chosen: V, member: int) -> V:
        """Whether a known member is in a set."""
        ...

    def mask(self, bits: int) -> V:
        """A constant set, bit i for member i."""
        return self.set_of([self.truth(bool(bits >> i & 1)) for i in range(bits.bit_length())])

    def single(self, member: V, count: int) -> V:
        """The set of one member, below `count`."""
        return self.set_of([self.equal(member, self.number(i)) for i in range(count)])

    def contains(self, chosen: V, member: V) -> V:
        """Whether a member is in a set."""
        low, high = self.range(member)
        found = self.truth(False)
        for i in range(max(0, low), min(high + 1, self.width(chosen))):
            found = self.either(found, self.both(self.equal(member, self.number(i)), self.has(chosen, i)))
        return found

    def union(self, left: V, right: V) -> V:
        """Members of either set."""
        count = max(self.width(left), self.width(right))
        return self.set_of([self.either(self.has(left, i), self.has(right, i)) for i in range(count)])

    def common(self, left: V, right: V) -> V:
        """Members of both sets."""
        count = min(self.width(left), self.width(right))
        return self.set_of([self.both(self.has(left, i), self.has(right, i)) for i in range(count)])

    def without(self, left: V, right: V) -> V:
        """Members of the left set only."""
        members = [self.both(self.has(left, i), self.negation(self.has(right, i))) for i in range(self.width(left))]
        return self.set_of(members)

    def size(self, chosen: V) -> V:
        """The number of members."""
        total, zero, one = self.number(0), self.number(0), self.number(1)
        for i in range(self.width(chosen)):
            total = self.add(total, self.choose(self.has(chosen, i), one, zero))
        return total

    # ---- elements

    def select(self, index: V, first: int, elements: Sequence[V]) -> V:
        """The element at an index; `elements` (at least one) are those at `first`, `first` + 1 and so on."""
        known = self.constant(index)
        if known is not None:
            return elements[known - first]
        chosen = elements[-1]
        for i in range(len(elements) - 2, -1, -1):
            chosen = self.choose(self.equal(index, self.number(first + i)), elements[i], chosen)
        return chosen


class ConcreteDomain(Domain[int]):
    """Plain integers: everything is known, so nothing is ever merged, and an evaluation is one execution."""

    def constant(self, value: int) -> int | None:
        return value

    def range(self, value: int) -> tuple[int, int]:
        return value, value

    def within(self, value: int, low: int, high: int) -> int:
        return value

    def number(self, value: int) -> int:
        return value

    def add(self, left: int, right: int) -> int:
        return left + right

    def subtract(self, left: int, right: int) -> int:
        return left - right

    def multiply(self, left: int, right: int) -> int:
        return left * right

    def quotient(self, left: int, by: int) -> int:
        return left // by

    def remainder(self, left: int, by: int) -> int:
        return left % by

    def less(self, left: int, right: int) -> int:
        return int(left < right)

    def equal(self, left: int, right: int) -> int:
        return int(left == right)

    def choose(self, condition: int, then: int, otherwise: int) -> int:
        return then if condition else otherwise

    def truth(self, value: bool) -> int:
        return int(value)

    def both(self, left: int, right: int) -> int:
        return left & right

    def either(self, left: int, right: int) -> int:
        return left | right

    def negation(self, value: int) -> int:
        return 1 - value

    def set_of(self, members: Sequence[int]) -> int:
        return sum(1 << i for i, member in enumerate(members) if member)

    def width(self, chosen: int) -> int:
        return chosen.bit_length()

    def has(self, chosen: int, member: int) -> int:
        return chosen >> member & 1

    def mask(self, bits: int) -> int:
        return bits

    def single(self, member: int, count: int) -> int:
        return 1 << member

    def contains(self, chosen: int, member: int) -> int:
        return chosen >> member & 1 if member >= 0 else 0

    def union(self, left: int, right: int) -> int:
        return left | right

    def common(self, left: int, right: int) -> int:
        return left & right

    def without(self, left: int, right: int) -> int:
        return left & ~right

    def size(self, chosen: int) -> int:
        return chosen.bit_count()
