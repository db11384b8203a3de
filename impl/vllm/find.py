"""Finds a vLLM that is there: fetched earlier, a folder that is named, or the one that this Python would import."""

from __future__ import annotations

import importlib.util
import os
import re
import site
import sys
from pathlib import Path

from .errors import ReleaseError
from .record import damage
from .release import Origin, Release

UNKNOWN = "0+checkout"
"""The version of a source tree that does not say which one it is."""
FIRST = "0.23.0"
"""The oldest release that can be driven."""

_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+!-]*")


def releases_folder() -> Path:
    """Return the folder of fetched releases: `vllm` in $FENCEPOST_CACHE, or in `fencepost` where user caches are kept."""
    chosen = os.environ.get("FENCEPOST_CACHE")
    if chosen:
        return Path(chosen).expanduser() / "vllm"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "fencepost" / "vllm"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "fencepost" / "vllm"


def check_version(version: str) -> None:
    """Raise a ReleaseError where a word is no version of a release."""
    if not _VERSION.fullmatch(version):
        as_in = f"{version}.0" if re.fullmatch(r"[0-9]+\.[0-9]+", version) else "0.33.0"
        raise ReleaseError(f"{version!r} is no version of vLLM; one has three numbers: name it as {as_in}")


def check_age(version: str) -> None:
    """Raise a ReleaseError where a release is too old to be driven."""
    if _order(version) < _order(FIRST):
        raise ReleaseError(f"vLLM {version}: releases before {FIRST} cannot be driven; docs/vllm.md says which can")


def fetched(version: str) -> Release:
    """Return a release that was fetched earlier, verified; ReleaseError says how to fetch it, or to fetch it again."""
    check_version(version)
    there = all_fetched()
    for release in there:
        if release.version == version:
            return _verified(release)
    listed = ", ".join(release.version for release in there) or "none"
    check_age(version)
    raise ReleaseError(f"vLLM {version} is not in {releases_folder()} (there: {listed}): fencepost vllm fetch {version}")


def _verified(release: Release) -> Release:
    """A fetched release whose files are those of its wheel; ReleaseError names what is not."""
    wrong = damage(release.path)
    if wrong:
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise ReleaseError(
            f"vLLM {release.version} in {release.path} is not as it was published: {wrong[0]}{more}; "
            f"fencepost vllm fetch {release.version} gets it again, and {release.path} in place of the version "
            "drives it as it is"
        )
    return release


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
    if where.parent == releases_folder().resolve() and not damage(where):
        return Release(where.name, where, "fetched")
    noted = _metadata_version(where)
    packed: Origin = "installed" if where in _site_packages() else "folder"
    origin: Origin = packed if noted else "checkout"
    return Release(noted or _source_version(where / "vllm") or UNKNOWN, where, origin)


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


def _site_packages() -> set[Path]:
    """Where this Python has its installed packages."""
    return {Path(folder).resolve() for folder in (*site.getsitepackages(), site.getusersitepackages())}


def _metadata_version(folder: Path) -> str | None:
    """The version that a folder of unpacked wheels notes for vLLM."""
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
