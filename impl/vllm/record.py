"""Whether the files of a release are those of its wheel, by the hashes that the wheel's RECORD notes."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

_KEPT = re.compile(r"vllm/(?:[^/]+/)*[^/]+\.(?:py|json)|vllm-[^/]+\.dist-info/METADATA")


def damage(folder: Path) -> list[str]:
    """Return what is wrong with an unpacked release, file by file, against the hashes that its wheel noted; [] if nothing."""
    notes = sorted(folder.glob("vllm-*.dist-info/RECORD"))
    if not notes:
        return ["not there" if not folder.exists() else "its RECORD is missing"]
    noted = dict(records(notes[0].read_text("utf-8")))
    found = [f"{name} is new" for name in _there(folder) if name not in noted]
    for name, expected in noted.items():
        path = folder / name
        if not path.is_file():
            found.append(f"{name} is missing")
        elif digest(path.read_bytes()) != expected:
            found.append(f"{name} has changed")
    return found


def edits(folder: Path) -> list[str]:
    """Return what was changed in a folder that has a RECORD, file by file; [] where it has none, or nothing was."""
    return damage(folder) if any(folder.glob("vllm-*.dist-info/RECORD")) else []


def _there(folder: Path) -> list[str]:
    """The Python and JSON files of the package, named as a RECORD does."""
    package = folder / "vllm"
    return sorted(path.relative_to(folder).as_posix() for kind in ("py", "json") for path in package.rglob(f"*.{kind}"))


def lost(folder: Path) -> list[str]:
    """Return the Python and JSON files that the RECORD of a folder notes and that are not there; [] where it has none."""
    notes = sorted(folder.glob("vllm-*.dist-info/RECORD"))[:1]
    named = [name for note in notes for name, _ in records(note.read_text("utf-8"))]
    return [name for name in named if not (folder / name).is_file()]


def measure(folder: Path) -> tuple[int, int]:
    """Return the number of files of a release that was fetched, and their bytes."""
    names = [name for notes in folder.glob("vllm-*.dist-info/RECORD") for name, _ in records(notes.read_text("utf-8"))]
    return len(names), sum((folder / name).stat().st_size for name in names if (folder / name).is_file())


def records(text: str) -> Iterator[tuple[str, str]]:
    """Yield the files of a wheel that are kept, and the hash that its RECORD notes of each."""
    for row in csv.reader(io.StringIO(text)):
        if len(row) == 3 and _KEPT.fullmatch(row[0]) and ".." not in row[0].split("/"):
            yield row[0], row[1]


def digest(data: bytes) -> str:
    """Return a hash as RECORD files write it (the specification "Recording installed projects")."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
