"""The clock of a release under the driver: it stands still, so that no state depends on how fast anything is checked.

Modules of vLLM and those of a user's classes find, under the names by which they know the clocks of Python's `time`, clocks
that always show the same. Nothing else sees them.
"""

from __future__ import annotations

import sys
import time
import types
from collections.abc import Collection
from typing import Any

SECONDS = 1e6
"""What every clock shows."""


def _seconds() -> float:
    return SECONDS


def _nanoseconds() -> int:
    return int(SECONDS * 1e9)


_CLOCKS = ("time", "monotonic", "perf_counter", "process_time")
_STILL: dict[Any, Any] = {
    **{getattr(time, name): _seconds for name in _CLOCKS},
    **{getattr(time, f"{name}_ns"): _nanoseconds for name in _CLOCKS},
}
_TIME = types.ModuleType("time", "The module `time` with clocks that stand still.")
_TIME.__dict__.update({name: _STILL.get(value, value) for name, value in vars(time).items() if not name.startswith("__")})
_STILL[time] = _TIME


def stand_still(modules: Collection[str]) -> None:
    """Stop the clocks that the modules of vLLM know, and these modules."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "vllm" or name in modules:
            known: dict[str, Any] = vars(module)
            for word, value in list(known.items()):
                if isinstance(value, types.ModuleType | types.BuiltinFunctionType) and value in _STILL:
                    known[word] = _STILL[value]
