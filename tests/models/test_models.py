"""Every small model in every engine: the counts, verdict and statuses of `manifest.yaml`, and equal traces throughout."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from fencepost.checker.model import Limits, Model, Options
from fencepost.checker.result import PropertyResult, Result
from fencepost.spec.lang import Spec, load_file
from fencepost.traces.trace import follow

from .engines import counts, findings, search

HERE = Path(__file__).parent
ROWS: list[dict[str, Any]] = yaml.safe_load((HERE / "manifest.yaml").read_text())
RUNS = [("reference", 1), ("native", 1), ("native", 2)]


@dataclass(frozen=True)
class Row:
    """A row of the manifest."""

    number: int

    @property
    def data(self) -> dict[str, Any]:
        """What the row says."""
        return ROWS[self.number]

    def __str__(self) -> str:
        data = self.data
        given = [f"{name}={value}" for name, value in data["bounds"].items()]
        given += [f"{name}={value}" for name, value in data.get("limits", {}).items()]
        given += [name for name in ("keep_going", "deadlock") if name in data]
        return "-".join([data["model"], *given])


@lru_cache
def spec_of(model: str) -> Spec:
    """Returns a model's spec, loaded once."""
    return load_file(HERE / "specs" / f"{model}.py")


@lru_cache
def run(row: Row, engine: str, threads: int, *, symmetry: bool) -> Result:
    """Returns the result of a row in an engine, searched once."""
    data = row.data
    options = Options(
        symmetry=symmetry,
        deadlock=data.get("deadlock", True),
        keep_going=data.get("keep_going", False),
        threads=threads,
        limits=Limits(**data.get("limits", {})),
    )
    return search(Model.of(spec_of(data["model"]), data["bounds"]), options, engine)


def status(found: PropertyResult) -> str:
    """Returns a property's status as the manifest spells it."""
    return found.status.value if found.depth is None else f"{found.status.value} {found.depth}"


def located(text: str | None) -> str | None:
    """Returns a reason with file names as the manifest has them."""
    return None if text is None else text.replace(f"{HERE / 'specs'}/", "")


each_row = pytest.mark.parametrize("row", [Row(n) for n in range(len(ROWS))], ids=str)
each_run = pytest.mark.parametrize(("engine", "threads"), RUNS)


def test_there_are_models() -> None:
    assert {data["model"] for data in ROWS} == {path.stem for path in (HERE / "specs").glob("*.py")}
    assert len({str(Row(n)) for n in range(len(ROWS))}) == len(ROWS)


@each_row
@each_run
def test_as_in_the_manifest(row: Row, engine: str, threads: int) -> None:
    data, found = row.data, run(row, engine, threads, symmetry=False)
    figures = found.figures
    assert (found.verdict.value, located(found.reason)) == (data["verdict"], data.get("reason"))
    assert (figures.distinct, figures.generated, figures.depth) == (data["distinct"], data["generated"], data["depth"])
    assert {p.name: status(p) for p in found.properties} == data["properties"]
    errors = [located(p.reason) for p in found.properties if p.name == "spec-error"]
    assert errors == ([data["spec_error"]] if "spec_error" in data else [])


@each_row
@each_run
def test_symmetry_as_in_the_manifest(row: Row, engine: str, threads: int) -> None:
    found, full = run(row, engine, threads, symmetry=True), run(row, engine, threads, symmetry=False)
    figures = found.figures
    assert figures.symmetry == ("symmetric" in row.data)
    expected = row.data.get("symmetric", row.data)
    assert {name: getattr(figures, name) for name in ("distinct", "generated", "depth")} == {
        name: expected[name] for name in ("distinct", "generated", "depth")
    }
    if not row.data.get("limits"):
        assert findings(found) == findings(full)


@each_row
@pytest.mark.parametrize("symmetry", [False, True], ids=["full", "symmetric"])
def test_engines_agree(row: Row, symmetry: bool) -> None:
    reference, *others = (run(row, engine, threads, symmetry=symmetry) for engine, threads in RUNS)
    for other in others:
        assert counts(other) == counts(reference)
        assert findings(other) == findings(reference)


@each_row
def test_figures_add_up(row: Row) -> None:
    for symmetry in (False, True):
        figures = run(row, "native", 2, symmetry=symmetry).figures
        assert sum(figures.per_depth) == figures.distinct
        assert sum(count.taken for count in figures.actions) == figures.generated
        assert all((count.enabled == 0) == (count.taken == 0) for count in figures.actions)
        assert figures.depth == len(figures.per_depth) - 1
        assert figures.degrees[0] <= figures.degrees[1] <= figures.degrees[2]


@each_row
def test_every_trace_replays(row: Row) -> None:
    model = Model.of(spec_of(row.data["model"]), row.data["bounds"])
    found = run(row, "native", 2, symmetry=True)
    for result in found.violations:
        trace = result.trace
        if trace is None:
            assert not row.data.get("keep_going")
            continue
        assert follow(model.bound, trace) == trace
        assert len(trace) == result.depth or result.name == "spec-error"
