"""Loops that have an invariant: what a loop must be like for proofs to cut an action at its head."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, cast

from .codes import CODES
from .errors import LanguageError, Place
from .spec import Declared
from .tree import (
    BOOL,
    Binary,
    Call,
    Clause,
    Const,
    Expr,
    For,
    Fresh,
    Function,
    If,
    Loop,
    PlaceType,
    Quantified,
    Return,
    Scalar,
    SetLocal,
    SetValue,
    Stmt,
    parts_of,
)
from .types import Bool, SetOf, Type


def check_loops(loops: Sequence[Declared], actions: Iterable[Function], instances: Collection[Function]) -> None:
    """Refuse invariants of loops that do not fit them, and actions that such a loop cannot be cut out of."""
    for declared in loops:
        of = declared.declaration.of
        assert of is not None
        found = [function for function in instances if function.original is of]
        if not found:
            raise _refused(declared.place, f"no action of the spec calls {of.__name__}")
        for function in found:
            _check(declared, function)
    cut = {declared.declaration.of for declared in loops}
    for action in actions:
        _calls(action, cut)


def loop_of(function: Function) -> For | None:
    """The only loop of a function that is not inside another one."""
    found = list(_outermost(function.body))
    return found[0] if len(found) == 1 else None


# ---- the loop and its invariant


def _check(declared: Declared, function: Function) -> None:
    loop, name = loop_of(function), declared.name
    if loop is None or loop.loop.kind != "range" or loop.loop.variable is not None:
        rule = f"{function.name} must have one outermost loop, `for _ in range(…)`, for {name} to be about it"
        raise _refused(function.place if loop is None else loop.place, rule)
    for end in (loop.loop.start, loop.loop.stop):
        if end is not None and not _constant(end):
            raise _refused(end.place, f"the loop of {function.name} has an invariant, and how often it runs is no constant")
    back = next((node for node in _statements(loop.body) if isinstance(node, Return)), None)
    if back is not None:
        raise _refused(back.place, f"the loop of {function.name} has an invariant and is left by return; leave it by break")
    before = _assigned_before(function, loop)
    for parameter in declared.parameters:
        if parameter.name not in before:
            raise _refused(declared.place, f"{name} is about {parameter.name}, which has no value at the head of that loop")
        if not _fits(parameter.type, before[parameter.name]):
            kind = type(parameter.type).__name__
            rule = f"{name} has {parameter.name} as {kind}, in {function.name} it is {before[parameter.name]}"
            raise _refused(declared.place, rule)
    named = {parameter.name for parameter in declared.parameters}
    for local in sorted(set(_changed(loop.body)) & {*before, *_changed(function.body, without=loop)}):
        if local not in named:
            raise _refused(loop.place, f"the loop changes {local}, and {name} does not name it")


def _outermost(body: Sequence[Stmt]) -> Iterator[For]:
    for node in body:
        if isinstance(node, For):
            yield node
        elif isinstance(node, If):
            yield from _outermost((*node.then, *node.otherwise))


def _statements(body: Sequence[Stmt], without: For | None = None) -> Iterator[Stmt]:
    """All statements of a block, those inside others too."""
    for node in body:
        yield node
        if isinstance(node, If):
            yield from _statements((*node.then, *node.otherwise), without)
        elif isinstance(node, For) and node is not without:
            yield from _statements(node.body, without)


def _changed(body: Sequence[Stmt], without: For | None = None) -> Iterator[str]:
    """The locals that a block gives values, those of loops among them."""
    for node in _statements(body, without):
        if isinstance(node, SetLocal):
            yield node.name
        elif isinstance(node, For) and node.loop.variable is not None:
            yield node.loop.variable


def _assigned_before(function: Function, loop: For) -> dict[str, Any]:
    """The values that are surely there when control comes to the loop: parameters, and what is assigned on the way to it."""
    kinds = {**dict(function.parameters), **function.locals}
    names = {name for name, _ in function.parameters}
    body: Sequence[Stmt] = function.body
    while loop not in body:
        inner = next(node for node in body if isinstance(node, If) and loop in list(_statements((*node.then, *node.otherwise))))
        names |= {node.name for node in body[: body.index(inner)] if isinstance(node, SetLocal)}
        body = inner.then if loop in list(_statements(inner.then)) else inner.otherwise
    names |= {node.name for node in body[: body.index(loop)] if isinstance(node, SetLocal)}
    return {name: kinds[name] for name in names if not isinstance(kinds[name], PlaceType)}


def _fits(annotated: Type, kind: Any) -> bool:
    """Whether a local of this kind can be what an invariant says that it is."""
    if isinstance(annotated, SetOf):
        return isinstance(kind, SetValue) and kind.index == annotated.index
    if isinstance(annotated, Bool):
        return kind == BOOL
    return isinstance(kind, Scalar) and kind != BOOL


def _constant(node: Expr) -> bool:
    return isinstance(node, Const) or (isinstance(node, Binary) and all(_constant(part) for part in parts_of(node)))


# ---- where the loop is come to


def _calls(function: Function, cut: Collection[Any]) -> None:
    """Refuse calls of functions in `cut` that happen several times, and local containers that are there meanwhile."""
    if not any(one.original in cut for one in called_by(function)):
        return
    for node, often in _reached(function.body, often=False):
        if isinstance(node, Fresh):
            raise _refused(node.place, f"{function.name} comes to a loop with an invariant, and has a local container")
        elif often and node.function.original in cut:
            raise _refused(node.place, f"{node.function.name} has a loop with an invariant, and is called within another loop")


def called_by(function: Function) -> list[Function]:
    """A function, and all that it calls, directly or through others."""
    return [function, *(node.function for node, _ in _reached(function.body, often=False) if isinstance(node, Call))]


def _reached(node: Any, *, often: bool) -> Iterator[tuple[Call | Fresh, bool]]:
    """All calls and local containers that control may come to from here, and whether that is within a loop or quantifier."""
    if isinstance(node, tuple):
        for part in cast("tuple[Any, ...]", node):
            yield from _reached(part, often=often)
    elif isinstance(node, Expr | Stmt | Loop | Clause):
        if isinstance(node, Call | Fresh):
            yield node, often
        if isinstance(node, Call):
            yield from _reached(node.function.body, often=often)
        inside = often or isinstance(node, For | Quantified)
        for part in parts_of(node):
            yield from _reached(part, often=inside)


def _refused(place: Place, rule: str) -> LanguageError:
    return LanguageError("FP129", place, rule, CODES["FP129"].fix)
