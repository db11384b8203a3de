"""All states found so far, exactly, in shards; and which of them make up which level of the search."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from . import kernel
from .kernel import SHARDS
from .memory import Block

Ints = npt.NDArray[np.int64]

_FIRST_BITS = 8
_MAX_BITS = 31
_PIECE = 2048


class Store:
    """The tables and state arrays of all shards; the kernel reads and writes them through `directory`."""

    def __init__(self, words: int) -> None:
        self._state_bytes = 8 * words
        self.directory: Ints = np.zeros((SHARDS, kernel.SHARD_WORDS), np.int64)
        self._tables = [Block(4 << _FIRST_BITS) for _ in range(SHARDS)]
        self._states = [Block(self._state_bytes << _FIRST_BITS) for _ in range(SHARDS)]
        self._marks: list[Block] = []
        self._old: list[Block] = []
        self._capacity: Ints = np.full(SHARDS, 1 << _FIRST_BITS, np.int64)
        self._bits: Ints = np.full(SHARDS, _FIRST_BITS, np.int64)
        self.starts: list[Ints] = [np.zeros(SHARDS, np.int64)]
        """For each level, the number of its first state in every shard; one entry more than there are full levels."""
        for shard in range(SHARDS):
            self.directory[shard, kernel.TABLE] = self._tables[shard].address
            self.directory[shard, kernel.STATES] = self._states[shard].address
        self.directory[:, kernel.BITS] = _FIRST_BITS
        self.directory[:, kernel.MASK] = (1 << _FIRST_BITS) - 1

    @property
    def counts(self) -> Ints:
        """States in every shard."""
        return self.directory[:, kernel.COUNT]

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def close_level(self) -> None:
        """Declare the states stored since the last call a level."""
        self.starts.append(self.counts.copy())

    def level_size(self, level: int) -> int:
        return int((self.starts[level + 1] - self.starts[level]).sum())

    def _wanted_bits(self, incoming: Ints) -> Ints:
        """Return the table sizes, as powers of two: three quarters full now, 15 sixteenths if all that comes is new.

        Most of what comes is there already, so a table rarely gets fuller than three quarters.
        """
        wanted = self._bits.copy()
        while True:
            full = (self.counts * 4 > np.left_shift(3, wanted)) | ((self.counts + incoming) * 16 > np.left_shift(15, wanted))
            if not full.any():
                return wanted
            wanted[full] += 1

    def bytes_with(self, incoming: Ints) -> int:
        """Return the memory in use once so many states a shard have been taken in, at most."""
        tables = int(np.left_shift(4, self._wanted_bits(incoming)).sum())
        return tables + int((self.counts + incoming).sum()) * self._state_bytes + sum(b.size for b in self._marks)

    @property
    def bytes(self) -> int:
        """Memory in use."""
        return self.bytes_with(np.zeros(SHARDS, np.int64))

    def prepare(self, incoming: Ints) -> None:
        """Make room for so many states a shard; raises MemoryError."""
        wanted = self._wanted_bits(incoming)
        for shard in np.flatnonzero(wanted > self._bits):
            if wanted[shard] > _MAX_BITS:
                raise MemoryError("a shard holds at most 2**31 states")
            table = Block(4 << int(wanted[shard]), at_once=True)
            self._old.append(self._tables[shard])
            self._tables[shard] = table
            self.directory[shard, kernel.NEW_TABLE] = table.address
            self.directory[shard, kernel.NEW_BITS] = wanted[shard]
        self._bits = wanted
        expected = self.counts + incoming
        for shard in np.flatnonzero(expected > self._capacity):
            capacity = max(int(expected[shard]), 2 * int(self._capacity[shard]))
            self._states[shard].grow(capacity * self._state_bytes)
            self._capacity[shard] = capacity
            self.directory[shard, kernel.STATES] = self._states[shard].address

    def settle(self) -> None:
        """Give back the tables that were replaced."""
        for block in self._old:
            block.close()
        self._old = []

    def start_marks(self) -> None:
        """Provide a cleared mark for every state."""
        for block in self._marks:
            block.close()
        self._marks = [Block(max(1, int(count))) for count in self.counts]
        for shard, block in enumerate(self._marks):
            self.directory[shard, kernel.MARKS] = block.address

    def look_at(self, level: int) -> None:
        """Choose the level in which the kernel looks up marked states."""
        self.directory[:, kernel.LEVEL_FROM] = self.starts[level]
        self.directory[:, kernel.LEVEL_TO] = self.starts[level + 1]

    def work(self, level: int) -> tuple[Ints, list[slice]]:
        """Return the work items of a level, and the ranges of them that make a good portion for one call."""
        items = list(self._items(level))
        portions: list[slice] = []
        first = size = 0
        for index, item in enumerate(items):
            size += item[kernel.ITEM_TO] - item[kernel.ITEM_FROM]
            if size >= _PIECE or index + 1 == len(items):
                portions.append(slice(first, index + 1))
                first, size = index + 1, 0
        return np.array(items, np.int64).reshape(-1, kernel.ITEM_WORDS), portions

    def _items(self, level: int) -> Iterator[tuple[int, int, int]]:
        begins, ends = self.starts[level].tolist(), self.starts[level + 1].tolist()
        for shard in range(SHARDS):
            address = self.directory.ctypes.data + shard * self.directory.strides[0]
            for first in range(begins[shard], ends[shard], _PIECE):
                yield address, first, min(first + _PIECE, ends[shard])

    def close(self) -> None:
        """Give all memory back."""
        self.settle()
        for block in [*self._tables, *self._states, *self._marks]:
            block.close()
        self._tables, self._states, self._marks = [], [], []
