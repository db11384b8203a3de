"""Specs by which proofs were once wrong: nothing that a search finds violated is proved, by any method."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from fencepost.checker.explore import explore
from fencepost.checker.model import SPEC_ERROR, Limits, Model, Options
from fencepost.checker.prove import proof, reached
from fencepost.checker.prove.bmc import BoundedSearch
from fencepost.checker.prove.induction import ENDED, Induction
from fencepost.checker.prove.proof import Told, prove
from fencepost.checker.prove.terms import Terms
from fencepost.checker.result import Status, Verdict
from fencepost.spec.lang import load_file

SPECS = Path(__file__).parent / "specs" / "sound"
VIOLATED = {
    "narrowed": "low",
    "two_places": "nothing_marked",
    "named_place": "nothing_marked",
    "raised_in_condition": "no_error",
    "renamed_state": "no_error",
    "third_parameter": "no_error",
    "cleared": "no_error",
    "named_as_cell": "few",
    "local_named_as_cell": "fine",
    "no_members": "fine",
}


def model_of(name: str) -> Model:
    return Model.of(load_file(SPECS / f"{name}.py"), {})


def lemmas_too(model: Model) -> Model:
    model.bound.properties = model.bound.every
    return model


@pytest.mark.parametrize("name", VIOLATED)
def test_what_is_violated_is_not_proved(name: str) -> None:
    searched = explore(lemmas_too(model_of(name)), Options(deadlock=False, keep_going=True), "reference")
    violated = {p.name: len(p.trace.steps) for p in searched.properties if p.status is Status.VIOLATED and p.trace}
    assert VIOLATED[name].replace("_", "-") in violated
    found = Induction(model_of(name), Limits()).run()
    assert violated.keys().isdisjoint({*found.kept, *found.stepped})
    bounded = BoundedSearch(lemmas_too(model_of(name)), Limits(max_depth=max(violated.values())), keep_going=True).run()
    assert {p.name: len(p.trace.steps) for p in bounded.violations if p.trace} == violated


def test_the_specs_are_all_there() -> None:
    assert {path.stem for path in SPECS.glob("*.py")} == {*VIOLATED, "wrong_lemma", "local_set"}


def test_an_unproved_lemma_does_not_hide_that_nothing_happens() -> None:
    made = prove(model_of("wrong_lemma"), Limits(), each=60.0, told=Told())
    assert [p.status for p in made.lemmas] == [Status.UNDETERMINED]
    assert made.verdict is Verdict.UNDETERMINED
    assert made.reason is not None
    assert "vacuous: action never is never enabled; witness used is never reached" in made.reason


def test_local_sets_and_names_used_again_are_no_error() -> None:
    found = Induction(model_of("local_set"), Limits()).run()
    assert {*found.kept, *found.stepped} == {"nothing-marked", SPEC_ERROR}


def test_what_a_process_that_was_told_to_stop_did_not_ask_is_not_proved() -> None:
    me = os.getpid()
    limits = replace(Limits(), cancelled=lambda: os.getpid() != me)
    found = Induction(model_of("named_as_cell"), limits, workers=2).run()
    assert not {*found.kept, *found.stepped}
    assert {answer.answer for answer in found.answers} == {"unknown"}


def test_a_process_that_is_ended_from_outside_is_no_proof() -> None:
    me = os.getpid()

    def cancelled() -> bool:
        return os.getpid() != me and bool(os.kill(os.getpid(), signal.SIGKILL) or True)

    found = Induction(model_of("named_as_cell"), replace(Limits(), cancelled=cancelled), workers=2).run()
    assert (found.cut, found.kept, found.stepped) == (ENDED, (), ())


def test_a_limit_of_memory_is_no_proof() -> None:
    limits = Limits(max_bytes=1)
    found = Induction(model_of("wrong_lemma"), limits).run()
    assert (found.cut, found.kept, found.stepped) == (limits.reason("max-memory"), (), ())


@pytest.mark.parametrize("said", ["a[0] < 2", "a != s.a"])
def test_what_cannot_be_told_or_does_not_hold_at_the_start(said: str, tmp_path: Path) -> None:
    path = tmp_path / "start.py"
    path.write_text(START.format(said=said))
    made = prove(Model.of(load_file(path), {}), Limits(), each=60.0, told=Told())
    named = "spec-error" if "[0]" in said else "fine"
    assert [(p.name, p.depth) for p in made.violations] == [(named, 0)]
    path.write_text(START.format(said=said).replace("@always", "@always(lemma=True)"))
    made = prove(Model.of(load_file(path), {}), Limits(), each=60.0, told=Told())
    assert [(gap.name, gap.words) for gap in made.gaps] == [("fine", "it does not hold in the initial states")]


START = '''"""A property that is wrong from the start."""

from fencepost.spec.lang import Int, Seq, action, always, require, state


@state
class Row:
    a: Seq[Int(0, 3), 3]


@action
def more(s):
    """One more."""
    require(len(s.a) < 3)
    s.a.append(1)


@always
def fine(s):
    """Not so."""
    return s.{said}
'''


def test_searches_end_with_the_limit_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    left = list[float]()

    def unseen(model: Model, limits: Limits, most: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
        left.append(most)
        return reached.unseen(model, limits, most)

    monkeypatch.setattr(proof, "unseen", unseen)
    prove(model_of("local_set"), Limits(max_seconds=600.0), each=60.0, told=Told())
    prove(model_of("local_set"), Limits(), each=60.0, told=Told())
    assert 0 < left[0] < 600
    assert left[1] == float("inf")


def test_two_variables_of_one_name_are_refused() -> None:
    terms = Terms()
    terms.variable("c0", 0, 3)
    with pytest.raises(AssertionError, match="two variables are called c0"):
        terms.variable("c0", 0, 4)


def test_ranges_are_not_cut() -> None:
    """Numbers of which each has 62 bits: a product of theirs has more than a machine word."""
    terms = Terms()
    number = terms.variable("n", 0, 4 * 10**18)
    four = terms.multiply(number, terms.number(4))
    assert terms.range(four) == (0, 16 * 10**18)
    limit = terms.number(2**63 - 1)
    assert terms.less(limit, four) not in (terms.yes, terms.no)
