"""When this command started: the time of the process, not of the first line of Python."""

from __future__ import annotations

import os
import time

_FIRST_LINE = time.perf_counter()


def since_start() -> float:
    """Seconds since the process started, where the system tells; else since this module was imported."""
    inside = time.perf_counter() - _FIRST_LINE
    try:
        with open("/proc/self/stat", "rb") as stat, open("/proc/uptime", "rb") as uptime:
            ticks = int(stat.read().rpartition(b")")[2].split()[19])
            age = float(uptime.read().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return inside
    # The system's figures are rounded to hundredths, and other clocks may be at work in a container.
    return max(age, inside) if age < inside + 60 else inside
