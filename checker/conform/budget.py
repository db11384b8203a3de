"""The limits of a breadth-first search over an implementation, its progress, and its memory."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from ..explore.findings import OnProgress, Progress
from ..explore.memory import resident_memory
from ..model import Limits
from .graph import Graph


@contextmanager
def few_collections() -> Generator[None]:
    """Look for garbage in cycles a hundred times less often: a search keeps nearly all it makes, and makes none."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Budget:
    """What a search may use; it begins to count when it is made. `elsewhere` are bytes that other processes of it have."""

    def __init__(self, limits: Limits, progress: OnProgress | None, graph: Graph, elsewhere: Callable[[], int]) -> None:
        self.limits, self.progress, self.graph, self.elsewhere = limits, progress, graph, elsewhere
        self.started = self._last_note = time.monotonic()

    def reached(self, depth: int | None) -> str | None:
        """The limit that is reached, in words; that of the depth is looked at before a level, memory then and now and then."""
        limits = self.limits
        reached = None
        if limits.cancelled():
            reached = "cancelled"
        elif limits.max_states is not None and len(self.graph) > limits.max_states:
            reached = "max-states"
        elif limits.max_seconds is not None and time.monotonic() - self.started > limits.max_seconds:
            reached = "max-time"
        elif limits.max_bytes is not None and self._memory_over(limits.max_bytes, depth is not None):
            reached = "max-memory"
        elif depth is not None and limits.max_depth is not None and depth >= limits.max_depth:
            reached = "max-depth"
        return None if reached is None else limits.reason(reached)

    def _memory_over(self, limit: int, whole_level: bool) -> bool:
        return (whole_level or len(self.graph) & 255 == 0) and self._memory() > limit

    def _memory(self) -> int:
        return resident_memory() + self.elsewhere()

    def tell(self, depth: int, generated: int, queue: int) -> None:
        """Report progress, if it is time to: transitions so far, and states that are still to be expanded."""
        now = time.monotonic()
        if self.progress is not None and now - self._last_note >= 1:
            self._last_note = now
            rate = len(self.graph) / (now - self.started)
            self.progress(Progress(depth, len(self.graph), generated, queue, rate, self._memory()))
