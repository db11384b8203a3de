"""Engines for specs/lending.py with its fence on: one keeps a block that a step may still write, the others do not quite."""

from __future__ import annotations

from fencepost.traces.driver import Refused, Stopped
from lending_engine import Engine


class Fenced(Engine):
    """No block comes back while it is written."""

    title = "fenced_engine.py: the pool is real, the device is a set"
    quiet = frozenset({"borrow", "finish"})

    def finish(self, r: int) -> None:
        if r not in self.pool.held or self.pool.held[r] in self.pool.writing:
            raise Refused("not now")
        super().finish(r)


class Forgetful(Fenced):
    """The mistake: of two blocks that are written, the second one is forgotten."""

    def finish(self, r: int) -> None:
        if len(self.pool.writing) == 2:
            self.pool.give_back(r)
        else:
            super().finish(r)


class Failing(Fenced):
    """The mistake: an assertion of its own."""

    def finish(self, r: int) -> None:
        if len(self.pool.writing) == 2:
            raise Stopped("INTERNAL", "AssertionError: one write at a time")
        super().finish(r)


class Growing(Fenced):
    """The mistake: a block more than there are comes back."""

    def finish(self, r: int) -> None:
        super().finish(r)
        self.pool.free.append(self.blocks)
