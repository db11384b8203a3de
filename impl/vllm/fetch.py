"""Fetches a vLLM release: pip downloads its wheel, and the Python source in it is unpacked, verified and kept.

The files lie in `X/` of the folder of releases: `vllm/`, with what is Python or JSON, and the notes of the wheel. They
are unpacked beside it and renamed, so that `X/` is there whole or not at all; one process at a time works on a release.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .errors import ReleaseError
from .find import check_age, check_version, releases_folder
from .record import damage, digest, measure, records
from .release import Release

PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in range(40, 16, -1)] + ["manylinux2014_x86_64", "manylinux1_x86_64"]
"""Whose wheel is taken, on every host: only Python files of it are used, and these releases have no other for all."""


class WheelError(ReleaseError):
    """A wheel that is damaged, or of something else."""


@dataclass(frozen=True)
class Fetched:
    """What a fetch took: wheel size (bytes; 0 if none was needed), files and bytes unpacked, seconds of both parts."""

    release: Release
    wheel_bytes: int
    files: int
    bytes: int
    download_seconds: float
    unpack_seconds: float


def fetch(version: str, wheel: Path | None = None, say: Callable[[str], None] = lambda text: None) -> Fetched:
    """Return a release, downloaded if it is not there whole, or unpacked from a wheel; ReleaseError if it cannot be had."""
    check_version(version)
    check_age(version)
    root = releases_folder()
    folder = root / version
    release = Release(version, folder, "fetched")
    with _alone(root, say):
        wrong = damage(folder)
        if not wrong and wheel is None:
            return Fetched(release, 0, *measure(folder), 0.0, 0.0)
        if folder.exists() and wrong:
            say(f"vLLM {version} in {folder} is damaged ({wrong[0]}) and is unpacked again")
        start = time.monotonic()
        source = wheel or _download(root, version, say)
        between = time.monotonic()
        try:
            _unpack(source, root, version)
            size = source.stat().st_size
        except WheelError:
            if wheel is None:
                source.unlink()
            raise
        if wheel is None:
            source.unlink()
        return Fetched(release, size, *measure(folder), between - start, time.monotonic() - between)


@contextmanager
def _alone(root: Path, say: Callable[[str], None]) -> Generator[None]:
    """Hold the lock of the folder: a second process waits here, and then finds what the first has fetched."""
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(root / ".lock", os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        where = error.filename or root
        raise ReleaseError(f"{where}: {error.strerror}; FENCEPOST_CACHE names a folder that can be written") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is fetching into {root}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _download(root: Path, version: str, say: Callable[[str], None]) -> Path:
    """The wheel of a release: the one an interrupted fetch has left, or a new one from pip."""
    kept = root / f".{version}.whl"
    if zipfile.is_zipfile(kept):  # renamed only once it was whole
        say(f"vLLM {version}: the wheel was downloaded earlier")
        return kept
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        raise ReleaseError(
            f"{sys.executable} has no pip to download vLLM {version} with: run `python -m ensurepip`, or give --wheel"
        )
    say(f"vLLM {version}: pip downloads the wheel (about 300 MB)")
    folder = root / f".{version}.download"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--no-cache-dir"]
        command += ["--no-deps", "--only-binary", ":all:", "--implementation", "cp", "--abi", "abi3", "--abi", "none"]
        command += [word for platform in PLATFORMS for word in ("--platform", platform)]
        done = subprocess.run(
            [*command, "--dest", str(folder), f"vllm=={version}"],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr if sys.stderr.isatty() else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        wheels = list(folder.glob("vllm-*.whl"))
        if done.returncode or not wheels:
            raise ReleaseError(f"vLLM {version} cannot be downloaded: {_words(done.stderr)}")
        wheels[0].replace(kept)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return kept


def _words(output: str) -> str:
    """What pip said when it failed, without its many warnings and without all the versions that there are."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    broken = [line.partition("connection broken by ")[2] for line in lines if "connection broken by " in line]
    if broken and "from versions: none" in output:
        return f"pip reaches no package index ({broken[-1]}); where there is none, --wheel FILE unpacks a wheel"
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")] or lines[-1:]
    return "pip says: " + "; ".join(_newest(line) for line in errors)


def _newest(line: str) -> str:
    """A line of pip with only the newest of the versions that it lists."""
    listed = re.search(r"\(from versions: (.+)\)", line)
    if listed is None or listed[1].count(",") < 8:
        return line
    return line.replace(listed[1], "…, " + ", ".join(listed[1].split(", ")[-8:]))


def _unpack(wheel: Path, root: Path, version: str) -> None:
    """Unpack a wheel into the folder of its release, which is replaced once all of it is there."""
    folder = root / f".{version}.unpacking"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        with zipfile.ZipFile(wheel) as archive:
            _extract(archive, folder, version)
        _exchange(folder, root / version)
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, UnicodeDecodeError, _Damaged) as error:
        reason = str(error).strip("'\"")
        raise WheelError(f"{wheel.name} is no whole wheel of vLLM {version} ({reason})") from error
    except OSError as error:
        raise ReleaseError(f"{error.filename or folder}: {error.strerror}; vLLM {version} was not unpacked") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _exchange(new: Path, folder: Path) -> None:
    """Put a folder in the place of another, which may be there."""
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.replace(old)
    new.replace(folder)
    shutil.rmtree(old, ignore_errors=True)


class _Damaged(Exception):
    """A wheel whose content is not what it says."""


def _extract(archive: zipfile.ZipFile, folder: Path, version: str) -> None:
    """Write the kept files of a wheel, each checked against the hash in RECORD, and RECORD itself."""
    notes = f"vllm-{version}.dist-info/RECORD"
    others = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD") and name != notes]
    if others:
        raise _Damaged(f"it holds {others[0].partition('.dist-info')[0]}")
    listed = archive.read(notes)
    kept = dict(records(listed.decode()))
    for name in ("vllm/__init__.py", f"vllm-{version}.dist-info/METADATA"):
        if name not in kept:
            raise _Damaged(f"its RECORD has no {name}")
    for name, expected in kept.items():
        data = archive.read(name)
        if digest(data) != expected:
            raise _Damaged(f"{name} does not have the hash that its RECORD notes")
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (folder / notes).write_bytes(listed)
