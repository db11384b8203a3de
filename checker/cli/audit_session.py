"""An audit for a command: section after section, each printed as soon as it is known; one that fails hides no other."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..conform.errors import DriverUnstable, frames
from ..report.words import count
from . import kvdata
from .audit_rows import AuditRow, config_row, fault_rows, mechanisms, small_rows
from .classifying import Classifying, Mechanisms, expected, has_fence, listed, release_of, repeated, switches
from .clock import since_start
from .drivers import INSTALLED, RELEASE, Implementation, find, of_release
from .errors import INTERNAL_ERROR, UsageError
from .interrupt import Interrupts
from .target import Values, load_shipped

if TYPE_CHECKING:
    from rich.console import Console

    from ...traces.driver import Driver
    from ..config import Derived
    from ..conform.audit import Audit, Checked, Compared
    from ..explore.findings import OnProgress
    from ..model import Limits, Model


LISTED = 8
"""Files of an edited installation that are named."""
Work = Callable[["Console | None", "_Clock"], None]


@dataclass(frozen=True)
class Asked:
    """What is to be audited: a vLLM or a target, a config for its bounds, classes of the user's own; `limits` as options."""

    vllm: str | None = None
    target: str | None = None
    config: Path | None = None
    scheduler_cls: str | None = None
    connector: str | None = None
    own: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()

    def implementation(self) -> Implementation:
        """The implementation; `UsageError` where there is none, or options contradict each other."""
        if self.target is not None:
            for option, value in {
                "--vllm": self.vllm,
                "--scheduler-cls": self.scheduler_cls,
                "--kv-connector": self.connector,
            }.items():
                if value is not None:
                    raise UsageError(f"{option} is for a vLLM; leave it out with --target")
            return find(self.target, "kv")
        for option in self.classes:
            if not all(option.partition(" ")[2].replace(":", ".").rpartition(".")[::2]):
                raise UsageError(f"{option}: name the module, too, as in my_package.my_module:MyClass")
        word = self.vllm if self.vllm is not None else find(INSTALLED, "kv").name.removeprefix(RELEASE)
        if self.classes:
            sys.path.insert(0, str(Path.cwd()))  # where classes of the user's own are looked for first
        typed = None if self.vllm is None else f"--vllm {self.vllm}"
        return of_release(f"{RELEASE}{word}", word, self.scheduler_cls, self.connector, typed)

    @property
    def classes(self) -> list[str]:
        """The options that name classes of the user's own."""
        given = {"--scheduler-cls": self.scheduler_cls, "--kv-connector": self.connector}
        return [f"{option} {value}" for option, value in given.items() if value is not None]

    @property
    def modules(self) -> set[str]:
        """The top-level modules of those classes, and of what they are made from."""
        named = {word.replace(":", ".").partition(".")[0] for word in (self.scheduler_cls, self.connector) if word is not None}
        return named | {"vllm"} if named else set()

    @property
    def words(self) -> list[str]:
        """The options that audit the same again."""
        given = {
            "--vllm": self.vllm,
            "--target": self.target,
            "--config": None if self.config is None else str(self.config),
            "--scheduler-cls": self.scheduler_cls,
            "--kv-connector": self.connector,
            "--target-bounds": ",".join(self.own) or None,
        }
        return [*(word for option, value in given.items() if value is not None for word in (option, value)), *self.limits]


