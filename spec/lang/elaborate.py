"""The front end: from the syntax of a spec's functions to typed trees, at import, before any bounds are known.

Whatever is outside the language is refused here with its code and place. On the way it finds out which indices are used
in an order-dependent way; those are not permuted.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import declare
from .codes import CODES
from .errors import LanguageError, Place
from .expressions import BINARY, value_type
from .independent import element_wise
from .loops import check_loops
from .scope import Program, Scope
from .spec import Declared, Spec
from .tree import (
    BOOL,
    Do,
    Element,
    Expr,
    FieldOf,
    For,
    Function,
    If,
    Jump,
    PlaceType,
    Require,
    Return,
    Scalar,
    SetLocal,
    SetValue,
    Stmt,
    Store,
)
from .types import SetOf


@dataclass(frozen=True)
class Elaborated:
    """The typed functions of a spec, and why an index is ordered (by name: the place and the reason).

    `written` are all functions that were read, helpers included, whatever module they come from.
    """

    functions: dict[Any, Function]
    ordered: dict[str, tuple[Place, str]]
    written: frozenset[Callable[..., Any]] = frozenset()

    def of(self, original: Callable[..., Any]) -> Function:
        """The typed form of a declared function or condition."""
        return self.functions[original]


def elaborate(spec: Spec) -> Elaborated:
    """Check and type every declared function of a spec; `LanguageError` at the first thing outside the language."""
    program, made = Program(spec, Elaborator), dict[Any, Function]()
    written = set[Callable[..., Any]]()
    for declared in (*spec.inits, *spec.actions, *spec.properties, *spec.lemmas, *spec.loops):
        kind = declared.declaration.kind
        parameters: list[Any] = [PlaceType(spec.state, (name,)) for name in ("s", "t")[: declared.states]]
        parameters += [_parameter(p.type) for p in declared.parameters]
        # What an initial state does in order is no matter to symmetry, but its helpers may be called by actions too.
        own = Program(spec, Elaborator) if kind == "init" else program
        function = own.function(declared.function, parameters, sides=kind not in ("init", "action"))
        written |= {instance.original for instance in own.instances.values()}
        if kind not in ("init", "action"):
            _only_reads(function, declared)
        made[declared.function] = function
        condition = declared.declaration.condition
        if condition is not None and condition not in made:
            made[condition] = program.function(condition, parameters[:1], sides=False)
            _only_reads(made[condition], declared)
    check_loops(spec.loops, [made[action.function] for action in spec.actions], program.instances.values())
    written |= {instance.original for instance in program.instances.values()}
    return Elaborated(made, program.ordered, frozenset(written))


def _parameter(written: Any) -> Any:
    return SetValue(written.index) if isinstance(written, SetOf) else value_type(written, ())


def _only_reads(function: Function, declared: Declared) -> None:
    if function.returns != BOOL:
        rule = f"{function.name} must return a truth value, it returns {function.returns or 'nothing'}"
        raise LanguageError("FP107", function.place, rule, CODES["FP107"].fix)
    for effect in sorted(function.effects, key=lambda e: e.place):
        if effect.kind == "require":
            raise LanguageError("FP115", effect.place, CODES["FP115"].rule, CODES["FP115"].fix)
        if effect.kind != "read" and effect.path[0] in ("s", "t"):
            rule = f"{declared.declaration.kind} {declared.name} changes {'.'.join(effect.path[1:]) or 'the state'}"
            raise LanguageError("FP114", effect.place, rule, CODES["FP114"].fix)


class Elaborator(Scope):
    """Elaborates one function for given parameter types."""

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

    # ---- statements

    def block(self, nodes: Sequence[ast.stmt]) -> tuple[list[Stmt], bool]:
        """Typed statements, and whether control can fall off their end; what is never reached is checked and left out."""
        made: list[Stmt] = []
        reached, around = True, self.following
        for number, node in enumerate(nodes):
            self.following = nodes[number:]
            try:
                statements, falls = self._statement(node)
            except LanguageError as error:
                self.errors.append(error)
                continue
            if reached:
                made += statements
                reached = falls
        self.following = around
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
        if not isinstance(goal, FieldOf | Element):
            raise self.fail(target, "FP101", f"assigning to {ast.unparse(target)} is not part of the spec language")
        path = self._path(goal)
        self.effects -= {e for e in self.effects - before if e.kind == "read" and e.path == path}
        sets = isinstance(goal.type, PlaceType) and isinstance(goal.type.type, SetOf)
        kind = "restructure" if isinstance(goal.type, PlaceType) and not sets else "write"
        self.effect(kind, path, goal.place)
        return goal

    def _path(self, goal: Expr) -> tuple[str, ...]:
        if isinstance(goal.type, PlaceType):
            return goal.type.path
        assert isinstance(goal, FieldOf | Element)
        return (*goal.base.type.path, goal.name if isinstance(goal, FieldOf) else "[]")

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
    names |= {"AsyncFunctionDef": "an async function", "AsyncFor": "async for", "AsyncWith": "async with"}
    names |= {"FunctionDef": "a function inside a function", "ClassDef": "a class inside a function", "Match": "match"}
    names |= {"Import": "import at call time", "ImportFrom": "import at call time", "Nonlocal": "nonlocal"}
    return names.get(type(node).__name__, type(node).__name__)


__all__ = ["Elaborated", "elaborate"]
