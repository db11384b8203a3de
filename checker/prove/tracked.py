"""States in which a few members of an index are told apart, and all others are just "another one".

What is said of one arbitrary member is shown of a tracked one: by symmetry it may be any. The others have one number
between them, and what depends on which of them it is may be anything: whether two of them are the same, what an array holds
at one, what becomes of what is stored there. So whatever a run does with all members told apart, one of these does, too:
what holds here holds there. The other way round it need not be, so a counterexample says nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import count
from typing import Any

from ...spec.lang import BoundSpec, Property, Rule
from ...spec.lang import tree as t
from ...spec.lang.bind import LoopInvariant
from ...spec.lang.bounds import Index
from ...spec.lang.errors import Place
from ...spec.lang.evaluate import Evaluator, Obligation, Outcome
from ...spec.lang.evaluate_memory import Location
from ...spec.lang.evaluate_property import PropertyRun
from ...spec.lang.evaluate_statements import Left, Run
from ...spec.lang.layout import ArrayShape, Leaf, RecordShape, SeqShape, SetShape, Shape
from ...spec.lang.types import Array, Member, SetOf
from .alarms import Alarms, alarms_of, raises
from .pruned import Possible, PrunedRun
from .segment import Segment
from .terms import Term, Terms


class Untracked(Exception):
    """The spec does something that is not followed where only some members are told apart."""


class TrackedBound(BoundSpec):
    """A bound spec in whose states the first `told` members of an index are told apart; number `told` is any other one."""

    def __init__(self, bound: BoundSpec, index: str, told: int) -> None:
        vars(self).update(vars(bound))
        self.index, self.told, self.size = index, told, int(bound.values[index])
        self.fresh = count()
        self.spoken: dict[int, list[t.Local]] = {}
        self.alarms: Alarms = {}
        self.guards: frozenset[str] = frozenset()
        for loop in self.loops:
            for parameter in loop.declared.parameters:
                if isinstance(parameter.type, Member | SetOf) and parameter.type.index.name == index:
                    raise Untracked
        shape = self.collapsed(bound.shape)
        assert isinstance(shape, RecordShape)
        self.shape = shape

    def knowing(self, facts: Sequence[Property]) -> TrackedBound:
        """The same where these facts are shown together: the variables of which one says that they never change are alarms.

        `guards` are the names of the facts that say so.
        """
        made = copy.copy(self)
        made.alarms = alarms_of(self, facts)
        made.guards = frozenset(fact.name for fact in facts if alarms_of(self, [fact]))
        return made

    def tracks(self, prop: Property | LoopInvariant) -> bool:
        """Whether a property is about no more arbitrary members than are told apart."""
        return tracked_by(self, prop, self.index) <= self.told

    def indices(self) -> dict[str, int]:
        """Its members have no order of names any more, and lie in no fixed place."""
        return {name: size for name, size in super().indices().items() if name != self.index}

    def rule(self, rule: Rule) -> Rule:
        """An action with arguments as they are here."""
        kinds = [parameter.type for parameter in rule.declared.parameters]
        return replace(rule, domains=tuple(self._domain_here(kind, d) for kind, d in zip(kinds, rule.domains, strict=True)))

    def _domain_here(self, kind: Any, domain: range) -> range:
        if isinstance(kind, Member):
            return range(self.told + 1) if kind.index.name == self.index else domain
        if isinstance(kind, SetOf) and kind.index.name == self.index:
            raise Untracked
        return domain

    def collapsed(self, shape: Shape) -> Shape:
        """A shape with fewer members."""
        match shape:
            case Leaf(index=self.index):
                return replace(shape, high=self.told)
            case SetShape(index=self.index):
                return replace(shape, count=self.told + 1)
            case ArrayShape():
                number = self.told + 1 if shape.index == self.index else shape.count
                return replace(shape, count=number, item=self.collapsed(shape.item))
            case SeqShape():
                return replace(shape, item=self.collapsed(shape.item))
            case RecordShape():
                fields, offset = list[tuple[str, int, Shape]](), 0
                for name, _, inner in shape.fields:
                    fields.append((name, offset, self.collapsed(inner)))
                    offset += fields[-1][2].size
                return RecordShape(shape.name, tuple(fields), offset)
            case _:
                return shape


class Tracking(Run[Term]):
    """Evaluates in such states.

    `top` is a quantifier whose every instance is to hold; only those of tracked members count. `elsewhere` says where what
    must hold is taken to hold. A run `acts` if it is one of an action.
    """

    bound: TrackedBound
    domain: Terms
    top: t.Expr | None = None
    elsewhere: Term | None = None
    acts = True

    @cached_property
    def others_at(self) -> set[int]:
        """Where places begin that may be another one's."""
        return set()

    def _tracks(self, index: Any) -> bool:
        return isinstance(index, Index) and index.name == self.bound.index

    def _truth(self) -> Term:
        return self.domain.unknown(f"other.{next(self.bound.fresh)}")

    def _any(self, shape: Leaf | SetShape) -> Term:
        if isinstance(shape, SetShape):
            return self.domain.set_of([self._truth() for _ in range(shape.count)])
        if shape.kind == "bool":
            return self._truth()
        return self.domain.variable(f"other.{next(self.bound.fresh)}", shape.low, shape.high)

    def _is_other(self, member: Term) -> Term:
        return self.domain.equal(member, self.domain.number(self.bound.told))

    def _perhaps(self, equal: Term, left: Term, right: Term) -> Term:
        """Whether two are the same, if their numbers are: of two others that is not known."""
        domain = self.domain
        if self.never(equal) or any(domain.range(one)[1] < self.bound.told for one in (left, right)):
            return equal
        return domain.both(equal, domain.either(domain.negation(self._is_other(left)), self._truth()))

    def nowhere(self, shape: Shape) -> Location:
        return super().nowhere(self.bound.collapsed(shape))

    # ---- two others may be one or not

    def same(self, left: Term, left_type: Any, right: Term, right_type: Any) -> Term:
        equal = super().same(left, left_type, right, right_type)
        if not (self._tracks(left_type.index) or self._tracks(right_type.index)):
            return equal
        return self._perhaps(equal, left, right)

    def equal_places(self, one: Location, two: Location) -> Term:
        same, domain = self.true, self.domain
        contents = zip(self.memory.contents(one), self.memory.contents(two), self._cells_of(one.shape), strict=True)
        for left, right, (leaf, junk) in contents:
            if junk:
                here = self._truth()
            elif isinstance(leaf, Leaf) and leaf.index == self.bound.index:
                here = self._perhaps(domain.equal(left, right), left, right)
            elif isinstance(leaf, SetShape) and leaf.index == self.bound.index:
                here = self._truth()
                for member in range(self.bound.told):
                    alike = domain.equal(domain.has(left, member), domain.has(right, member))
                    here = domain.both(here, alike)
            else:
                here = domain.equal(left, right)
            same = domain.both(same, here)
        return same

    def _cells_of(self, shape: Shape, *, junk: bool = False) -> Iterator[tuple[Leaf | SetShape, bool]]:
        """The leaf of each cell, and whether it is what an array holds at another one."""
        match shape:
            case ArrayShape():
                for i in range(shape.count):
                    yield from self._cells_of(
                        shape.item, junk=junk or (shape.index == self.bound.index and i == self.bound.told)
                    )
            case SeqShape():
                yield Leaf("int", 0, shape.capacity), junk
                for _ in range(shape.capacity):
                    yield from self._cells_of(shape.item, junk=junk)
            case RecordShape():
                for _, _, inner in shape.fields:
                    yield from self._cells_of(inner, junk=junk)
            case _:
                yield shape, junk

    # ---- an array holds anything at another one

    def element_at(self, container: Location, index: Term, place: Any) -> Location:
        found, shape = super().element_at(container, index, place), container.shape
        if isinstance(shape, ArrayShape) and shape.index == self.bound.index and self.domain.range(index)[1] == self.bound.told:
            if container.steps or not isinstance(shape.item, Leaf | SetShape):
                raise Untracked
            self.memory.cells[container.at + self.bound.told] = self._any(shape.item)
            self.others_at.add(found.at)
        return found

    def _bind(self, name: str, item: Term | Location) -> None:
        """A place that keeps a name is not followed where it may be one of another one: two of them are two places."""
        if isinstance(item, Location) and isinstance(item.shape, Leaf | SetShape) and item.at in self.others_at:
            raise Untracked
        super()._bind(name, item)

    def is_in(self, item: Term, kind: t.Scalar, container: Location) -> Term:
        if isinstance(container.shape, ArrayShape) and container.shape.index == self.bound.index:
            raise Untracked
        return super().is_in(item, kind, container)

    # ---- what must hold, and alarms

    def _statement(self, node: t.Stmt) -> Left[Term]:
        outer, self.elsewhere = self.elsewhere, self._of_another(node)
        left = super()._statement(node)
        self.elsewhere = outer
        return left

    def _of_another(self, node: t.Stmt) -> Term | None:
        """That a statement of an action is about another one, if there are no statements in it."""
        return None if isinstance(node, t.If | t.For) else self._about_another(node)

    def _about_another(self, node: t.Stmt | t.Expr) -> Term | None:
        """That what an action does is about another one: the first member of which it speaks by name."""
        if not self.acts:
            return None
        if id(node) not in self.bound.spoken:
            self.bound.spoken[id(node)] = list(self._spoken_of(node))
        slots, cells = self.frame.slots, self.memory.cells
        known = (one for one in self.bound.spoken[id(node)] if one.name in slots and cells[slots[one.name]] is not None)
        return next((self._is_other(self.value(part)) for part in known), None)

    def _spoken_of(self, node: t.Stmt | t.Expr) -> Iterator[t.Local]:
        """The locals that surely are members, but for those that a quantifier inside has."""
        parts = list(t.walk(node))
        bound = {part.variable for part in parts if isinstance(part, t.Loop)}
        for part in parts:
            if isinstance(part, t.Local) and isinstance(part.type, t.Scalar) and part.name not in bound:
                kind = part.type
                if self._tracks(kind.index) and not kind.maybe:
                    yield part

    def oblige(self, condition: Term, place: Place, rule: str) -> None:
        """What must hold in a statement about a member is to be shown of tracked ones.

        A run that breaks something, or raises an alarm, does so a first time; if that is about a member, it may be the tracked
        one. So of others it is taken that it holds, as long as there is no alarm: where it does not, the run ends here, as one
        that is not enabled. Nothing is excluded that comes after the first time, nor but for the member that it is about.
        """
        if self.elsewhere is None:
            super().oblige(condition, place, rule)
            return
        domain, taken = self.domain, self.domain.both(self.elsewhere, self._quiet())
        super().oblige(domain.either(condition, taken), place, rule)
        self.demand(domain.either(condition, domain.negation(taken)))

    def room(self, base: Location, length: Term, new: list[Term], place: Place) -> Term:
        """A sequence with room for every member overflows only where one is in it twice by then: that may be a tracked one."""
        shape, outer = base.shape, self.elsewhere
        assert isinstance(shape, SeqShape)
        item, room = shape.item, shape.capacity >= self.bound.size
        if self.acts and room and isinstance(item, Leaf) and item.index == self.bound.index and not item.maybe:
            self.elsewhere = self.domain.negation(self._twice(base, new[0]))
        length = super().room(base, length, new, place)
        self.elsewhere = outer
        return length

    def _twice(self, base: Location, new: Term) -> Term:
        """That the first tracked member is in a sequence twice, once it gets another element."""
        domain, member, length = self.domain, self.domain.number(0), self.memory.length(base)
        assert isinstance(base.shape, SeqShape)
        once, twice = domain.equal(new, member), self.false
        for i in range(base.shape.capacity):
            held = self.memory.load(self.memory.element(base, domain.number(i), i, i))
            here = domain.both(domain.less(domain.number(i), length), domain.equal(held, member))
            twice = domain.either(twice, domain.both(once, here))
            once = domain.either(once, here)
        return twice

    def _quiet(self) -> Term:
        """No alarm was raised so far."""
        domain, quiet = self.domain, self.true
        for name, value in self.bound.alarms.items():
            found = self.bound.shape.field(name)
            assert found is not None
            quiet = domain.both(quiet, domain.is_value(self.memory.cells[found[0]], value))
        return quiet

    def _do_if(self, node: t.If) -> Left[Term]:
        """An alarm that is about a member is not raised for others, as long as there is none."""
        another = self._about_another(node.condition) if raises(node.then, self.bound.alarms) else None
        if another is None:
            return super()._do_if(node)
        condition = self.value(node.condition)
        excluded = self.domain.both(another, self._quiet())  # after the condition, which may raise one itself
        condition = self.domain.both(self.domain.negation(excluded), condition)
        return self._branch(condition, partial(self._block, node.then), partial(self._block, node.otherwise))

    # ---- sets

    def told_apart(self, index: Any) -> int:
        return self.bound.told + 1 if self._tracks(index) else super().told_apart(index)

    def in_set(self, item: Term, node: t.Contains, index: Any) -> Term:
        here = super().in_set(item, node, index)
        return self.domain.choose(self._is_other(item), self._truth(), here) if self._tracks(index) else here

    def _compare(self, node: t.Compare) -> Term:
        if isinstance(node.left.type, t.SetValue):
            self._refuse(node.left)
            self._refuse(node.right)
        return super()._compare(node)

    def _length(self, node: t.Length) -> Term:
        self._refuse(node.container)
        return super()._length(node)

    def _refuse(self, node: t.Expr) -> None:
        """Sets of members, and arrays with an element for each, are not looked at as a whole."""
        kind = node.type
        if isinstance(kind, t.SetValue) and self._tracks(kind.index):
            raise Untracked
        if isinstance(kind, t.PlaceType) and isinstance(kind.type, Array) and self._tracks(kind.type.size):
            raise Untracked

    # ---- loops over all of them

    def trips(self, loop: t.Loop) -> Iterator[Any]:
        if loop.source is not None:
            self._refuse(loop.source)
        return super().trips(loop)

    def _iterations(self, node: t.For, level: int) -> Iterator[Any]:
        if is_over(node.loop, self.bound.index):
            raise Untracked
        return super()._iterations(node, level)

    def _clauses(self, node: t.Quantified, clauses: tuple[t.Clause, ...], guard: Term, total: list[Term]) -> None:
        if not clauses or not is_over(clauses[0].loop, self.bound.index):
            super()._clauses(node, clauses, guard, total)
            return
        loop, frame = clauses[0].loop, self.frame
        assert loop.variable is not None
        for member in range(self.bound.told):
            frame.quantified[loop.variable] = self.domain.number(member)
            self._filtered(node, clauses, clauses[0].conditions, guard, total)
        if node is not self.top:
            frame.quantified[loop.variable] = self.domain.number(self.bound.told)
            self._others(node, clauses, guard, total)

    def _others(self, node: t.Quantified, clauses: tuple[t.Clause, ...], guard: Term, total: list[Term]) -> None:
        """What all others may come to: anything that so many of any one can."""
        domain, number = self.domain, self.bound.size - self.bound.told
        if node.op == "set":
            raise Untracked
        one = [{"all": self.true, "any": self.false, "sum": domain.number(0)}[node.op]]
        self._filtered(node, clauses, clauses[0].conditions, guard, one)
        if node.op == "sum":
            low, high = domain.range(one[0])
            total[0] = domain.add(total[0], domain.variable(f"other.{next(self.bound.fresh)}", low * number, high * number))
        elif node.op == "all" and not self.surely(one[0]):
            total[0] = domain.both(total[0], domain.either(domain.negation(guard), self._truth()))
        elif node.op == "any" and not self.never(one[0]):
            total[0] = domain.either(total[0], domain.both(guard, self._truth()))


