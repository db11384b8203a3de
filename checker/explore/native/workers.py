"""What each thread of a search has for itself: its context, its outboxes and its statistics."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from . import kernel
from .kernel import SHARDS
from .memory import Block
from .program import Program

Ints = npt.NDArray[np.int64]

_NO_DEGREE = 1 << 62


class Workers:
    """The contexts of all threads, and sums over them."""

    def __init__(self, program: Program, threads: int, directory: int) -> None:
        self._program = program
        self._fills = kernel.fills_at(program)
        self.contexts: Ints = np.zeros((threads, kernel.context_words(program) // 8 * 8 + 8), np.int64)
        self.covers = np.zeros((threads, 2, program.covers // 64 * 64 + 64), np.uint8)
        self.addresses: Ints = self.contexts.ctypes.data + np.arange(threads) * self.contexts.strides[0]
        box_bytes = SHARDS * kernel.box_states(program) * 8 * program.words
        self._boxes = [Block(box_bytes, large_pages=True) for _ in range(threads)]
        self._scratch = [Block(kernel.scratch_bytes(program)) for _ in range(threads)]
        for number in range(threads):
            context = self.contexts[number]
            context[kernel.COVER] = self.covers[number, 0].ctypes.data
            context[kernel.CHECK_COVER] = self.covers[number, 1].ctypes.data
            context[kernel.SCRATCH] = self._scratch[number].address
            context[kernel.BOXES] = self._boxes[number].address
            context[kernel.DIRECTORY] = directory
            context[kernel.DEGREE_MIN] = _NO_DEGREE
        self.box_bytes = box_bytes * threads

    def set(self, field: int, value: int) -> None:
        """Set one field of every context."""
        self.contexts[:, field] = value

    def masks(self, field: int) -> int:
        """Return the union of a bit mask over all contexts."""
        return int(np.bitwise_or.reduce(self.contexts[:, field]))

    def least(self, field: int) -> int:
        """Return the least value of a field that is not 0, or 0."""
        column = self.contexts[:, field]
        return int(column[column != 0].min(initial=_NO_DEGREE)) % _NO_DEGREE

    def sum(self, field: int) -> int:
        return int(self.contexts[:, field].sum())

    @property
    def incoming(self) -> Ints:
        """States in the outboxes for every shard."""
        return self.contexts[:, self._fills : self._fills + SHARDS].sum(axis=0)

    def clear_boxes(self) -> None:
        self.contexts[:, self._fills : self._fills + SHARDS] = 0

    def counters(self) -> tuple[list[int], list[int]]:
        """Return, for each action, the states it was enabled in and its transitions."""
        table = self.contexts[:, kernel.COUNTERS : self._fills].sum(axis=0).reshape(-1, 2)
        return table[:, 0].tolist(), table[:, 1].tolist()

    def degrees(self) -> tuple[int, int]:
        """Return the least and the greatest number of transitions of a state."""
        least = int(self.contexts[:, kernel.DEGREE_MIN].min())
        return (0 if least == _NO_DEGREE else least), int(self.contexts[:, kernel.DEGREE_MAX].max())

    def covered(self) -> bytes:
        """Return a byte for every cover point: 1 if it was seen in a check or on a transition."""
        return self.covers.max(axis=(0, 1))[: self._program.covers].tobytes()

    def snapshot(self) -> tuple[Ints, npt.NDArray[np.uint8]]:
        """Copy what the expansion of a level changes, for `restore`."""
        return self.contexts[:, kernel.GENERATED : self._fills].copy(), self.covers[:, 0].copy()

    def restore(self, saved: tuple[Ints, npt.NDArray[np.uint8]]) -> None:
        """Forget what was counted in expansions since the snapshot, and what waits in the outboxes."""
        self.contexts[:, kernel.GENERATED : self._fills] = saved[0]
        self.covers[:, 0] = saved[1]
        self.set(kernel.STEP_FAILED, 0)
        self.set(kernel.ACTION_ERROR, 0)
        self.clear_boxes()

    def close(self) -> None:
        """Give the memory back."""
        for block in [*self._boxes, *self._scratch]:
            block.close()
        self._boxes, self._scratch = [], []


def packed(words: Sequence[int]) -> Ints:
    """Return the words of a packed state, given as signed or unsigned 64-bit numbers, as an array."""
    return np.array([word & ((1 << 64) - 1) for word in words], np.uint64).view(np.int64)
