"""Reading and writing files so that a reader sees all of a file or nothing of it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

MAX_BYTES = 64 * 1024 * 1024
"""The largest trace that is read."""


class TraceError(Exception):
    """A trace cannot be read, written or understood; the message names the file and what is wrong with it."""


def write_whole(path: Path, text: str) -> None:
    """Write a file under another name in its folder, then give it its own; `TraceError` leaves nothing half-written."""
    temporary = ""
    try:
        if path.exists() and not path.is_file():  # a device or pipe, such as /dev/stdout, is written to as it is
            if path.is_dir():
                raise IsADirectoryError(21, "Is a directory")
            path.write_text(text, encoding="utf-8")
            return
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
        temporary = ""
    except OSError as error:
        raise TraceError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read_text(path: Path) -> str:
    """The text of a file of at most `MAX_BYTES`; `TraceError` where it is larger, unreadable or no text."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise TraceError(f"{path}: larger than {MAX_BYTES // 1024**2} MiB; no trace is that long")
    if not data.strip():
        raise TraceError(f"{path}: is empty")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TraceError(f"{path}: is not text (a trace is JSON in UTF-8)") from None
