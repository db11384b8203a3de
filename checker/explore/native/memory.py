"""Memory straight from the operating system: zeroed, and paid for only where it is touched."""

import ctypes
import mmap
import os
from contextlib import suppress

PAGE = mmap.PAGESIZE
_POPULATE: int = getattr(mmap, "MAP_POPULATE", 0)
_LARGE_PAGES: int | None = getattr(mmap, "MADV_HUGEPAGE", None)


class Block:
    """A block of zeroed memory with a fixed address until it grows.

    `at_once` provides all of its pages now, which is cheaper if all will be used soon; `large_pages` asks for them.
    """

    def __init__(self, size: int, *, at_once: bool = False, large_pages: bool = False) -> None:
        self.size = -(-size // PAGE) * PAGE
        self._map = _reserve(self.size, _POPULATE if at_once else 0)
        if large_pages and _LARGE_PAGES is not None:
            with suppress(OSError):
                self._map.madvise(_LARGE_PAGES)
        self.address = _address(self._map)

    def grow(self, size: int) -> None:
        """Make the block larger, keeping its contents; its address may change."""
        size = -(-size // PAGE) * PAGE
        try:
            self._map.resize(size)
        except (SystemError, ValueError, OSError):
            larger = _reserve(size)
            ctypes.memmove(_address(larger), self.address, self.size)
            self._map.close()
            self._map = larger
        self.size, self.address = size, _address(self._map)

    def close(self) -> None:
        """Give the memory back."""
        self._map.close()
        self.address = 0


def _reserve(size: int, more: int = 0) -> mmap.mmap:
    try:
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | more)
    except OSError as error:
        raise MemoryError(f"{size} bytes are not to be had") from error


def _address(block: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(block))


def process_memory() -> int:
    """Return the resident memory of this process in bytes, or 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as stream:
            return int(stream.read().split()[1]) * PAGE
    except (OSError, ValueError, IndexError):
        return 0


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