@dataclass
class AuditSession:
    """One audit."""

    asked: Asked
    target: Implementation
    classifying: Classifying
    limits: Limits
    quiet: bool
    verbose: bool
    audit: Audit
    derived: Derived | None = None
    interrupts: Interrupts = field(default_factory=Interrupts)
    internal: list[str] = field(default_factory=list[str])

    @classmethod
    def of(cls, asked: Asked, limits: Limits, *, quiet: bool, verbose: bool) -> AuditSession:
        """What a command line asks for; what cannot be found, made or read is an error before anything is compared."""
        from ..conform.audit import Audit

        target = asked.implementation()
        classifying = Classifying.of(target, asked.own, limits)
        if asked.config is not None:
            config_row(asked.config, kvdata.DEFAULT)
        driver: Any = _first(asked, classifying)
        subject = [*_origin(target), driver.title]
        if asked.scheduler_cls is not None:
            classifying.fixed = {"async-scheduling": int(_is_asynchronous(driver))}
            kind = "asynchronous" if classifying.fixed["async-scheduling"] else "synchronous"
            subject.append(
                f"{asked.scheduler_cls} is {kind}: all rows have async-scheduling={classifying.fixed['async-scheduling']}"
            )
        subject += _loads(asked, driver, classifying)
        return cls(asked, target, classifying, limits, quiet, verbose, Audit(tuple(subject)))

    def run(self, *, json: bool, quiet: bool) -> int:
        """Run the sections, print them as they are done, and return the exit code."""
        from ..conform import audit_report
        from ..conform.audit import CLASSIFY, LOCKSTEP, PROPERTIES
        from ..report.terminal import console

        out = None if self.quiet else console()
        with self.interrupts:
            self._found(out)
            self._section(out, 2, CLASSIFY, "What it behaves as", self._classify)
            self._section(out, 3, LOCKSTEP, f"Lockstep against {self._mix_name}", self._compare)
            self._section(out, 4, PROPERTIES, "Properties of the implementation itself", self._check)
        if out is not None:
            audit_report.heading(out, 5, "What was not covered")
            audit_report.uncovered(out, self.audit, self._limits_of_all())
            out.print()
        if json:
            print(self._json())
        else:
            audit_report.verdict(console(), self.audit, self._name)
        if out is not None:
            out.print(f"again: {self._again}", soft_wrap=True)
        for text in self.internal:
            print(f"internal error: {text}", file=sys.stderr)
        return self._exit_code()

    # The sections.

    def _found(self, out: Console | None) -> None:
        from ..conform import audit_report

        if out is not None:
            out.print(f"audit of {self._name}", style="bold")
            audit_report.heading(out, 1, "What was found")
            audit_report.subject(out, self.audit)

    def _section(self, out: Console | None, number: int, name: str, title: str, work: Work) -> None:
        """Run a section and print it; an error is said in its place, and the next section runs all the same."""
        from ..conform import audit_report

        if out is not None:
            audit_report.heading(out, number, title)
        try:
            work(out, _Clock(self.limits.max_seconds))
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:
            said = self._said(error)
            self.audit = replace(self.audit, errors={**self.audit.errors, name: said})
            if out is not None:
                audit_report.failed(out, said)
        sys.stdout.flush()

    def _said(self, error: BaseException) -> str:
        """An error in one line; one that is neither the implementation's nor an input's is a defect of Fencepost."""
        from ...spec.lang import FencepostSpecError
        from ..conform.follow import said

        blamed = self.target.blame(error) or error
        if isinstance(blamed, DriverUnstable) and self._own_classes:
            return f"{' '.join(self.asked.classes)}: {blamed}"
        if isinstance(blamed, UsageError | FencepostSpecError | DriverUnstable) or getattr(blamed, "exit_code", None) == 2:
            return str(blamed)
        if _is_of(error, self.asked.modules):
            return f"{' '.join(self.asked.classes)}: {said(error)}"
        self.internal.append(f"{type(error).__name__}: {error}")
        return f"internal error: {type(error).__name__}: {error}"

    def _classify(self, out: Console | None, clock: _Clock) -> None:
        from ..conform import audit_report

        told = self.classifying.run(quiet=self.quiet, verbose=self.verbose, interrupts=self.interrupts)
        self.audit = replace(self.audit, told=told)
        if out is not None:
            audit_report.classification(out, told, mechanisms(told.found, told.profiles))
            out.print(f"again: {self._repeat_classify()}", soft_wrap=True)

    def _compare(self, out: Console | None, clock: _Clock) -> None:
        from ..conform import audit_report
        from ..conform.audit import LOCKSTEP, Compared
        from ..conform.product import conform

        done: list[Compared] = []
        rows = self._bounds(search=False)
        if out is not None and self.derived is not None:
            out.print(f"bounds derived from {rows[0].name}: {listed(rows[0].bounds)}", soft_wrap=True)
        for row, limits in self._rows(LOCKSTEP, rows, clock):
            model = row.model(self._mix, self._profile)
            with self._running(row) as (driver, progress):
                compared = driver if has_fence(self._mix) else Mechanisms(driver)
                found = conform(model, compared, limits, progress, workers=self._workers)
            if found.cut is not None and clock.over:
                found = replace(found, cut=self.limits.reason("max-time"))
            done.append(Compared(row.name, model, found, self._repeat("conform", model, row)))
            self.audit = replace(self.audit, compared=tuple(done))
        if out is not None:
            audit_report.compared(out, self.audit.compared, self._mix_name, verbose=self.verbose)

    def _check(self, out: Console | None, clock: _Clock) -> None:
        from ..conform import audit_report
        from ..conform.audit import PROPERTIES, Checked
        from ..conform.search import search
        from ..model import Options

        done: list[Checked] = []
        for row, limits in self._rows(PROPERTIES, self._bounds(search=True), clock):
            model = row.model(self._mix, self._profile)
            with self._running(row) as (driver, progress):
                found = search(model, driver, Options(keep_going=True, limits=limits), progress, workers=self._workers)
            if found.result.cut is not None and clock.over:
                found = replace(found, result=replace(found.result, cut=self.limits.reason("max-time")))
            done.append(Checked(row.name, model, found, self._repeat("check", model, row)))
            self.audit = replace(self.audit, checked=tuple(done))
        if out is not None:
            audit_report.checked(out, self.audit, verbose=self.verbose)

    # What the sections are made of.

    def _bounds(self, *, search: bool) -> list[AuditRow]:
        """The bounds of a section: derived from a config, or the small rows of the manifest and where public bugs show."""
        nearest = self._nearest
        if self.asked.config is not None:
            row, self.derived = config_row(self.asked.config, nearest)
            return [replace(row, bounds=self.classifying.fitted(row.bounds))]
        rows = [*small_rows(nearest), *(fault_rows(switches()) if search else [])]
        fixed = self.classifying.fixed
        return [replace(row, bounds=self.classifying.fitted({**row.bounds, **fixed})) for row in rows]

    def _rows(self, section: str, rows: Sequence[AuditRow], clock: _Clock) -> Iterator[tuple[AuditRow, Limits]]:
        """Each row with the limits that are left for it; rows for which there is no time are noted."""
        for number, row in enumerate(rows):
            if clock.over or self.interrupted:
                left_out = {**self.audit.left_out, section: tuple(row.name for row in rows[number:])}
                self.audit = replace(self.audit, left_out=left_out)
                return
            yield row, replace(self.limits, max_seconds=clock.left, cancelled=lambda: self.interrupted)

    @contextmanager
    def _running(self, row: AuditRow) -> Generator[tuple[Driver, OnProgress | None]]:
        """A driver at the bounds of a row; what an implementation prints goes to standard error."""
        from ..report.progress import ProgressLine

        progress = None if self.quiet else ProgressLine(sys.stderr)
        try:
            with redirect_stdout(sys.stderr):
                yield self.classifying.make(load_shipped("kv").values(row.bounds)), progress
        finally:
            if progress is not None:
                progress.close()

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self.interrupts.asked

    @property
    def _workers(self) -> int:
        from ..explore.native.memory import processors

        return 1 if self.target.path is not None else processors()

    @property
    def _nearest(self) -> str:
        told = self.audit.told
        return expected(self.target) if told is None else told.found.nearest.name

    @property
    def _mix(self) -> Values:
        """The switches that it behaves as; where that is not known, those of the nearest profile."""
        if self.audit.told is not None:
            return dict(self.audit.told.found.mix)
        values = load_shipped("kv").values(kvdata.profile(self._nearest).switches)
        return {name: values[name] for name in switches()}

    @property
    def _mix_name(self) -> str:
        from ..conform.classify_report import name_of

        return self._nearest if self.audit.told is None else name_of(self.audit.told.found)

    @property
    def _profile(self) -> str | None:
        return self._nearest if self._mix_name == self._nearest else None

    @property
    def _name(self) -> str:
        """What is audited, with the classes of the user's own."""
        own = {"scheduler class": self.asked.scheduler_cls, "connector": self.asked.connector}
        words = [f"{what} {name}" for what, name in own.items() if name is not None]
        return f"{self.target.name} with {' and '.join(words)}" if words else self.target.name

    # The commands that repeat it.

    @property
    def _again(self) -> str:
        return shlex.join(["fencepost", "audit", *self.asked.words])

    @property
    def _own_classes(self) -> bool:
        return bool(self.asked.classes)

    def _repeat_classify(self) -> str:
        if self._own_classes:
            return self._again
        own = ["--target-bounds", ",".join(self.asked.own)] if self.asked.own else []
        return shlex.join(["fencepost", "vllm", "classify", self.target.name, *own])

    def _repeat(self, verb: str, model: Model, row: AuditRow) -> str:
        """The command that repeats a row; classes of the user's own can only be audited."""
        if self._own_classes:
            return self._again
        return repeated(verb, self.target, self.classifying.own, model.bound.values, row.bounds)

    # What is said at the end.

    def _limits_of_all(self) -> list[str]:
        lines = ["other sizes: nothing is said of bounds that are not named above"]
        if self.derived is not None:
            lines += [f"{row.name}: {row.why}" for row in self.derived.ignored]
        return lines

    def _exit_code(self) -> int:
        from ..result import Verdict

        if self.internal and self.audit.verdict is not Verdict.VIOLATED:
            return INTERNAL_ERROR
        return {Verdict.HOLDS: 0, Verdict.VIOLATED: 1, Verdict.UNDETERMINED: 3}[self.audit.verdict]

    def _json(self) -> str:
        from ..conform.audit_schema import Request, document

        part = None if self.audit.told is None else self.classifying.part(self.audit.told)
        asked = Request(self._name, self._mix_name, self._again)
        made = document(self.audit, asked, part, self._limits_of_all(), self._exit_code(), since_start())
        return made.model_dump_json(indent=2)


