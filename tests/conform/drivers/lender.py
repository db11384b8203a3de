"""An engine for tests/cli/specs/lending.py whose lines are reached at any size, at large sizes only, or never."""

from __future__ import annotations

from collections import deque


class Lender:
    """Lends blocks to requests."""

    def __init__(self, blocks: int) -> None:
        self.free = deque(range(blocks))
        self.held: dict[int, int] = {}
        self.far = 0

    def lend(self, request: int) -> bool:
        """Lend a block; False if there is none."""
        if request in self.held or not self.free:
            return False
        block = self.free.popleft()
        if block > 2:
            self.far += 1
        self.held[request] = block
        return True

    def give_back(self, request: int) -> None:
        """A block returns."""
        if request not in self.held:  # beyond the spec: who holds nothing never ends
            raise KeyError(request)
        block = self.held.pop(request)
        if block >= 0:
            self.free.append(block)
        if block < -1:
            self.free.clear()
            self.far = 0

    def shrink(self) -> None:
        """Forget the free blocks."""
        # beyond the spec: pools keep their size there
        self.free.clear()
        while self.far:
            self.far -= 1

    def count(self) -> int:
        """How many blocks are lent."""
        return len(self.held)
