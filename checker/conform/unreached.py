"""What is to be thought of the lines and branches of an implementation that no explored behaviour reaches.

Their source can say why with a comment `# beyond the spec: REASON`, at a statement or at the head of a block, which it
stands for as a whole: a module, a class, a function, a branch of an `if`.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import NamedTuple

NOTE = re.compile(r"#\s*beyond the spec:\s*(\S.*)")
Branch = tuple[int, int]
"""From one line to another; a negative one stands for the end of a function."""


@dataclass(frozen=True)
class Lines:
    """The statements and branches of one file, by their lines, and which of them ran."""

    statements: frozenset[int]
    branches: frozenset[Branch]
    ran: frozenset[int]
    taken: frozenset[Branch]


class Why(Enum):
    """Why nothing within the bounds reaches a place."""

    TOO_SMALL = "the bounds are too small: random runs at larger sizes come here"
    BEYOND = "beyond the spec, as the source says"
    UNEXPLAINED = "nothing comes here, at larger sizes neither: dead, or beyond the spec"


@dataclass(frozen=True)
class Gap:
    """Lines `line` to `last`, of one function, that nothing reached; or the branch from `line` to `to` that nothing took.

    A branch to line 0 leaves the function. `text` is the first line, `reason` what the source says.
    """

    file: str
    line: int
    last: int
    to: int | None
    function: str
    text: str
    why: Why
    reason: str = ""


@dataclass(frozen=True)
class FileCoverage:
    """The statements and branches inside of a file's functions, how many of them were reached and taken, and the others.

    `needless` are the lines of explanations of what is reached.
    """

    file: str
    statements: int
    reached: int
    branches: int
    taken: int
    gaps: tuple[Gap, ...]
    needless: tuple[int, ...]


def compared_with(file: str, text: str, within: Lines, larger: Lines) -> FileCoverage:
    """What was reached `within` the bounds, and of the rest what `larger` sizes reached besides."""
    source = _Source(text)
    statements = {line: block for line in sorted(larger.statements) if (block := source.function(line)) is not None}
    branches = [branch for branch in sorted(larger.branches) if branch[0] in statements]
    gaps: list[Gap] = []
    used: set[int] = set()

    def judge(line: int, found_later: bool) -> tuple[Why, str]:
        explained = source.explained(line)
        if explained is not None:
            used.add(explained.at)
        if found_later:
            return Why.TOO_SMALL, ""
        return (Why.UNEXPLAINED, "") if explained is None else (Why.BEYOND, explained.reason)

    found = {line: judge(line, line in larger.ran) for line in statements if line not in within.ran}
    for (function, what), run in groupby(statements, lambda line: (statements[line].name, found.get(line))):
        if what is not None:
            lines = list(run)
            gaps.append(Gap(file, lines[0], lines[-1], None, function, source.line(lines[0]), *what))
    for start, end in branches:
        if start in within.ran and (start, end) not in within.taken and (end < 0 or end in within.ran):
            what = judge(start, (start, end) in larger.taken)
            gaps.append(Gap(file, start, start, max(end, 0), statements[start].name, source.line(start), *what))
    return FileCoverage(
        file,
        len(statements),
        len(statements.keys() & within.ran),
        len(branches),
        sum(branch in within.taken for branch in branches),
        tuple(sorted(gaps, key=lambda gap: (gap.line, gap.to or 0))),
        tuple(note.at for note in source.notes if note.at not in used),
    )


class _Block(NamedTuple):
    """Lines `first` to `last`, of a function with this name."""

    first: int
    last: int
    name: str


class _Note(NamedTuple):
    """An explanation: the line of the comment, and the lines `first` to `last` that it stands for."""

    at: int
    first: int
    last: int
    reason: str


class _Source:
    """A file's functions and explanations."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        tree = ast.parse(text)
        self._functions = list(_functions(tree.body, ""))
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        reasons = {token.start[0]: found[1] for token in tokens if (found := NOTE.match(token.string))}
        blocks = [block for node in ast.walk(tree) for block in _blocks(node)]
        self.notes = [_Note(at, *_innermost(at, blocks), reason) for at, reason in reasons.items()]

    def line(self, number: int) -> str:
        """A line without its indent and its comment on coverage."""
        return NOTE.sub("", self._lines[number - 1]).strip()

    def function(self, line: int) -> _Block | None:
        """The innermost function whose body has this line; what stands outside of functions runs on import."""
        return next((block for block in reversed(self._functions) if block.first <= line <= block.last), None)

    def explained(self, line: int) -> _Note | None:
        """What the source says of a line: the explanation of the smallest block around it."""
        around = [note for note in self.notes if note.first <= line <= note.last]
        return min(around, key=lambda note: note.last - note.first, default=None)


def _functions(body: Sequence[ast.stmt], prefix: str) -> Iterator[_Block]:
    """The bodies of all functions, outer ones first."""
    for node in body:
        inner = prefix
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{prefix}{node.name}."
            if not isinstance(node, ast.ClassDef):
                yield _Block(node.body[0].lineno, _end(node), f"{prefix}{node.name}")
        for part in ("body", "orelse", "finalbody"):
            yield from _functions(getattr(node, part, []), inner)


def _blocks(node: ast.AST) -> Iterator[tuple[range, int, int]]:
    """Where a comment stands for a node (or for one of its branches), and the first and last line that it stands for."""
    if not isinstance(node, ast.Module | ast.stmt | ast.ExceptHandler):
        return
    body: list[ast.stmt] = getattr(node, "body", [])
    if isinstance(node, ast.Module):
        if body:
            yield _head(1, body), 1, _end(body[-1])
        return
    if not body:
        yield range(node.lineno, _end(node) + 1), node.lineno, _end(node)
        return
    yield _head(node.lineno, body), node.lineno, _end(body[-1])
    orelse: list[ast.stmt] = getattr(node, "orelse", [])
    if orelse:
        yield range(_end(body[-1]) + 1, orelse[0].lineno), orelse[0].lineno, _end(orelse[-1])


def _head(first: int, body: Sequence[ast.stmt]) -> range:
    """The lines from the first one of a block to its first statement, a docstring not counted."""
    begins = body[1] if _is_docstring(body[0]) and len(body) > 1 else body[0]
    return range(first, max(begins.lineno, first + 1))


def _innermost(at: int, blocks: Sequence[tuple[range, int, int]]) -> tuple[int, int]:
    """The lines of the smallest block at whose head a comment stands; only its own line where there is none."""
    heads = [(first, last) for head, first, last in blocks if at in head]
    return min(heads, key=lambda block: block[1] - block[0], default=(at, at))


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _end(node: ast.stmt | ast.ExceptHandler) -> int:
    return node.end_lineno or node.lineno
