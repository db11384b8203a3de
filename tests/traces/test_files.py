"""Files are written whole or not at all, and read with a clear word where they are no traces."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import IO, Any

import pytest
from fencepost.traces import files
from fencepost.traces.files import MAX_BYTES, TraceError, read_text, write_whole


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    target = tmp_path / "a trace.itf.json"
    write_whole(target, "one")
    write_whole(target, "two")
    assert target.read_text() == "two"
    assert os.listdir(tmp_path) == ["a trace.itf.json"]
    assert target.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "x.itf.json"
    target.write_text("before")

    def fail(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(TraceError, match=r"x\.itf\.json: cannot be written: No space left on device"):
        write_whole(target, "after")
    assert target.read_text() == "before"
    assert os.listdir(tmp_path) == ["x.itf.json"]


def test_a_write_that_fails_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real: Any = os.fdopen

    def half(handle: int, *args: Any, **more: Any) -> IO[str]:
        stream: Any = real(handle, *args, **more)
        write: Any = stream.write

        def full(text: str) -> int:
            write(text[:3])
            raise OSError(errno.ENOSPC, "No space left on device")

        stream.write = full
        return stream

    monkeypatch.setattr(files.os, "fdopen", half)
    with pytest.raises(TraceError, match="No space left"):
        write_whole(tmp_path / "x", "a long text")
    assert os.listdir(tmp_path) == []


def test_folders_that_cannot_be_written_to(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be written: Is a directory"):
        write_whole(tmp_path, "x")
    with pytest.raises(TraceError, match="cannot be written: No such file or directory"):
        write_whole(tmp_path / "nowhere" / "x", "x")


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read: No such file"):
        read_text(tmp_path / "nothing")
    with pytest.raises(TraceError, match="cannot be read: Is a directory"):
        read_text(tmp_path)
    (tmp_path / "empty").write_bytes(b" \n")
    with pytest.raises(TraceError, match="is empty"):
        read_text(tmp_path / "empty")
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    with pytest.raises(TraceError, match="is not text"):
        read_text(tmp_path / "binary")


def test_a_huge_file_is_refused_at_once(tmp_path: Path) -> None:
    huge = tmp_path / "huge"
    with huge.open("wb") as stream:
        stream.truncate(100 * 1000 * 1000)
    assert huge.stat().st_size > MAX_BYTES
    with pytest.raises(TraceError, match="larger than 64 MiB"):
        read_text(huge)
