"""The front end for expressions: names resolved, types given, order-dependence on indices noticed."""

from __future__ import annotations

import ast
from enum import IntEnum
from types import FunctionType
from typing import TYPE_CHECKING, Any

from . import declare
from .bounds import Index, Number, Switch
from .codes import CODES
from .errors import LanguageError, Place
from .tree import (
    BOOL,
    INT,
    NOTHING,
    Binary,
    Call,
    Choice,
    Clause,
    Compare,
    Const,
    Contains,
    Display,
    Effect,
    Element,
    Expr,
    FieldOf,
    Fresh,
    Implies,
    Length,
    Local,
    Logic,
    Loop,
    Method,
    MinMax,
    Not,
    PlaceType,
    Quantified,
    Scalar,
    Seen,
    SetValue,
    SwitchIs,
    Unary,
)
from .types import Array, Bool, EnumType, Int, Maybe, Member, Record, Seq, SetOf, Type, as_type

if TYPE_CHECKING:
    from .elaborate import Elaborator

BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.BitOr: "|", ast.BitAnd: "&"}
COMPARE = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "==", ast.IsNot: "!="
}  # fmt: skip
SEQ_METHODS = {
    "append": 1, "push_front": 1, "insert": 2, "pop_front": 0, "pop_back": 0, "drop_front": 0, "drop_back": 0,
    "remove": 1, "remove_at": 1, "clear": 0, "grow": 0,
}  # fmt: skip
SET_METHODS = {"add": 1, "discard": 1, "clear": 0}
QUANTIFIERS = ("all", "any", "sum")


def value_type(written: Type, path: tuple[str, ...]) -> Any:
    """The type of an expression that names a part of the state of this type."""
    match written:
        case Int() | EnumType():
            return INT
        case Bool():
            return BOOL
        case Member(index):
            return Scalar("index", index)
        case Maybe(item):
            inner = value_type(item, path)
            return Scalar(inner.kind, inner.index, maybe=True)
        case _:
            return PlaceType(written, path)


