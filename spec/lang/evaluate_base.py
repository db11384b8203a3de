"""What an evaluation keeps track of: its path, what was required, what was obliged, and the variables of a call."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from . import tree as t
from .bind import BoundSpec
from .domain import Domain
from .errors import FencepostSpecError, Place
from .evaluate_memory import Location, Memory
from .layout import Leaf, Shape, describe_leaf

V = TypeVar("V")

MOST_TRIPS = 4096


class UnboundedLoop(FencepostSpecError):
    """A loop whose number of iterations is neither known nor bounded by what is known of its ends."""

    def __init__(self, place: Place) -> None:
        self.place = place
        super().__init__(f"{place}: nothing bounds how often this loop runs; loop over a bound and leave with break")


class Obligation(NamedTuple, Generic[V]):
    """What must hold for the spec to keep its own bounds: the condition, the place and what is wrong where it fails."""

    condition: V
    place: Place
    rule: str


@dataclass
class Frame(Generic[V]):
    """The variables of one call: cells of locals, places that have a name, variables of quantifiers.

    `level` is the scope of the function, `loops` those of its loops and their iterations, `result` the cell of its result.
    """

    level: int
    result: int
    loops: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    slots: dict[str, int] = field(default_factory=dict[str, int])
    places: dict[str, Location] = field(default_factory=dict[str, Location])
    quantified: dict[str, Any] = field(default_factory=dict[str, Any])


class Evaluation(Generic[V]):
    """One evaluation of a function of a spec.

    `path` is the condition under which control is here, `enabled` that no `require` has failed so far, `sides` the left sides
    of a property by number. An evaluation is
    `aborted` where an obligation or requirement is known to fail; what comes after in the same block is skipped.
    """

    def __init__(self, bound: BoundSpec, domain: Domain[V]) -> None:
        self.bound, self.values, self.domain = bound, bound.values, domain
        self.memory: Memory[V] = Memory(domain)
        self.true, self.false = domain.truth(True), domain.truth(False)
        self.path: V = self.true
        self.enabled: V = self.true
        self.aborted = False
        self.obligations: list[Obligation[V]] = []
        self.sides: dict[int, V] = {}
        self.roots: list[int] = []
        self.frame: Frame[V] = Frame(0, 0)

    # ---- what is known

    def note_side(self, number: int, held: V) -> None:
        """A left side is evaluated here: it holds in this evaluation if it does here or elsewhere."""
        here = self.domain.both(self.path, held)
        self.sides[number] = self.domain.either(self.sides.get(number, self.false), here)

    def surely(self, condition: V) -> bool:
        """Whether a condition is known to hold."""
        return self.domain.constant(condition) == 1

    def never(self, condition: V) -> bool:
        """Whether a condition is known not to hold."""
        return self.domain.constant(condition) == 0

    # ---- what must hold

    def oblige(self, condition: V, place: Place, rule: str) -> None:
        """Note that a condition must hold here."""
        if self.surely(condition):
            return
        domain = self.domain
        alive = domain.both(self.path, self.enabled)
        wanted = domain.either(domain.negation(alive), condition)
        if not self.surely(wanted):
            self.obligations.append(Obligation(wanted, place, rule))
        if self.never(condition):
            self.aborted = True

    def demand(self, condition: V) -> None:
        """Note that the action is enabled only if a condition holds here."""
        domain = self.domain
        self.enabled = domain.both(self.enabled, domain.either(domain.negation(self.path), condition))
        if self.never(condition):
            self.aborted = True

    def ranged(self, value: V, low: int, high: int, place: Place, rule: str) -> V:
        """A number that must be from `low` to `high`."""
        domain = self.domain
        least, greatest = domain.range(value)
        if low <= least and greatest <= high:
            return value
        if least > high or greatest < low:
            self.oblige(self.false, place, rule)
            return domain.number(low)
        holds = self.true
        if least < low:
            holds = domain.at_most(domain.number(low), value)
        if greatest > high:
            holds = domain.both(holds, domain.at_most(value, domain.number(high)))
        self.oblige(holds, place, rule)
        return domain.within(value, max(low, least), min(high, greatest))

    def defined(self, value: V, kind: Any, place: Place) -> V:
        """A number or member that must not be None."""
        domain = self.domain
        least, greatest = domain.range(value)
        if not kind.maybe or least > -1:
            return value
        self.oblige(domain.negation(domain.equal(value, domain.number(-1))), place, "None is used as a number")
        return domain.within(value, 0, max(0, greatest)) if least == -1 else value

    def fitted(self, value: V, kind: Any, leaf: Leaf, place: Place) -> V:
        """A scalar of this type that is to be stored in a cell."""
        if leaf.kind == "bool":
            return value
        if kind.maybe and not leaf.maybe:
            value = self.defined(value, kind, place)
        low = 0 if leaf.maybe and not kind.maybe else leaf.low
        return self.ranged(value, low, leaf.high, place, f"a value is stored where {describe_leaf(leaf)} is declared")

    # ---- paths

    @contextmanager
    def guarded(self, condition: V) -> Generator[None]:
        """Evaluate what follows only where a condition holds: what it writes is merged with what was there."""
        if self.surely(condition):
            yield
            return
        path, mark, aborted = self.path, len(self.memory.log), self.aborted
        self.path = self.domain.both(path, condition)
        yield
        self.path, self.aborted = path, aborted
        if len(self.memory.log) > mark:
            self.memory.merge([(condition, self.memory.take_back(mark))], {})

    # ---- places

    def nowhere(self, shape: Shape) -> Location:
        """A place for what is outside everything."""
        return Location(self.memory.allocate(self.memory.blank(shape)), shape)

    def same(self, left: V, left_type: Any, right: V, right_type: Any) -> V:
        """Whether two scalars are equal; None equals no number, also not the -1 that stands for it."""
        domain = self.domain
        if t.NOTHING in (left_type, right_type) and not (right_type if left_type == t.NOTHING else left_type).maybe:
            return self.false
        equal = domain.equal(left, right)
        if left_type.maybe != right_type.maybe and t.NOTHING not in (left_type, right_type):
            plain = right if left_type.maybe else left
            if domain.range(plain)[0] < 0:
                equal = domain.both(equal, domain.at_most(domain.number(0), plain))
        return equal
