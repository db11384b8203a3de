"""One run of the benchmarks: which tools, how often, and every figure measured so far."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from .expected import Case
from .ours import Command
from .outcome import Outcome, Tool


@dataclass(frozen=True)
class Measured:
    """The repeats of one tool on one case; every figure is a median."""

    tool: Tool
    case: Case
    outcomes: tuple[Outcome, ...]

    def median(self, figure: Callable[[Outcome], float]) -> float:
        """The median of a figure."""
        return median(map(figure, self.outcomes))

    @property
    def rate(self) -> float:
        """Distinct states a second of search."""
        return self.median(lambda outcome: outcome.rate)

    @property
    def search(self) -> float:
        """Seconds of search."""
        return self.median(lambda outcome: outcome.search)

    @property
    def wall(self) -> float:
        """Seconds of the run, without building."""
        return self.median(lambda outcome: outcome.wall)

    @property
    def build(self) -> float:
        """Seconds to build."""
        return self.median(lambda outcome: outcome.build)

    @property
    def whole(self) -> float:
        """Seconds to build and run."""
        return self.median(lambda outcome: outcome.build + outcome.wall)

    @property
    def bytes_per_state(self) -> float | None:
        """Bytes a distinct state; None where the tool's memory says nothing."""
        known = [outcome.bytes_per_state for outcome in self.outcomes if outcome.bytes_per_state is not None]
        return median(known) if known else None


@dataclass
class Session:
    """What is asked for, and what was measured; a figure is measured once, whatever number of rows use it."""

    command: Command
    tools: list[Tool]
    sizes: list[str]
    repeat: int
    work: Path
    _kept: dict[tuple[str, str], Measured] = field(default_factory=dict[tuple[str, str], Measured])
    _missing: dict[str, str | None] = field(default_factory=dict[str, str | None])

    def say(self, text: str) -> None:
        """Progress, on standard error."""
        print(text, file=sys.stderr, flush=True)

    def usable(self, choose: Callable[[Tool], bool] = lambda tool: True) -> list[Tool]:
        """The tools that are asked for, chosen and installed."""
        return [tool for tool in self.tools if choose(tool) and self._why(tool) is None]

    def absent(self, choose: Callable[[Tool], bool] = lambda tool: True) -> list[str]:
        """One line for each family of tools that is asked for and not there."""
        why = {tool.family: self._why(tool) for tool in self.tools if choose(tool)}
        return [f"{family} was not measured: {reason}." for family, reason in why.items() if reason]

    def _why(self, tool: Tool) -> str | None:
        if tool.family not in self._missing:
            self._missing[tool.family] = tool.missing()
        return self._missing[tool.family]

    def _repeats(self, tool: Tool, case: Case) -> int:
        kept = self._kept.get((tool.name, case.name))
        return len(kept.outcomes) if kept else 0

    def measure(self, tools: Iterable[Tool], case: Case, repeat: int | None = None) -> list[Measured]:
        """Run the tools on a case, in turns, so that a slow minute hits all of them; counts must be as expected."""
        chosen = list(tools)
        turns = repeat or self.repeat
        wanted = [tool for tool in chosen if self._repeats(tool, case) < turns]
        for tool in wanted:
            tool.prepare(case.bounds)
        outcomes: dict[str, list[Outcome]] = {tool.name: [] for tool in wanted}
        for turn in range(turns):
            for tool in wanted:
                outcome = tool.run(case.bounds).against(case, tool.name)
                outcomes[tool.name].append(outcome)
                self.say(f"  {tool.name}, {case.name}, run {turn + 1}: {outcome.search:.2f} s of search")
        for tool in wanted:
            self._kept[tool.name, case.name] = Measured(tool, case, tuple(outcomes[tool.name]))
        return [self._kept[tool.name, case.name] for tool in chosen]
