"""Runs the code blocks of Markdown pages: `python tools/code_blocks.py README.md docs/*.md`.

What an author writes:

- A `python` block is run as a file of its own, and must end well; with `fails` after the language it must not.
- A `console` block holds commands (`$ command`, continued on lines that start with `> `), each followed by its whole
  output. All commands of a block share one bash, so `$ echo $?` shows the exit code of the command before it; a command
  that does not end with 0 must be followed by it.
- In an output, a line `...` stands for any number of lines, and `...` within a line for any text on that line.
- `title="NAME"` after any language saves the block as NAME, for the blocks after it. A later Python block with the same
  title goes on with that file: the file so far is run.
- Other languages are not run: use `sh` for commands that install something or take long.

The blocks of a page run in order in one scratch directory, which shows the top level of the repository as links.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT = 300.0
FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,})(?P<info>[^`]*)$")
MARK = "--- end of command, exit code "


@dataclass(frozen=True)
class Block:
    """A fenced block: the language and other words of its first line, its text, and where the text starts."""

    page: Path
    line: int
    language: str
    words: tuple[str, ...]
    title: str | None
    text: str

    @property
    def runs(self) -> bool:
        """Whether this block is run, and not only shown."""
        return self.language in ("python", "console")

    def failure(self, offset: int, what: str) -> str:
        """Names a place in this block, as an editor can open it, and what is wrong there."""
        return f"{self.page}:{self.line + offset}: {what}"


@dataclass(frozen=True)
class Command:
    """One command of a console block: its text, the output the page shows, and its line within the block."""

    offset: int
    text: str
    output: tuple[str, ...]


def blocks_of(page: Path, text: str | None = None) -> Iterator[Block]:
    """Yields the fenced blocks of a page; a block that is never closed is a ValueError."""
    lines = (page.read_text(encoding="utf-8") if text is None else text).splitlines()
    at = 0
    while at < len(lines):
        opening = FENCE.match(lines[at])
        at += 1
        if opening is None:
            continue
        start, indent, ticks = at, len(opening["indent"]), opening["ticks"]
        while at < len(lines) and not re.fullmatch(rf" *{re.escape(ticks[0])}{{{len(ticks)},}} *", lines[at]):
            at += 1
        if at == len(lines):
            raise ValueError(f"{page}:{start}: the block is never closed")
        language, *words = opening["info"].split() or [""]
        title = re.search(r'\btitle="([^"/]+)"', opening["info"])
        body = "".join(line[min(indent, len(line) - len(line.lstrip())) :] + "\n" for line in lines[start:at])
        yield Block(page, start + 1, language, tuple(words), title[1] if title else None, body)
        at += 1


def commands_of(block: Block) -> list[Command]:
    """Splits a console block into commands; text before the first command is a ValueError."""
    found: list[tuple[int, list[str], list[str]]] = []
    for offset, line in enumerate(block.text.splitlines()):
        if line.startswith("$ "):
            found.append((offset, [line[2:]], []))
        elif not found:
            raise ValueError(block.failure(offset, "a console block starts with a command: `$ ...`"))
        elif line.startswith("> ") and not found[-1][2]:
            found[-1][1].append(line[2:])
        else:
            found[-1][2].append(line.rstrip())
    return [Command(offset, "\n".join(text), trimmed(output)) for offset, text, output in found]


def trimmed(lines: list[str]) -> tuple[str, ...]:
    """Returns the lines without the empty ones at the end."""
    while lines and not lines[-1]:
        lines = lines[:-1]
    return tuple(lines)


def matches(shown: tuple[str, ...], got: tuple[str, ...]) -> bool:
    """Whether an output is the one a page shows, `...` standing for what the page leaves out."""
    pattern = ""
    for line in shown:
        if line.strip() == "...":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += "[^\n]*?".join(re.escape(part) for part in line.split("...")) + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in got)) is not None


def environment() -> dict[str, str]:
    """Returns the environment of a block: this Python's commands first, plain text, a fixed width."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {**os.environ, "PATH": path, "COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUTF8": "1"}


def run(command: list[str], folder: Path, given: str | None = None) -> tuple[int, str]:
    """Runs a command in a folder, and returns its exit code and all it printed; code 124 when it takes too long."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment(),
            input=given or "",
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 124, f"stopped after {TIMEOUT:.0f} s\n"
    return done.returncode, done.stdout


def python_failures(block: Block, folder: Path) -> Iterator[str]:
    """Runs a Python block (the saved file, where it has a title) and yields what is wrong."""
    name = block.title or f"block_{block.line}.py"
    if block.title is None:
        (folder / name).write_text(block.text, encoding="utf-8")
    code, output = run([sys.executable, name], folder)
    if (code != 0) != ("fails" in block.words):
        expected = "a failure" if "fails" in block.words else "exit code 0"
        yield block.failure(0, f"expected {expected}, got exit code {code}\n{output}")


def console_failures(block: Block, folder: Path) -> Iterator[str]:
    """Runs a console block in one bash, and yields each command whose output or exit code is not as shown."""
    commands = commands_of(block)
    report = f"__code=$?; printf '\\n{MARK}%d\\n' $__code; (exit $__code)"
    script = "".join(f"{{ {command.text}\n}} </dev/null\n{report}\n" for command in commands)
    code, output = run(["bash", "--norc", "--noprofile"], folder, script)
    parts = re.split(rf"\n{re.escape(MARK)}(\d+)\n", output)
    if len(parts) != 2 * len(commands) + 1:
        yield block.failure(0, f"the commands of this block did not all end (exit code {code})\n{output}")
        return
    for index, command in enumerate(commands):
        got = trimmed([line.rstrip() for line in parts[2 * index].splitlines()])
        if not matches(command.output, got):
            yield block.failure(command.offset, "\n".join(["the output is not as shown; it was:", *got]))
        exit_code = int(parts[2 * index + 1])
        follower = commands[index + 1].text if index + 1 < len(commands) else ""
        if exit_code and follower != "echo $?":
            yield block.failure(command.offset, f"exit code {exit_code}: show it, with `$ echo $?` as the next command")


def failures_of(page: Path, folder: Path, text: str | None = None) -> Iterator[str]:
    """Runs the blocks of a page in a scratch folder, and yields each failure with its page and line."""
    for entry in ROOT.iterdir():
        if not entry.name.startswith("."):
            (folder / entry.name).symlink_to(entry)
    written: dict[str, str] = {}
    for block in blocks_of(page, text):
        if block.title is not None:
            before = written.get(block.title, "") if block.language == "python" else ""
            written[block.title] = before + block.text
            (folder / block.title).write_text(written[block.title], encoding="utf-8")
        if block.language == "python":
            yield from python_failures(block, folder)
        elif block.language == "console":
            yield from console_failures(block, folder)


def main() -> int:
    """Runs the pages named on the command line; finding no block to run is a failure."""
    pages = [Path(name) for name in sys.argv[1:]]
    failures: list[str] = []
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            failures += failures_of(page, Path(folder))
    count = sum(block.runs for page in pages for block in blocks_of(page))
    print("\n".join(failures) if failures else f"{count} blocks ran as shown")
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main())
