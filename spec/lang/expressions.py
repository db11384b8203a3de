"""The front end for expressions: names resolved, types given, order-dependence on indices noticed."""

from __future__ import annotations

import ast
from enum import IntEnum
from typing import Any

from .bounds import Index, Number, Switch
from .calls import Calls
from .rules import value_type
from .tree import (
    BOOL,
    INT,
    NOTHING,
    Binary,
    Choice,
    Compare,
    Const,
    Contains,
    Element,
    Expr,
    FieldOf,
    Logic,
    Not,
    PlaceType,
    Scalar,
    Seen,
    SetValue,
    SwitchIs,
    Unary,
)
from .types import Array, Record, Seq, Type

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitOr: "|",
    ast.BitAnd: "&",
}
COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "==", ast.IsNot: "!="
}  # fmt: skip
GREATEST = (1 << 62) - 1
"""The greatest number that a spec may write."""


class Expressions(Calls):
    """Makes typed expressions of syntax within one function."""

    # ---- names and constants

    def _constant(self, node: ast.Constant) -> Expr:
        value, place = node.value, self.place(node)
        if value is None:
            return Const(NOTHING, place, -1)
        if isinstance(value, bool):
            return Const(BOOL, place, int(value))
        if isinstance(value, int):
            return self._whole(value, node)
        code = "FP122" if isinstance(value, str) else "FP102"
        raise self.fail(node, code, f"{_short(repr(value))} is not a value of the language")

    def _whole(self, value: int, node: ast.expr) -> Expr:
        if not -GREATEST <= value <= GREATEST:
            raise self.fail(node, "FP102", "a number this large is not part of the spec language", "stay within 62 bits")
        return Const(INT, self.place(node), value)

    def _name(self, node: ast.Name) -> Expr:
        local = self.owner.local(node)
        if local is not None:
            return local
        value, place = self.owner.global_name(node), self.place(node)
        if isinstance(value, Number):
            return Const(INT, place, value)
        if isinstance(value, bool):
            return Const(BOOL, place, int(value))
        if isinstance(value, int):
            return self._whole(int(value), node)
        if isinstance(value, Switch):
            raise self.fail(node, "FP122", f"switch {value.name} is only compared with its choices, by == or in")
        rule = f"{node.id} is neither a local, a bound, a whole-number constant nor a function here"
        raise self.fail(node, "FP105", rule)

    def _attribute(self, node: ast.Attribute) -> Expr:
        enum = self.owner.global_name(node.value, quiet=True) if isinstance(node.value, ast.Name) else None
        if isinstance(enum, type) and issubclass(enum, IntEnum):
            if node.attr not in enum.__members__:
                raise self.fail(node, "FP105", f"{enum.__name__} has no member {node.attr}")
            return Const(INT, self.place(node), int(enum[node.attr]))
        base = self.make(node.value)
        if not (isinstance(base.type, PlaceType) and isinstance(base.type.type, Record)):
            raise self.fail(node, "FP105", f"{base.type} has no field {node.attr}")
        for name, written in base.type.type.fields:
            if name == node.attr:
                return self._part(FieldOf, base, name, written, (*base.type.path, name), node)
        known = ", ".join(name for name, _ in base.type.type.fields)
        raise self.fail(node, "FP105", f"{base.type.type.name} has no field {node.attr}", f"it has {known}")

    def _part(self, make: Any, base: Expr, key: Any, written: Type, path: tuple[str, ...], node: ast.AST) -> Expr:
        kind = value_type(written, path)
        if isinstance(kind, Scalar):
            self.owner.effect("read", path, self.place(node))
        return make(kind, self.place(node), base, key)

    def _subscript(self, node: ast.Subscript) -> Expr:
        base = self.make(node.value)
        if not (isinstance(base.type, PlaceType) and isinstance(base.type.type, Array | Seq)):
            raise self.fail(node, "FP107", f"{base.type} has no elements to pick with [ ]")
        if isinstance(node.slice, ast.UnaryOp) and isinstance(node.slice.op, ast.USub):
            raise self.fail(node, "FP102", "a negative index is not part of the spec language", "write q[len(q) - 1]")
        written = base.type.type
        if isinstance(written, Array) and isinstance(written.size, Index):
            key = self.fits(self.make(node.slice), Scalar("index", written.size), node.slice)
        else:
            key = self.number(node.slice)
        return self._part(Element, base, key, written.item, (*base.type.path, "[]"), node)

    # ---- operators

    def _binop(self, node: ast.BinOp) -> Expr:
        op = BINARY.get(type(node.op))
        if op is None:
            raise self.fail(node, "FP102", f"the operator in {ast.unparse(node)} is not part of the spec language")
        left, right, place = self.make(node.left), self.make(node.right), self.place(node)
        if self.is_set(left) or self.is_set(right):
            if op not in "|&-":
                raise self.fail(node, "FP107", f"{op} does not go with sets")
            left, right = self.as_set(left, node.left), self.as_set(right, node.right)
            return Binary(self._common(left, right, node), place, op, left, right)
        if op in "|&":
            raise self.fail(node, "FP107", f"{op} goes with sets only")
        left, right = self.as_number(left, node.left), self.as_number(right, node.right)
        if op in ("//", "%"):
            self.divides(right, op, node)
        return Binary(INT, place, op, left, right)

    def divides(self, by: Expr, op: str, node: ast.AST) -> None:
        """Refuse to divide by what is not a constant, or is 0 or less."""
        if not isinstance(by, Const) or (isinstance(by.value, int) and by.value <= 0):
            raise self.fail(node, "FP116", f"{op} needs a positive constant or a bound on its right")

    def _common(self, left: Expr, right: Expr, node: ast.AST) -> SetValue:
        first, second = left.type.index, right.type.index
        if first is not None and second is not None and first is not second:
            raise self.fail(node, "FP107", f"sets of {first} and of {second} do not mix")
        return SetValue(first if first is not None else second)

    def _unaryop(self, node: ast.UnaryOp) -> Expr:
        if isinstance(node.op, ast.Not):
            return Not(BOOL, self.place(node), self.condition(node.operand))
        if isinstance(node.op, ast.USub):
            operand = self.number(node.operand)
            if isinstance(operand, Const) and isinstance(operand.value, int):
                return Const(INT, self.place(node), -operand.value)
            return Unary(INT, self.place(node), "neg", operand)
        raise self.fail(node, "FP102", f"the operator in {ast.unparse(node)} is not part of the spec language")

    def _boolop(self, node: ast.BoolOp) -> Expr:
        parts = [self.condition(part) for part in node.values]
        side = self.owner.side(node)
        if side is not None:
            first = parts[0]
            assert isinstance(first, Not)
            parts[0] = Not(BOOL, first.place, Seen(BOOL, first.place, side, first.operand))
        return Logic(BOOL, self.place(node), "and" if isinstance(node.op, ast.And) else "or", tuple(parts))

    def _ifexp(self, node: ast.IfExp) -> Expr:
        condition, then, otherwise = self.condition(node.test), self.make(node.body), self.make(node.orelse)
        if self.is_set(then) and self.is_set(otherwise):
            then, otherwise = self.set_value(then, node.body), self.set_value(otherwise, node.orelse)
            kind: Any = self._common(then, otherwise, node)
        else:
            if isinstance(then.type, PlaceType) or isinstance(otherwise.type, PlaceType):
                rule = "a choice between places is not part of the spec language"
                raise self.fail(node, "FP108", rule, "branch with if")
            kind = self.owner.join(then.type, otherwise.type, node)
        return Choice(kind, self.place(node), condition, then, otherwise)

    def _compare(self, node: ast.Compare) -> Expr:
        if len(node.ops) == 1:
            return self._comparison(node.left, node.ops[0], node.comparators[0], node)
        parts: list[Expr] = []
        left = node.left
        with self.owner.only_reads("a chain of comparisons"):
            for op, right in zip(node.ops, node.comparators, strict=True):
                parts.append(self._comparison(left, op, right, node))
                left = right
        if not all(isinstance(p, Compare) for p in parts):
            raise self.fail(node, "FP102", "'in' cannot be chained with other comparisons")
        return Logic(BOOL, self.place(node), "and", tuple(parts))

    def _comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr, node: ast.Compare) -> Expr:
        switch = self.owner.global_name(left, quiet=True) if isinstance(left, ast.Name) else None
        if isinstance(switch, Switch):
            return self._switch(switch, op, right, node)
        if isinstance(op, ast.In | ast.NotIn):
            made = self._contains(self.make(left), self.make(right), left, right)
            return Not(BOOL, self.place(node), made) if isinstance(op, ast.NotIn) else made
        first, second, sign = self.make(left), self.make(right), COMPARE[type(op)]
        if isinstance(op, ast.Is | ast.IsNot) and NOTHING not in (first.type, second.type):
            raise self.fail(node, "FP102", "'is' goes with None only", "compare with ==")
        if self.is_set(first) or self.is_set(second):
            first, second = self.as_set(first, left), self.as_set(second, right)
            self._common(first, second, node)
            if sign in "<>":
                raise self.fail(node, "FP102", f"{sign} between sets is not part of the spec language", "use <= and !=")
        elif sign in ("==", "!="):
            self._comparable(first, second, node)
        else:
            first, second = self.as_number(first, left), self.as_number(second, right)
        return Compare(BOOL, self.place(node), sign, first, second)

    def _comparable(self, first: Expr, second: Expr, node: ast.AST) -> None:
        one, two = first.type, second.type
        if isinstance(one, PlaceType) and isinstance(two, PlaceType) and one.type == two.type:
            for made in (first, second):
                self.owner.effect("read", made.type.path, made.place)
            return
        if isinstance(one, Scalar) and isinstance(two, Scalar):
            if NOTHING in (one, two):
                return
            if "bool" in (one.kind, two.kind):
                if one.kind == two.kind:
                    return
            elif one.kind != two.kind or one.index is not two.index:
                for made in (first, second):
                    if made.type.index is not None:
                        self.owner.order(made.type.index, made.place, "is compared with a number or another index")
                return
            else:
                return
        raise self.fail(node, "FP107", f"{one} and {two} cannot be compared")

    def _switch(self, switch: Switch, op: ast.cmpop, right: ast.expr, node: ast.AST) -> Expr:
        items = right.elts if isinstance(right, ast.Tuple | ast.Set | ast.List) else [right]
        choices = [item.value for item in items if isinstance(item, ast.Constant)]
        wanted = ast.In | ast.NotIn if not isinstance(right, ast.Constant) else ast.Eq | ast.NotEq
        if len(choices) != len(items) or not isinstance(op, wanted):
            rule = f"switch {switch.name} is compared with == and a choice, or with in and choices"
            raise self.fail(node, "FP122", rule)
        for choice in choices:
            if choice not in switch.choices:
                rule = f"switch {switch.name} has no choice {_short(repr(choice))}"
                raise self.fail(node, "FP122", rule, f"it has {switch.describe()}")
        made = SwitchIs(BOOL, self.place(node), switch, frozenset(str(c) for c in choices))
        return Not(BOOL, made.place, made) if isinstance(op, ast.NotEq | ast.NotIn) else made

    def _contains(self, item: Expr, container: Expr, left: ast.expr, right: ast.expr) -> Expr:
        place = self.place(left)
        if self.is_set(container):
            container = self.as_set(container, right)
            if container.type.index is not None:
                self.fits(item, Scalar("index", container.type.index, maybe=False), left)
            return Contains(BOOL, place, item, container)
        if isinstance(container.type, PlaceType) and isinstance(container.type.type, Seq | Array):
            wanted = value_type(container.type.type.item, (*container.type.path, "[]"))
            if isinstance(wanted, Scalar):
                self.owner.effect("read", (*container.type.path, "[]"), place)
                self.fits(item, Scalar(wanted.kind, wanted.index, maybe=True), left)
                return Contains(BOOL, place, item, container)
        rule = f"{container.type or 'nothing'} has no members to look for with 'in'"
        raise self.fail(right, "FP107", rule, "write any(… for … in …)")


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


__all__ = ["BINARY", "Expressions", "value_type"]