class TrackedPrunedRun(Tracking, PrunedRun):
    """A run in such states along paths that can be taken only."""


class TrackedSegment(Tracking, Segment):
    """A piece of an action in such states."""


class TrackedProperty(Tracking, PropertyRun[Term]):
    """A property of such states. What a helper says of "another one" need not be said of the same one again."""

    acts = False

    def is_fixed(self, argument: Term | Location, kind: Any) -> bool:
        if isinstance(argument, Term) and self._tracks(_index(kind)) and self.domain.range(argument)[1] >= self.bound.told:
            return False
        return super().is_fixed(argument, kind)


class TrackedEvaluator(Evaluator[Term]):
    """Evaluates properties of tracked members, and actions along paths that can be taken."""

    def __init__(self, bound: TrackedBound, terms: Terms, possible: Possible | None = None) -> None:
        super().__init__(bound, terms)
        self.bound, self.terms, self.possible = bound, terms, possible

    def action(self, cells: Sequence[Term], rule: Rule, args: Sequence[Term]) -> Outcome[Term]:
        run: Run[Term] = Tracking(self.bound, self.domain, cells)
        if self.possible is not None:
            run = TrackedPrunedRun(self.bound, self.terms, cells, self.possible)
        run.function(self.functions.of(rule.declared.function), args)
        return Outcome(run.enabled, tuple(run.memory.cells[: len(cells)]), tuple(run.obligations))

    def condition(self, prop: Property, cells: Sequence[Term]) -> tuple[Term, tuple[Obligation[Term], ...]]:
        run = TrackedProperty(self.bound, self.domain, cells)
        assert prop.declared.declaration.condition is not None
        value = run.function(self.functions.of(prop.declared.declaration.condition), ())
        assert value is not None
        return value, tuple(run.obligations)

    def _run(self, function: t.Function, states: Sequence[Sequence[Term]]) -> PropertyRun[Term]:
        run = TrackedProperty(self.bound, self.domain, *states)
        run.top = quantifier_of(function)
        return run


