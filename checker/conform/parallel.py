"""A level of the product, expanded by several processes: visit for visit the same as by one."""

from __future__ import annotations

import gc
import pickle
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_all_start_methods, get_context
from typing import Any

from .expand import Expander, Known, Node, Visit

LEAST = 512
"""Product states in a level from which on other processes are worth their start."""
CHUNK = 64
_inherited: tuple[Expander, Known, Sequence[Node]] | None = None
"""What forked processes work on; only what they find is sent back."""


def visits(expander: Expander, known: Known, level: Sequence[Node], workers: int) -> Iterator[tuple[Node, Visit]]:
    """Each product state of a level with what came of it, in order, up to the first difference.

    Other processes see what was known when the level began: they report some states as new that are not.
    """
    global _inherited
    if workers < 2 or len(level) < LEAST or "fork" not in get_all_start_methods():
        for node in level:
            yield node, expander.visit(_opened(node), known)
        return
    _inherited = expander, known, level
    try:
        with ProcessPoolExecutor(workers, get_context("fork"), _begin) as pool:
            try:
                for start, chunk in zip(starts := range(0, len(level), CHUNK), pool.map(_visit, starts), strict=True):
                    yield from zip(level[start : start + CHUNK], chunk, strict=False)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
    finally:
        _inherited = None


def _begin() -> None:
    """Ctrl-C is for the process that counts; and looking for garbage would copy all the memory that is shared."""
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _visit(start: int) -> list[Visit]:
    assert _inherited is not None
    expander, known, level = _inherited
    found: list[Visit] = []
    for node in level[start : start + CHUNK]:
        visit = expander.visit(_opened(node), known)
        found.append(visit._replace(fresh=[one._replace(saved=_Pickled(one.saved)) for one in visit.fresh]))
        if visit.differs is not None:
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
