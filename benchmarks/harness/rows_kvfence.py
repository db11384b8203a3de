"""The rows about the benchmark model."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .expected import SIZES, Case, case, load
from .outcome import Tool
from .report import Report, amount
from .session import Measured, Session

FIGURES = ("tool", "states/s", "search s", "build s", "wall s", "bytes/state")
SPIN_FACTOR, BEST_FACTOR, TLC_FACTOR = 3.0, 1.0, 40.0


def figures(measured: Measured) -> tuple[str, ...]:
    """A line of the table under FIGURES."""
    cells = (measured.rate, measured.search, measured.build, measured.wall, measured.bytes_per_state)
    return (measured.tool.name, *(amount(cell) for cell in cells))


def of(measured: Iterable[Measured], family: str, cores: int | None = None) -> list[Measured]:
    """Those of one tool, on so many cores."""
    return [m for m in measured if m.tool.family == family and cores in (None, m.tool.cores)]


def plain(tool: Tool) -> bool:
    """Whether the tool searches without symmetry."""
    return tool.symmetry == "none"


def ratio(above: float | None, below: float | None) -> float | None:
    """A quotient, None where a part of it is."""
    return above / below if above is not None and below else None


def best(values: Iterable[float], choose: Callable[[Iterable[float]], float]) -> float | None:
    """The greatest or least value, None if there is none."""
    known = list(values)
    return choose(known) if known else None


def counts(session: Session) -> Report:
    """Every tool on every case, once, against the expected data."""
    report = Report("counts", "every tool counts what kvfence.yaml says", ("case", "tools that agree"))
    for each in load():
        if each.size in session.sizes and each.symmetry != "requests":
            tools = session.usable(lambda tool, each=each: _can(tool, each))
            session.measure(tools, each, 1)
            report.table.append((each.name, str(len(tools))))
    report.notes += session.absent()
    return report


def _can(tool: Tool, each: Case) -> bool:
    return tool.symmetry == each.symmetry and (tool.shortest or each.counts.trace is None)


def rate(session: Session) -> Report:
    """States a second, medium and large, symmetry off."""
    report = Report("kvfence-rate", "states a second of the search, symmetry off, medians", FIGURES)
    for size in _sizes(session, "medium", "large"):
        found = session.measure(session.usable(plain), case(size))
        report.table.append((f"**{size}**", *[""] * (len(FIGURES) - 1)))
        report.table += [figures(measured) for measured in found]
        for cores in (1, 2):
            _rate_targets(report, found, size, cores)
    report.notes += [
        *session.absent(plain),
        "SPIN's breadth-first search on 2 cores stores hashes of states.",
    ]
    return report


def _rate_targets(report: Report, found: list[Measured], size: str, cores: int) -> None:
    own = best((m.rate for m in of(found, "fencepost", cores)), max)
    spin = of(found, "spin", cores)
    breadth = best((m.rate for m in spin if "breadth" in m.tool.name), max)
    where = f"{size}, {cores} {'core' if cores == 1 else 'cores'}"
    report.at_least(f"{where}: ours to SPIN's breadth-first", ratio(own, breadth), SPIN_FACTOR)
    report.at_least(f"{where}: ours to SPIN's best mode", ratio(own, best((m.rate for m in spin), max)), BEST_FACTOR)
    tlc = best((m.rate for m in of(found, "tlc", cores)), max)
    report.at_least(f"{where}: ours to TLC", ratio(own, tlc), TLC_FACTOR)


def wall(session: Session) -> Report:
    """Our whole command against building and running SPIN."""
    header = ("tool", "build s", "run s", "together s")
    report = Report("kvfence-wall", "the whole command, warm cache, beside SPIN's build and run, medians", header)
    for size in _sizes(session, "medium", "large"):
        tools = session.usable(lambda tool: plain(tool) and tool.family in ("fencepost", "spin"))
        found = session.measure(tools, case(size))
        report.table.append((f"**{size}**", "", "", ""))
        report.table += [(m.tool.name, amount(m.build), amount(m.wall), amount(m.whole)) for m in found]
        for cores in (1, 2):
            own = best((m.whole for m in of(found, "fencepost", cores)), min)
            spin = best((m.whole for m in of(found, "spin", cores)), min)
            where = f"{size}, {cores} {'core' if cores == 1 else 'cores'}"
            report.at_least(f"{where}: SPIN's fastest mode, built and run, to our command", ratio(spin, own), 1.0)
    report.notes += session.absent(lambda tool: tool.family in ("fencepost", "spin"))
    return report


def symmetry(session: Session) -> Report:
    """Medium with symmetry."""
    report = Report("kvfence-symmetry", "medium, symmetry over both indices, medians", FIGURES)
    found = session.measure(session.usable(lambda tool: tool.symmetry == "both"), case("medium", symmetry="both"))
    report.table += [figures(measured) for measured in found]
    own = best((m.search for m in of(found, "fencepost")), min)
    report.at_most("search of 13,738 canonical states", own, 0.5)
    report.notes += session.absent(lambda tool: tool.symmetry == "both")
    return report


def memory(session: Session) -> Report:
    """Bytes a state, large."""
    report = Report("bytes-per-state", "large: memory the search added, divided by distinct states", ("tool", "bytes/state"))
    found = session.measure(session.usable(plain), case("large"))
    report.table += [(m.tool.name, amount(m.bytes_per_state)) for m in found]
    for measured in of(found, "fencepost"):
        report.at_most(f"{measured.tool.name}", measured.bytes_per_state, 64, "bytes")
    report.notes += [*session.absent(plain), "TLC's memory is a heap of fixed size, and says nothing."]
    return report


def two_cores(session: Session) -> Report:
    """Two threads against one, large."""
    report = Report("two-cores", "large: two threads against one", ("tool", "search s, 1", "search s, 2", "times"))
    found = session.measure(session.usable(plain), case("large"))
    for family in ("fencepost", "rumur", "tlc"):
        one = best((m.search for m in of(found, family, 1)), min)
        two = best((m.search for m in of(found, family, 2)), min)
        report.table.append((family, amount(one), amount(two), amount(ratio(one, two))))
        if family == "fencepost":
            report.at_least("search with 1 thread to search with 2", ratio(one, two), 1.6)
    report.notes += session.absent(lambda tool: tool.family == "fencepost")
    return report


def counterexample(session: Session) -> Report:
    """FENCE 0 and 2, every size: from the command to the counterexample."""
    report = Report(
        "fence-counterexample", "to the counterexample, warm cache, medians", ("case and tool", "actions", "together s")
    )
    for each in load():
        if each.counts.trace is None or each.symmetry == "requests" or each.size not in session.sizes:
            continue
        tools = session.usable(lambda tool, each=each: _can(tool, each))
        found = session.measure(tools, each)
        label = f"{each.size}, fence {each.bounds.fence}, symmetry {each.symmetry}"
        report.table += [(f"{label}: {m.tool.name}", str(each.counts.trace), amount(m.whole)) for m in found]
        report.at_most(label, best((m.whole for m in of(found, "fencepost")), max), 1.0)
    report.notes += session.absent()
    return report


def _sizes(session: Session, *sizes: str) -> list[str]:
    return [size for size in SIZES if size in session.sizes and size in sizes]


ROWS: dict[str, Callable[[Session], Report]] = {
    "counts": counts,
    "kvfence-rate": rate,
    "kvfence-wall": wall,
    "kvfence-symmetry": symmetry,
    "bytes-per-state": memory,
    "two-cores": two_cores,
    "fence-counterexample": counterexample,
}