def _index(kind: Any) -> Any:
    return getattr(kind, "index", None)


def is_over(loop: t.Loop, index: str) -> bool:
    """Whether a loop is over all members of an index, and uses them."""
    return loop.kind == "range" and getattr(_index(loop.type), "name", None) == index


def quantifier_of(function: t.Function) -> t.Quantified | None:
    """The quantifier that a function returns, if `all(…)` is all that it does."""
    match function.body:
        case (t.Return(value=t.Quantified(op="all") as made),):
            return made
        case _:
            return None


def tracked_by(bound: BoundSpec, prop: Property | LoopInvariant, index: str) -> int:
    """How many arbitrary members of an index a property is about: the variables over it that `all(…)` has on top."""
    assert bound.spec.elaborated is not None
    top = quantifier_of(bound.spec.elaborated.of(prop.declared.function))
    return 0 if top is None else sum(is_over(clause.loop, index) for clause in top.clauses)


def tracked_bounds(bound: BoundSpec, properties: Sequence[Property]) -> list[TrackedBound]:
    """The ways to tell few members apart that help with these: of the largest index about whose members they are."""
    sizes = bound.permutable()
    about = {index: {tracked_by(bound, prop, index) for prop in properties} - {0} for index in sizes}
    found = sorted((index for index in sizes if about[index]), key=lambda index: -sizes[index])
    numbers = [(index, told) for index in found[:1] for told in sorted(about[index]) if told + 1 < sizes[index]]
    try:
        return [TrackedBound(bound, index, told) for index, told in numbers]
    except Untracked:
        return []
