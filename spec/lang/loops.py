"""Loops that have an invariant: what a loop must be like for proofs to cut an action at its head."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .codes import CODES
from .errors import LanguageError, Place
from .spec import Declared
from .tree import For, Function, If, PlaceType, Return, SetLocal, Stmt


def check_loop(declared: Declared, instances: Iterable[Function]) -> None:
    """Refuse an invariant of a loop that is not the only outermost one, or that leaves out a local of it."""
    of = declared.declaration.of
    found = [function for function in instances if function.original is of]
    if not found:
        assert of is not None
        raise _refused(declared.place, f"no action of the spec calls {of.__name__}")
    for function in found:
        loop = loop_of(function)
        if loop is None or loop.loop.kind != "range" or loop.loop.variable is not None:
            rule = f"{function.name} must have one outermost loop, `for _ in range(…)`, for {declared.name} to be about it"
            raise _refused(function.place if loop is None else loop.place, rule)
        back = next(_returns(loop.body), None)
        if back is not None:
            raise _refused(back.place, f"the loop of {function.name} has an invariant and is left by return; leave it by break")
        known = {**dict(function.parameters), **function.locals}
        named = {parameter.name for parameter in declared.parameters}
        for name in sorted(named):
            if isinstance(known.get(name), PlaceType | None):
                raise _refused(declared.place, f"{declared.name} is about {name}, which is no value in that function")
        for name in _outliving(function, loop):
            if name not in named:
                raise _refused(loop.place, f"the loop changes {name}, and {declared.name} does not name it")


def loop_of(function: Function) -> For | None:
    """The only loop of a function that is not inside another one."""
    found = list(_outermost(function.body))
    return found[0] if len(found) == 1 else None


def _outermost(body: Sequence[Stmt]) -> Iterator[For]:
    for node in body:
        if isinstance(node, For):
            yield node
        elif isinstance(node, If):
            yield from _outermost((*node.then, *node.otherwise))


def _returns(body: Sequence[Stmt]) -> Iterator[Return]:
    for node in body:
        if isinstance(node, Return):
            yield node
        elif isinstance(node, If):
            yield from _returns((*node.then, *node.otherwise))
        elif isinstance(node, For):
            yield from _returns(node.body)


def _outliving(function: Function, loop: For) -> list[str]:
    """The locals that an iteration changes and that are there before it, in order of name."""
    before = {name for name, kind in function.parameters if not isinstance(kind, PlaceType)}
    before |= {node.name for node in _assignments(function.body, without=loop)}
    return sorted(before & {node.name for node in _assignments(loop.body)})


def _assignments(body: Sequence[Stmt], without: For | None = None) -> Iterator[SetLocal]:
    for node in body:
        if isinstance(node, SetLocal):
            yield node
        elif isinstance(node, If):
            yield from _assignments((*node.then, *node.otherwise), without)
        elif isinstance(node, For) and node is not without:
            yield from _assignments(node.body, without)


def _refused(place: Place, rule: str) -> LanguageError:
    return LanguageError("FP129", place, rule, CODES["FP129"].fix)