class _Clock:
    """The time of one section."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float | None:
        """Seconds that are left; None where there is no limit."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self.left == 0.0


def _first(asked: Asked, classifying: Classifying) -> Driver:
    """A first driver, with loads where a connector is looked at; `UsageError` where a class of the user's cannot be made."""
    loads = {"kv-role": "kv_consumer", "remote-tokens": 1} if asked.connector is not None else {}
    values = load_shipped("kv").values(loads)
    try:
        with redirect_stdout(sys.stderr):
            return classifying.make(values)
    except (UsageError, KeyboardInterrupt, MemoryError):
        raise
    except Exception as error:
        if not asked.classes:
            raise
        with redirect_stdout(sys.stderr):  # what cannot be made without them either is not theirs
            replace(asked, scheduler_cls=None, connector=None).implementation().make(values)
        made = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise UsageError(f"{', '.join(asked.classes)}: cannot be made as vLLM makes its own: {made}") from error


def _loads(asked: Asked, driver: Any, classifying: Classifying) -> list[str]:
    """How much a connector of the user's own would load, where that is not what rows say; rows are fitted where they can be."""
    if asked.connector is None:
        return []
    tokens = driver.settings.remote_tokens + 2
    with redirect_stdout(sys.stderr):
        would = driver.engine.would_load(tokens)
    if would == tokens:
        classifying.whole_prompts = True
        return [f"{asked.connector} loads whole prompts: where anything is loaded, remote-tokens is prompt-tokens"]
    if would == driver.settings.remote_tokens:
        return []
    said = "does not say what it would load" if would is None else f"would load {would}"
    return [
        f"of a prompt of {tokens} tokens, asked at its admission, {asked.connector} {said}: the spec has prompts loaded whole, "
        "or their first remote-tokens, so rows that load will differ"
    ]


def _is_asynchronous(driver: Any) -> bool:
    """Whether the scheduler of a vLLM is an AsyncScheduler, which plans decode ahead of its outputs."""
    return any(base.__name__ == "AsyncScheduler" for base in type(driver.engine.scheduler).__mro__)


def _is_of(error: BaseException, modules: set[str]) -> bool:
    """Whether an error was raised in one of these top-level modules, or in what they call, and not in Fencepost's own code."""
    own = __name__.partition(".")[0]
    loaded = [(name.partition(".")[0], module) for name, module in list(sys.modules.items())]
    tops = {getattr(module, "__file__", None): top for top, module in loaded if top in {*modules, own}}
    known = [tops[file] for file, _ in frames(error) if file in tops]
    return bool(known) and known[-1] in modules


def _origin(target: Implementation) -> list[str]:
    """Which vLLM it is, where it came from, and which of its files are not as they were published."""
    from ...impl.vllm.record import edits

    release = release_of(target)
    if release is None:
        return []
    edited = edits(release.path)
    more = [f"and {count(len(edited) - LISTED, 'more file')}"] if len(edited) > LISTED else []
    published = [f"not as in its RECORD: {', '.join([*edited[:LISTED], *more])}"] if edited else []
    return [str(release), *published]
