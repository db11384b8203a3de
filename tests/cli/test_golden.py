"""The Markdown files of this folder hold commands with their whole output; here they are run and compared.

Text in a block marked `console`: a line that begins with `$ ` is a command, and what follows is what it prints.
`$ echo $?` stands for the exit code of the command before. Commands run in one folder a file, with copies of `specs/` and
`drivers/`. Spaces at the ends of lines do not count. To write the outputs anew: `GOLDEN=write pytest tests/cli/test_golden.py`,
then read the diff.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fencepost.checker.cli.main import main

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*.md"))
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_there_are_golden_files() -> None:
    assert FILES, "no golden file was found"
    for file in FILES:
        text = file.read_text()
        assert text.startswith("# "), f"{file.name} begins with a heading"
        assert any(commands(block) for block in BLOCK.findall(text)), f"{file.name} holds no command"


def commands(block: str) -> list[str]:
    """The commands of a block."""
    return [line[2:] for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the specs and drivers, whose name has a space."""
    made = tmp_path / "some folder"
    for name in ("specs", "drivers"):
        shutil.copytree(HERE / name, made / name, ignore=shutil.ignore_patterns("__pycache__"))
    return made


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_output_is_as_written(
    file: Path, folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = environment(tmp_path_factory.getbasetemp() / "cache")
    for name in ("COLUMNS", "FENCEPOST_CACHE"):
        monkeypatch.setenv(name, env[name])
    text = file.read_text()
    found = BLOCK.sub(lambda match: f"```console\n{transcript(match[1], folder, env)}```", text)
    if os.environ.get("GOLDEN") == "write":
        file.write_text(found)
    changes = difflib.unified_diff(text.splitlines(), found.splitlines(), "as written", "as it is now", lineterm="")
    assert found == text, "\n".join(changes)


def environment(cache: Path) -> dict[str, str]:
    """What the commands see: the `fencepost` of this Python, a fixed width, a cache of their own."""
    paths = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "PYTHONPATH", "FENCEPOST_OPTIMISE") if name in os.environ}
    return {**kept, "PATH": paths, "COLUMNS": "100", "FENCEPOST_CACHE": str(cache)}


def transcript(block: str, folder: Path, env: dict[str, str]) -> str:
    """A block with the outputs that its commands have now."""
    lines: list[str] = []
    code = 0
    for command in commands(block):
        lines.append(f"$ {command}")
        if command == "echo $?":
            lines.append(str(code))
            continue
        code, output = run(command, folder, env)
        assert "Traceback" not in output, output
        lines += [line.rstrip() for line in output.splitlines()]
    return "".join(f"{line}\n" for line in lines)


def run(command: str, folder: Path, env: dict[str, str]) -> tuple[int, str]:
    """Exit code and output of a command: here if it is plain (to start Python takes long), else in a shell."""
    words = shlex.split(command)
    merged = words[-1] == "2>&1"
    words = words[:-1] if merged else words
    if words[0] == "fencepost" and not any(sign in word for word in words for sign in ("|", ";", ">", "<", "$")):
        return here(words[1:], folder, merged=merged)
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout


def here(words: list[str], folder: Path, *, merged: bool) -> tuple[int, str]:
    """Run a command in this process."""
    out = io.StringIO()
    err = out if merged else io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return code, out.getvalue()
