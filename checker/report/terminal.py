"""Where reports are printed: rich on a terminal, plain text of a fixed width anywhere else."""

from __future__ import annotations

import os
import sys
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PLAIN_WIDTH = 110
"""Columns of a report that does not go to a terminal, unless COLUMNS says otherwise."""


def console(stream: IO[str] | None = None) -> Console:
    """A console on a stream (standard output if none is given); without colour and of a fixed width off a terminal."""
    from rich.console import Console

    out = stream or sys.stdout
    terminal = out.isatty()
    width = None if terminal else _columns()
    return Console(file=out, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False, no_color=not terminal)


def columns(*headers: str, whole: tuple[str, ...] = ()) -> Table:
    """An empty table without lines, one column a header; text in `whole` ones is not wrapped."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=any(headers), header_style="bold")
    for header in headers:
        table.add_column(header, overflow="fold", no_wrap=header in whole)
    return table


def _columns() -> int:
    try:
        return max(60, int(os.environ.get("COLUMNS", "")))
    except ValueError:
        return PLAIN_WIDTH
