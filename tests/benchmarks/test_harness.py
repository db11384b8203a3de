"""What benchmarks/run.py does without any of the tools, and what it does with what they say."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import run
from harness import machine, ours, process, report, rows_kvfence, rumur, spin, tlc
from harness.expected import Bounds, case
from harness.outcome import Outcome, Tool
from harness.process import BenchmarkError
from harness.session import Session

A7 = {
    "check-fresh", "check-second-run", "cold-counterexample", "kvfence-rate", "kvfence-wall", "kvfence-symmetry",
    "kv-reference", "bytes-per-state", "two-cores", "fence-counterexample", "all-faults",
}  # fmt: skip
MEDIUM = case("medium")


@dataclass(frozen=True)
class Toy(Tool):
    """A tool that finds what it is told to."""

    finds: Outcome
    reason: str | None = None
    family: ClassVar[str] = "fencepost"

    def missing(self) -> str | None:
        return self.reason

    def run(self, bounds: Bounds) -> Outcome:
        return self.finds


def outcome(distinct: int | None = 1202640, *, trace: int | None = None, search: float = 0.5) -> Outcome:
    return Outcome(distinct, 7301448, 16, trace, build=0.0, search=search, wall=1.0, memory=64 * 1202640)


def session(tmp_path: Path, *tools: Tool) -> Session:
    return Session(ours.Command(("fencepost",)), list(tools), ["medium"], 3, tmp_path)


def test_every_target_has_its_row() -> None:
    assert set(run.ROWS) == A7 | {"counts"}


def test_a_missing_tool_is_named_and_gives_no_figure(tmp_path: Path) -> None:
    made = rows_kvfence.rate(session(tmp_path, Toy("toy", 1, "none", outcome(), "it is not installed")))
    assert made.notes[0] == "fencepost was not measured: it is not installed."
    assert all(target.met is None for target in made.targets)
    assert "not measured" in made.markdown()
    assert not made.missed


@pytest.mark.parametrize(
    "tool",
    [*spin.modes(Path()), *rumur.modes(Path()), *tlc.modes(None, Path()), *ours.modes(ours.Command(("fencepost",)))],
    ids=lambda tool: tool.name,
)
def test_tools_that_are_not_installed_say_so(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert tool.missing()


def test_wrong_counts_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="toy on medium, fence 1, symmetry none: distinct is 7, expected 1202640"):
        session(tmp_path).measure([Toy("toy", 1, "none", outcome(7))], MEDIUM)


def test_what_a_tool_does_not_say_is_not_compared() -> None:
    assert outcome(None).against(MEDIUM, "toy").distinct is None


def test_a_counterexample_that_should_not_be_there_is_an_error() -> None:
    with pytest.raises(BenchmarkError, match="trace is 4, expected None"):
        outcome(trace=4).against(MEDIUM, "toy")
    with pytest.raises(BenchmarkError, match="trace is None, expected 4"):
        outcome().against(case("medium", 0), "toy")


def test_figures_are_measured_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = session(tmp_path, Toy("toy", 1, "none", outcome()))
    first = made.measure(made.tools, MEDIUM)
    assert made.measure(made.tools, MEDIUM) == first
    assert len(capsys.readouterr().err.splitlines()) == 3
    assert (first[0].rate, first[0].bytes_per_state) == (2405280, 64)


def test_targets_are_met_or_missed() -> None:
    made = report.Report("row", "title")
    made.at_least("ours", 3.0, 3.0)
    made.at_most("bytes", 65.0, 64, "bytes")
    assert [target.met for target in made.targets] == [True, False]
    assert made.missed
    assert "- bytes, at most 64 bytes: 65 bytes: **missed**" in made.markdown()


def test_figures_stand_between_the_markers(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n", encoding="utf-8")
    report.write_figures(readme, r"new \1")
    assert readme.read_text(encoding="utf-8") == f"before\n{report.BEGIN}\nnew \\1\n{report.END}\nafter\n"
    readme.write_text("no markers", encoding="utf-8")
    with pytest.raises(ValueError, match="has no markers"):
        report.write_figures(readme, "new")


def test_the_readme_has_its_markers() -> None:
    text = (run.HERE / "README.md").read_text(encoding="utf-8")
    assert text.count(report.BEGIN) == text.count(report.END) == 1


@pytest.mark.parametrize("symmetry", ["none", "requests", "both"])
def test_the_texts_for_the_peers_are_filled_in(symmetry: str) -> None:
    murphi, configuration = rumur.text(MEDIUM.bounds, symmetry), tlc.text(MEDIUM.bounds, symmetry)
    assert "@" not in murphi
    assert "@" not in configuration
    assert ("scalarset(R)" in murphi) is (symmetry != "none")
    assert ("SYMMETRY" in configuration) is (symmetry != "none")
    assert "Blocks = {b0, b1, b2, b3}" in configuration


def test_a_process_is_measured() -> None:
    ended = process.run((sys.executable, "-c", "print('x' * 3); raise SystemExit(5)"))
    assert (ended.code, ended.out) == (5, "xxx\n")
    assert ended.seconds > 0
    assert ended.peak_bytes > 1_000_000
    with pytest.raises(BenchmarkError, match="exit code 5"):
        ended.checked(0, 1)


def test_a_result_that_is_no_json_is_an_error() -> None:
    with pytest.raises(BenchmarkError, match="printed no JSON"):
        ours.parsed(process.run((sys.executable, "-c", "print('no')")))


def test_the_length_of_the_shortest_trace_is_read() -> None:
    properties = [
        {"status": "violated", "depth": 6},
        {"status": "violated", "depth": 4},
        {"status": "reached", "depth": 2},
    ]
    assert ours.trace_length({"verdict": "VIOLATED", "properties": properties}) == 4
    assert ours.trace_length({"verdict": "HOLDS", "properties": []}) is None


def test_the_machine_is_described() -> None:
    assert "cores" in machine.description()[0]


def test_an_unknown_size_ends_the_program() -> None:
    with pytest.raises(SystemExit, match="huge is not one of"):
        run.main(["--row", "counts", "--sizes", "huge"])


def test_a_row_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run.main([])
    assert "--list lists them" in capsys.readouterr().err


def test_a_failing_row_does_not_stop_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = session(tmp_path, Toy("toy", 1, "none", outcome(7)), Toy("toy with symmetry", 1, "both", outcome(13738)))
    reports, failures = run.collect(made, ["kvfence-rate", "bytes-per-state", "kv-unknown"][:2])
    assert (len(reports), len(failures)) == (0, 2)
    assert "kvfence-rate failed" in capsys.readouterr().out
