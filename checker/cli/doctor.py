"""`fencepost doctor`: what is installed, what the machine allows, and whether the cache works."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

OPTIONAL = ("coverage", "torch", "transformers", "vllm")
"""Packages of extras, and vLLM itself, which is used in place where it is installed."""


def doctor(json_: Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")] = False) -> None:
    """Say what is installed, how many cores and how much memory a search may use, and the state of the cache.

    Exit codes: 0 all is well, 2 something that Fencepost needs is missing.
    """
    facts = collected()
    if json_:
        import json

        print(json.dumps(facts, indent=2))
    else:
        _print(facts)
    raise typer.Exit(2 if facts["problems"] else 0)


def collected() -> dict[str, Any]:
    """Everything as plain data; `problems` lists what a user should repair."""
    from ...traces.origin import version

    packages = {name: _version(name) for name in needed()}
    cache = _cache()
    problems = [f"{name} is not installed" for name, found in packages.items() if found is None]
    warnings = [] if cache["writable"] else [f"{cache['folder']} cannot be written: each start compiles again"]
    return {
        "fencepost": version(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "system": f"{platform.system()} {platform.machine()}",
        "packages": packages,
        "optional": {name: _version(name) for name in OPTIONAL},
        "cores": cores(),
        "memory": _memory(),
        "cache": cache,
        "vllm_releases": _releases(),
        "warnings": warnings,
        "problems": problems,
    }


def needed() -> list[str]:
    """The packages that this installation says it needs, without those of its extras."""
    import re
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires("fencepost") or []
    except PackageNotFoundError:  # run from a source tree that is not installed
        return []
    return [found[0] for line in lines if "extra ==" not in line and (found := re.match(r"[\w.-]+", line))]


def _version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def cores() -> dict[str, Any]:
    """Cores of the machine, cores this process may run on, and the share that a control group allows."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {"machine": os.cpu_count(), "usable": usable, "quota": _quota(Path("/sys/fs/cgroup"))}


def _quota(group: Path) -> float | None:
    """Cores that a control group grants (version 2, then 1); None without a limit."""
    try:
        quota, period = (group / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        pass
    try:
        quota_us = int((group / "cpu/cpu.cfs_quota_us").read_text())
        return None if quota_us < 0 else quota_us / int((group / "cpu/cpu.cfs_period_us").read_text())
    except (OSError, ValueError):
        return None


def _memory() -> dict[str, int]:
    from ..explore.memory import usable_memory

    free = usable_memory()
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {"machine_bytes": total, "usable_bytes": free, "default_limit_bytes": free * 9 // 10}


def _cache() -> dict[str, Any]:
    from ..explore.native.cache import default_directory

    folder = default_directory()
    files = [path for path in folder.glob("*") if path.is_file()] if folder.is_dir() else []
    return {
        "folder": str(folder),
        "exists": folder.is_dir(),
        "writable": _writable(folder),
        "entries": len(files),
        "bytes": sum(path.stat().st_size for path in files),
    }


def _releases() -> dict[str, Any]:
    """The vLLM releases that were fetched, and what of the extra `vllm` is not installed."""
    from ...impl.vllm.find import all_fetched, releases_folder
    from ...impl.vllm.loading import missing_packages

    versions = [release.version for release in all_fetched()]
    return {"folder": str(releases_folder()), "fetched": versions, "packages_missing": missing_packages()}


def _writable(folder: Path) -> bool:
    """Whether files can be made in a folder, or the folder itself can."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _print(facts: dict[str, Any]) -> None:
    from ..report.terminal import console
    from ..report.words import count, size

    out = console()
    memory, cache, found = facts["memory"], facts["cache"], facts["cores"]
    quota = "" if found["quota"] is None else f", limited to {found['quota']:g} by the control group"
    releases = facts["vllm_releases"]
    versions = ", ".join(releases["fetched"]) or "none fetched"
    lacking = ", ".join(releases["packages_missing"])
    usable = f"to drive them, pip install 'fencepost[vllm]': {lacking} missing" if lacking else "extra vllm installed"
    state = "writable" if cache["writable"] else "not writable"
    rows = [
        ("fencepost", facts["fencepost"]),
        ("python", f"{facts['python']} ({facts['executable']})"),
        ("system", facts["system"]),
        *((name, found or "missing") for name, found in facts["packages"].items()),
        *((name, found or "not installed (optional)") for name, found in facts["optional"].items()),
        ("cores", f"{found['usable']} usable of {found['machine']}{quota}"),
        ("memory", f"{size(memory['usable_bytes'])} usable of {size(memory['machine_bytes'])}"),
        ("limit of a search", f"{size(memory['default_limit_bytes'])} unless --max-memory says otherwise"),
        ("cache", f"{cache['folder']} ({state}, {count(cache['entries'], 'file')}, {size(cache['bytes'])})"),
        ("vLLM releases", f"{versions} ({usable})"),
    ]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        out.print(f"{name.ljust(width)}  {value}", soft_wrap=True)
    for text in (*facts["warnings"], *facts["problems"]):
        out.print(f"warning: {text}", style="bold yellow")
