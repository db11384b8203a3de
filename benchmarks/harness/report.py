"""What a row found: a table, its targets, and what was missing; as Markdown, on the terminal and in README.md."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


@dataclass(frozen=True)
class Target:
    """One target: what is compared, the figure, and whether it is met (None: it could not be measured)."""

    what: str
    figure: str
    met: bool | None

    @property
    def line(self) -> str:
        """In one line."""
        return f"- {self.what}: {self.figure}: " + {True: "met", False: "**missed**", None: "not measured"}[self.met]


@dataclass
class Report:
    """The outcome of one row."""

    row: str
    title: str
    header: Sequence[str] = ()
    table: list[Sequence[str]] = field(default_factory=list[Sequence[str]])
    targets: list[Target] = field(default_factory=list[Target])
    notes: list[str] = field(default_factory=list[str])

    def at_most(self, what: str, figure: float | None, limit: float, unit: str = "s") -> None:
        """Add a target that a figure is at most a limit."""
        met = None if figure is None else figure <= limit
        self.targets.append(Target(f"{what}, at most {limit:g} {unit}", amount(figure, unit), met))

    def at_least(self, what: str, figure: float | None, limit: float) -> None:
        """Add a target that a ratio is at least a limit."""
        met = None if figure is None else figure >= limit
        self.targets.append(Target(f"{what}, at least {limit:g} times", amount(figure, "times"), met))

    @property
    def missed(self) -> bool:
        """Whether some target was measured and missed."""
        return any(target.met is False for target in self.targets)

    def markdown(self) -> str:
        """The whole report."""
        parts = [f"### {self.row}: {self.title}"]
        if self.table:
            parts.append(table(self.header, self.table))
        if self.targets:
            parts.append("\n".join(target.line for target in self.targets))
        parts += self.notes
        return "\n\n".join(parts)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns also line up in a terminal; all columns but the first are numbers."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        shown = [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "| " + " | ".join(shown) + " |"

    rule = ["-" * width if i == 0 else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    return "\n".join(line(cells) for cells in (header, rule, *rows))


def amount(figure: float | None, unit: str = "") -> str:
    """A figure with three significant digits and its unit; a dash where there is none."""
    if figure is None:
        return "-"
    shown = f"{figure:,.0f}" if abs(figure) >= 1000 else f"{figure:.3g}"
    return f"{shown} {unit}".strip()


def write_figures(readme: Path, figures: str) -> None:
    """Replace what stands between the markers of README.md."""
    text = readme.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        raise ValueError(f"{readme} has no markers {BEGIN} and {END}")
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.S)
    readme.write_text(pattern.sub(lambda _: f"{BEGIN}\n{figures}\n{END}", text), encoding="utf-8")
