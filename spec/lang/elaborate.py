"""The front end: from the syntax of a spec's functions to typed trees, at import, before any bounds are known.

Whatever is outside the language is refused here with its code and place. On the way it finds out which indices are used
in an order-dependent way; those are not permuted.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from . import declare
from .bounds import Index
from .codes import CODES
from .errors import LanguageError, Place
from .expressions import BINARY, Expressions, value_type
from .independent import element_wise
from .source import left_sides, tree_of
from .spec import Declared, Spec, place_of
from .tree import (
    BOOL,
    NOTHING,
    Do,
    Effect,
    Expr,
    For,
    Function,
    If,
    Jump,
    Local,
    PlaceType,
    Require,
    Return,
    Root,
    Scalar,
    SetLocal,
    SetValue,
    Stmt,
    Store,
)
from .types import Array, SetOf

BUILTINS = frozenset({"len", "range", "min", "max", "abs", "all", "any", "sum", "int", "set", "reversed"})


@dataclass(frozen=True)
class Elaborated:
    """The typed functions of a spec, and why an index is ordered (by name: the place and the reason)."""

    functions: dict[Any, Function]
    ordered: dict[str, tuple[Place, str]]

    def of(self, original: Callable[..., Any]) -> Function:
        """The typed form of a declared function or condition."""
        return self.functions[original]


@dataclass
class Program:
    """What is shared while a spec is elaborated."""

    spec: Spec
    instances: dict[tuple[Any, ...], Function] = field(default_factory=dict[tuple[Any, ...], Function])
    stack: list[FunctionType] = field(default_factory=list[FunctionType])
    ordered: dict[str, tuple[Place, str]] = field(default_factory=dict[str, tuple[Place, str]])


def elaborate(spec: Spec) -> Elaborated:
    """Check and type every declared function of a spec; `LanguageError` at the first thing outside the language."""
    program, made = Program(spec), {}
    for declared in (*spec.inits, *spec.actions, *spec.properties):
        kind = declared.declaration.kind
        parameters: list[Any] = [PlaceType(spec.state, ("s",))]
        if kind == "step":
            parameters.append(PlaceType(spec.state, ("t",)))
        parameters += [_parameter(p.type) for p in declared.parameters]
        # What an initial state does in order is no matter to symmetry, but its helpers may be called by actions too.
        own = Program(spec) if kind == "init" else program
        function = _function(own, declared.function, parameters, sides=kind not in ("init", "action"))
        if kind not in ("init", "action"):
            _only_reads(function, declared)
        made[declared.function] = function
        condition = declared.declaration.condition
        if condition is not None and condition not in made:
            made[condition] = _function(program, condition, parameters[:1], sides=False)
            _only_reads(made[condition], declared)
    return Elaborated(made, program.ordered)


def _parameter(written: Any) -> Any:
    return SetValue(written.index) if isinstance(written, SetOf) else value_type(written, ())


def _only_reads(function: Function, declared: Declared) -> None:
    if function.returns != BOOL:
        rule = f"{function.name} must return a truth value, it returns {function.returns or 'nothing'}"
        raise LanguageError("FP107", function.place, rule, CODES["FP107"].fix)
    for effect in function.effects:
        if effect.kind == "require":
            raise LanguageError("FP115", effect.place, CODES["FP115"].rule, CODES["FP115"].fix)
        if effect.kind != "read" and effect.path[0] in ("s", "t"):
            rule = f"{declared.declaration.kind} {declared.name} changes {'.'.join(effect.path[1:]) or 'the state'}"
            raise LanguageError("FP114", effect.place, rule, CODES["FP114"].fix)


def _function(program: Program, original: Callable[..., Any], types: Sequence[Any], *, sides: bool) -> Function:
    assert isinstance(original, FunctionType)
    key = (original, tuple(types), sides)
    if key not in program.instances:
        if original in program.stack:
            rule = f"{original.__name__} calls itself, directly or through others"
            raise LanguageError("FP106", place_of(original), rule, CODES["FP106"].fix)
        program.stack.append(original)
        try:
            program.instances[key] = Elaborator(program, original, types, sides=sides).run()
        finally:
            program.stack.pop()
    return program.instances[key]


def _plain(function: FunctionType) -> None:
    """Refuse parameters with defaults, stars or marks."""
    code = function.__code__
    starred = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    if starred or code.co_kwonlyargcount or code.co_posonlyargcount or function.__defaults__:
        rule = f"{function.__name__} has parameters that are not plain"
        raise LanguageError("FP120", place_of(function), rule, CODES["FP120"].fix)


class Elaborator:
    """Elaborates one function for given parameter types."""

    def __init__(self, program: Program, original: FunctionType, types: Sequence[Any], *, sides: bool) -> None:
        self.program, self.original, self.types = program, original, types
        self.globals = original.__globals__
        self.tree = tree_of(original)
        self.sides = {id(node): number for number, node in enumerate(left_sides(self.tree))} if sides else {}
        self.stored = {n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        names = self._parameter_names()
        self.function = Function(original.__name__, original, tuple(zip(names, types, strict=True)), place_of(original))
        self.expressions = Expressions(self)
        self.declared: dict[str, Any] = dict(self.function.parameters)
        self.scope: dict[str, Any] = {}
        self.effects: set[Effect] = set()
        self.loops: list[tuple[str, ...]] = []
        self.returns: list[Any] = []
        self.errors: list[LanguageError] = []
        self.stale: set[str] = set()

    def _parameter_names(self) -> list[str]:
        _plain(self.original)
        names = [a.arg for a in self.tree.args.args]
        if len(names) != len(self.types):
            rule = f"{self.original.__name__} takes {len(names)} arguments, it is given {len(self.types)}"
            raise LanguageError("FP119", place_of(self.original), rule, CODES["FP119"].fix)
        return names

    def run(self) -> Function:
        """The function, elaborated again until the types of its locals are settled; only then its errors count."""
        while True:
            before = dict(self.declared)
            self.scope = dict(self.function.parameters)
            self.effects, self.returns, self.once, self.stale, self.errors = set(), [], set[str](), set[str](), []
            body, falls = self.block(self.tree.body)
            if before == self.declared:
                break
        if self.errors:
            raise self.errors[0]
        function = self.function
        function.body = tuple(body)
        function.locals = {n: t for n, t in self.declared.items() if n not in dict(function.parameters)}
        function.effects = frozenset(self.effects)
        function.returns = self._returned(falls)
        return function

    def _returned(self, falls: bool) -> Any:
        kinds = [k for k in self.returns if k is not None]
        if not kinds:
            return None
        if falls or len(kinds) != len(self.returns):
            rule = f"{self.function.name} returns a value on some paths and none on others"
            raise LanguageError("FP118", self.function.place, rule, CODES["FP118"].fix)
        result = kinds[0]
        for kind in kinds[1:]:
            result = self.join(result, kind, self.tree)
        return result

    # ---- what expressions ask

    def local(self, node: ast.Name) -> Expr | None:
        """The local of this name, or None if the name is not local; FP117 if it may be unassigned here."""
        if node.id in self.stale:
            raise self.fail(node, "FP126", f"{node.id} names an element of a sequence that has changed since")
        if node.id in self.scope:
            kind, place = self.scope[node.id], self.expressions.place(node)
            number = self._root(node.id)
            return Local(kind, place, node.id) if number is None else Root(kind, place, number)
        if node.id in self.declared or node.id in self.stored:
            raise self.fail(node, "FP117", f"{node.id} may be used before it is assigned")
        return None

    def _root(self, name: str) -> int | None:
        for parameter, kind in self.function.parameters[:2]:
            if parameter == name and isinstance(kind, PlaceType) and kind.path in (("s",), ("t",)):
                return 1 if kind.path == ("t",) else 0
        return None

    def global_name(self, node: ast.Name, *, quiet: bool = False) -> Any:
        """The module-level value of a name; FP105 if there is none (None when quiet)."""
        if node.id in self.scope:
            return None
        if node.id in self.globals:
            return self.globals[node.id]
        if quiet:
            return None
        raise self.fail(node, "FP105", f"{node.id} is not defined")

    def builtin(self, node: ast.Name) -> str | None:
        """The name of a builtin of the language, unless the spec has given it another meaning."""
        if node.id in self.globals or node.id in self.scope:
            return None
        if node.id in BUILTINS:
            return node.id
        if hasattr(builtins, node.id):
            raise self.fail(node, "FP119", f"{node.id}() is not part of the spec language")
        return None

    def side(self, node: ast.AST) -> int | None:
        """The number of a left side in a property's own body."""
        return self.sides.get(id(node))

    def fail(self, node: ast.AST, code: str, rule: str, fix: str | None = None) -> LanguageError:
        """The error to raise for a node."""
        return self.expressions.fail(node, code, rule, fix)

    def order(self, index: Index, place: Place, why: str) -> None:
        """Note that an index is used in an order-dependent way."""
        self.program.ordered.setdefault(index.name, (place, why))

    def effect(self, kind: str, path: tuple[str, ...], place: Place, inner: Place | None = None) -> None:
        """Note what is done to a path; FP109 if a loop runs over the sequence that is changed."""
        self.effects.add(Effect(kind, path, inner or place))
        if kind != "restructure":
            return
        if any(loop[: len(path)] == path for loop in self.loops):
            rule = f"{'.'.join(path[1:]) or 'a local sequence'} is changed while a loop runs over it"
            raise LanguageError("FP109", place, rule, CODES["FP109"].fix)
        for name, known in self.scope.items():
            if isinstance(known, PlaceType) and known.path[: len(path)] == path and "[]" in known.path[len(path) :]:
                self.stale.add(name)

    @contextmanager
    def only_reads(self, what: str) -> Iterator[None]:
        """Refuse what changes anything, or calls require(), inside an expression whose parts may be skipped."""
        outer, self.effects = self.effects, set()
        try:
            yield
            for effect in self.effects:
                if effect.kind != "read":
                    rule = f"{what} {'calls require()' if effect.kind == 'require' else 'changes something'}"
                    raise LanguageError("FP123", effect.place, rule, CODES["FP123"].fix)
        finally:
            self.effects |= outer

    def specialise(self, function: FunctionType, types: Sequence[Any], node: ast.AST) -> Function:
        """The typed form of a helper for these argument types."""
        if hasattr(function, declare.MARK):
            raise self.fail(node, "FP119", f"{function.__name__} is an action or property; call a plain helper instead")
        _plain(function)
        count = function.__code__.co_argcount
        if count != len(types):
            raise self.fail(node, "FP119", f"{function.__name__} takes {count} arguments, it is given {len(types)}")
        return _function(self.program, function, types, sides=False)

    def join(self, one: Any, two: Any, node: ast.AST) -> Any:
        """The type of a value that is one or the other."""
        if one == two:
            return one
        if isinstance(one, SetValue) and isinstance(two, SetValue) and None in (one.index, two.index):
            return one if two.index is None else two
        if isinstance(one, Scalar) and isinstance(two, Scalar) and "bool" not in (one.kind, two.kind):
            if NOTHING in (one, two):
                other = two if one == NOTHING else one
                return Scalar(other.kind, other.index, maybe=True)
            if one.kind == two.kind and one.index is two.index:
                return Scalar(one.kind, one.index, maybe=True)
            for kind in (one, two):
                if kind.index is not None:
                    self.order(kind.index, self.expressions.place(node), "is mixed with a number or another index")
            return Scalar("int", maybe=one.maybe or two.maybe)
        raise self.fail(node, "FP124", f"a local or value is {one} here and {two} there")

    # ---- statements

    def block(self, nodes: Sequence[ast.stmt]) -> tuple[list[Stmt], bool]:
        """Typed statements, and whether control can fall off their end; what is never reached is checked and left out."""
        made: list[Stmt] = []
        reached = True
        for node in nodes:
            try:
                statements, falls = self._statement(node)
            except LanguageError as error:
                self.errors.append(error)
                continue
            if reached:
                made += statements
                reached = falls
        return made, reached

    def _statement(self, node: ast.stmt) -> tuple[list[Stmt], bool]:
        method = getattr(self, "_" + type(node).__name__.lower(), None)
        if isinstance(node, ast.While):
            raise self.fail(node, "FP103", CODES["FP103"].rule)
        if method is None:
            raise self.fail(node, "FP101", f"{_statement(node)} is not part of the spec language")
        return method(node)

    def _pass(self, _node: ast.Pass) -> tuple[list[Stmt], bool]:
        return [], True

    def _expr(self, node: ast.Expr) -> tuple[list[Stmt], bool]:
        value, place = node.value, self.expressions.place(node)
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return [], True
        if not isinstance(value, ast.Call):
            raise self.fail(node, "FP101", "an expression by itself does nothing", "assign it or remove it")
        if isinstance(value.func, ast.Name) and self.global_name(value.func, quiet=True) is declare.require:
            if len(value.args) != 1 or value.keywords:
                raise self.fail(value, "FP119", "require() takes one condition")
            condition = self.expressions.condition(value.args[0])
            self.effect("require", (), place)
            return [Require(place, condition)], True
        return [Do(place, self.expressions.make(value))], True

    def _assign(self, node: ast.Assign) -> tuple[list[Stmt], bool]:
        if len(node.targets) != 1:
            raise self.fail(node, "FP101", "a chained assignment is not part of the spec language", "write one a line")
        return self._to(node.targets[0], node.value, node)

    def _annassign(self, node: ast.AnnAssign) -> tuple[list[Stmt], bool]:
        rule = "an annotated local is not part of the spec language"
        raise self.fail(node, "FP101", rule, "leave the annotation out")

    def _to(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> tuple[list[Stmt], bool]:
        place = self.expressions.place(node)
        made = self.expressions.make(value)
        if isinstance(target, ast.Name):
            self._assign_local(target, made)
            return [SetLocal(place, target.id, made)], True
        if not isinstance(target, ast.Attribute | ast.Subscript):
            raise self.fail(target, "FP101", f"assigning to {ast.unparse(target)} is not part of the spec language")
        goal = self._target(target)
        made = self.expressions.fits(made, goal.type, value)
        return [Store(place, goal, made)], True

    def _target(self, target: ast.expr) -> Expr:
        before = set(self.effects)
        goal = self.expressions.make(target)
        path = self._path(goal)
        self.effects -= {e for e in self.effects - before if e.kind == "read" and e.path == path}
        sets = isinstance(goal.type, PlaceType) and isinstance(goal.type.type, SetOf)
        kind = "restructure" if isinstance(goal.type, PlaceType) and not sets else "write"
        self.effect(kind, path, goal.place)
        return goal

    def _path(self, goal: Expr) -> tuple[str, ...]:
        if isinstance(goal.type, PlaceType):
            return goal.type.path
        base = goal.base.type.path  # pyright: ignore
        return (*base, getattr(goal, "name", "[]"))

    def _assign_local(self, target: ast.Name, made: Expr) -> None:
        name, kind = target.id, made.type
        if kind is None:
            raise self.fail(target, "FP107", "the right side returns nothing")
        if name in dict(self.function.parameters) and isinstance(kind, PlaceType):
            raise self.fail(target, "FP108", f"parameter {name} cannot be made to name another place")
        if isinstance(kind, PlaceType) or isinstance(self.declared.get(name), PlaceType):
            if self.declared.get(name, kind) != kind or name in self.once:
                raise self.fail(target, "FP108", f"{name} names a place and is assigned twice")
            self.once.add(name)
            self.stale.discard(name)
        known = self.declared.get(name)
        self.declared[name] = kind if known is None else self.join(known, kind, target)
        self.scope[name] = self.declared[name]

    def _augassign(self, node: ast.AugAssign) -> tuple[list[Stmt], bool]:
        place = self.expressions.place(node)
        if isinstance(node.target, ast.Name):
            if isinstance(self.declared.get(node.target.id), SetValue):
                fix = f"write {node.target.id} = {node.target.id} … with a new set on the right"
                raise self.fail(node, "FP107", "an augmented assignment changes a set that other names may share", fix)
            read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
            value = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
            return self._to(node.target, value, node)
        op = BINARY.get(type(node.op))
        if op is None:
            raise self.fail(node, "FP102", f"the operator in {ast.unparse(node)} is not part of the spec language")
        goal = self._target(node.target)
        path = self._path(goal)
        self.effect("read", path, place)
        if self.expressions.is_set(goal):
            if op not in "|&-":
                raise self.fail(node, "FP107", f"{op} does not go with sets")
            value = self.expressions.fits(self.expressions.make(node.value), goal.type, node.value)
        else:
            self.expressions.as_number(goal, node.target)
            value = self.expressions.number(node.value)
            if op in "|&":
                raise self.fail(node, "FP107", f"{op} goes with sets only")
            if op in ("//", "%"):
                self.expressions.divides(value, op, node)
        return [Store(place, goal, value, op)], True

    def _if(self, node: ast.If) -> tuple[list[Stmt], bool]:
        condition = self.expressions.condition(node.test)
        before = dict(self.scope)
        then, then_falls = self.block(node.body)
        after_then, self.scope = self.scope, dict(before)
        otherwise, else_falls = self.block(node.orelse)
        if then_falls and else_falls:
            self.scope = {n: self.declared[n] for n in self.scope if n in after_then}
        elif then_falls:
            self.scope = after_then
        return [If(self.expressions.place(node), condition, tuple(then), tuple(otherwise))], then_falls or else_falls

    def _for(self, node: ast.For) -> tuple[list[Stmt], bool]:
        if node.orelse:
            raise self.fail(node, "FP104", CODES["FP104"].rule)
        if not isinstance(node.target, ast.Name):
            raise self.fail(node.target, "FP101", "a loop has one plain variable", "loop over numbers or one sequence")
        loop = self.expressions.loop(node.target.id, node.iter, quantified=False)
        before, outer_effects = dict(self.scope), self.effects
        over = loop.source.type.path if loop.kind == "items" and loop.source is not None else None
        if loop.variable is not None:
            self._bind_loop(node.target, loop.type)
        self.effects = set()
        if over is not None:
            self.loops.append(over)
        entry, stale, once = dict(self.scope), set(self.stale), set(self.once)
        body, _ = self.block(node.body)
        if (self.stale - stale) & set(before):
            self.scope, self.once = entry, once  # the next round finds stale what was not yet in the first
            self.block(node.body)
        if over is not None:
            self.loops.pop()
        inside, self.effects = self.effects, outer_effects | self.effects
        self.scope = {n: self.declared.get(n, t) for n, t in before.items()}
        made = For(self.expressions.place(node), loop, tuple(body))
        index = loop.type.index if isinstance(loop.type, Scalar) and loop.kind in ("range", "members") else None
        if index is not None and loop.variable is not None and not element_wise(made, inside, node, self.tree):
            self.order(index, made.place, "is looped over and what the loop does depends on the order")
        return [made], True

    def _bind_loop(self, target: ast.Name, kind: Any) -> None:
        known = self.declared.get(target.id)
        if target.id in dict(self.function.parameters):
            raise self.fail(target, "FP124", f"the loop variable {target.id} hides a parameter")
        if isinstance(kind, PlaceType) or isinstance(known, PlaceType):
            if known not in (None, kind):
                raise self.fail(target, "FP108", f"{target.id} names a place and is used for another")
            self.declared[target.id] = kind
        else:
            self.declared[target.id] = kind if known is None else self.join(known, kind, target)
        self.scope[target.id] = self.declared[target.id]

    def _break(self, node: ast.Break) -> tuple[list[Stmt], bool]:
        return [Jump(self.expressions.place(node), "break")], False

    def _continue(self, node: ast.Continue) -> tuple[list[Stmt], bool]:
        return [Jump(self.expressions.place(node), "continue")], False

    def _return(self, node: ast.Return) -> tuple[list[Stmt], bool]:
        value = None if node.value is None else self.expressions.make(node.value)
        if value is not None and self.expressions.is_set(value):
            value = self.expressions.set_value(value, node)
        if value is not None and value.type is None:
            raise self.fail(node, "FP107", "what is returned returns nothing", "call it, then return")
        if value is not None and isinstance(value.type, PlaceType):
            raise self.fail(node, "FP107", "a function returns a scalar or a set, not a place", "return its number")
        self.returns.append(None if value is None else value.type)
        return [Return(self.expressions.place(node), value)], False


def _statement(node: ast.stmt) -> str:
    names = {"With": "with", "Try": "try", "Raise": "raise", "Assert": "assert", "Global": "global", "Delete": "del"}
    names |= {"FunctionDef": "a function inside a function", "ClassDef": "a class inside a function", "Match": "match"}
    names |= {"Import": "import at call time", "ImportFrom": "import at call time", "Nonlocal": "nonlocal"}
    return names.get(type(node).__name__, type(node).__name__)


__all__ = ["Array", "Elaborated", "elaborate"]
