"""The model derived from a config, as a table: what was taken from where, what was scaled, what was ignored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from .terminal import columns

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
    """A derived model; `source` is the file it was derived from, or "command line"."""

    @property
    def source(self) -> str: ...
    @property
    def rows(self) -> Sequence[RowLike]: ...
    @property
    def ignored(self) -> Sequence[RowLike]: ...


SHORT = ("taken", "scaled", "derived", "assumed")
"""What the short table shows: what the config decides. Defaults and sizes that no option gives are in the full one."""


NARROW = 60
"""On a terminal of fewer columns the five of the table would hold a syllable each; there, each row is a sentence."""


def print_derived(out: Console, derived: DerivedLike, *, verbose: bool) -> None:
    """Print the table; the full one also has the defaults, every option that was ignored, and all reasons."""
    rows = [row for row in derived.rows if verbose or row.how in SHORT]
    rows += derived.ignored if verbose else ()
    if out.width < NARROW:
        for row in rows:
            out.print(_line(row, derived.source))
    else:
        table = columns("model", "value", "config", "how", "from", whole=("value", "how"))
        for row in rows:
            table.add_row(row.name, _text(row.model), _text(row.config), row.how, _place(row.source, derived.source))
        out.print(table)
    if verbose:
        reasons = columns("model", "why")
        for row in rows:
            reasons.add_row(row.name, row.why)
        out.print()
        out.print(reasons)
        out.print()
    else:
        names = ", ".join(row.name for row in derived.ignored)
        hidden = len(derived.rows) - len(rows)
        out.print(f"ignored: {names or 'nothing'}; {hidden} more rows and all reasons with --verbose")


def _line(row: RowLike, file: str) -> str:
    """A row in words, for a narrow terminal: `blocks: 5, scaled (default)`."""
    value = row.config if row.model is None else row.model
    given = "" if row.model is None or row.config is None else f" from {row.config}"
    return f"{row.name}: {'' if value is None else f'{value}, '}{row.how}{given} ({_place(row.source, file)})"


def _place(place: str, file: str) -> str:
    """Where something stands; of the file itself, the line is enough."""
    return f"line {place.removeprefix(f'{file}:')}" if place.startswith(f"{file}:") else place


def _text(value: int | str | None) -> str:
    return "" if value is None else str(value)
