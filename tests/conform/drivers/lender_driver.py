"""Drivers of the lender for tests/cli/specs/lending.py (its fence off); the device's writes are kept beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fencepost.traces.driver import Refused
from lender import Lender


class LenderDriver:
    """Drives a lender; the device's writes are kept beside it."""

    title = "the lender is real, the device is a set"
    quiet = frozenset({"borrow"})

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.requests, self.blocks = values["requests"], values["blocks"]
        self.reset()

    def reset(self) -> None:
        """Begin again."""
        self.lender = Lender(self.blocks)
        self.writing: set[int] = set()

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        """Let an event happen."""
        (one,) = arguments
        if action == "borrow" and not self.lender.lend(one):
            raise Refused("no block")
        elif action == "launch":
            self.writing.add(self.lender.held[one])
        elif action == "finish":
            self.lender.give_back(one)
        elif action == "land":
            self.writing.discard(one)

    def observe(self) -> dict[str, Any]:
        """All of it; the count is asked for here and nowhere else."""
        held = [self.lender.held.get(r) for r in range(self.requests)]
        assert self.lender.count() == sum(block is not None for block in held)
        status = ["IDLE" if block is None else "BORROWING" for block in held]
        return {"status": status, "held": held, "free": list(self.lender.free), "writing": set(self.writing)}

    def digest(self, names: Mapping[str, Sequence[int]] | None = None) -> tuple[Any, ...]:
        """All of it."""
        request = (names or {}).get("requests", range(self.requests))
        block = (names or {}).get("blocks", range(self.blocks))
        held = sorted((request[r], block[b]) for r, b in self.lender.held.items())
        free = (block[b] for b in self.lender.free)
        return tuple(held), tuple(free), tuple(sorted(block[b] for b in self.writing))


class SavingDriver(LenderDriver):
    """One that can go back."""

    def save(self) -> Any:
        """Copies of all that changes."""
        return list(self.lender.free), dict(self.lender.held), set(self.writing), self.lender.far

    def restore(self, saved: Any) -> None:
        """Copies of the copies."""
        free, held, writing, self.lender.far = saved
        self.lender.free.clear()
        self.lender.free.extend(free)
        self.lender.held, self.writing = dict(held), set(writing)
