"""The machine in words, and whether it is busy with something else."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

QUIET = 0.3
"""A one-minute load above this disturbs measurements."""


def processor() -> str:
    """The processor's name, as Linux states it."""
    try:
        names = re.findall(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def version(*command: str) -> str | None:
    """The first line a tool prints about itself, None if it is not installed."""
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (said.stdout or said.stderr).strip().splitlines()
    return lines[0].strip() if lines else None


def description() -> list[str]:
    """The machine and the versions that matter, one line each."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    tools = [
        version("spin", "-V"),
        version("rumur", "--version"),
        version("gcc", "--version"),
        version("java", "-version"),
    ]
    return [
        f"{processor()}, {cores()} cores, {memory:.0f} GiB memory, {platform.system()} {platform.release()}",
        f"Python {platform.python_version()}; " + "; ".join(tool for tool in tools if tool),
    ]


def disturbance() -> str | None:
    """A warning if the machine was busy in the last minute."""
    load = os.getloadavg()[0]
    return f"the machine is not idle (load {load:.1f}): figures will be too low" if load > QUIET else None
