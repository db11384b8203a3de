"""Compiled code kept on disk between runs; damaged files, other processes and read-only folders do no harm."""

import hashlib
import logging
import os
import sys
import tempfile
from pathlib import Path

_MAGIC = b"fencepost object 1\n"
_SUFFIX = ".fpo"
_KEEP = 400

_log = logging.getLogger(__name__)


def default_directory() -> Path:
    """Return the folder for compiled code: $FENCEPOST_CACHE, or `fencepost` where the platform keeps user caches."""
    chosen = os.environ.get("FENCEPOST_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "fencepost"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "fencepost"


class Cache:
    """Named byte strings in a folder; trouble with the folder is said once and never stops a run."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._warned = False

    @property
    def directory(self) -> Path:
        return self._directory if self._directory is not None else default_directory()

    def writable(self) -> bool:
        """Say whether the folder is there, or can be made, and takes files."""
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.directory):
                return True
        except (OSError, RuntimeError) as error:
            self._warn(error)
            return False

    def load(self, key: str) -> bytes | None:
        """Return what was stored under a key, or None if there is nothing whole under it."""
        path = self.directory / (key + _SUFFIX)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except (OSError, RuntimeError) as error:
            self._warn(error)
            return None
        start = len(_MAGIC) + hashlib.sha256().digest_size
        payload = data[start:]
        if data[:start] != _MAGIC + hashlib.sha256(payload).digest():
            return None
        return payload

    def store(self, key: str, payload: bytes) -> None:
        """Store a byte string under a key; a reader sees all of it or nothing."""
        data = _MAGIC + hashlib.sha256(payload).digest() + payload
        temporary = ""
        try:
            folder = self.directory
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=folder, prefix=".writing-")
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            os.replace(temporary, folder / (key + _SUFFIX))
            temporary = ""
            self._prune(folder)
        except (OSError, RuntimeError) as error:
            self._warn(error)
            if temporary:
                Path(temporary).unlink(missing_ok=True)

    def _prune(self, folder: Path) -> None:
        """Delete the oldest entries beyond the number that is kept."""
        files = sorted(folder.glob("*" + _SUFFIX), key=_written)
        for path in files[:-_KEEP]:
            path.unlink(missing_ok=True)

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            reason = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else error
            _log.warning(
                "compiled code is not kept on disk, so each start compiles again (%s); FENCEPOST_CACHE names a folder", reason
            )


def _written(path: Path) -> float:
    """When a file was written; the distant past where another process has deleted it since it was listed."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
