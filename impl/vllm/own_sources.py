"""What the source of the user's classes says: the attributes that it names, those that it changes, and whether order counts.

Read are the files of classes and of all that they import from the same packages, and of the release only its connectors.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import resolve_name
from typing import Any

from .layout import CONNECTORS


@dataclass(frozen=True)
class Source:
    """What was read: attributes `named` anywhere, and those gone `through` in their order.

    `changed` are fields that methods change in their own object outside `__init__`, as `module.Class.field`, and that can be
    again what they were: not those that only grow, by `+= 1`. `unread` are the modules that have no source here.
    """

    named: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    through: frozenset[str] = frozenset()
    unread: tuple[str, ...] = ()


def source_of(classes: Iterable[type]) -> Source:
    """What the source of classes says, and that of the modules behind them."""
    parts = [part for name in modules_behind(classes) if (part := _read(name)) is not None]
    return Source(
        frozenset(name for part in parts for name in part.source.named),
        frozenset(name for part in parts for name in part.source.changed),
        frozenset(name for part in parts for name in part.source.through),
        tuple(name for part in parts for name in part.source.unread),
    )


def modules_behind(classes: Iterable[type]) -> list[str]:
    """The modules of classes and of their bases, and those that these import from the same packages."""
    todo = [base.__module__ for made in classes for base in made.__mro__]
    packages = {name.partition(".")[0] for name in todo if _is_own(name)}
    met: dict[str, None] = {}
    while todo:
        name = todo.pop()
        if name in met or not _is_own(name) or name.partition(".")[0] not in packages:
            continue
        part = _read(name)
        if part is not None:
            met[name] = None
            todo += part.imports
    return list(met)


@dataclass(frozen=True)
class _Module:
    source: Source
    imports: tuple[str, ...]


@cache
def _read(name: str) -> _Module | None:
    """What a module's file says; None for what is no module that is loaded."""
    module = sys.modules.get(name)
    if module is None:
        return None
    homes = [_home(value) for value in list(vars(module).values())]
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError, SyntaxError):
        return _Module(Source(unread=(name,)), tuple(homes))
    package = name if hasattr(module, "__path__") else name.rpartition(".")[0]
    made = _Reader(name)
    made.visit(tree)
    said = Source(frozenset(made.named), frozenset(made.changed), frozenset(made.through))
    return _Module(said, (*homes, *_imported(tree, package)))


class _Reader(ast.NodeVisitor):
    def __init__(self, module: str) -> None:
        self.named: set[str] = set()
        self.changed: set[str] = set()
        self.through: set[str] = set()
        self._inside, self._making = module, False

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outer, self._inside = self._inside, f"{self._inside}.{node.name}"
        self.generic_visit(node)
        self._inside = outer

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outer, self._making = self._making, self._making or node.name == "__init__"
        self.generic_visit(node)
        self._making = outer

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.named.add(node.attr)
        if isinstance(node.ctx, ast.Store | ast.Del):
            self._change(node)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        by = node.value.value if isinstance(node.value, ast.Constant) else None
        if isinstance(node.target, ast.Attribute) and isinstance(node.op, ast.Add) and isinstance(by, int) and by > 0:
            self.named.add(node.target.attr)  # it only ever grows
        else:
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.named |= {part for part in node.value.split(".") if part.isidentifier()}

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        self.named |= set(node.kwd_attrs)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.ctx, ast.Store | ast.Del):
            self._change(node.value)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute):
            self._change(node.func.value)
        for argument in node.args:
            self._go(argument)
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self._go(node.iter)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._go(node.iter)
        self.generic_visit(node)

    def visit_Starred(self, node: ast.Starred) -> None:
        self._go(node.value)
        self.generic_visit(node)

    def _change(self, node: ast.expr) -> None:
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
            and not self._making
        ):
            self.changed.add(f"{self._inside}.{node.attr}")

    def _go(self, node: ast.expr) -> None:
        """Something is gone through in its order: an attribute itself, or its keys, values or items."""
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("keys", "values", "items")
        ):
            node = node.func.value
        if isinstance(node, ast.Attribute):
            self.through.add(node.attr)


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    """The modules that are imported anywhere in a file, in functions, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            try:
                base = resolve_name("." * node.level + (node.module or ""), package)
            except ImportError:  # more dots than there are packages: it fails when it is run
                continue
            yield base
            yield from (f"{base}.{one.name}" for one in node.names)


def _home(value: Any) -> str:
    """The module that a value of a module was made in, or is."""
    try:
        home = value.__name__ if inspect.ismodule(value) else value.__module__
    except Exception:  # what makes its attributes up may raise anything
        return ""
    return home if isinstance(home, str) else ""


def _is_own(module: str) -> bool:
    top = module.partition(".")[0]
    return module.startswith(f"{CONNECTORS}.") or top not in {"vllm", __name__.partition(".")[0], *sys.stdlib_module_names}
