"""Compiles a program in a process of its own: `python -m …compile_apart CACHE` with the pickled program on standard input."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

from .cache import Cache
from .program import Program


def start(program: Program, folder: Path) -> subprocess.Popen[bytes]:
    """Start compiling into a cache folder; the process ends with 0 when the code is there."""
    child = subprocess.Popen(
        [sys.executable, "-m", __name__, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert child.stdin is not None
    try:
        child.stdin.write(pickle.dumps(program))
        child.stdin.close()
    except BrokenPipeError:
        pass
    return child


def main() -> None:
    """Compile what stands on standard input."""
    from .kernel import build_program

    program = pickle.load(sys.stdin.buffer)
    build_program(program, Cache(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
