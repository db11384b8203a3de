"""An arbitrary state of a spec, and arbitrary arguments: any values within their ranges, for states up to names of members."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ...spec.lang import BoundSpec
from ...spec.lang.evaluate_memory import literal
from ...spec.lang.layout import ArrayShape, Leaf, RecordShape, SeqShape, SetShape, Shape
from ...spec.lang.types import Bool, SetOf
from .terms import Term, Terms, symbolic_cells


class Place(NamedTuple):
    """A cell: where it lies, in how many parts, in arrays over which indices, in elements of which sequences.

    An element is (cell of the sequence's length, its position).
    """

    at: int
    leaf: Leaf | SetShape
    depth: int = 0
    arrays: frozenset[str] = frozenset()
    elements: tuple[tuple[int, int], ...] = ()


class Arbitrary:
    """The cells of a state of which only this is known: ranges, blank cells beyond the length of sequences, order of names.

    `facts` are the last two. Members of an index that may be relabelled are named in the order in which they first appear in
    sequences, the outermost ones first, after those in `named`: of all states that differ only in names one is left, as is
    enough for what does not depend on names; where `named` is None, all are left. `known` are cells that are constants; `mark`
    tells the variables of one state from those of another.
    """

    def __init__(
        self,
        bound: BoundSpec,
        terms: Terms,
        known: Mapping[int, int] | None = None,
        named: Mapping[str, int] | None = None,
        mark: str = "",
    ) -> None:
        self.bound, self.terms = bound, terms
        self.places = list(_places(bound.shape, Place(0, Leaf("int", 0, 0))))
        leaves = dict(bound.cells())
        made = enumerate(symbolic_cells(bound, terms, mark))
        self.cells = tuple(literal(terms, leaves[i], known[i]) if known and i in known else cell for i, cell in made)
        names = () if named is None else self._names(named)
        self.facts = [fact for fact in (*self._blank(), *names) if fact is not terms.yes]

    def variables(self) -> dict[int, Term]:
        """The cells that are not known, by number; sets left out."""
        return {at: cell for at, cell in enumerate(self.cells) if cell.op == "variable"}

    def _blank(self) -> Iterator[Term]:
        """A cell beyond the length of a sequence that it is an element of is blank."""
        blank = self.bound.shape.blank
        for place in self.places:
            for length, position in place.elements:
                beyond = self.terms.negation(self._longer(length, position))
                value = literal(self.terms, place.leaf, blank[place.at])
                yield self._implies(beyond, self.terms.equal(self.cells[place.at], value))

    def _names(self, named: Mapping[str, int]) -> Iterator[Term]:
        """Members are numbered in the order of their first appearance, index after index."""
        terms, permutable = self.terms, self.bound.permutable()
        fixed = {name for name in self.bound.indices() if name not in permutable}
        for index, size in permutable.items():
            seen = [terms.truth(member < named.get(index, 0)) for member in range(size)]
            for place in sorted(self._holding(index, fixed), key=lambda place: place.depth):
                here = [terms.both(self._there(place), terms.equal(self.cells[place.at], terms.number(m))) for m in range(size)]
                yield from (self._implies(here[member], seen[member - 1]) for member in range(1, size))
                seen = [terms.either(old, new) for old, new in zip(seen, here, strict=True)]
            fixed.add(index)

    def _holding(self, index: str, fixed: set[str]) -> list[Place]:
        """The cells that hold members of an index, and lie where they are whatever they are named."""
        return [p for p in self.places if isinstance(p.leaf, Leaf) and p.leaf.index == index and p.arrays <= fixed]

    def _there(self, place: Place) -> Term:
        """Whether a cell is within all the sequences that it is an element of."""
        there = self.terms.yes
        for length, position in place.elements:
            there = self.terms.both(there, self._longer(length, position))
        return there

    def _longer(self, length: int, position: int) -> Term:
        return self.terms.less(self.terms.number(position), self.cells[length])

    def _implies(self, left: Term, right: Term) -> Term:
        return self.terms.either(self.terms.negation(left), right)


def any_value(terms: Terms, kind: Any, domain: range, name: str) -> Term:
    """Any value of a parameter or local."""
    if isinstance(kind, Bool):
        return terms.unknown(name)
    if isinstance(kind, SetOf):
        return terms.set_of([terms.unknown(f"{name}.{i}") for i in range((domain.stop - 1).bit_length())])
    return terms.variable(name, domain.start, domain.stop - 1)


def _places(shape: Shape, at: Place) -> Iterator[Place]:
    """Every cell of a shape that lies at a place."""
    match shape:
        case RecordShape():
            for _, offset, part in shape.fields:
                yield from _places(part, at._replace(at=at.at + offset, depth=at.depth + 1))
        case ArrayShape():
            arrays = at.arrays | {shape.index} if shape.index else at.arrays
            for i in range(shape.count):
                yield from _places(shape.item, at._replace(at=at.at + i * shape.item.size, depth=at.depth + 1, arrays=arrays))
        case SeqShape():
            yield at._replace(leaf=Leaf("int", 0, shape.capacity))
            for i in range(shape.capacity):
                inside = at._replace(at=at.at + 1 + i * shape.item.size, depth=at.depth + 1)
                yield from _places(shape.item, inside._replace(elements=(*at.elements, (at.at, i))))
        case _:
            yield at._replace(leaf=shape)
