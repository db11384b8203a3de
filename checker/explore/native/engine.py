"""The native engine: a model lowered, compiled (or loaded from the cache), searched, and its figures named again."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

from ....spec.lang import BoundsError, State
from ...model import DEADLOCK, SPEC_ERROR, Model, Options
from ..findings import Failure, Findings, OnProgress, Progress
from ..memory import peak_memory, resident_memory
from .cache import Cache
from .compile_apart import start
from .emit import TOO_LARGE
from .forecast import forecast
from .kernel import build_program, load_program
from .lower import Lowering
from .machine import Library
from .search import NativeSearch
from .stats import NativeProgress, NativeStats, Target


class NativeEngine:
    """Searches a model in compiled code."""

    def __init__(self, model: Model) -> None:
        self.bound = model.bound
        self.cache = Cache()
        self.library: Library | None = None

    def load(self, options: Options) -> bool:
        """Lower the model, and load its code if it is in the cache; says whether it was."""
        begin = time.monotonic()
        self.lowering = Lowering(self.bound, symmetry=options.symmetry)
        self.program = self.lowering.program()
        self.library = load_program(self.program, self.cache)
        self.compile_seconds = time.monotonic() - begin
        return self.library is not None

    def compile_apart(self, spare: Path) -> Popen[bytes]:
        """Compile the lowered model in another process; into `spare` if the cache folder cannot be written."""
        if not self.cache.writable():
            self.cache = Cache(spare)
        return start(self.program, self.cache.directory)

    def compiles_into(self, folder: Path) -> bool:
        """Whether the code goes to this folder."""
        return self.cache.directory == folder

    def run(self, options: Options, on_progress: OnProgress | None = None) -> Findings:
        """Search all levels, or until something fails or a limit is reached."""
        start_bytes, begin = resident_memory(), time.monotonic()
        if self.library is None and not self.load(options):
            self.library = build_program(self.program, self.cache)
        assert self.library is not None
        compiled = time.monotonic()
        initial = [self.lowering.packing.to_words(state) for _, _, state in self.bound.initial()]
        self.search = NativeSearch(self.program, self.library, initial, options.threads)
        limits = options.limits
        stats = self.search.run(
            limits,
            _relay(on_progress, limits.max_bytes),
            keep_going=options.keep_going,
            stop_on_deadlock=options.deadlock and not options.keep_going,
        )
        found = self._findings(stats, options)
        found.seconds = {"compile": self.compile_seconds + compiled - begin, "search": time.monotonic() - compiled}
        found.start_bytes, found.peak_bytes = start_bytes, peak_memory()
        return found

    def _findings(self, stats: NativeStats, options: Options) -> Findings:
        found = Findings("native", bool(self.lowering.permutable))
        found.distinct, found.generated, found.depth = stats.distinct, stats.generated, stats.depth
        found.per_depth, found.expanded, found.deadlocks = list(stats.per_depth), stats.expanded, stats.deadlocks
        actions = len(self.bound.actions)
        found.enabled, found.taken = list(stats.enabled[:actions]), list(stats.taken[:actions])
        found.degrees = (stats.degree_min, stats.degree_max)
        for bit, failure in stats.failed.items():
            found.failures[self.lowering.failing[bit].name] = Failure(failure.level, failure.on_step)
        if stats.errors:
            first = min(stats.errors, key=lambda e: (e.level, e.kind == "check"))
            self._refuse_too_large(first.site)
            found.failures[SPEC_ERROR] = Failure(first.level, first.kind == "action")
        if options.deadlock and stats.deadlock_level is not None:
            found.failures[DEADLOCK] = Failure(stats.deadlock_level, on_step=False)
        found.reached = {self.lowering.witnesses[bit].name: level for bit, level in stats.witnesses.items()}
        found.covered = {name for k, name in enumerate(self.lowering.covers) if stats.covered[k]}
        if stats.stopped == "deadlock":
            found.deadlocks = 1
        if stats.stopped not in (None, "violation", "deadlock"):
            found.cut = options.limits.reason(stats.stopped)
        return found

    def _refuse_too_large(self, site: int) -> None:
        place, rule = self.lowering.site(site)
        if rule == TOO_LARGE:
            raise BoundsError(
                f"{place}: {rule}, within which this engine computes; keep the ranges of numbers smaller, or search with "
                "--engine reference"
            )

    def mark(self, name: str, failure: Failure) -> None:
        """Go backwards from the failing states through compiled code."""
        level = failure.length - failure.on_step
        if name == DEADLOCK:
            target = Target("deadlock", 0, level)
        elif name == SPEC_ERROR:
            target = Target("action-error" if failure.on_step else "check-error", 0, level)
        elif name in (names := [p.name for p in self.lowering.failing]):
            target = Target("step" if failure.on_step else "property", names.index(name), level)
        else:
            target = Target("witness", [p.name for p in self.lowering.witnesses].index(name), level)
        self.search.mark(target)

    def is_marked(self, state: State, level: int) -> bool:
        """Whether a concrete state at this distance lies on a shortest trace to what was marked."""
        return self.search.is_marked(self.lowering.packing.to_words(state), level)


def _relay(on_progress: OnProgress | None, max_bytes: int | None) -> Callable[[NativeProgress], None] | None:
    if on_progress is None:
        return None

    def relay(now: NativeProgress) -> None:
        rate = now.distinct / max(now.seconds, 1e-3)
        note = _forecast(now, max_bytes)
        on_progress(Progress(now.depth, now.distinct, now.generated, now.queue, rate, resident_memory(), note))

    return relay


def _forecast(now: NativeProgress, max_bytes: int | None) -> str:
    """What the sizes of the levels so far lead to expect; empty while they say nothing."""
    expected = forecast(now.per_depth, now.memory / max(1, now.distinct))
    if expected is None:
        return ""
    if max_bytes is not None and expected.memory_low > max_bytes:
        room = f"{max_bytes / 2**30:.1f} GiB"
        return f"about {_round(expected.distinct_low):,} states expected: they will not fit in {room}, lower the bounds"
    return f"{_round(expected.distinct_low):,} to {_round(expected.distinct_high):,} states expected"


def _round(number: int) -> int:
    """A number to two digits: no more is known."""
    return round(number, 2 - len(str(number)))
