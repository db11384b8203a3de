"""Ctrl-C: the first asks the search to stop and report what it has, the second ends the command."""

from __future__ import annotations

import signal
import sys
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """While it is entered, SIGINT and SIGTERM set `asked` once, then raise KeyboardInterrupt."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._stop)
        except ValueError:  # not in the main thread: whoever runs us there decides
            pass
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        if sys.stderr is not None:
            print("\nasked to stop; once more ends the command at once", file=sys.stderr)
