"""Candidates for lemmas: facts of a few simple forms that hold in all states explored and rule a counterexample out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import TYPE_CHECKING

from ...spec.lang import BoundSpec, Index, State
from ...spec.lang.layout import ArrayShape, Leaf, SeqShape, SetShape
from ..report.words import count
from .proof import Gap, Proof

if TYPE_CHECKING:
    from rich.console import Console

BOOLEAN = ("False", "True")
SHOWN = 8
"""Most candidates that are printed for one counterexample."""


@dataclass(frozen=True)
class Quantity:
    """Something of a state, or of each member of an index: its words in the spec's language, and its value."""

    words: str
    index: str | None
    value: Callable[[State, int], int]
    low: int
    high: int
    labels: tuple[str, ...] = ()
    """What its values are called, where it is a truth value or one of an enumeration."""

    @property
    def guard(self) -> bool:
        """Whether it tells members apart by few values, such as a status or a place in a list."""
        return bool(self.labels)


@dataclass(frozen=True)
class Candidate:
    """A fact in the spec's words, about every member of an index where there is one."""

    words: str
    index: str | None
    holds: Callable[[State, int], bool]


def suggestions(bound: BoundSpec, gap: Gap, states: Sequence[State]) -> list[Candidate]:
    """Candidates that are true in all these states and false in the state of the gap, simple ones first."""
    assert gap.unkept is not None
    wrong = gap.unkept.before
    found: list[Candidate] = []
    for candidate in _candidates(bound):
        members = _members(bound, candidate.index)
        if all(candidate.holds(wrong, member) for member in members):
            continue
        if all(candidate.holds(state, member) for state in states for member in members):
            found.append(candidate)
    return found


def _members(bound: BoundSpec, index: str | None) -> range:
    """The members of an index, or numbers below a plain size."""
    if index is None:
        return range(1)
    return range(int(index) if index.isdecimal() else bound.indices()[index])


def print_suggestions(out: Console, bound: BoundSpec, proof: Proof) -> None:
    """Print candidates for every counterexample to induction that is not a reachable state."""
    if proof.reached is None:
        return
    states = sorted(proof.reached.states)
    for gap in proof.gaps:
        if gap.unkept is None or gap.unkept.inside or gap.reachable:
            continue
        found = suggestions(bound, gap, states)
        out.print()
        out.print(f"Would rule out the state that breaks {gap.name}, and hold in {count(len(states), 'state')} explored:")
        for candidate in found[:SHOWN]:
            out.print(f"  {_quantified(bound, candidate)}")
        if len(found) > SHOWN:
            out.print(f"  and {len(found) - SHOWN} more")
        if not found:
            out.print("  nothing of the forms that are tried (docs/prove.md)")


def _quantified(bound: BoundSpec, candidate: Candidate) -> str:
    """A candidate as it would stand in the spec, where an index has the name that it was given there."""
    if candidate.index is None:
        return candidate.words
    named = (n for n, v in vars(bound.spec.module).items() if isinstance(v, Index) and v.name == candidate.index)
    return f"all({candidate.words} for i in range({next(named, candidate.index)}))"


def _candidates(bound: BoundSpec) -> Iterator[Candidate]:
    quantities = list(_quantities(bound))
    yield from (c for one in quantities for c in _constant(one))
    for one, other in permutations(quantities, 2):
        if one.index == other.index or other.index is None:
            yield from _related(one, other)
    guards = [q for q in quantities if q.guard and q.index is not None]
    for guard, one in product(guards, quantities):
        turned = one.guard and quantities.index(one) <= quantities.index(guard)  # not a implies not b is b implies a
        if one.index == guard.index and not turned:
            yield from _guarded(guard, one)


def _constant(one: Quantity) -> Iterator[Candidate]:
    words = _is(one, one.low) if one.guard else f"{one.words} == {one.low}"
    yield Candidate(words, one.index, lambda s, i: one.value(s, i) == one.low)
    if not one.guard:
        yield Candidate(f"{one.words} < {one.high}", one.index, lambda s, i: one.value(s, i) < one.high)


