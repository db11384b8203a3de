"""The first run of a model: nothing compiled yet must not mean waiting.

A child process compiles into the cache while this one searches with the reference engine; whichever finishes first gives the
result, and the two are the same. Where the memory does not last for the reference engine, the compiled search is waited for:
it needs less. What the child has compiled is there for the next run in any case.
"""

from __future__ import annotations

import dataclasses
import tempfile
import time
from pathlib import Path
from subprocess import Popen

from ..model import Limits, Model, Options
from .findings import Engine, Findings, OnProgress, Progress


def run(model: Model, options: Options, on_progress: OnProgress | None) -> tuple[Engine, Findings]:
    """Search a model: compiled if its code is in the cache, else interpreted until it is."""
    from .native.engine import NativeEngine
    from .reference import ReferenceEngine

    native = NativeEngine(model)
    if native.load(options):
        return native, native.run(options, on_progress)
    with tempfile.TemporaryDirectory(prefix="fencepost-") as folder:
        child, begin = native.compile_apart(Path(folder)), time.monotonic()
        limits = options.limits
        waiting = dataclasses.replace(limits, cancelled=lambda: limits.cancelled() or child.poll() is not None)
        reference = ReferenceEngine(model)
        try:
            found = reference.run(dataclasses.replace(options, limits=waiting), _noted(on_progress))
        except BaseException:
            child.kill()
            raise
        compiled = found.cut == limits.reason("cancelled") or (_out_of_memory(found) and _ends(child, limits, begin))
        if not compiled or limits.cancelled():
            if native.compiles_into(Path(folder)):
                child.kill()
                child.wait()
            return reference, found
        del reference  # and its states, which take far more memory than those of compiled code
        waited = time.monotonic() - begin
        native.compile_seconds += waited
        if limits.max_seconds is not None:
            limits = dataclasses.replace(limits, max_seconds=max(0.0, limits.max_seconds - waited))
        found = native.run(dataclasses.replace(options, limits=limits), on_progress)
        if found.cut == limits.reason("max-time"):  # the limit that was given, not what was left of it
            found.cut = options.limits.reason("max-time")
        return native, found


def _out_of_memory(found: Findings) -> bool:
    return found.cut is not None and found.cut.endswith("(--max-memory)")


def _ends(child: Popen[bytes], limits: Limits, begin: float) -> bool:
    """Wait for the child; whether it ended before the limits did."""
    while child.poll() is None:
        over = limits.max_seconds is not None and time.monotonic() - begin > limits.max_seconds
        if over or limits.cancelled():
            return False
        time.sleep(0.02)
    return True


def _noted(on_progress: OnProgress | None) -> OnProgress | None:
    if on_progress is None:
        return None

    def relay(now: Progress) -> None:
        on_progress(dataclasses.replace(now, note="interpreted while the native code is being compiled"))

    return relay
