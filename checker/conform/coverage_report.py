"""The coverage of an implementation as text: file by file, then every place that was not reached, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..report.words import count, number
from .unreached import FileCoverage, Gap, Why

if TYPE_CHECKING:
    from rich.console import Console


def print_coverage(out: Console, covered: Sequence[FileCoverage], *, complete: bool) -> None:
    """Print everything that is known; `complete` says whether all was compared that was asked for."""
    summary(out, covered)
    if not complete:
        out.print("  not everything was compared that was asked for: what is said to be unreached may be reached by the rest")
    _table(out, covered)
    for why in (Why.UNEXPLAINED, Why.TOO_SMALL, Why.BEYOND):
        gaps = [gap for one in covered for gap in one.gaps if gap.why is why]
        if gaps:
            _places(out, why, gaps)
    needless = [f"{one.file}:{line}" for one in covered for line in one.needless]
    if needless:
        out.print()
        out.print(f"said to be beyond the spec, and reached: {', '.join(needless)}", soft_wrap=True)


def summary(out: Console, covered: Sequence[FileCoverage]) -> None:
    """One line: how much was reached, and how many places were not."""
    reached = _of(sum(one.reached for one in covered), sum(one.statements for one in covered))
    taken = _of(sum(one.taken for one in covered), sum(one.branches for one in covered))
    counts = [(why, sum(gap.why is why for one in covered for gap in one.gaps)) for why in Why]
    words = {Why.TOO_SMALL: "reached at larger sizes only", Why.BEYOND: "beyond the spec", Why.UNEXPLAINED: "unexplained"}
    rest = ", ".join(f"{number(times)} {words[why]}" for why, times in counts if times)
    out.print(f"Coverage: {reached} statements, {taken} branches; {f'the rest: {rest}' if rest else 'nothing is left'}")


def _of(part: int, whole: int) -> str:
    return f"{number(part)} of {number(whole)}"


def _table(out: Console, covered: Sequence[FileCoverage]) -> None:
    from rich.table import Table

    made = Table(box=None, padding=(0, 2, 0, 2), pad_edge=False, header_style="bold")
    made.add_column("file", overflow="fold")
    made.add_column("statements", justify="right")
    made.add_column("branches", justify="right")
    for one in covered:
        if one.statements:
            made.add_row(one.file, _of(one.reached, one.statements), _of(one.taken, one.branches))
    out.print()
    out.print(made)


def _places(out: Console, why: Why, gaps: Sequence[Gap]) -> None:
    from rich.table import Table

    out.print()
    out.print(f"{count(len(gaps), 'place')}: {why.value}", style="bold")
    made = Table(box=None, padding=(0, 2, 0, 2), pad_edge=False, show_header=False)
    made.add_column(overflow="fold")
    made.add_column(overflow="fold")
    for gap in gaps:
        made.add_row(place(gap), gap.reason or what(gap))
    out.print(made)


def place(gap: Gap) -> str:
    """Where a gap is, with its function."""
    lines = f"{gap.line}-{gap.last}" if gap.last > gap.line else str(gap.line)
    return f"{gap.file}:{lines} {gap.function}"


def what(gap: Gap) -> str:
    """What was not reached, or where it was never gone on to."""
    if gap.to is None:
        return gap.text
    return f"{gap.text}  -> never {f'to line {gap.to}' if gap.to else 'out of the function'}"
