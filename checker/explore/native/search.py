"""Breadth-first search of every state, exactly, in compiled code and on all cores.

A level is expanded in rounds: the threads expand states until an outbox is full or nothing is left, then they store
what the outboxes hold. The states of a level, and so every figure, do not depend on the number of threads.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from ...model import Limits
from . import kernel
from .kernel import SHARDS
from .machine import Library
from .memory import process_memory, processors
from .pool import Pool
from .program import Program
from .stats import Failure, NativeProgress, NativeStats, SpecErrorAt, Stop, Target
from .store import Store
from .workers import Workers, packed

_ALONE = 3000
"""A level with fewer states than this is not worth waking other threads."""

_ROUND_SECONDS = 0.2
_TICK_SECONDS = 1.0
_INSERT_PORTION = 4

OnProgress = Callable[[NativeProgress], None]


class NativeSearch:
    """One search of one program; after `run`, `mark` and `is_marked` lead to the shortest traces."""

    def __init__(
        self, program: Program, library: Library, initial: Sequence[Sequence[int]], threads: int | None = None
    ) -> None:
        self._threads = max(1, threads if threads is not None else processors())
        self._baseline = process_memory()
        self._program, self._initial = program, initial
        self._store = Store(program.words)
        self._workers = Workers(program, self._threads, self._store.directory.ctypes.data)
        self._call = {name: library.function(name) for name in kernel.ENTRIES}
        self._pool = Pool(self._threads)
        self._stats = NativeStats(threads=self._threads)
        self._limits = Limits()
        self._on_progress: OnProgress | None = None
        self._keep_going = False
        self._started = self._ticked = 0.0
        self._generated_at_tick = self._level = self._left = 0
        self._marked = False
        self._levels_end: int | None = None

    # -- searching ----------------------------------------------------------------------------------------------

    def run(
        self,
        limits: Limits | None = None,
        on_progress: OnProgress | None = None,
        *,
        keep_going: bool = False,
        stop_on_deadlock: bool = False,
    ) -> NativeStats:
        """Search until every state is seen, something is violated or a limit is reached; only once per object."""
        self._limits, self._on_progress, self._keep_going = limits or Limits(), on_progress, keep_going
        self._started = self._ticked = time.monotonic()
        self._workers.set(kernel.STOP_ON_CHECK, int(not keep_going))
        self._workers.set(kernel.STOP_ON_DEADLOCK, int(stop_on_deadlock))
        try:
            self._stats.stopped = self._seed() or self._levels()
        except MemoryError:
            self._stats.stopped = "max-memory"
        self._finish()
        return self._stats

    def _seed(self) -> Stop | None:
        for words in self._initial:
            state = packed(words)
            if len(state) != self._program.words:
                raise ValueError(f"a state has {self._program.words} words, not {len(state)}")
            self._call["k_seed"](int(self._workers.addresses[0]), state.ctypes.data)
            if self._workers.contexts[0, kernel.FULL]:
                self._insert()
        stop = self._insert()
        self._store.close_level()
        return stop

    def _levels(self) -> Stop | None:
        """Search level after level; return why it ended early."""
        ending: Stop | None = None
        while self._store.level_size(self._level):
            if ending is None and self._level == self._limits.max_depth:
                ending = "max-depth"
            if ending is not None:
                self._check_level()
                self._levels_end = self._level
                return "violation" if self._note_states() and not self._keep_going else ending
            saved = self._workers.snapshot()
            outcome = self._expand_level()
            if outcome == "failed":
                return self._end_at_failure(saved)
            if outcome is not None:
                self._note_states()
                self._note_edges()
                return outcome
            self._store.close_level()
            self._note_states()
            if self._note_edges() and not self._keep_going:
                ending = "violation"
            self._level += 1
        self._level -= 1
        return ending

    def _end_at_failure(self, saved: tuple[np.ndarray, np.ndarray]) -> Stop:
        """Finish a level with a violating state: the whole level is checked, its expansion is forgotten."""
        self._workers.restore(saved)
        self._check_level()
        self._levels_end = self._level
        if self._note_states():
            return "violation"
        self._stats.deadlock_level = self._level
        return "deadlock"

    def _expand_level(self) -> Stop | Literal["failed"] | None:
        """Expand a level; "failed" if a state of it ends the search, None if all of it is done."""
        items, portions = self._store.work(self._level)
        queue = deque(portions)
        self._left = self._store.level_size(self._level)
        alone = self._left < _ALONE
        address, size, failed = items.ctypes.data, items.strides[0], False
        expand, addresses = self._call["k_expand"], self._workers.addresses.tolist()

        def job(thread: int) -> None:
            nonlocal failed
            until = time.monotonic() + _ROUND_SECONDS
            while not failed and time.monotonic() < until:
                try:
                    portion = queue.popleft()
                except IndexError:
                    return
                code = expand(addresses[thread], address + portion.start * size, portion.stop - portion.start)
                if code == 1:
                    queue.appendleft(portion)
                    return
                failed = failed or code == 2

        while queue and not failed:
            self._together(job, alone)
            self._left = int((items[:, kernel.ITEM_TO] - items[:, kernel.ITEM_FROM]).sum())
            stop = None if failed else self._insert(alone) or self._limit()
            if stop is not None:
                return stop
        return "failed" if failed else None

    def _together(self, job: Callable[[int], None], alone: bool) -> None:
        if alone:
            job(0)
        else:
            self._pool.run(job)

    def _insert(self, alone: bool = True) -> Stop | None:
        """Move the outboxes into the tables; with too little memory nothing is moved."""
        incoming = self._workers.incoming
        memory = self._memory(incoming)
        if self._limits.max_bytes is not None and self._baseline + memory > self._limits.max_bytes:
            return "max-memory"
        self._stats.memory = max(self._stats.memory, memory)
        self._store.prepare(incoming)
        self._workers.set(kernel.FULL, 0)
        queue = deque(range(0, SHARDS, SHARDS if alone else _INSERT_PORTION))
        portion = SHARDS if alone else _INSERT_PORTION
        directory, contexts = self._store.directory.ctypes.data, self._workers.addresses.ctypes.data
        insert = self._call["k_insert"]

        def job(thread: int) -> None:
            del thread
            while True:
                try:
                    first = queue.popleft()
                except IndexError:
                    return
                insert(directory, first, first + portion, contexts, self._threads)

        self._together(job, alone)
        self._store.settle()
        return None

    def _check_level(self) -> None:
        """Check the states of a level without expanding them."""
        self._over(self._level, "k_check_all")

    def _over(self, level: int, entry: str, *arguments: int) -> int:
        """Call a function of the kernel on the work items of a level, in all threads; return the sum of what it returns."""
        items, portions = self._store.work(level)
        queue, counts = deque(portions), [0] * self._threads

        def job(thread: int) -> None:
            while True:
                try:
                    portion = queue.popleft()
                except IndexError:
                    return
                part = items[portion]
                context = int(self._workers.addresses[thread])
                counts[thread] += self._call[entry](context, part.ctypes.data, len(part), *arguments)

        self._together(job, len(portions) < 2)
        return sum(counts)

    # -- what was found -----------------------------------------------------------------------------------------

    def _note_states(self) -> bool:
        """Record what the checks of this level found for the first time; say whether a violation is among it."""
        workers, stats = self._workers, self._stats
        failed, site = workers.masks(kernel.FAILED), workers.least(kernel.CHECK_ERROR)
        for bit in _bits(failed):
            stats.failed.setdefault(bit, Failure(self._level, False))
        for bit in _bits(workers.masks(kernel.WITNESSED)):
            stats.witnesses.setdefault(bit, self._level)
        if site and not any(error.kind == "check" for error in stats.errors):
            stats.errors.append(SpecErrorAt("check", self._level, None, site))
        return bool(failed or site)

    def _note_edges(self) -> bool:
        """Record what the expansion of this level found; say whether a transition of it fails."""
        workers, stats = self._workers, self._stats
        failed, code = workers.masks(kernel.STEP_FAILED), workers.least(kernel.ACTION_ERROR)
        for bit in _bits(failed):
            stats.failed.setdefault(bit, Failure(self._level + 1, True))
        if code and not any(error.kind == "action" for error in stats.errors):
            stats.errors.append(SpecErrorAt("action", self._level + 1, code >> 32, code & 0xFFFFFFFF))
        if stats.deadlock_level is None and workers.sum(kernel.DEADLOCKS):
            stats.deadlock_level = self._level
        return bool(failed or code)

    def _finish(self) -> None:
        """Fill in the figures."""
        stats, workers, store = self._stats, self._workers, self._store
        starts = store.starts if self._levels_end is None else store.starts[: self._levels_end + 2]
        ends = [int(start.sum()) for start in starts]
        if self._levels_end is None and store.total > ends[-1]:
            ends.append(store.total)
        stats.per_depth = [size for size in np.diff(ends).tolist() if size]
        stats.distinct, stats.depth = ends[-1], max(0, len(stats.per_depth) - 1)
        stats.generated, stats.expanded = workers.sum(kernel.GENERATED), workers.sum(kernel.EXPANDED)
        stats.deadlocks = workers.sum(kernel.DEADLOCKS)
        stats.enabled, stats.taken = workers.counters()
        stats.degree_min, stats.degree_max = workers.degrees()
        stats.covered = workers.covered()
        stats.seconds = time.monotonic() - self._started

    # -- limits and progress ------------------------------------------------------------------------------------

    def _memory(self, incoming: np.ndarray) -> int:
        return self._store.bytes_with(incoming) + self._workers.box_bytes

    def _limit(self) -> Stop | None:
        """Report progress when it is time to, and return the limit that is reached."""
        limits, now = self._limits, time.monotonic()
        if self._on_progress is not None and now - self._ticked >= _TICK_SECONDS:
            self._on_progress(self._progress(now))
        if limits.cancelled():
            return "cancelled"
        if limits.max_seconds is not None and now - self._started >= limits.max_seconds:
            return "max-time"
        if limits.max_states is not None and self._store.total > limits.max_states:
            return "max-states"
        return None

    def _progress(self, now: float) -> NativeProgress:
        generated, total = self._workers.sum(kernel.GENERATED), self._store.total
        closed = int(self._store.starts[-1].sum())
        rate = (generated - self._generated_at_tick) / (now - self._ticked)
        self._ticked, self._generated_at_tick = now, generated
        return NativeProgress(
            depth=self._level,
            distinct=total,
            generated=generated,
            queue=self._left + total - closed,
            rate=rate,
            memory=self._stats.memory,
            seconds=now - self._started,
            per_depth=tuple(self._store.level_size(level) for level in range(len(self._store.starts) - 1)),
        )

    # -- shortest traces ----------------------------------------------------------------------------------------

    def mark(self, target: Target) -> int:
        """Mark the states from which a target is reached at its level; return the number of targets.

        For "step" and "action-error" the level is that of the states whose transition fails, one less than the
        length of the trace.
        """
        store, level = self._store, target.level
        if not 0 <= level < len(store.starts) - 1:
            raise ValueError(f"the search has no complete level {level}")
        store.start_marks()
        self._marked = True
        kind = kernel.TARGETS.index(target.kind)
        self._workers.set(kernel.MODE, kernel.EDGES_ONLY)
        count = self._over(level, "k_mark_targets", kind, 1 << target.index)
        self._workers.set(kernel.MODE, kernel.LOOKING_UP)
        for earlier in range(level - 1, -1, -1):
            store.look_at(earlier + 1)
            self._over(earlier, "k_mark_back")
        self._workers.set(kernel.MODE, kernel.SEARCHING)
        return count

    def is_marked(self, words: Sequence[int], level: int) -> bool:
        """Say whether a packed state, canonical or not, belongs to a level and was marked."""
        if not self._marked or not 0 <= level < len(self._store.starts) - 1:
            return False
        self._store.look_at(level)
        state = packed(self.canonical(words))
        return bool(self._call["k_is_marked"](self._store.directory.ctypes.data, state.ctypes.data))

    def canonical(self, words: Sequence[int]) -> tuple[int, ...]:
        """Return the canonical form of a packed state, as unsigned 64-bit words."""
        state = packed(words)
        result = np.zeros_like(state)
        self._call["k_canonical"](state.ctypes.data, result.ctypes.data)
        return tuple(result.view(np.uint64).tolist())

    def close(self) -> None:
        """Give the memory and the threads back."""
        self._pool.close()
        self._store.close()
        self._workers.close()


def _bits(mask: int) -> list[int]:
    return [bit for bit in range(63) if mask >> bit & 1]
