"""Finds a vLLM that is there: fetched earlier, a folder that is named, or the one that this Python would import."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path

from .errors import ReleaseError
from .release import Origin, Release

UNKNOWN = "0+checkout"
"""The version of a source tree that does not say which one it is."""


def releases_folder() -> Path:
    """Return the folder of fetched releases: `vllm` in $FENCEPOST_CACHE, or in `fencepost` where user caches are kept."""
    chosen = os.environ.get("FENCEPOST_CACHE")
    if chosen:
        return Path(chosen).expanduser() / "vllm"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "fencepost" / "vllm"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "fencepost" / "vllm"


def fetched(version: str) -> Release:
    """Return a release that was fetched earlier; ReleaseError says how to fetch it."""
    there = all_fetched()
    for release in there:
        if release.version == version:
            return release
    listed = ", ".join(release.version for release in there) or "none"
    raise ReleaseError(f"vLLM {version} is not in {releases_folder()} (there: {listed}): fencepost vllm fetch {version}")


def all_fetched() -> list[Release]:
    """Return the releases in the cache, the oldest version first."""
    root = releases_folder()
    names = [path.name for path in root.glob("[0-9]*") if _is_package(path / "vllm")] if root.is_dir() else []
    return [Release(name, root / name, "fetched") for name in sorted(names, key=_order)]


def at(path: Path) -> Release:
    """Return the vLLM at a path: a source checkout, a folder of installed packages, or the package folder `vllm` itself."""
    where = path.expanduser().resolve()
    if where.name == "vllm" and _is_package(where):
        where = where.parent
    if not where.is_dir():
        raise ReleaseError(f"{path}: no such folder; name a vLLM checkout, or the folder that holds the package vllm")
    if not _is_package(where / "vllm"):
        raise ReleaseError(
            f"{path}: holds no package vllm (no vllm/__init__.py); name a checkout, or the folder with vllm in it"
        )
    if where.parent == releases_folder().resolve():
        return Release(where.name, where, "fetched")
    installed = _metadata_version(where)
    origin: Origin = "installed" if installed else "checkout"
    return Release(installed or _source_version(where / "vllm") or UNKNOWN, where, origin)


def importable() -> Release | None:
    """Return the vLLM that `import vllm` would find in this Python, without importing it; None if there is none."""
    try:
        spec = importlib.util.find_spec("vllm")
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    return at(Path(spec.origin).parent)


def _is_package(folder: Path) -> bool:
    return (folder / "__init__.py").is_file()


def _metadata_version(folder: Path) -> str | None:
    """The version that a folder of installed packages notes for vLLM."""
    for notes in sorted(folder.glob("vllm-*.dist-info/METADATA")):
        found = re.search(r"^Version: *(\S+)", notes.read_text("utf-8", "replace"), re.MULTILINE)
        if found:
            return found[1]
    return None


def _source_version(package: Path) -> str | None:
    """The version in the source of the package: in _version.py, which builds write, or in version.py."""
    for name in ("_version.py", "version.py"):
        file = package / name
        text = file.read_text("utf-8", "replace") if file.is_file() else ""
        found = re.search(r"""^__version__\s*=\s*(?:version\s*=\s*)?["']([^"']+)["']""", text, re.MULTILINE)
        if found:
            return found[1]
    return None


def _order(version: str) -> list[tuple[int, str]]:
    """A key that puts 0.9 before 0.10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"[.+!-]", version)]
