"""The coverage of an implementation: what was reached, and for the rest whether it is dead or the bounds are too small."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.cli.drivers import find
from fencepost.checker.cli.main import main
from fencepost.checker.conform.coverage import Tracer
from fencepost.checker.conform.coverage_report import what
from fencepost.checker.conform.product import conform
from fencepost.checker.conform.random_runs import RandomOptions, run
from fencepost.checker.conform.schema import ConformDocument
from fencepost.checker.conform.unreached import FileCoverage, Why
from fencepost.checker.model import Limits, Model
from fencepost.checker.result import Verdict
from fencepost.spec.lang import load_file
from fencepost.traces.driver import Copyable, Driver

HERE = Path(__file__).parent
CLI = HERE.parent / "cli"
LENDING = load_file(CLI / "specs" / "lending.py")
DRIVER, LENDER = HERE / "drivers" / "lender_driver.py", HERE / "drivers" / "lender.py"
SOURCE = LENDER.read_text().splitlines()


def model(size: int) -> Model:
    return Model.of(LENDING, {"requests": size, "blocks": size})


def driven(name: str, size: int) -> Driver:
    return find(f"{DRIVER}:{name}", "lending").make(model(size).bound.values)


def covered(name: str) -> FileCoverage:
    """The coverage of the lender at size 2, and what random runs at size 6 reach besides."""
    tracer = Tracer([LENDER])
    found = conform(model(2), tracer.traced(driven(name, 2)), Limits())
    assert found.verdict is Verdict.HOLDS
    before = tracer.lines()
    runs = run(model(6), tracer.traced(driven(name, 6)), RandomOptions(500), Limits())
    assert runs.mismatch is None
    (one,) = tracer.found(before)
    return one


def at(text: str) -> int:
    """The number of the only line of the lender with this text."""
    (number,) = [number for number, line in enumerate(SOURCE, 1) if text in line]
    return number


@pytest.mark.parametrize("name", ["SavingDriver", "LenderDriver"])
def test_every_line_that_is_not_reached_has_its_reason(name: str) -> None:
    one = covered(name)
    found = {(gap.line, gap.last, gap.to): (gap.why, gap.function) for gap in one.gaps}
    cleared = at("if block < -1")
    assert found == {
        (at("self.far += 1"),) * 2 + (None,): (Why.TOO_SMALL, "Lender.lend"),
        (at("raise KeyError"),) * 2 + (None,): (Why.BEYOND, "Lender.give_back"),
        (at("if block >= 0"),) * 2 + (cleared,): (Why.UNEXPLAINED, "Lender.give_back"),
        (cleared + 1, cleared + 2, None): (Why.UNEXPLAINED, "Lender.give_back"),
        (at("pools keep") + 1, at("self.far -= 1"), None): (Why.BEYOND, "Lender.shrink"),
        (at("return len(self.held)"),) * 2 + (None,): (Why.UNEXPLAINED, "Lender.count"),
    }
    reasons = {gap.function: gap.reason for gap in one.gaps if gap.why is Why.BEYOND}
    assert reasons == {
        "Lender.give_back": "who holds nothing never ends",
        "Lender.shrink": "pools keep their size there",
    }
    lines_of_gaps = 1 + 1 + 2 + 3 + 1
    assert (one.statements - one.reached, one.needless) == (lines_of_gaps, ())
    assert {what(gap) for gap in one.gaps} >= {
        f"if block >= 0:  -> never to line {cleared}",
        "raise KeyError(request)",
    }


def test_what_is_shown_and_saved_is_not_what_events_reach() -> None:
    tracer = Tracer([LENDER])
    driver = tracer.traced(driven("LenderDriver", 2))
    driver.observe()
    driver.digest()
    (lines,) = tracer.lines().values()
    assert not lines.ran
    driver.reset()
    (lines,) = tracer.lines().values()
    begun = at("self.free = deque")
    assert lines.ran == {begun, begun + 1, begun + 2}


def test_a_traced_driver_can_go_back_if_it_could() -> None:
    tracer = Tracer([LENDER])
    assert not isinstance(tracer.traced(driven("LenderDriver", 2)), Copyable)
    assert isinstance(tracer.traced(driven("SavingDriver", 2)), Copyable)


TEXT = '''\
def whole(x):  # beyond the spec: nobody calls it
    """Doc."""
    if x:
        return 1
    return 2


def half(x):
    if x:  # beyond the spec: reached all along
        return 1
    else:  # beyond the spec: never without
        x = 3
        return x


def inner(x):
    # beyond the spec: outer reason
    if x:  # beyond the spec: inner reason
        return 1
    return (
        2,
        3,  # beyond the spec: reason of a statement
    )


class Kept:  # beyond the spec: a whole class
    def method(self):
        return 1
'''


def test_an_explanation_is_for_a_statement_or_a_block(tmp_path: Path) -> None:
    file = tmp_path / "text.py"
    file.write_text(TEXT)
    made: dict[str, Any] = {}
    exec(compile(TEXT, str(file), "exec"), made)
    tracer = Tracer([tmp_path])
    with tracer.running():
        made["half"](1)
    before = tracer.lines()
    with tracer.running():
        made["inner"](1)
    (one,) = tracer.found(before)
    lines = TEXT.splitlines()
    found = [(lines[gap.line - 1].strip(), gap.last - gap.line, gap.why.name, gap.reason) for gap in one.gaps]
    assert found == [
        ("if x:", 2, "BEYOND", "nobody calls it"),
        ("x = 3", 1, "BEYOND", "never without"),
        ("if x:  # beyond the spec: inner reason", 1, "TOO_SMALL", ""),
        ("return (", 0, "BEYOND", "reason of a statement"),
        ("return 1", 0, "BEYOND", "a whole class"),
    ]
    assert one.needless == (at_text("reached all along"), at_text("outer reason"))


def at_text(words: str) -> int:
    (number,) = [number for number, line in enumerate(TEXT.splitlines(), 1) if words in line]
    return number


def test_files_that_nothing_runs_in_are_shown_where_they_were_asked_for(tmp_path: Path) -> None:
    made: dict[str, Any] = {}
    for name in ("used", "idle", "driver"):
        file = tmp_path / f"{name}.py"
        file.write_text(f"def {name}():\n    return 1\n")
        exec(compile(file.read_text(), str(file), "exec"), made)

    (tmp_path / "idle.py").write_text('"""Doc."""\n\n# beyond the spec: all of it\n\n' + (tmp_path / "idle.py").read_text())

    def shown(tracer: Tracer, *run: str) -> list[str]:
        with tracer.running():
            for name in run:
                made[name]()
        return [Path(one.file).name for one in tracer.found(tracer.lines())]

    everything = Tracer([tmp_path])
    assert shown(everything, "used") == ["driver.py", "idle.py", "used.py"]
    assert [gap.reason for one in everything.found(everything.lines()) for gap in one.gaps] == ["", "all of it"]
    assert shown(Tracer(adapter=tmp_path / "driver.py"), "used", "driver") == ["used.py"]
    assert shown(Tracer(adapter=tmp_path / "driver.py"), "driver") == ["driver.py"]


def fencepost(*words: str) -> tuple[int, str]:
    """Exit code and output of `fencepost conform` on the lender."""
    out = io.StringIO()
    target = f"{DRIVER}:SavingDriver"
    with contextlib.redirect_stdout(out):
        code = main(["conform", str(CLI / "specs" / "lending.py"), "--target", target, *words])
    return code, out.getvalue()


def test_json_of_coverage() -> None:
    code, out = fencepost("--coverage", "--measure", str(LENDER), "--json")
    made = json.loads(out)
    assert ConformDocument.model_validate(made).exit_code == code == 0
    coverage = made["coverage"]
    assert coverage["complete"]
    (file,) = coverage["files"]
    assert file["reached"] == file["statements"] - 8
    assert file["taken"] < file["branches"]
    assert {gap["why"] for gap in coverage["gaps"]} == {"TOO_SMALL", "BEYOND", "UNEXPLAINED"}
    exhaustive, larger = made["rows"]
    assert (exhaustive["sampled"], larger["sampled"]["seed"]) == (None, 0)
    assert "--random" not in exhaustive["again"]
    assert "--random" in larger["again"]
    assert json.loads(fencepost("--json")[1])["coverage"] is None


def test_the_report_names_places_and_says_why() -> None:
    code, out = fencepost("--coverage", "--measure", str(LENDER))
    assert code == 0
    places = [line for line in out.splitlines() if "place" in line]
    assert places == [
        "3 places: nothing comes here, at larger sizes neither: dead, or beyond the spec",
        "1 place: the bounds are too small: random runs at larger sizes come here",
        "2 places: beyond the spec, as the source says",
    ]
    assert "lender.py" in out
    _, quiet = fencepost("--coverage", "--measure", str(LENDER), "--quiet")
    assert " statements, " in quiet
    assert "places" not in quiet


def test_by_default_the_files_that_events_run_through_are_looked_at() -> None:
    code, out = fencepost("--coverage", "--json")
    assert code == 0
    assert [Path(file["file"]).name for file in json.loads(out)["coverage"]["files"]] == ["lender.py"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--measure", "x.py"], "add --coverage"),
        (["--coverage", "--measure", "nowhere.py"], "there is no such file"),
        (["--coverage", "--random", "10"], "leave out --random"),
        (["--coverage", "--workers", "2"], "leave out --workers"),
    ],
)
def test_options_that_do_not_go_together(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert fencepost(*words)[0] == 2
    assert said in capsys.readouterr().err


def test_without_coverage_py_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "coverage", None)
    assert fencepost("--coverage")[0] == 2
    assert "fencepost[coverage]" in capsys.readouterr().err


@pytest.mark.slow
def test_the_reference_implementation_has_nothing_unexplained() -> None:
    """The first states of every row are enough: what they reach is reached."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(["conform", "--target", "reference", "--all", "--coverage", "--max-states", "2k", "--json"])
    made = json.loads(out.getvalue())
    assert made["verdict"] != "VIOLATED"
    assert len(made["coverage"]["files"]) > 10
    assert [gap for gap in made["coverage"]["gaps"] if gap["why"] == "UNEXPLAINED"] == []