class Expressions:
    """Makes typed expressions of syntax within one function; `owner` is the elaborator of that function."""

    def __init__(self, owner: Elaborator) -> None:
        self.owner = owner

    def fail(self, node: ast.AST, code: str, rule: str, fix: str | None = None) -> LanguageError:
        """The error to raise for a node."""
        return LanguageError(code, self.place(node), rule, fix or CODES[code].fix)

    def place(self, node: ast.AST) -> Place:
        """Where a node stands."""
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        return Place(self.owner.function.place.file, line, column + 1)

    def make(self, node: ast.expr) -> Expr:
        """The typed form of an expression."""
        method = getattr(self, "_" + type(node).__name__.lower(), None)
        if method is None:
            raise self.fail(node, "FP102", f"{_describe(node)} is not part of the spec language")
        made: Expr = method(node)
        return made

    # ---- with an expected type

    def condition(self, node: ast.expr) -> Expr:
        """An expression that must be a truth value."""
        made = self.make(node)
        if made.type != BOOL:
            raise self.fail(node, "FP107", f"a condition is a truth value, this is {made.type}")
        return made

    def number(self, node: ast.expr) -> Expr:
        """An expression that must be a number; a member used as one makes its index ordered."""
        return self.as_number(self.make(node), node)

    def as_number(self, made: Expr, node: ast.AST) -> Expr:
        """The same for an expression that is made already."""
        if isinstance(made.type, Scalar) and made.type.kind == "index":
            assert made.type.index is not None
            self.owner.order(made.type.index, made.place, "is used as a number")
        elif not (isinstance(made.type, Scalar) and made.type.kind == "int"):
            raise self.fail(node, "FP107", f"a number is needed, this is {made.type}")
        return made

    def fits(self, made: Expr, wanted: Any, node: ast.AST) -> Expr:
        """Check that a value may be stored where `wanted` is declared."""
        have = made.type
        if isinstance(wanted, PlaceType):
            return self._fits_place(made, wanted, node)
        if isinstance(wanted, Scalar) and isinstance(have, Scalar):
            if have == NOTHING and wanted.maybe:
                return made
            if wanted.kind == have.kind and (wanted.kind != "index" or wanted.index is have.index):
                return made
            if {wanted.kind, have.kind} == {"int", "index"} or wanted.kind == have.kind == "index":
                for index in (wanted.index, have.index):
                    if index is not None:
                        self.owner.order(index, made.place, "is mixed with a number or another index")
                return made
        raise self.fail(node, "FP107", f"{wanted} is needed, this is {have}")

    def _fits_place(self, made: Expr, wanted: PlaceType, node: ast.AST) -> Expr:
        have = made.type
        if isinstance(wanted.type, SetOf):
            made_set = self.as_set(made, node)
            if made_set.type.index is None or made_set.type.index is wanted.type.index:
                return made_set
        elif isinstance(have, PlaceType) and have.type == wanted.type:
            self.owner.effect("read", have.path, made.place)
            return made
        raise self.fail(node, "FP107", f"{wanted} is needed, this is {have}")

    def as_set(self, made: Expr, node: ast.AST) -> Expr:
        """A set value, or a set place read."""
        if isinstance(made.type, SetValue):
            return made
        if isinstance(made.type, PlaceType) and isinstance(made.type.type, SetOf):
            self.owner.effect("read", made.type.path, made.place)
            return self._read(made, SetValue(made.type.type.index))
        raise self.fail(node, "FP107", f"a set is needed, this is {made.type}")

    def _read(self, made: Expr, kind: SetValue) -> Expr:
        return Binary(kind, made.place, "|", made, Const(SetValue(None), made.place, 0))

    def is_set(self, made: Expr) -> bool:
        """Whether an expression is a set value or set place."""
        return isinstance(made.type, SetValue) or (isinstance(made.type, PlaceType) and isinstance(made.type.type, SetOf))

    # ---- names and constants

    def _constant(self, node: ast.Constant) -> Expr:
        value, place = node.value, self.place(node)
        if value is None:
            return Const(NOTHING, place, -1)
        if isinstance(value, bool):
            return Const(BOOL, place, int(value))
        if isinstance(value, int):
            return Const(INT, place, value)
        raise self.fail(node, "FP122" if isinstance(value, str) else "FP102", f"{value!r} is not a value of the language")

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
            return Const(INT, place, int(value))
        if isinstance(value, Switch):
            raise self.fail(node, "FP122", f"switch {value.name} is only compared with its choices, by == or in")
        raise self.fail(node, "FP105", f"{node.id} is neither a local, a bound, a whole-number constant nor a function here")

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
        if op in ("//", "%") and not isinstance(right, Const):
            raise self.fail(node, "FP116", f"{op} needs a constant or bound on its right")
        return Binary(INT, place, op, left, right)

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
            then, otherwise = self.as_set(then, node.body), self.as_set(otherwise, node.orelse)
            kind: Any = self._common(then, otherwise, node)
        else:
            kind = self.owner.join(then.type, otherwise.type, node)
        if isinstance(kind, PlaceType):
            raise self.fail(node, "FP108", "a choice between places is not part of the spec language", "branch with if")
        return Choice(kind, self.place(node), condition, then, otherwise)

    def _compare(self, node: ast.Compare) -> Expr:
        parts: list[Expr] = []
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            parts.append(self._comparison(left, op, right, node))
            left = right
        if len(parts) == 1:
            return parts[0]
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
            raise self.fail(node, "FP122", f"switch {switch.name} is compared with == and a choice, or with in and choices")
        for choice in choices:
            if choice not in switch.choices:
                raise self.fail(node, "FP122", f"switch {switch.name} has no choice {choice!r}", switch.describe())
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
        raise self.fail(right, "FP107", f"{container.type} has no members to look for with 'in'", "write any(… for … in …)")

    # ---- sets and quantifiers

    def _set(self, node: ast.Set) -> Expr:
        items = [self.make(item) for item in node.elts]
        index = items[0].type.index if isinstance(items[0].type, Scalar) else None
        if index is None or any(not isinstance(i.type, Scalar) or i.type.index is not index for i in items):
            raise self.fail(node, "FP107", "a set has members of one index")
        return Display(SetValue(index), self.place(node), tuple(items))

    def _setcomp(self, node: ast.SetComp) -> Expr:
        clauses, element = self._clauses(node.generators, node.elt)
        if not isinstance(element.type, Scalar) or element.type.index is None:
            raise self.fail(node.elt, "FP107", f"a set has members of an index, this is {element.type}")
        return Quantified(SetValue(element.type.index), self.place(node), "set", clauses, element)

    def _clauses(self, generators: list[ast.comprehension], element: ast.expr) -> tuple[tuple[Clause, ...], Expr]:
        outer = dict(self.owner.scope)
        clauses: list[Clause] = []
        for generator in generators:
            if generator.is_async or not isinstance(generator.target, ast.Name):
                raise self.fail(generator.target, "FP102", "a quantifier has one plain variable per 'for'")
            loop = self.loop(generator.target.id, generator.iter, quantified=True)
            if loop.variable is not None:
                self.owner.scope[loop.variable] = loop.type
            clauses.append(Clause(loop, tuple(self.condition(test) for test in generator.ifs)))
        made = self.make(element)
        self.owner.scope = outer
        return tuple(clauses), made

    def _quantified(self, node: ast.Call, op: str) -> Expr:
        if len(node.args) != 1 or not isinstance(node.args[0], ast.GeneratorExp) or node.keywords:
            raise self.fail(node, "FP119", f"{op}() takes one generator: {op}(… for … in …)")
        inner = node.args[0]
        clauses, element = self._clauses(inner.generators, inner.elt)
        if op == "sum":
            if element.type != BOOL:
                element = self.as_number(element, inner.elt)
            return Quantified(INT, self.place(node), op, clauses, element)
        if element.type != BOOL:
            raise self.fail(inner.elt, "FP107", f"{op}() needs truth values, this is {element.type}")
        return Quantified(BOOL, self.place(node), op, clauses, element, self.owner.side(node))

    def loop(self, variable: str, iterable: ast.expr, *, quantified: bool) -> Loop:
        """One `for`: over range(), a place or a set."""
        name, place, backwards = (None if variable == "_" else variable), self.place(iterable), False
        if isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name):
            builtin = self.owner.builtin(iterable.func)
            if builtin == "range":
                return self._range(name, iterable)
            if builtin == "reversed" and len(iterable.args) == 1:
                iterable, backwards = iterable.args[0], True
        source = self.make(iterable)
        if self.is_set(source):
            source = self.as_set(source, iterable)
            if source.type.index is None or backwards:
                raise self.fail(iterable, "FP107", "this set cannot be iterated")
            return Loop("members", name, Scalar("index", source.type.index), place, source=source)
        if isinstance(source.type, PlaceType) and isinstance(source.type.type, Seq | Array):
            path = (*source.type.path, "[]")
            kind = value_type(source.type.type.item, path)
            self.owner.effect("read", path if isinstance(kind, Scalar) else source.type.path, place)
            self._ordered_array(source.type.type, place, quantified)
            return Loop("items", name, kind, place, source=source, backwards=backwards)
        raise self.fail(iterable, "FP107", f"{source.type} cannot be iterated", "loop over range(), a sequence or a set")

    def _ordered_array(self, written: Array | Seq, place: Place, quantified: bool) -> None:
        if isinstance(written, Array) and isinstance(written.size, Index) and not quantified:
            self.owner.order(written.size, place, "is looped over in order")

    def _range(self, name: str | None, node: ast.Call) -> Loop:
        place = self.place(node)
        if not 1 <= len(node.args) <= 2 or node.keywords:
            raise self.fail(node, "FP119", "range() takes a stop, or a start and a stop")
        ends = [self.number(argument) for argument in node.args]
        start = ends[0] if len(ends) == 2 else Const(INT, place, 0)
        stop = ends[-1]
        if isinstance(stop, Const) and isinstance(stop.value, Index) and name is not None:
            if len(ends) == 2:
                self.owner.order(stop.value, place, "is looped over from a number on")
            return Loop("range", name, Scalar("index", stop.value), place, start, stop)
        return Loop("range", name, INT, place, start, stop)

    # ---- calls

    def _call(self, node: ast.Call) -> Expr:
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func)
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise self.fail(node, "FP119", "only plain helpers, methods of places and known functions are called, by position")
        builtin = self.owner.builtin(node.func)
        if builtin is not None:
            return self._builtin(node, builtin)
        value = self.owner.global_name(node.func)
        if value is declare.implies:
            left, right = (self.condition(a) for a in self._arguments(node, 2))
            side = self.owner.side(node)
            left = left if side is None else Seen(BOOL, left.place, side, left)
            return Implies(BOOL, self.place(node), left, right)
        if value is declare.fresh:
            return self._fresh(node)
        if isinstance(value, FunctionType) and value is not declare.require:
            return self._helper(node, value)
        raise self.fail(node, "FP119", f"{node.func.id} cannot be called in an expression of the spec language")

    def _arguments(self, node: ast.Call, count: int) -> list[ast.expr]:
        if len(node.args) != count or any(isinstance(a, ast.Starred) for a in node.args):
            raise self.fail(node, "FP119", f"{ast.unparse(node.func)}() takes {count} argument{'s' * (count != 1)}")
        return node.args

    def _builtin(self, node: ast.Call, name: str) -> Expr:
        place = self.place(node)
        if name in QUANTIFIERS:
            return self._quantified(node, name)
        if name == "len":
            made = self.make(self._arguments(node, 1)[0])
            if self.is_set(made):
                return Length(INT, place, self.as_set(made, node))
            if isinstance(made.type, PlaceType) and isinstance(made.type.type, Seq | Array):
                self.owner.effect("read", made.type.path, place)
                return Length(INT, place, made)
            raise self.fail(node, "FP107", f"{made.type} has no length")
        if name in ("min", "max"):
            if len(node.args) < 2:
                raise self.fail(node, "FP119", f"{name}() takes two or more numbers")
            return MinMax(INT, place, name, tuple(self.number(a) for a in node.args))
        if name == "abs":
            return Unary(INT, place, "abs", self.number(self._arguments(node, 1)[0]))
        if name == "int":
            return Unary(INT, place, "int", self.condition(self._arguments(node, 1)[0]))
        if name == "set" and not node.args:
            return Const(SetValue(None), place, 0)
        raise self.fail(node, "FP119", f"{name}() is not part of the spec language here")

    def _fresh(self, node: ast.Call) -> Expr:
        (argument,) = self._arguments(node, 1)
        try:
            code = compile(ast.Expression(argument), self.owner.function.place.file, "eval")
            written = as_type(eval(code, self.owner.globals))
        except Exception as error:
            raise self.fail(node, "FP110", f"the type in fresh() cannot be evaluated: {error}") from None
        return Fresh(PlaceType(written, (f"local:{self.owner.function.name}:{node.lineno}",)), self.place(node))

    def _helper(self, node: ast.Call, function: FunctionType) -> Expr:
        arguments = [self.make(a) for a in node.args if not isinstance(a, ast.Starred)]
        if len(arguments) != len(node.args):
            raise self.fail(node, "FP119", "arguments are passed one by one")
        made = self.owner.specialise(function, [a.type for a in arguments], node)
        for effect in made.effects:
            self.owner.effect(effect.kind, effect.path, self.place(node), inner=effect.place)
        return Call(made.returns, self.place(node), made, tuple(arguments))

    def _method(self, node: ast.Call, func: ast.Attribute) -> Expr:
        base, name = self.make(func.value), func.attr
        if not isinstance(base.type, PlaceType):
            raise self.fail(node, "FP119", f"{base.type} has no methods")
        written, path = base.type.type, base.type.path
        if isinstance(written, SetOf) and name in SET_METHODS:
            arguments = [self.make(a) for a in self._arguments(node, SET_METHODS[name])]
            for made, argument in zip(arguments, node.args, strict=True):
                self.fits(made, Scalar("index", written.index), argument)
            self.owner.effect("add" if name == "add" else "write", path, self.place(node))
            return Method(None, self.place(node), name, base, tuple(arguments))
        if name == "clear" and isinstance(written, Array | Record):
            self._arguments(node, 0)
            self.owner.effect("restructure", path, self.place(node))
            return Method(None, self.place(node), name, base, ())
        if isinstance(written, Seq) and name in SEQ_METHODS:
            return self._seq_method(node, base, written, name)
        raise self.fail(node, "FP119", f"{base.type} has no method {name}")

    def _seq_method(self, node: ast.Call, base: Expr, written: Seq, name: str) -> Expr:
        path = base.type.path
        item = value_type(written.item, (*path, "[]"))
        values = self._arguments(node, SEQ_METHODS[name])
        arguments: list[Expr] = []
        if name in ("insert", "remove_at"):
            arguments.append(self.number(values[0]))
        if name in ("append", "push_front", "remove", "insert"):
            arguments.append(self.fits(self.make(values[-1]), item, values[-1]))
        if name == "remove" and not isinstance(item, Scalar):
            raise self.fail(node, "FP125", "remove() goes with sequences of scalars", "use remove_at()")
        if name in ("pop_front", "pop_back") and not isinstance(item, Scalar):
            raise self.fail(node, "FP125", f"{name}() returns scalars only")
        self.owner.effect("restructure", path, self.place(node))
        returns = item if name in ("pop_front", "pop_back", "grow") else None
        if name == "grow" and isinstance(item, Scalar):
            raise self.fail(node, "FP125", "grow() goes with sequences of records or containers", "use append()")
        return Method(returns, self.place(node), name, base, tuple(arguments))


def _describe(node: ast.AST) -> str:
    names = {"ListComp": "a list comprehension", "DictComp": "a dictionary comprehension", "Lambda": "lambda"}
    names |= {"GeneratorExp": "a generator outside all(), any() and sum()", "Tuple": "a tuple", "List": "a list"}
    names |= {"Dict": "a dictionary", "JoinedStr": "an f-string", "NamedExpr": "':='", "Starred": "'*'", "Await": "await"}
    return names.get(type(node).__name__, f"{type(node).__name__}")


__all__ = ["Effect", "Expressions", "value_type"]
