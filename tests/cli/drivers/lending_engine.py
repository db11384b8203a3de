"""An engine that lends blocks, with its driver for specs/lending.py (its fence off); and the same with one mistake each."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from fencepost.traces.driver import Refused

Names = Mapping[str, Sequence[int]]


class Pool:
    """Lends blocks to requests; what is given back goes to the end of the queue."""

    def __init__(self, blocks: int) -> None:
        self.free = deque(range(blocks))
        self.held: dict[int, int] = {}
        self.writing: set[int] = set()

    def borrow(self, request: int) -> bool:
        """Lend a block to a request, if there is one and it has none."""
        if request in self.held or not self.free:
            return False
        self.held[request] = self.free.popleft()
        return True

    def give_back(self, request: int) -> None:
        """The block of a request returns."""
        self.free.append(self.held.pop(request))


class Engine:
    """The driver of a pool."""

    title = "lending_engine.py: the pool is real, the device is a set"
    quiet = frozenset({"borrow"})
    kind: type[Pool] = Pool

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.requests, self.blocks = values["requests"], values["blocks"]
        self.reset()

    def reset(self) -> None:
        self.pool = self.kind(self.blocks)

    def take(self, action: str, arguments: tuple[int, ...]) -> None:
        getattr(self, action)(*arguments)

    def borrow(self, r: int) -> None:
        if not self.pool.borrow(r):
            raise Refused("no block")

    def launch(self, r: int) -> None:
        self.pool.writing.add(self.pool.held[r])

    def finish(self, r: int) -> None:
        self.pool.give_back(r)

    def land(self, b: int) -> None:
        self.pool.writing.discard(b)

    def observe(self) -> dict[str, Any]:
        held = [self.pool.held.get(r) for r in range(self.requests)]
        return {
            "status": ["IDLE" if block is None else "BORROWING" for block in held],
            "held": held,
            "free": list(self.pool.free),
            "writing": set(self.pool.writing),
        }

    def digest(self, names: Names | None = None) -> tuple[Hashable, ...]:
        request, block = self.names(names, "requests", self.requests), self.names(names, "blocks", self.blocks)
        return (
            ("held", tuple(sorted((request[r], block[b]) for r, b in self.pool.held.items()))),
            ("free", tuple(block[b] for b in self.pool.free)),
            ("writing", tuple(sorted(block[b] for b in self.pool.writing))),
        )

    def names(self, names: Names | None, index: str, count: int) -> Sequence[int]:
        """The new names of the members of an index."""
        return (names or {}).get(index, range(count))


class StackPool(Pool):
    """What is given back is lent next."""

    def give_back(self, request: int) -> None:
        self.free.appendleft(self.held.pop(request))


class Stack(Engine):
    """The mistake: the order of the free queue."""

    kind = StackPool


class Cautious(Engine):
    """The mistake: no block comes back while it is written."""

    def finish(self, r: int) -> None:
        if self.pool.held[r] in self.pool.writing:
            raise Refused(f"block {self.pool.held[r]} is being written")
        super().finish(r)


class Crashing(Engine):
    """The mistake: the last block is never lent, and nobody expects that."""

    def borrow(self, r: int) -> None:
        if r not in self.pool.held and len(self.pool.free) == 1:
            raise IndexError("no block is left")
        super().borrow(r)


class EagerPool(Pool):
    """Lends to a request that has a block."""

    def borrow(self, request: int) -> bool:
        lent = bool(self.free)
        if lent:
            self.held[request] = self.free.popleft()
        return lent


class Eager(Engine):
    """The mistake: what must be refused is not."""

    kind = EagerPool


class RememberingPool(Pool):
    """Knows who borrowed last."""

    last: int | None = None

    def borrow(self, request: int) -> bool:
        lent = super().borrow(request)
        self.last = request if lent else self.last
        return lent


class Remembering(Engine):
    """No mistake yet: it keeps something that the spec does not know."""

    kind = RememberingPool

    def digest(self, names: Names | None = None) -> tuple[Hashable, ...]:
        last: int | None = getattr(self.pool, "last", None)
        return (*super().digest(names), ("last", None if last is None else self.names(names, "requests", self.requests)[last]))


class Forgetful(Engine):
    """A driver at fault: what it shows depends on more than the events."""

    starts = 0

    def reset(self) -> None:
        super().reset()
        Forgetful.starts += 1
        if Forgetful.starts % 2:
            self.pool.free.reverse()
