"""Progress of a search: one line that renews itself on a terminal, now and then a plain line elsewhere."""

from __future__ import annotations

import time
from typing import IO, Protocol

from .words import number, size


class Seen(Protocol):
    """How far a search is; `rate` in distinct states a second."""

    @property
    def depth(self) -> int: ...
    @property
    def distinct(self) -> int: ...
    @property
    def generated(self) -> int: ...
    @property
    def queue(self) -> int: ...
    @property
    def rate(self) -> float: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def note(self) -> str: ...


def line(seen: Seen) -> str:
    """Progress in one line."""
    text = (
        f"depth {seen.depth}, {number(seen.distinct)} distinct, {number(seen.generated)} generated, "
        f"{number(seen.queue)} queued, {number(round(seen.rate))} states/s, {size(seen.memory_bytes)}"
    )
    return f"{text}; {seen.note}" if seen.note else text


class ProgressLine:
    """Prints progress to a stream; call it with each report of an engine, then `close` it."""

    LONGEST = 30.0
    """Seconds between two plain lines, at most; they start at one second and double."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream, self.terminal = stream, stream.isatty()
        self.pause, self.next, self.width = 1.0, 0.0, 0

    def __call__(self, seen: Seen) -> None:
        """Show a report, if it is time."""
        if self.terminal:
            self._renew(line(seen))
        elif time.monotonic() >= self.next:
            print(line(seen), file=self.stream, flush=True)
            self.next = time.monotonic() + self.pause
            self.pause = min(self.LONGEST, self.pause * 2)

    def _renew(self, text: str) -> None:
        import shutil

        text = text[: shutil.get_terminal_size().columns - 1]
        self.stream.write("\r" + text.ljust(self.width))
        self.stream.flush()
        self.width = len(text)

    def close(self) -> None:
        """Clear the line on a terminal."""
        if self.terminal and self.width:
            self.stream.write("\r" + " " * self.width + "\r")
            self.stream.flush()
