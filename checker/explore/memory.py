"""Memory of this process, and how much it may use."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path


def peak_memory() -> int:
    """The largest resident size of this process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def resident_memory() -> int:
    """The resident size of this process now, in bytes (on systems without /proc: the peak)."""
    try:
        with open("/proc/self/statm") as stream:
            return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return peak_memory()


def private_memory() -> int:
    """Bytes of this process that it shares with no other, pages included that it changed (0 on systems without /proc)."""
    try:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_Dirty:"))
    except OSError:
        return 0


def usable_memory() -> int:
    """Bytes that this process may use: what is free now, within the limit of its control group."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    free = _meminfo("MemAvailable") or total
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        cap, taken = _number(Path(limit)), _number(Path(used))
        if cap is not None and taken is not None and cap < total:
            free = min(free, max(0, cap - taken))
    return min(total, free)


def default_budget() -> int:
    """How large this process may grow where nobody says: to nine tenths of what is free now, in bytes."""
    return resident_memory() + usable_memory() * 9 // 10


def _meminfo(name: str) -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
