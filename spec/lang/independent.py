"""When a loop over an index does not depend on the order of its members."""

from __future__ import annotations

import ast
from collections.abc import Set
from typing import Any

from .tree import Element, Effect, Expr, For, Local, Method, PlaceType, Store


def element_wise(loop: For, effects: Set[Effect], node: ast.For, function: ast.FunctionDef, _types: Any) -> bool:
    """Whether the iterations of a loop over an index commute.

    They do when no iteration leaves the loop or the function early, no local is carried from one to the next or out of the
    loop, and every part of the state that is written is either a set that is only added to, or belongs to the loop's own member
    and is read and written at that member only.
    """
    if any(isinstance(n, ast.Break | ast.Return) for n in ast.walk(node)):
        return False
    if _carries_locals(node, function):
        return False
    written = {e.path for e in effects if e.kind in ("write", "restructure") and e.path[0] in ("s", "t")}
    added = {e.path for e in effects if e.kind == "add"}
    touched = {e.path for e in effects if e.kind == "read"}
    if any(e.kind in ("write", "restructure") and e.path[0] not in ("s", "t") for e in effects):
        return False
    if any(_overlap(a, t) for a in added for t in touched | written):
        return False
    owned = _OwnPlaces(loop.loop.variable or "")
    owned.visit_all(loop.body)
    for path in written:
        uses = [p for p in owned.foreign if _overlap(path, p)]
        if uses or not any(_overlap(path, p) for p in owned.own):
            return False
    return True


def _overlap(one: tuple[str, ...], two: tuple[str, ...]) -> bool:
    shared = min(len(one), len(two))
    return one[:shared] == two[:shared]


def _carries_locals(node: ast.For, function: ast.FunctionDef) -> bool:
    inside = {n for part in node.body for n in ast.walk(part)}
    stored = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    outside = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and n not in inside}
    outside -= {node.target.id} if isinstance(node.target, ast.Name) else set()
    return bool(stored & outside)


class _OwnPlaces:
    """Paths used through the loop's own member (`own`), and all others (`foreign`)."""

    def __init__(self, variable: str) -> None:
        self.variable = variable
        self.own: set[tuple[str, ...]] = set()
        self.foreign: set[tuple[str, ...]] = set()

    def visit_all(self, part: Any) -> None:
        if isinstance(part, Expr) or type(part).__module__ == Store.__module__:
            self._visit(part)
        elif isinstance(part, tuple):
            for item in part:
                self.visit_all(item)

    def _visit(self, part: Any) -> None:
        path = self._path(part)
        if path is not None:
            (self.own if self._is_own(part) else self.foreign).add(path)
            self._subscripts(part)
            return
        if isinstance(part, Method) and not isinstance(part.base.type, PlaceType):
            return
        if type(part).__name__ == "Function":
            for effect in part.effects:
                if effect.path:
                    self.foreign.add(effect.path)
            return
        for value in vars(part).values():
            self.visit_all(value)

    def _path(self, part: Any) -> tuple[str, ...] | None:
        if type(part).__name__ not in ("FieldOf", "Element", "Local", "Root"):
            return None
        if isinstance(part.type, PlaceType):
            return part.type.path
        base = getattr(part, "base", None)
        if base is None:
            return None
        return (*base.type.path, getattr(part, "name", "[]"))

    def _is_own(self, part: Any) -> bool:
        while part is not None:
            if isinstance(part, Element) and isinstance(part.index, Local) and part.index.name == self.variable:
                return True
            part = getattr(part, "base", None)
        return False

    def _subscripts(self, part: Any) -> None:
        while part is not None:
            if isinstance(part, Element):
                self.visit_all(part.index)
            part = getattr(part, "base", None)
