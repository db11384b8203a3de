"""The front end for loops, quantifiers, sets and calls."""

from __future__ import annotations

import ast
from types import FunctionType

from . import declare
from .bounds import Index
from .errors import Place
from .rules import Rules, value_type
from .tree import (
    BOOL,
    INT,
    Binary,
    Call,
    Clause,
    Const,
    Display,
    Expr,
    Fresh,
    Implies,
    Length,
    Loop,
    Method,
    MinMax,
    PlaceType,
    Quantified,
    Scalar,
    Seen,
    SetValue,
    Unary,
)
from .types import Array, Record, Seq, SetOf, as_type

SEQ_METHODS = {
    "append": 1, "push_front": 1, "insert": 2, "pop_front": 0, "pop_back": 0, "drop_front": 0, "drop_back": 0,
    "remove": 1, "remove_at": 1, "clear": 0, "grow": 0,
}  # fmt: skip
SET_METHODS = {"add": 1, "discard": 1, "clear": 0}
QUANTIFIERS = ("all", "any", "sum")


class Calls(Rules):
    """Makes typed loops and calls of syntax."""

    # ---- sets and quantifiers

    def _set(self, node: ast.Set) -> Expr:
        items = [self.make(item) for item in node.elts]
        index = items[0].type.index if isinstance(items[0].type, Scalar) else None
        if index is None or any(not isinstance(i.type, Scalar) or i.type.index is not index for i in items):
            raise self.fail(node, "FP107", "a set has members of one index")
        if any(i.type.maybe for i in items):
            raise self.fail(node, "FP107", "what may be None is not a member", "use add(), or {y for y in range(…) if y == x}")
        return Display(SetValue(index), self.place(node), tuple(items))

    def _setcomp(self, node: ast.SetComp) -> Expr:
        return self._members(node.generators, node.elt, node)

    def _members(self, generators: list[ast.comprehension], written: ast.expr, node: ast.expr) -> Expr:
        clauses, element = self._clauses(generators, written)
        if not isinstance(element.type, Scalar) or element.type.index is None:
            raise self.fail(written, "FP107", f"a set has members of an index, this is {element.type}")
        if element.type.maybe and not any(_excludes_none(test, written) for g in generators for test in g.ifs):
            rule = f"{ast.unparse(written)} may be None, which is not a member"
            raise self.fail(written, "FP107", rule, f"add: if {ast.unparse(written)} is not None")
        return Quantified(SetValue(element.type.index), self.place(node), "set", clauses, element)

    def _clauses(self, generators: list[ast.comprehension], element: ast.expr) -> tuple[tuple[Clause, ...], Expr]:
        outer = dict(self.owner.scope)
        try:
            with self.owner.only_reads("all(), any(), sum() or a set"):
                clauses = tuple(self._clause(generator) for generator in generators)
                return clauses, self.make(element)
        finally:
            self.owner.scope = outer

    def _clause(self, generator: ast.comprehension) -> Clause:
        target = generator.target
        if generator.is_async or not isinstance(target, ast.Name):
            raise self.fail(target, "FP102", "a quantifier has one plain variable per 'for'")
        loop = self.loop(target.id, generator.iter, quantified=True)
        if loop.variable is not None:
            if loop.variable in self.owner.scope:
                raise self.fail(target, "FP127", f"{target.id} is the name of another local here")
            self.owner.scope[loop.variable] = loop.type
        return Clause(loop, tuple(self.condition(test) for test in generator.ifs))

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
        rule = f"{source.type or 'nothing'} cannot be iterated"
        raise self.fail(iterable, "FP107", rule, "loop over range(), a sequence or a set")

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
            rule = "only plain helpers, methods of places and known functions are called, by position"
            raise self.fail(node, "FP119", rule)
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
        if name == "set" and not node.keywords:
            return self._set_of(node)
        raise self.fail(node, "FP119", f"{name}() is not part of the spec language here")

    def _set_of(self, node: ast.Call) -> Expr:
        """`set()` is empty; `set(x)` is the value of a set, apart from what becomes of x."""
        if not node.args:
            return Const(SetValue(None), self.place(node), 0)
        (argument,) = self._arguments(node, 1)
        if isinstance(argument, ast.GeneratorExp):
            return self._members(argument.generators, argument.elt, node)
        made = self.as_set(self.make(argument), argument)
        return Binary(made.type, made.place, "|", made, Const(SetValue(None), made.place, 0))

    def _fresh(self, node: ast.Call) -> Expr:
        (argument,) = self._arguments(node, 1)
        try:
            code = compile(ast.Expression(argument), self.owner.function.place.file, "eval")
            written = as_type(eval(code, self.owner.globals))
        except Exception as error:
            raise self.fail(node, "FP110", f"the type in fresh() cannot be evaluated: {error}") from None
        self.owner.blank(written, self.place(node))
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
            raise self.fail(node, "FP119", f"{base.type or 'nothing'} has no methods")
        written, path = base.type.type, base.type.path
        if isinstance(written, SetOf) and name in SET_METHODS:
            arguments = [self.make(a) for a in self._arguments(node, SET_METHODS[name])]
            for made, argument in zip(arguments, node.args, strict=True):
                self.fits(made, Scalar("index", written.index), argument)
            self.owner.effect("add" if name == "add" else "write", path, self.place(node))
            return Method(None, self.place(node), name, base, tuple(arguments))
        if name == "clear" and isinstance(written, Array | Record):
            self._arguments(node, 0)
            self.owner.blank(written, self.place(node))
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
        if name == "grow":
            if isinstance(item, Scalar):
                raise self.fail(node, "FP125", "grow() goes with sequences of records or containers", "use append()")
            self.owner.blank(written.item, self.place(node), self.owner.filled(node, path))
        return Method(returns, self.place(node), name, base, tuple(arguments))


def _excludes_none(test: ast.expr, value: ast.expr) -> bool:
    """Whether a condition holds only where a value is not None: it says so of the same expression."""
    match test:
        case ast.Compare(left=left, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return ast.dump(left) == ast.dump(value)
        case ast.BoolOp(op=ast.And(), values=values):
            return any(_excludes_none(part, value) for part in values)
        case _:
            return False
