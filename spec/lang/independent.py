"""When a loop over an index does not depend on the order of its members."""

from __future__ import annotations

import ast
from collections.abc import Set
from typing import Any

from .tree import Effect, Element, Expr, For, Function, Local, Method, PlaceType, Store

Path = tuple[str, ...]


def element_wise(loop: For, effects: Set[Effect], node: ast.For, function: ast.FunctionDef) -> bool:
    """Whether the iterations of a loop over an index commute.

    They do when no iteration leaves the loop or the function early, no local is carried from one to the next or out of
    the loop, every part of the state that is written is either a set that is only added to, or belongs to the loop's
    own member and is read and written at that member only, and none calls require(), since another may hit a spec error.
    """
    if any(isinstance(n, ast.Break | ast.Return) for n in ast.walk(node)):
        return False
    if _carries_locals(node, function):
        return False
    if any(e.kind == "require" for e in effects):
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
    return all(owned.at_own_member(path) for path in written)


def _overlap(one: Path, two: Path) -> bool:
    shared = min(len(one), len(two))
    return one[:shared] == two[:shared]


def _carries_locals(node: ast.For, function: ast.FunctionDef) -> bool:
    """Whether a name that the loop assigns (its own variable included, inside) is used outside of one iteration."""
    inside = {n for part in node.body for n in ast.walk(part)}
    stored = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    outside = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and n not in inside}
    return bool(stored & outside)


class _OwnPlaces:
    """Paths used through the loop's own member (`own`, with the array that the member picks from), and all others."""

    def __init__(self, variable: str) -> None:
        self.variable = variable
        self.own: set[tuple[Path, Path]] = set()
        self.foreign: set[Path] = set()

    def at_own_member(self, path: Path) -> bool:
        """Whether a written path is used only below one array, at the loop's own member of it."""
        arrays = {array for used, array in self.own if _overlap(path, used)}
        return len(arrays) == 1 and not any(_overlap(path, used) for used in self.foreign)

    def visit_all(self, part: Any) -> None:
        """Collect the paths of a part of a tree."""
        if isinstance(part, Expr) or type(part).__module__ == Store.__module__:
            self._visit(part)
        elif isinstance(part, tuple):
            for item in part:  # pyright: ignore[reportUnknownVariableType]
                self.visit_all(item)

    def _visit(self, part: Any) -> None:
        path = self._path(part)
        if path is not None:
            array = self._own_array(part)
            if array is None:
                self.foreign.add(path)
            else:
                self.own.add((path, array))
            self._subscripts(part)
            return
        if isinstance(part, Method) and not isinstance(part.base.type, PlaceType):
            return
        if isinstance(part, Function):
            self.foreign |= {effect.path for effect in part.effects if effect.path}
            return
        for value in vars(part).values():
            self.visit_all(value)

    def _path(self, part: Any) -> Path | None:
        if type(part).__name__ not in ("FieldOf", "Element", "Local", "Root"):
            return None
        if isinstance(part.type, PlaceType):
            return part.type.path
        base = getattr(part, "base", None)
        return None if base is None else (*base.type.path, getattr(part, "name", "[]"))

    def _own_array(self, part: Any) -> Path | None:
        """The array that the loop's own member picks from on the way to a place, the outermost of several."""
        found = None
        while part is not None:
            if isinstance(part, Element) and isinstance(part.index, Local) and part.index.name == self.variable:
                found = part.base.type.path
            part = getattr(part, "base", None)
        return found

    def _subscripts(self, part: Any) -> None:
        while part is not None:
            if isinstance(part, Element):
                self.visit_all(part.index)
            part = getattr(part, "base", None)