def _related(one: Quantity, other: Quantity) -> Iterator[Candidate]:
    if one.guard or other.guard:
        return
    yield Candidate(f"{one.words} <= {other.words}", one.index, lambda s, i: one.value(s, i) <= other.value(s, i))


def _guarded(guard: Quantity, one: Quantity) -> Iterator[Candidate]:
    for value in range(guard.low, guard.high + 1):
        if one.guard:
            for other in range(one.low, one.high + 1):
                words = f"implies({_is(guard, value)}, {_is_not(one, other)})"
                yield Candidate(words, guard.index, _implies(guard, value, one, lambda found, other=other: found != other))
            continue
        least, words = one.low, f"implies({_is(guard, value)}, {one.words}"
        yield Candidate(f"{words} == {least})", guard.index, _implies(guard, value, one, lambda found, x=least: found == x))
        yield Candidate(f"{words} > {least})", guard.index, _implies(guard, value, one, lambda found, x=least: found > x))


def _is(one: Quantity, value: int) -> str:
    """That a truth value or one of an enumeration has a value, in words."""
    if one.labels == BOOLEAN:
        return one.words if value else f"not {one.words}"
    return f"{one.words} == {one.labels[value]}"


def _is_not(one: Quantity, value: int) -> str:
    return _is(one, 1 - value) if one.labels == BOOLEAN else f"{one.words} != {one.labels[value]}"


def _implies(guard: Quantity, value: int, one: Quantity, right: Callable[[int], bool]) -> Callable[[State, int], bool]:
    return lambda s, i: guard.value(s, i) != value or right(one.value(s, i))


def _quantities(bound: BoundSpec) -> Iterator[Quantity]:
    """What the state has: numbers, truth values, lengths of sequences, and whether a member stands in one."""
    for name, at, shape in bound.shape.fields:
        match shape:
            case Leaf(kind=kind, low=low, high=high) if kind != "index":
                yield Quantity(f"s.{name}", None, lambda s, i, at=at: s[at], low, high, _labels(shape))
            case Leaf(index=str(index)):
                yield Quantity(f"(s.{name} == i)", index, lambda s, i, at=at: int(s[at] == i), 0, 1, BOOLEAN)
            case SetShape(index=index):
                yield Quantity(f"(i in s.{name})", index, lambda s, i, at=at: s[at] >> i & 1, 0, 1, BOOLEAN)
            case SeqShape(capacity=most, item=item):
                yield Quantity(f"len(s.{name})", None, lambda s, i, at=at: s[at], 0, most)
                if isinstance(item, Leaf) and item.index is not None:
                    yield Quantity(f"(i in s.{name})", item.index, _stands(at), 0, 1, BOOLEAN)
            case ArrayShape(item=Leaf(kind=kind, low=low, high=high) as leaf) if kind != "index":
                yield Quantity(f"s.{name}[i]", _over(shape), lambda s, i, at=at: s[at + i], low, high, _labels(leaf))
            case ArrayShape(item=SeqShape(capacity=most) as item):
                size = item.size
                yield Quantity(f"len(s.{name}[i])", _over(shape), lambda s, i, at=at, size=size: s[at + i * size], 0, most)
            case _:
                pass


def _over(shape: ArrayShape) -> str:
    return shape.index or str(shape.count)


def _labels(leaf: Leaf) -> tuple[str, ...]:
    if leaf.enum is not None and leaf.low == 0:
        return tuple(f"{leaf.enum.__name__}.{member.name}" for member in leaf.enum)
    return BOOLEAN if leaf.kind == "bool" else ()


def _stands(at: int) -> Callable[[State, int], int]:
    return lambda s, i: int(i in s[at + 1 : at + 1 + s[at]])
