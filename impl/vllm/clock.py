"""The clock of a release under the driver: it stands still, so that no state depends on how fast anything is checked.

While an event happens the clocks of Python's module `time` always show the same. Modules of vLLM and those of a user's classes
find such clocks also under the names by which they know them.
"""

from __future__ import annotations

import sys
import time
import types
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from typing import Any

SECONDS = 1_000_000
"""What every clock shows."""
PATIENCE = 10_000
"""So often may a clock be asked in one event. Then it goes on, a second each time: whoever waits for a deadline comes to it."""

_NAMES = ("time", "monotonic", "perf_counter", "process_time")
_asked = 0


def _now() -> int:
    global _asked
    _asked += 1
    return SECONDS + max(0, _asked - PATIENCE)


def _seconds() -> float:
    return float(_now())


def _nanoseconds() -> int:
    return _now() * 1_000_000_000


_REAL: dict[str, Callable[[], Any]] = {name: getattr(time, name) for base in _NAMES for name in (base, f"{base}_ns")}
_STILL: dict[str, Callable[[], Any]] = {name: _nanoseconds if name.endswith("_ns") else _seconds for name in _REAL}
_OF_REAL = {real: _STILL[name] for name, real in _REAL.items()}


@contextmanager
def standing() -> Generator[None]:
    """Stop the clocks of the module `time`, for one event."""
    global _asked
    _asked = 0
    time.__dict__.update(_STILL)
    try:
        yield
    finally:
        time.__dict__.update(_REAL)


def stand_still(modules: Collection[str]) -> None:
    """Stop the clocks that the modules of vLLM, and these, have under names of their own."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "vllm" or name in modules:
            known: dict[str, Any] = vars(module)
            for word, value in list(known.items()):
                if isinstance(value, types.BuiltinFunctionType) and value in _OF_REAL:
                    known[word] = _OF_REAL[value]
