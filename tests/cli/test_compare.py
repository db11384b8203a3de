"""Comparing a search with symmetry and one without: in what they may differ, and in what not."""

from dataclasses import replace
from pathlib import Path

import pytest
from fencepost.checker.cli.compare import differences
from fencepost.checker.explore import explore
from fencepost.checker.model import Model, Options
from fencepost.checker.result import Result
from fencepost.spec.lang import load_file

TEXT = """
from fencepost.spec.lang import *

MEMBERS = Index("members", default=3)


@state
class Marks:
    marked: SetOf[MEMBERS]


@action
def mark(s, m: MEMBERS):
    s.marked.add(m)


@step
def never(s, t):
    return s.marked == t.marked
"""


@pytest.fixture
def model(tmp_path: Path) -> Model:
    path = tmp_path / "marks.py"
    path.write_text(TEXT)
    return Model.of(load_file(path))


def results(model: Model, *, keep_going: bool) -> tuple[Result, Result]:
    reduced, full = (explore(model, Options(symmetry=s, keep_going=keep_going), "reference") for s in (True, False))
    return reduced, full


@pytest.mark.parametrize("keep_going", [True, False])
def test_a_violated_property_is_no_difference(model: Model, keep_going: bool) -> None:
    reduced, full = results(model, keep_going=keep_going)
    assert reduced.violations
    assert differences(model, reduced, full, keep_going=keep_going) == []


def test_orbits_are_counted_where_the_search_went_on(model: Model) -> None:
    reduced, full = results(model, keep_going=True)
    wrong = replace(reduced, figures=replace(reduced.figures, distinct=3))
    assert differences(model, wrong, full, keep_going=True) == ["3 classes of states were found, and the full search has 4"]


def test_a_violation_that_only_one_has(model: Model) -> None:
    reduced, full = results(model, keep_going=False)
    fewer = replace(reduced, properties=())
    found = differences(model, fewer, full, keep_going=False)
    assert found == ["the verdicts are HOLDS and VIOLATED", "never is not there and violated"]
