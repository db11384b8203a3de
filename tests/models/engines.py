"""Runs a model in one engine, and says in one comparable value what was found."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from fencepost.checker.explore.conclude import conclude
from fencepost.checker.explore.findings import Engine
from fencepost.checker.explore.native.engine import NativeEngine
from fencepost.checker.explore.reference import ReferenceEngine
from fencepost.checker.model import Model, Options
from fencepost.checker.result import Result


def search(model: Model, options: Options, engine: str) -> Result:
    """Searches with exactly this engine: never the interpreter while something is being compiled."""
    made: Engine = NativeEngine(model) if engine == "native" else ReferenceEngine(model)
    if isinstance(made, NativeEngine):
        made.load(options)
    found = made.run(options, None)
    return conclude(model, made, found, options, {})


def counts(result: Result) -> dict[str, Any]:
    """What every engine must agree on with the same symmetry: all figures but time and memory."""
    figures = dataclasses.asdict(result.figures)
    return {name: value for name, value in figures.items() if "seconds" not in name and "bytes" not in name}


def findings(result: Result) -> Mapping[str, Any]:
    """What every engine must agree on with and without symmetry: verdict, statuses and traces."""
    return {
        "verdict": result.verdict,
        "reason": result.reason,
        "cut": result.cut,
        "vacuous": result.vacuous,
        "properties": [(p.name, p.status, p.depth, p.reason) for p in result.properties],
        "traces": [p.trace for p in result.properties],
    }
