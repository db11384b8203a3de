"""Lowering of expressions: typed trees to dialect text. Values are pure text; what can fail or act is a line."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ....spec.lang import tree as t
from ....spec.lang.bounds import number_at
from ....spec.lang.layout import ArrayShape, Leaf, RecordShape, SeqShape, SetShape, shape_of
from .emit import GREATEST, LEAST, TOO_LARGE, Address, Emitter, Value, number, truth
from .lower_sequences import Sequences

if TYPE_CHECKING:
    from .lower import Lowering

SIGNS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip


class ExpressionLowering(Sequences):
    """Lowers the expressions of one function.

    `roots` are the addresses of the state and of the successor, `reassigned` the locals with more than one assignment,
    `singles` what is known of the values of the others, `cover` the number of the first left side of this property.
    """

    def __init__(self, owner: Lowering, emitter: Emitter, reassigned: frozenset[str], cover: int) -> None:
        super().__init__(owner.layout, emitter)
        self.owner, self.reassigned, self.cover = owner, reassigned, cover
        self.roots = ["s", "t"]
        self.singles: dict[str, Value] = {}

    # ---- scalars

    def value(self, node: t.Expr) -> Value:
        """A scalar or set value as pure text."""
        made: Value = getattr(self, "_" + type(node).__name__.lower())(node)
        return made

    def defined(self, node: t.Expr) -> Value:
        """A number or member that must not be None."""
        return self.is_defined(self.value(node), node)

    def kept(self, node: t.Expr) -> Value:
        """A scalar evaluated here and once."""
        return self.emit.keep(self.value(node))

    def leaf_of(self, kind: Any) -> tuple[int, int]:
        """The least and greatest value of an expression of a type."""
        if isinstance(kind, t.SetValue):
            size = 63 if kind.index is None else number_at(kind.index, self.owner.values)
            return 0, (1 << size) - 1
        if kind.kind == "bool":
            return 0, 1
        if kind.kind == "index":
            return (-1 if kind.maybe else 0), number_at(kind.index, self.owner.values) - 1
        return LEAST, GREATEST

    def _const(self, node: t.Const) -> Value:
        return number(number_at(node.value, self.owner.values))

    def _switchis(self, node: t.SwitchIs) -> Value:
        return number(int(self.owner.values[node.switch.name] in node.choices))

    def _local(self, node: t.Local) -> Value:
        known = self.singles.get(node.name)
        low, high = self.leaf_of(node.type)
        if known is not None:
            low, high = max(low, known.low), min(high, known.high)
            if known.constant is not None:
                return number(known.constant)
        return Value(f"l_{node.name}", low, high)

    def _fieldof(self, node: t.FieldOf) -> Value:
        return self._load(self.address(node))

    def _element(self, node: t.Element) -> Value:
        return self._load(self.address(node))

    def _load(self, address: Address) -> Value:
        shape = address.shape
        assert isinstance(shape, Leaf | SetShape)
        low, high = (0, (1 << shape.count) - 1) if isinstance(shape, SetShape) else (shape.low, shape.high)
        if low == high:
            return number(low)
        return Value(self.layout.load(shape, address.text), low, high)

    def pure(self, node: t.Expr) -> Value:
        """A value that later lines cannot change: loads and locals get a name of their own."""
        value = self.value(node)
        if value.constant is not None:
            return value
        name = self.emit.name()
        self.emit.line(f"{name} = {value.text}")
        return replace(value, text=name)

    def settled(self, address: Address) -> Address:
        """The address, out of reach of what later lines do to the cells and locals that it is computed from."""
        if not any("load" in term or self.reassigned & set(_LOCAL.findall(term)) for term in address.terms):
            return address
        name = self.emit.name("a")
        self.emit.line(f"{name} = {address.text}")
        return Address(name, address.shape)

    def not_negative(self, value: Value, node: t.Expr, kind: Any) -> Value:
        """A number that becomes a number or None: it must not look like None."""
        if not isinstance(kind, t.Scalar) or not kind.maybe or node.type.maybe:
            return value
        rule = "a negative number stands where None is possible"
        return self.emit.check_range(value, 0, GREATEST, node.place, rule)

    def pair(self, left: t.Expr, right: t.Expr) -> tuple[Value, Value]:
        """Two scalars, evaluated from left to right."""
        first = self.pure(left) if acts(right) else self.value(left)
        return first, self.value(right)

    def _binary(self, node: t.Binary) -> Value:
        if isinstance(node.type, t.SetValue):
            return self._set_operation(node)
        left, right = self.pair(node.left, node.right)
        left, right = self.is_defined(left, node.left), self.is_defined(right, node.right)
        if node.op in ("//", "%"):
            return self._divide(node, left, right)
        ends = [
            {"+": operator.add, "-": operator.sub, "*": operator.mul}[node.op](a, b)
            for a in (left.low, left.high)
            for b in (right.low, right.high)
        ]
        low, high = min(ends), max(ends)
        if low == high:
            return number(low)
        if low < LEAST or high > GREATEST:
            left, right = self.emit.keep(left), self.emit.keep(right)
            test = {"+": "add", "-": "sub", "*": "mul"}[node.op] + "_overflows"
            self.emit.fail_if(f"{test}({left.text}, {right.text})", node.place, TOO_LARGE)
        return Value(f"({left.text} {node.op} {right.text})", max(low, LEAST), min(high, GREATEST))

    def is_defined(self, value: Value, node: t.Expr) -> Value:
        """A number or member, checked not to be None."""
        if not node.type.maybe:
            return value
        value = self.emit.keep(value)
        self.emit.fail_if(f"{value.text} == -1", node.place, "None is used as a number")
        return replace(value, low=max(0, value.low))

    def _divide(self, node: t.Binary, left: Value, right: Value) -> Value:
        by = right.constant
        if by is None or by == 0:
            self.emit.fail_if("1", node.place, "division by zero")
            return number(0)
        if left.constant is not None:
            return number(left.constant // by if node.op == "//" else left.constant % by)
        if node.op == "%":
            return Value(f"({left.text} % {by})", min(0, by + 1), max(0, by - 1))
        if by == -1 and left.low == LEAST:
            left = self.emit.keep(left)
            self.emit.fail_if(f"sub_overflows(0, {left.text})", node.place, TOO_LARGE)
        ends = left.low // by, left.high // by
        return Value(f"({left.text} // {by})", max(min(ends), LEAST), min(max(ends), GREATEST))

    def _set_operation(self, node: t.Binary) -> Value:
        if isinstance(node.left.type, t.PlaceType):
            left, right = self.mask(node.left), self.mask(node.right)
        else:
            left, right = self.pair(node.left, node.right)
        low, high = self.leaf_of(node.type)
        if node.op == "-":
            return Value(f"({left.text} & ~{right.text})", low, high)
        if node.op == "|" and right.constant == 0:
            return left
        return Value(f"({left.text} {node.op} {right.text})", low, high)

    def mask(self, node: t.Expr) -> Value:
        """A set as a bit mask, whether it is a value or a place."""
        return self._load(self.address(node)) if isinstance(node.type, t.PlaceType) else self.value(node)

    def _unary(self, node: t.Unary) -> Value:
        if node.op == "int":
            return self.value(node.operand)
        value = self.defined(node.operand)
        if value.low == LEAST:
            value = self.emit.keep(value)
            self.emit.fail_if(f"sub_overflows(0, {value.text})", node.place, TOO_LARGE)
        if node.op == "neg":
            return Value(f"(0 - {value.text})", max(-value.high, LEAST), min(-value.low, GREATEST))
        low = 0 if value.low < 0 < value.high else min(abs(value.low), abs(value.high))
        return Value(f"abs({value.text})", low, min(max(abs(value.low), abs(value.high)), GREATEST))

    def _minmax(self, node: t.MinMax) -> Value:
        values = [self.pure(part) if any(map(acts, node.parts)) else self.value(part) for part in node.parts]
        values = [self.is_defined(value, part) for value, part in zip(values, node.parts, strict=True)]
        pick = min if node.op == "min" else max
        low, high = pick(v.low for v in values), pick(v.high for v in values)
        return number(low) if low == high else Value(f"{node.op}({', '.join(v.text for v in values)})", low, high)

    # ---- truth values

    def _compare(self, node: t.Compare) -> Value:
        if isinstance(node.left.type, t.PlaceType):
            first = self.settled(self.address(node.left)) if acts(node.right) else self.address(node.left)
            same = self.equal_places(first, self.address(node.right))
            return same if node.op == "==" else truth(f"(1 - {same.text})")
        left = self.pure(node.left) if acts(node.right) else self.value(node.left)
        if isinstance(node.left.type, t.SetValue):
            return self._compare_sets(node, left, self.value(node.right))
        right = self.value(node.right)
        if node.op not in ("==", "!="):
            left, right = self.is_defined(left, node.left), self.is_defined(right, node.right)
        return self._decide(node, left, right)

    def _decide(self, node: t.Compare, left: Value, right: Value) -> Value:
        if t.NOTHING in (node.left.type, node.right.type) and not (node.left.type.maybe and node.right.type.maybe):
            return number(int(node.op == "!="))
        if left.constant is not None and right.constant is not None:
            return number(int(SIGNS[node.op](left.constant, right.constant)))
        if left.high < right.low:
            return number(int(node.op in ("!=", "<", "<=")))
        if left.low > right.high:
            return number(int(node.op in ("!=", ">", ">=")))
        text = f"({left.text} {node.op} {right.text})"
        if node.op in ("==", "!=") and node.left.type.maybe != node.right.type.maybe:
            plain = right if node.left.type.maybe else left
            if plain.low < 0 and t.NOTHING not in (node.left.type, node.right.type):
                plain = self.emit.keep(plain)
                both = f"({left.text} == {right.text} and {plain.text} >= 0)"
                return truth(both if node.op == "==" else f"(not {both})")
        return truth(text)

    def _compare_sets(self, node: t.Compare, left: Value, right: Value) -> Value:
        if node.op in ("==", "!="):
            return truth(f"({left.text} {node.op} {right.text})")
        inner, outer = (left, right) if node.op == "<=" else (right, left)
        return truth(f"(({inner.text} & ~{outer.text}) == 0)")

    def _not(self, node: t.Not) -> Value:
        value = self.value(node.operand)
        return number(1 - value.constant) if value.constant is not None else truth(f"(not {value.text})")

    def _logic(self, node: t.Logic) -> Value:
        stop = 0 if node.op == "and" else 1
        result = self.value(node.parts[0])
        for part in node.parts[1:]:
            if result.constant == stop:
                return result
            if result.constant is not None:
                result = self.value(part)
                continue
            with self.emit.aside() as lines:
                self.emit.depth += 1
                value = self.value(part)
                self.emit.depth -= 1
            if not lines:
                result = truth(f"({result.text} {'&' if stop == 0 else '|'} {value.text})")
                continue
            name = self.emit.name()
            self.emit.line(f"{name} = {result.text}")
            with self.emit.block(f"if {name}:" if stop == 0 else f"if not {name}:"):
                self.emit.lines += lines
                self.emit.line(f"{name} = {value.text}")
            result = truth(name)
        return result

    def _choice(self, node: t.Choice) -> Value:
        condition = self.value(node.condition)
        if condition.constant is not None:
            return self.value(node.then if condition.constant else node.otherwise)
        name = self.emit.name()
        with self.emit.block(f"if {condition.text}:"):
            then = self.not_negative(self.value(node.then), node.then, node.type)
            self.emit.line(f"{name} = {then.text}")
        with self.emit.block("else:"):
            otherwise = self.not_negative(self.value(node.otherwise), node.otherwise, node.type)
            self.emit.line(f"{name} = {otherwise.text}")
        return Value(name, min(then.low, otherwise.low), max(then.high, otherwise.high))

    def _seen(self, node: t.Seen) -> Value:
        value = self.emit.keep(self.value(node.operand))
        with self.emit.block(f"if {value.text}:"):
            self.emit.line(f"store8(cover + {self.cover + node.number}, 1)")
        return value

    def _implies(self, node: t.Implies) -> Value:
        left, right = self.pair(node.left, node.right)
        return truth(f"((not {left.text}) | {right.text})")

    def _contains(self, node: t.Contains) -> Value:
        item = self.kept(node.item)
        if isinstance(node.container.type, t.SetValue):
            return self._in_set(node, item)
        container = self.address(node.container)
        name, i = self.emit.name(), self.emit.name("i")
        shape = container.shape
        assert isinstance(shape, SeqShape | ArrayShape)
        if node.item.type == t.NOTHING and not getattr(shape.item, "maybe", False):
            return number(0)
        self.emit.line(f"{name} = 0")
        with self.emit.block(f"for {i} in range({self.length(container).text}):"):
            element = self._load(self.slot(container, i))
            match = f"{element.text} == {item.text}"
            assert isinstance(shape.item, Leaf)
            if element.low < 0 <= item.high and item.low < 0 and shape.item.maybe != node.item.type.maybe:
                match += f" and {item.text} >= 0" if node.item.type != t.NOTHING else ""
            with self.emit.block(f"if {match}:"):
                self.emit.line(f"{name} = 1")
                self.emit.line("break")
        return truth(name)

    def _in_set(self, node: t.Contains, item: Value) -> Value:
        container, index = node.container, node.container.type.index
        if index is None:
            return number(0)
        size = number_at(index, self.owner.values)
        if isinstance(container, t.Binary) and isinstance(container.left.type, t.PlaceType):
            rule = f"a value that is not a member of an index of {size} is looked for in a set"
            item = self.emit.check_range(item, 0, size - 1, node.place, rule)
        mask = self.value(container)
        if item.within(0, size - 1):
            return truth(f"(lshr({mask.text}, {item.text}) & 1)")
        return truth(f"(ult({item.text}, {size}) & lshr({mask.text}, {item.text} & 63))")

    def _length(self, node: t.Length) -> Value:
        if isinstance(node.container.type, t.SetValue):
            return Value(f"popcount({self.value(node.container).text})", 0, 63)
        return self.length(self.address(node.container))

    def _display(self, node: t.Display) -> Value:
        bits = [f"(1 << {self.member(self.pure(i), i, node.type.index).text})" for i in node.items]
        return Value("(" + " | ".join(bits) + ")", *self.leaf_of(node.type))

    def member(self, value: Value, node: t.Expr, index: Any) -> Value:
        """The value, checked to be a member of an index."""
        size = number_at(index, self.owner.values)
        return self.emit.check_range(value, 0, size - 1, node.place, f"a value is not a member of an index of {size}")

    # ---- places

    def address(self, node: t.Expr) -> Address:
        """Where a place (or the cell of a scalar) lies; subscripts are checked."""
        match node:
            case t.Root(number=which):
                return Address(self.roots[which], self.owner.bound.shape)
            case t.Local():
                return Address(f"l_{node.name}", shape_of(node.type.type, self.owner.values))
            case t.FieldOf(base=base, name=name):
                inside = self.address(base)
                assert isinstance(inside.shape, RecordShape)
                found = inside.shape.field(name)
                assert found is not None
                return inside.plus(self.layout.field_offset(inside.shape, name), found[1])
            case t.Element(base=base, index=index):
                return self._element_address(self.address(base), index)
            case t.Fresh():
                return self.fresh(shape_of(node.type.type, self.owner.values))
            case t.Method(name="grow"):
                return self.grow(self.address(node.base), node.place)
            case _:
                raise TypeError(node)

    def _element_address(self, container: Address, index: t.Expr) -> Address:
        shape = container.shape
        assert isinstance(shape, ArrayShape | SeqShape)
        key = self.value(index)
        if isinstance(shape, ArrayShape):
            rule = f"an index is outside an array of {shape.count}"
            key = self.emit.check_range(key, 0, shape.count - 1, index.place, rule)
        else:
            key = self.emit.keep(key)
            length = self.length(container)
            self.emit.fail_if(f"not ult({key.text}, {length.text})", index.place, "an index is outside a sequence")
        return self.slot(container, key.text, key.constant)


_LOCAL = re.compile(r"\bl_(\w+)")


def acts(node: Any) -> bool:
    """Whether evaluating an expression can change what another one reads."""
    if isinstance(node, t.Method):
        return True
    if isinstance(node, t.Call):
        return any(e.kind != "read" for e in node.function.effects) or any(map(acts, node.arguments))
    if isinstance(node, tuple):
        return any(map(acts, cast("tuple[Any, ...]", node)))
    if isinstance(node, t.Expr | t.Clause | t.Loop):
        return any(acts(part) for part in vars(node).values())
    return False


__all__ = ["ExpressionLowering", "acts"]
