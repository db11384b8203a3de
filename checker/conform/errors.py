"""Why a spec and an implementation cannot be held against each other."""

from __future__ import annotations

import traceback

from ...spec.lang import FencepostSpecError


class ConformError(FencepostSpecError):
    """A spec and a driver do not fit each other: an error of input."""


class DriverUnstable(Exception):
    """The same events do not lead to the same again: the driver is at fault, and no verdict can be given.

    Either the implementation is not deterministic, or the driver's `save`, `restore` or `digest` is wrong.
    """

    def __str__(self) -> str:
        return f"{self.args[0]}: the implementation is not deterministic, or its driver's save, restore or digest is not whole"


class WorkerLost(MemoryError):
    """A process that expands states has ended by itself, or was ended; mostly where memory ran out."""

    def __init__(self, code: int | None) -> None:
        super().__init__(
            f"a worker process has ended (exit code {code}); if memory ran out, try --workers 1 or a smaller --max-memory"
        )


def sent(error: BaseException) -> BaseException:
    """An error of a worker as another process can have it: with the places where it was raised, which `frames` gives."""
    error.add_note("".join(traceback.format_exception(error)))
    error.__dict__["frames"] = frames(error)
    return error


def frames(error: BaseException) -> list[tuple[str, int]]:
    """The file and line of each call that an error went through, also in the process that it came from."""
    own = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    return own + list(getattr(error, "frames", ()))
