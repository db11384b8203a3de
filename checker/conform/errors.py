"""Why a spec and an implementation cannot be held against each other."""

from __future__ import annotations

from ...spec.lang import FencepostSpecError


class ConformError(FencepostSpecError):
    """A spec and a driver do not fit each other: an error of input."""


class DriverUnstable(Exception):
    """The same events do not lead to the same again: the driver is at fault, and no verdict can be given.

    Either the implementation is not deterministic, or the driver's `save`, `restore` or `digest` is wrong.
    """

    def __str__(self) -> str:
        return f"{self.args[0]}: the implementation is not deterministic, or its driver's save, restore or digest is not whole"
