"""Small programs with one number as their state, for tests of the native search."""

from collections.abc import Callable, Sequence

from fencepost.checker.explore.native.kernel import build_program
from fencepost.checker.explore.native.program import Program
from fencepost.checker.explore.native.search import NativeSearch

_NUMBER = """
def unpack(words, cells):
    store64(cells, load64(words))
def pack(cells, words):
    store64(words, load64(cells))
"""

_CHECK = """
def check(cells, out, cover):
    x = load64(cells)
    store64(out, {failed})
    store64(out + 8, {reached})
    if x % 2:
        store8(cover, 1)
    return {error}
"""


def toy(
    expand: str,
    failed: str = "0",
    reached: str = "0",
    error: str = "0",
    canon: str | None = None,
    *,
    max_out: int = 8,
    properties: int = 3,
) -> Program:
    """Return a program over the number x; `expand` is the body of a function that calls `go(ctx, action, next)`."""
    text = _NUMBER + _CHECK.format(failed=failed, reached=reached, error=error)
    text += "def go(ctx, action, x):\n    cells = alloca(8)\n    store64(cells, x)\n    emit(ctx, action, cells)\n"
    text += "def expand(cells, ctx):\n    x = load64(cells)\n"
    text += "".join(f"    {line}\n" for line in expand.strip("\n").splitlines())
    if canon is not None:
        text += f"def canon(cells, out):\n    x = load64(cells)\n    store64(out, {canon})\n"
    return Program(
        text=text,
        words=1,
        cell_bytes=8,
        max_out=max_out,
        actions=2,
        properties=properties,
        witnesses=2,
        covers=2,
        symmetry=canon is not None,
    )


def search_of(program: Program, initial: Sequence[int] = (0,), threads: int = 1) -> NativeSearch:
    return NativeSearch(program, build_program(program), [[x] for x in initial], threads=threads)


def levels(successors: Callable[[int], Sequence[int]], initial: Sequence[int] = (0,)) -> list[set[int]]:
    """Return the levels of a breadth-first search in plain Python."""
    seen, result = set(initial), [set(initial)]
    while result[-1]:
        found = {y for x in result[-1] for y in successors(x)} - seen
        seen |= found
        result.append(found)
    return result[:-1]
