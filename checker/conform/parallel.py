"""A level of a search, expanded by several processes: visit for visit the same as by one."""

from __future__ import annotations

import gc
import pickle
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_all_start_methods, get_context
from typing import Any, Protocol, TypeVar

from .expand import Known, Node, Visit
from .transitions import Seen

Found = TypeVar("Found", Visit, Seen)
Out = TypeVar("Out", Visit, Seen, covariant=True)


class Visitor(Protocol[Out]):
    """What expands the states of a level; what it finds in one depends on nothing done before."""

    def visit(self, node: Node, known: Known) -> Out:
        """What comes of one state."""
        ...


LEAST = 512
"""Product states in a level from which on other processes are worth their start."""
CHUNK = 64
_inherited: tuple[Visitor[Any], Known, Sequence[Node]] | None = None
"""What forked processes work on; only what they find is sent back."""


def visits(visitor: Visitor[Found], known: Known, level: Sequence[Node], workers: int) -> Iterator[tuple[Node, Found]]:
    """Each state of a level with what came of it, in order, up to the first that ends the search.

    Other processes see what was known when the level began: they report some states as new that are not.
    """
    global _inherited
    if workers < 2 or len(level) < LEAST or "fork" not in get_all_start_methods():
        for node in level:
            yield node, visitor.visit(_opened(node), known)
        return
    _inherited = visitor, known, level
    try:
        with ProcessPoolExecutor(workers, get_context("fork"), _begin) as pool:
            try:
                for start, chunk in zip(starts := range(0, len(level), CHUNK), pool.map(_visit, starts), strict=True):
                    yield from zip(level[start : start + CHUNK], chunk, strict=False)
            finally:
                pool.shutdown(cancel_futures=True)  # waits: a process whose result nobody reads would outlive this one
    finally:
        _inherited = None


def _begin() -> None:
    """Ctrl-C is for the process that counts; and looking for garbage would copy all the memory that is shared."""
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _visit(start: int) -> list[Any]:
    assert _inherited is not None
    visitor, known, level = _inherited
    found: list[Any] = []
    for node in level[start : start + CHUNK]:
        visit = visitor.visit(_opened(node), known)
        found.append(visit._replace(fresh=[one._replace(saved=_Pickled(one.saved)) for one in visit.fresh]))
        if visit.ends:
            break
    return found


def _opened(node: Node) -> Node:
    """A product state with the saved driver itself."""
    return node._replace(saved=pickle.loads(node.saved.text)) if isinstance(node.saved, _Pickled) else node


class _Pickled:
    """A saved state, pickled by the process that found it; only who expands it looks into it."""

    __slots__ = ("text",)

    def __init__(self, saved: Any) -> None:
        self.text = pickle.dumps(saved, 5)
