"""The model derived from a config, as a table: what was taken from where, what was scaled, what was ignored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console


class RowLike(Protocol):
    """A line of the table: value in the model and in the config, where that stands, what was done with it, and why."""

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> int | str | None: ...
    @property
    def config(self) -> str | None: ...
    @property
    def source(self) -> str: ...
    @property
    def how(self) -> str: ...
    @property
    def why(self) -> str: ...


class DerivedLike(Protocol):
    """A derived model."""

    @property
    def rows(self) -> Sequence[RowLike]: ...
    @property
    def ignored(self) -> Sequence[RowLike]: ...


SHORT = ("taken", "scaled", "derived", "assumed")
"""What the short table shows: what the config decides. Defaults and sizes that no option gives are in the full one."""


def print_derived(out: Console, derived: DerivedLike, *, verbose: bool) -> None:
    """Print the table; the full one also has the defaults, the reasons, and every option that was ignored."""
    from rich.table import Table

    rows = [row for row in derived.rows if verbose or row.how in SHORT]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for header in ("model", "value", "config", "how", "from", *(("why",) if verbose else ())):
        table.add_column(header, overflow="fold")
    for row in (*rows, *(derived.ignored if verbose else ())):
        cells = (row.name, _text(row.model), _text(row.config), row.how, row.source)
        table.add_row(*cells, *((row.why,) if verbose else ()))
    out.print(table)
    if not verbose:
        names = ", ".join(row.name for row in derived.ignored)
        hidden = len(derived.rows) - len(rows)
        out.print(f"ignored: {names or 'nothing'}; {hidden} more rows and all reasons with --verbose")


def _text(value: int | str | None) -> str:
    return "" if value is None else str(value)
