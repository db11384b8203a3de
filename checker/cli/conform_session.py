"""A run of `fencepost conform`: row after row is compared, and what came out is said."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .clock import since_start
from .conform_coverage import Covering, Wish
from .conform_how import Exhaustive, Sampling
from .conform_rows import Asked, Row, rows
from .drivers import Implementation, find, profile_for
from .driving import driving
from .errors import INTERNAL_ERROR, UsageError
from .target import SHIPPED

if TYPE_CHECKING:
    from rich.console import Console

    from ...traces.driver import Driver
    from ..conform.report import Shown
    from ..conform.result import Agreement
    from ..model import Limits
    from ..result import Verdict
    from .check import Output


def within(row: Row, agreement: Agreement) -> Agreement:
    """What a row with a longest path says: that its paths end there is one of its bounds, if every action lies on some."""
    from ..model import Limits

    end = Limits(max_depth=row.longest).reason("max-depth") if row.longest is not None else None
    if agreement.cut is None or agreement.cut != end or not all(agreement.figures.taken.values()):
        return agreement
    return replace(agreement, cut=None)


@dataclass
class Session:
    """Compares row after row, and says what came out."""

    target: Implementation
    wanted: list[Row]
    output: Output
    limits: Limits
    how: Exhaustive | Sampling
    done: list[tuple[Row, Agreement]] = field(default_factory=list["tuple[Row, Agreement]"])
    interrupted: bool = False

    @classmethod
    def of(cls, target: str, asked: Asked, output: Output, limits: Limits, how: Exhaustive | Sampling, wish: Wish) -> Session:
        """What a command line asks for; `UsageError` where the target or the rows are not there."""
        found = find(target, asked.spec) if asked.spec in SHIPPED else None
        if found is not None and not asked.profile and not asked.fault:
            asked = replace(asked, standard=profile_for(found))
        wanted = rows(asked)
        if isinstance(how, Sampling) and how.log is not None and len(wanted) > 1:
            raise UsageError(f"--log: {len(wanted)} rows would be one log; choose bounds with --bounds")
        found = found or find(target, wanted[0].target.model.spec.name)
        if wish.wanted and isinstance(how, Exhaustive):
            how = Covering.of(how, wish, found, asked, wanted)
            wanted += how.larger
        return cls(found, wanted, output, limits, how)

    def run(self) -> int:
        """Compare every row, print what came out, and return the exit code."""
        from ..report.terminal import console

        out = console()
        with redirect_stdout(sys.stderr):
            drivers = [self.target.make(row.values) for row in self.wanted]  # what cannot be made fails before the first row
        self._introduce(out, drivers[0])
        for row, driver in zip(self.wanted, drivers, strict=True):
            if not self.interrupted:
                self.done.append((row, self._compare(row, driver)))
                self._present(out, *self.done[-1])
        self._conclude(out, drivers[0].title)
        if self.output.trace_out is not None:
            self._write(self.output.trace_out)
        for text in (text for row, agreement in self.done for text in self._unexpected(row, agreement)):
            print(f"internal error: {text}", file=sys.stderr)
        return self._exit_code()

    def _compare(self, row: Row, driver: Driver) -> Agreement:
        limits = self.limits
        if row.longest is not None and limits.max_depth is None:
            limits = replace(limits, max_depth=row.longest)
        users = self.target.path is not None
        with driving(self.target, limits, quiet=self.output.quiet) as run:
            agreement = self.how.compare(row.target.model, driver, run.limits, run.progress, users=users)
            self.interrupted = run.interrupts.asked
        return within(row, agreement)

    def _unexpected(self, row: Row, agreement: Agreement) -> list[str]:
        """In what a complete comparison is not as recorded: an implementation of one's own may have more states."""
        from ..result import Verdict

        if agreement.verdict is not Verdict.HOLDS or not (isinstance(self.how, Exhaustive) and self.how.symmetry):
            return []
        own = self.target.path is not None
        names = [name for name in row.expected if name == "spec_states" or not own]
        found = {name: getattr(agreement.figures, name) for name in names}
        return [
            f"{row.name} ({row.bounds}): {name} is {found[name]:,}, recorded is {row.expected[name]:,}"
            for name in names
            if found[name] != row.expected[name]
        ]

    @property
    def _left_out(self) -> list[str]:
        return [f"{row.name} ({row.bounds})" for row in self.wanted[len(self.done) :]]

    @property
    def _all_compared(self) -> bool:
        from ..result import Verdict

        return not self._left_out and all(agreement.verdict is Verdict.HOLDS for _, agreement in self.done)

    @property
    def _verdict(self) -> Verdict:
        """VIOLATED outranks everything; a row that was not compared is UNDETERMINED."""
        from ..result import Verdict

        found = {agreement.verdict for _, agreement in self.done}
        if Verdict.VIOLATED in found:
            return Verdict.VIOLATED
        return Verdict.UNDETERMINED if self._left_out or Verdict.UNDETERMINED in found else Verdict.HOLDS

    def _exit_code(self) -> int:
        from ..result import Verdict

        if any(self._unexpected(row, agreement) for row, agreement in self.done):
            return INTERNAL_ERROR
        return {Verdict.HOLDS: 0, Verdict.VIOLATED: 1, Verdict.UNDETERMINED: 3}[self._verdict]

    def _shown(self, row: Row, agreement: Agreement) -> Shown:
        from ..conform.report import Shown

        return Shown(
            model=row.target.model,
            agreement=agreement,
            bounds=row.target.bounds if self.output.verbose else row.bounds,
            again=row.again(self.target.name, self.how.words_of(row.target.model)),
            replay=self._replay(row, agreement),
            different=", ".join(f"{name}={value}" for name, value in row.different.items()),
            verbose=self.output.verbose,
            several=len(self.wanted) > 1,
        )

    def _replay(self, row: Row, agreement: Agreement) -> str:
        """The command that shows the trace of a difference in the spec; empty without one."""
        from ...traces.short import shorten
        from .target import again

        if agreement.mismatch is None:
            return ""
        return again(row.target, shorten(row.target.model.bound, agreement.mismatch.trace), "explain")

    def _introduce(self, out: Console, driver: Driver) -> None:
        if self._prints:
            spec = self.wanted[0].target.source or self.wanted[0].target.model.spec.name
            out.print(f"spec {spec}, held against {self.target.name}", style="bold")
            out.print(driver.title)

    @property
    def _prints(self) -> bool:
        return not self.output.json and not self.output.quiet

    def _present(self, out: Console, row: Row, agreement: Agreement) -> None:
        """One row, as soon as it is known; its time goes to standard error, so that reports compare line by line."""
        from ..conform.report import print_report, verdict
        from ..report.words import number, seconds

        shown = self._shown(row, agreement)
        if self.output.json:
            return
        if self.output.quiet:
            verdict(out, shown)
            return
        out.print()
        if len(self.wanted) > 1 or row.target.model.fault:
            out.print(row.name, style="bold")
        print_report(out, shown)
        sys.stdout.flush()
        rate = f"{number(round(agreement.figures.rate))} transitions/s"
        print(f"{seconds(agreement.figures.seconds)}, {rate}", file=sys.stderr)

    def _conclude(self, out: Console, title: str) -> None:
        if self.output.json:
            print(self._json(title))
        elif len(self.wanted) > 1:
            if self._prints:
                out.print()
            self._sum_up(out)
        if isinstance(self.how, Covering) and not self.output.json:
            self.how.present(out, quiet=self.output.quiet, complete=self._all_compared)
        sys.stdout.flush()

    def _sum_up(self, out: Console) -> None:
        """The last line of several rows."""
        from rich.text import Text

        from ..report.text import STYLES
        from ..report.words import count, number
        from ..result import Verdict

        verdicts = [agreement.verdict.value for _, agreement in self.done]
        parts = [f"{verdicts.count(word)} {word}" for word in dict.fromkeys(verdicts)]
        parts += [f"{len(self._left_out)} not begun"] if self._left_out else []
        compared = number(sum(agreement.figures.transitions for _, agreement in self.done))
        words = f"{count(len(self.wanted), 'row')}, {', '.join(parts)}; {compared} transitions compared"
        if self._verdict is Verdict.HOLDS:
            what = "bounds" if isinstance(self.how, Exhaustive) else "random runs"
            words = f"{count(len(self.wanted), 'row')}, {compared} transitions, all agree; nothing is said of other {what}"
        out.print(Text.assemble((self._verdict.value, STYLES[self._verdict]), f": {words}"))

    def _json(self, title: str) -> str:
        from ..conform.schema import Said, TargetPart, coverage_part, row_part, whole

        rows = [
            row_part(
                row.target.model,
                agreement,
                Said(
                    name=row.name,
                    source=row.target.source,
                    different=row.different,
                    expected=row.expected,
                    unexpected=self._unexpected(row, agreement),
                    again=row.again(self.target.name, self.how.words_of(row.target.model)),
                    replay=self._replay(row, agreement),
                ),
            )
            for row, agreement in self.done
        ]
        first = self.wanted[0].target
        made = whole(
            first.model,
            first.source,
            TargetPart(name=self.target.name, title=title),
            rows,
            symmetry=isinstance(self.how, Exhaustive) and self.how.symmetry,
            verdict=self._verdict.value,
            exit_code=self._exit_code(),
            left_out=self._left_out,
            coverage=coverage_part(self.how.found(), self._all_compared) if isinstance(self.how, Covering) else None,
            seconds=since_start(),
        )
        return made.model_dump_json(indent=2)

    def _write(self, path: Path) -> None:
        from ...traces.itf import document, write
        from ..conform.schema import origin

        for row, agreement in self.done:
            if agreement.mismatch is not None:
                model, found = row.target.model, agreement.mismatch
                write(path, document(model.bound, found.trace, origin(model, found, row.target.source)))
                return
        print(f"note: nothing differs, so {path} is not written", file=sys.stderr)
