"""Names and effects while a function is elaborated: what its expressions ask of it."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from . import declare
from .bounds import Index
from .codes import CODES
from .errors import LanguageError, Place
from .expressions import Expressions
from .source import left_sides, tree_of
from .spec import Spec, place_of
from .tree import NOTHING, Effect, Expr, Function, Local, PlaceType, Root, Scalar, SetValue
from .types import Array, Member, Record, Type

Path = tuple[str, ...]
BUILTINS = frozenset({"len", "range", "min", "max", "abs", "all", "any", "sum", "int", "set", "reversed"})


@dataclass
class Program:
    """What is shared while a spec is elaborated."""

    spec: Spec
    make: Callable[..., Scope]
    instances: dict[tuple[Any, ...], Function] = field(default_factory=dict[tuple[Any, ...], Function])
    stack: list[FunctionType] = field(default_factory=list[FunctionType])
    ordered: dict[str, tuple[Place, str]] = field(default_factory=dict[str, tuple[Place, str]])

    def function(self, original: Callable[..., Any], types: Sequence[Any], *, sides: bool) -> Function:
        """A function for given types of its parameters, elaborated once."""
        assert isinstance(original, FunctionType)
        key = (original, tuple(types), sides)
        if key not in self.instances:
            if original in self.stack:
                rule = f"{original.__name__} calls itself, directly or through others"
                raise LanguageError("FP106", place_of(original), rule, CODES["FP106"].fix)
            self.stack.append(original)
            try:
                self.instances[key] = self.make(self, original, types, sides=sides).run()
            finally:
                self.stack.pop()
        return self.instances[key]


def _plain(function: FunctionType) -> None:
    """Refuse parameters with defaults, stars or marks."""
    code = function.__code__
    starred = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    if starred or code.co_kwonlyargcount or code.co_posonlyargcount or function.__defaults__:
        rule = f"{function.__name__} has parameters that are not plain"
        raise LanguageError("FP120", place_of(function), rule, CODES["FP120"].fix)


def blank_members(written: Type, path: Path = ()) -> Iterator[tuple[Path, Index]]:
    """The members that a blank part of a type holds, with the fields on the way; what may be None is blank as None."""
    match written:
        case Member(index):
            yield path, index
        case Array(_, item):
            yield from blank_members(item, (*path, "[]"))
        case Record(_, fields):
            for name, item in fields:
                yield from blank_members(item, (*path, name))
        case _:
            pass


def _fields(target: ast.expr | None, base: ast.expr | str) -> Path:
    """The fields from a base (a local's name, or an expression) to an attribute; empty where it is none of the base."""
    path: Path = ()
    while isinstance(target, ast.Attribute):
        path, target = (target.attr, *path), target.value
    found = target is base or (isinstance(target, ast.Name) and target.id == base)
    return path if found else ()


class Scope:
    """One function for given parameter types: its names, its effects, what it returns."""

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
        self.following: Sequence[ast.stmt] = ()

    def _parameter_names(self) -> list[str]:
        _plain(self.original)
        names = [a.arg for a in self.tree.args.args]
        if len(names) != len(self.types):
            rule = f"{self.original.__name__} takes {len(names)} arguments, it is given {len(self.types)}"
            raise LanguageError("FP119", place_of(self.original), rule, CODES["FP119"].fix)
        return names

    def run(self) -> Function:
        """The function, elaborated."""
        raise NotImplementedError

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

    def blank(self, written: Type, place: Place, filled: Sequence[Path] = ()) -> None:
        """Note that a part of this type is made blank: a member in it is then the first one, unless filled at once."""
        for path, index in blank_members(written):
            if not any(path[: len(done)] == done for done in filled):
                self.order(index, place, "is blank there, which is its first member")

    def filled(self, grown: ast.expr, sequence: Path) -> list[Path]:
        """The fields of a new element that the statements from this one on fill before anything looks at it."""
        this, *rest = self.following
        match this:
            case ast.Assign(targets=[ast.Attribute() as target]):
                return [path for path in [_fields(target, grown)] if path]
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is grown:
                paths: list[Path] = []
                for node in rest:
                    target = node.targets[0] if isinstance(node, ast.Assign) else None
                    path = _fields(target, name)
                    if not path or not isinstance(node, ast.Assign) or self._looks_at(sequence, node.value):
                        break
                    paths.append(path)
                return paths
            case _:
                return []

    def _looks_at(self, sequence: Path, value: ast.expr) -> bool:
        """Whether a value may depend on the elements of a sequence; what cannot be told yet counts as yes."""
        outer, stale, scope = self.effects, set(self.stale), dict(self.scope)
        self.effects = set()
        try:
            self.expressions.make(value)
            return any(effect.path[: len(sequence)] == sequence[: len(effect.path)] for effect in self.effects if effect.path)
        except LanguageError:
            return True
        finally:
            self.effects, self.stale, self.scope = outer, stale, scope

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
    def only_reads(self, what: str) -> Generator[None]:
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
        return self.program.function(function, types, sides=False)

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
