"""Exhaustive search of a model, by either engine."""

from __future__ import annotations

import time
from dataclasses import replace

from ...traces.trace import Trace
from ..model import Model, Options
from ..result import Result
from .conclude import conclude
from .findings import Engine, OnProgress, Progress
from .memory import default_budget

__all__ = ["Progress", "explore"]


def explore(model: Model, options: Options, engine: str = "native", progress: OnProgress | None = None) -> Result:
    """Search every state of a model within its bounds and draw the result.

    `engine` is native (compiled; the default) or reference (the spec's own functions as Python). Both give the same
    counts, verdict and traces. `EngineDisagrees` is raised where a failure does not replay in the interpreted spec.
    """
    limits = options.limits
    if limits.max_bytes is None:
        options = replace(options, limits=replace(limits, max_bytes=default_budget()))
    made: Engine
    if engine == "native":
        from .cold import run

        made, found = run(model, options, progress)
    else:
        from .reference import ReferenceEngine

        made = ReferenceEngine(model)
        found = made.run(options, progress)
    decided: dict[str, Trace | str | None] = {}
    if engine == "reference" and found.cut is None and (options.keep_going or not found.failures):
        from .liveness import decide

        began = time.monotonic()
        decided = decide(model.bound, options.limits, found.seconds["search"], progress)
        found.seconds["search"] += time.monotonic() - began
    return conclude(model, made, found, options, decided)
