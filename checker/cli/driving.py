"""The frame of a run that drives an implementation: it can be interrupted, shows how far it is, and blames who failed."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .drivers import Implementation

if TYPE_CHECKING:
    from ..model import Limits
    from ..report.progress import ProgressLine
    from .interrupt import Interrupts


@dataclass
class Driving:
    """The limits of a run, which an interrupt reaches first, and where it shows how far it is."""

    limits: Limits
    progress: ProgressLine | None
    interrupts: Interrupts


@contextmanager
def driving(target: Implementation, limits: Limits, *, quiet: bool, interrupts: Interrupts | None = None) -> Generator[Driving]:
    """Run what is inside; what an implementation prints is no part of the report, and goes to standard error.

    With `interrupts`, which are entered already, they end this run, too. An error in a user's own driver is raised as the
    `UsageError` that says where it is.
    """
    from ..report.progress import ProgressLine
    from .interrupt import Interrupts

    progress = None if quiet else ProgressLine(sys.stderr)
    with nullcontext(interrupts) if interrupts else Interrupts() as interrupts, redirect_stdout(sys.stderr):
        try:
            yield Driving(replace(limits, cancelled=lambda: interrupts.asked), progress, interrupts)
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:
            blamed = target.blame(error)
            raise error if blamed is None else blamed from error
        finally:
            if progress is not None:
                progress.close()
