"""Evaluation of expressions: typed trees to domain values and places."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

from . import tree as t
from .bounds import number_at
from .evaluate_base import MOST_TRIPS, UnboundedLoop
from .evaluate_memory import Location
from .evaluate_sequences import Sequences
from .layout import Leaf, RecordShape, SetShape, shape_of

V = TypeVar("V")


class Trip(NamedTuple):
    """One iteration of a loop: it runs where both conditions hold; once `more` fails, no later one runs."""

    runs: Any
    more: Any
    item: Any


class Expressions(Sequences[V]):
    """Evaluates expressions. What stands behind a short circuit is guarded."""

    # ---- scalars and sets

    def value(self, node: t.Expr) -> V:
        """The value of a scalar or set."""
        made: V = getattr(self, "_" + type(node).__name__.lower())(node)
        return made

    def _number(self, node: t.Expr) -> V:
        return self.defined(self.value(node), node.type, node.place)

    def _const(self, node: t.Const) -> V:
        value = number_at(node.value, self.values)
        if isinstance(node.type, t.SetValue):
            return self.domain.mask(value)
        return self.domain.truth(bool(value)) if node.type == t.BOOL else self.domain.number(value)

    def _switchis(self, node: t.SwitchIs) -> V:
        return self.domain.truth(self.values[node.switch.name] in node.choices)

    def _local(self, node: t.Local) -> V:
        frame = self.frame
        return frame.quantified[node.name] if node.name in frame.quantified else self.memory.cells[frame.slots[node.name]]

    def _fieldof(self, node: t.FieldOf) -> V:
        return self.memory.load(self.location(node))

    def _element(self, node: t.Element) -> V:
        return self.memory.load(self.location(node))

    def _binary(self, node: t.Binary) -> V:
        if isinstance(node.type, t.SetValue):
            return self.combine_sets(node.op, self._set(node.left), self._set(node.right))
        left, right = self.value(node.left), self.value(node.right)
        return self.combine(node.op, self.defined(left, node.left.type, node.left.place), right, node.right)

    def combine(self, op: str, left: V, right: V, node: t.Expr) -> V:
        """Arithmetic on two numbers; `node` is the right one."""
        domain, right = self.domain, self.defined(right, node.type, node.place)
        if op in ("//", "%"):
            by = domain.constant(right)
            if by is None or by <= 0:
                self.oblige(self.false, node.place, "division by a number that is not positive")
                return domain.number(0)
            return domain.quotient(left, by) if op == "//" else domain.remainder(left, by)
        if op == "*":
            return domain.multiply(left, right)
        return domain.add(left, right) if op == "+" else domain.subtract(left, right)

    def combine_sets(self, op: str, left: V, right: V) -> V:
        """`|`, `&` and `-` on sets."""
        if op == "|":
            return self.domain.union(left, right)
        return self.domain.common(left, right) if op == "&" else self.domain.without(left, right)

    def _set(self, node: t.Expr) -> V:
        return self.memory.load(self.location(node)) if isinstance(node.type, t.PlaceType) else self.value(node)

    def _unary(self, node: t.Unary) -> V:
        domain, zero = self.domain, self.domain.number(0)
        if node.op == "int":
            return domain.choose(self.value(node.operand), domain.number(1), zero)
        value = self._number(node.operand)
        negative = domain.subtract(zero, value)
        return negative if node.op == "neg" else domain.choose(domain.less(value, zero), negative, value)

    def _minmax(self, node: t.MinMax) -> V:
        domain, values = self.domain, [self._number(part) for part in node.parts]
        result = values[0]
        for value in values[1:]:
            first, second = (result, value) if node.op == "min" else (value, result)
            result = domain.choose(domain.at_most(first, second), result, value)
        return result

    def _length(self, node: t.Length) -> V:
        if isinstance(node.container.type, t.SetValue):
            return self.domain.size(self.value(node.container))
        return self.memory.length(self.location(node.container))

    def _display(self, node: t.Display) -> V:
        made = self.domain.mask(0)
        for item in node.items:
            made = self.domain.union(made, self.single(self.value(item), item, node.type.index))
        return made

    def told_apart(self, index: Any) -> int:
        """How many members of an index sets tell apart."""
        return number_at(index, self.values)

    def single(self, value: V, node: t.Expr, index: Any) -> V:
        """The set of one member of an index."""
        count = self.told_apart(index)
        rule = f"a value is not a member of an index of {count}"
        return self.domain.single(self.ranged(value, 0, count - 1, node.place, rule), count)

    # ---- truth values

    def _compare(self, node: t.Compare) -> V:
        domain = self.domain
        if isinstance(node.left.type, t.PlaceType):
            same = self.equal_places(self.location(node.left), self.location(node.right))
            return same if node.op == "==" else domain.negation(same)
        left, right = self.value(node.left), self.value(node.right)
        if node.op in ("==", "!="):
            sets = isinstance(node.left.type, t.SetValue)
            same = domain.equal(left, right) if sets else self.same(left, node.left.type, right, node.right.type)
            return same if node.op == "==" else domain.negation(same)
        if isinstance(node.left.type, t.SetValue):
            inner, outer = (left, right) if node.op == "<=" else (right, left)
            return domain.equal(domain.without(inner, outer), domain.mask(0))
        left = self.defined(left, node.left.type, node.left.place)
        right = self.defined(right, node.right.type, node.right.place)
        first, second = (left, right) if node.op in ("<", "<=") else (right, left)
        return domain.less(first, second) if node.op in ("<", ">") else domain.at_most(first, second)

    def _not(self, node: t.Not) -> V:
        return self.domain.negation(self.value(node.operand))

    def _logic(self, node: t.Logic) -> V:
        domain = self.domain
        result = self.value(node.parts[0])
        for part in node.parts[1:]:
            goes_on = result if node.op == "and" else domain.negation(result)
            if self.never(goes_on):
                return result
            with self.guarded(goes_on):
                value = self.value(part)
            result = domain.both(result, value) if node.op == "and" else domain.either(result, value)
        return result

    def _choice(self, node: t.Choice) -> V:
        domain = self.domain
        condition = self.value(node.condition)
        if self.surely(condition) or self.never(condition):
            return self.value(node.then if self.surely(condition) else node.otherwise)
        with self.guarded(condition):
            then = self.value(node.then)
        with self.guarded(domain.negation(condition)):
            otherwise = self.value(node.otherwise)
        return domain.choose(condition, then, otherwise)

    def _seen(self, node: t.Seen) -> V:
        held = self.value(node.operand)
        self.note_side(node.number, held)
        return held

    def _implies(self, node: t.Implies) -> V:
        left = self.value(node.left)
        return self.domain.either(self.domain.negation(left), self.value(node.right))

    def _contains(self, node: t.Contains) -> V:
        item, container = self.value(node.item), node.container
        if not isinstance(container.type, t.SetValue):
            return self.is_in(item, node.item.type, self.location(container))
        return self.in_set(item, node, container.type.index)

    def in_set(self, item: V, node: t.Contains, index: Any) -> V:
        """Whether a value is in a set of members of an index."""
        container = node.container
        if isinstance(container, t.Binary) and isinstance(container.left.type, t.PlaceType):
            count = self.told_apart(index)
            rule = f"a value that is not a member of an index of {count} is looked for in a set"
            item = self.ranged(item, 0, count - 1, node.place, rule)
        return self.domain.contains(self.value(container), item)

    # ---- quantifiers

    def _quantified(self, node: t.Quantified) -> V:
        domain, frame = self.domain, self.frame
        start = {"all": self.true, "any": self.false, "sum": domain.number(0), "set": domain.mask(0)}[node.op]
        before, frame.quantified, total = frame.quantified, dict(frame.quantified), [start]
        self._clauses(node, node.clauses, self.true, total)
        frame.quantified = before
        return total[0]

    def _clauses(self, node: t.Quantified, clauses: tuple[t.Clause, ...], guard: V, total: list[V]) -> None:
        if not clauses:
            self._gather(node, guard, total)
            return
        loop, domain, frame = clauses[0].loop, self.domain, self.frame
        for trip in self.trips(loop):
            runs = domain.both(trip.runs, trip.more)
            if self.never(trip.more):
                break
            if self.never(runs):
                continue
            if loop.variable is not None:
                frame.quantified[loop.variable] = trip.item
            with self.guarded(runs):
                self._filtered(node, clauses, clauses[0].conditions, domain.both(guard, runs), total)

    def _filtered(
        self, node: t.Quantified, clauses: tuple[t.Clause, ...], conditions: tuple[t.Expr, ...], guard: V, total: list[V]
    ) -> None:
        if not conditions:
            self._clauses(node, clauses[1:], guard, total)
            return
        holds = self.value(conditions[0])
        if not self.never(holds):
            with self.guarded(holds):
                self._filtered(node, clauses, conditions[1:], self.domain.both(guard, holds), total)

    def _gather(self, node: t.Quantified, guard: V, total: list[V]) -> None:
        domain, value = self.domain, self.value(node.element)
        if node.side is not None:
            self.note_side(node.side, self.true)
        match node.op:
            case "all":
                total[0] = domain.both(total[0], domain.either(domain.negation(guard), value))
            case "any":
                total[0] = domain.either(total[0], domain.both(guard, value))
            case "sum":
                zero = domain.number(0)
                if node.element.type == t.BOOL:
                    value = domain.choose(domain.both(guard, value), domain.number(1), zero)
                else:
                    value = domain.choose(guard, self.defined(value, node.element.type, node.element.place), zero)
                total[0] = domain.add(total[0], value)
            case _:
                single = self.single(value, node.element, node.type.index)
                total[0] = domain.union(total[0], domain.choose(guard, single, domain.mask(0)))

    # ---- loops

    def trips(self, loop: t.Loop) -> Iterator[Trip]:
        """The iterations that a loop may have, in order; `UnboundedLoop` where nothing bounds them."""
        domain = self.domain
        if loop.kind == "range":
            yield from self._numbers(loop)
        elif loop.kind == "items":
            assert loop.source is not None
            source = self.location(loop.source)
            length = self.memory.length(source)
            order = range(domain.range(length)[1])
            for i in reversed(order) if loop.backwards else order:
                here = domain.less(domain.number(i), length)
                runs, more = (here, self.true) if loop.backwards else (self.true, here)
                if not self.never(here):
                    place = self.memory.element(source, domain.number(i), i, i)
                    item = place if isinstance(loop.type, t.PlaceType) else self.memory.load(place)
                    yield Trip(runs, more, item)
        else:
            assert loop.source is not None
            members = self.value(loop.source)
            for i in range(domain.width(members)):
                yield Trip(domain.has(members, i), self.true, domain.number(i))

    def _numbers(self, loop: t.Loop) -> Iterator[Trip]:
        domain, start, stop = self.domain, loop.start, loop.stop
        assert start is not None
        assert stop is not None
        start, stop = self._number(start), self._number(stop)
        first, last = domain.range(start)[0], domain.range(stop)[1]
        known = domain.constant(start) is not None and domain.constant(stop) is not None
        if last - first > MOST_TRIPS and not known:
            raise UnboundedLoop(loop.place)
        for i in range(first, last):
            number = domain.number(i)
            yield Trip(domain.at_most(start, number), domain.less(number, stop), number)

    # ---- places

    def location(self, node: t.Expr) -> Location:
        """Where a place, or the cell of a scalar, lies; what is done to find it is done."""
        match node:
            case t.Root(number=number):
                return Location(self.roots[number], self.bound.shape)
            case t.Local(name=name):
                frame = self.frame
                return frame.quantified[name] if name in frame.quantified else frame.places[name]
            case t.FieldOf(base=base, name=name):
                whole = self.location(base)
                assert isinstance(whole.shape, RecordShape)
                found = whole.shape.field(name)
                assert found is not None
                return whole.plus(*found)
            case t.Element(base=base, index=index):
                container = self.location(base)
                return self.element_at(container, self.value(index), index.place)
            case t.Fresh():
                return self.nowhere(shape_of(node.type.type, self.values))
            case t.Method(name="grow", base=base):
                return self.grow(self.location(base), node.place)
            case _:
                raise TypeError(node)

    # ---- calls

    @abstractmethod
    def call(self, node: t.Call) -> V | None:
        """Call a helper; returns what it returns."""

    def _call(self, node: t.Call) -> V:
        value = self.call(node)
        assert value is not None
        return value

    def _method(self, node: t.Method) -> V:
        value = self.method(node)
        assert value is not None
        return value

    def method(self, node: t.Method) -> V | None:
        """A method of a sequence, set or other place; returns what a pop takes out."""
        memory, name = self.memory, node.name
        base = self.location(node.base)
        if name == "clear":
            memory.replace(base, memory.blank(base.shape))
        elif isinstance(base.shape, SetShape):
            argument = node.arguments[0]
            one = self.single(self.value(argument), argument, node.base.type.type.index)
            memory.store(base, self.combine_sets("|" if name == "add" else "-", memory.load(base), one))
        elif name == "grow":
            self.grow(base, node.place)
        elif name in ("append", "push_front", "insert"):
            at = self._number(node.arguments[0]) if name == "insert" else None
            self.insert(name, base, at, self._cells(node.arguments[-1], base.shape), node.place)
        else:
            argument = node.arguments[0] if node.arguments else None
            value = self.value(argument) if argument is not None else None
            if name == "remove_at" and value is not None and argument is not None:
                value = self.defined(value, argument.type, argument.place)
            return self.take(name, base, value, node)
        return None

    def _cells(self, node: t.Expr, container: Any) -> list[V]:
        """An element to be stored, as cells."""
        shape = container.item
        if isinstance(shape, Leaf):
            return [self.fitted(self.value(node), node.type, shape, node.place)]
        return [self._set(node)] if isinstance(shape, SetShape) else self.memory.contents(self.location(node))
