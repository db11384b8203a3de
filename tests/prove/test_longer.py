"""Facts that longer paths keep: each with the least k that does, and none that a search finds violated."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.checker.explore import explore
from fencepost.checker.model import SPEC_ERROR, Limits, Model, Options
from fencepost.checker.prove.induction import Induction
from fencepost.checker.prove.longer import LONGEST
from fencepost.checker.prove.proof import Told, prove
from fencepost.checker.result import Status, Verdict
from fencepost.spec.lang import load_file

CHAIN = '''"""A wheel turns below three; unreachable states lead to a bad one."""
from fencepost.spec.lang import Bound, Int, action, always, reachable, require, state, step

FIRST = Bound("first", default=7, least=4)


@state
class Wheel:
    at: Int(0, 9)
    seen: Int(0, 9)


@action
def turn(s):
    require(s.at < 3)
    s.at = (s.at + 1) % 3


@action
def fall(s):
    require((s.at >= FIRST and s.at < 9) or s.at == 2)
    s.at += 1


@action
def look(s):
    require(s.at < 3 or s.at == 9)
    s.seen = s.at


@always
def good(s):
    return s.at != 9


@always
def seen_good(s):
    return s.seen != 9


@step
def sees_nothing_bad(s, t):
    return t.seen != 9


@reachable
def round_about(s):
    return s.at == 2
'''
EARLY = '''"""What is violated after one transition, though nothing leads to where that begins."""
from fencepost.spec.lang import Int, action, always, require, state


@state
class S:
    n: Int(0, 3)


@action
def go(s):
    require(s.n < 2)
    s.n += 1


@always
def never_one(s):
    return s.n != 1
'''


def model(tmp_path: Path, text: str, **bounds: int) -> Model:
    path = tmp_path / "wheel.py"
    path.write_text(text)
    return Model.of(load_file(path), dict(bounds))


@pytest.mark.parametrize("k", range(2, LONGEST + 1))
def test_the_least_k_that_closes(k: int, tmp_path: Path) -> None:
    found = Induction(model(tmp_path, CHAIN, first=10 - k), Limits()).run()
    assert found.longer == {"good": k, "seen-good": k}
    assert set(found.kept) == {"good", "seen-good"}
    assert set(found.stepped) == {"sees-nothing-bad", SPEC_ERROR}


def test_the_proof_says_how_long_the_paths_are_and_a_search_agrees(tmp_path: Path) -> None:
    wheel = model(tmp_path, CHAIN, first=8)
    proof = prove(wheel, Limits(), each=60.0, told=Told())
    searched = explore(model(tmp_path, CHAIN, first=8), Options(deadlock=False), "reference")
    assert (proof.verdict, searched.verdict) == (Verdict.HOLDS, Verdict.HOLDS)
    assert proof.induced.longer == {"good": 2, "seen-good": 2}


def test_beyond_the_longest_paths_nothing_is_proved(tmp_path: Path) -> None:
    proof = prove(model(tmp_path, CHAIN, first=9 - LONGEST), Limits(), each=60.0, told=Told())
    assert proof.verdict is Verdict.UNDETERMINED
    assert {p.name for p in proof.properties if p.status is Status.UNDETERMINED} == {"good", "seen-good", "sees-nothing-bad"}


def test_shorter_paths_from_the_start_are_looked_at(tmp_path: Path) -> None:
    proof = prove(model(tmp_path, EARLY), Limits(), each=60.0, told=Told())
    searched = explore(model(tmp_path, EARLY), Options(deadlock=False), "reference")
    assert (
        [(p.name, p.depth) for p in proof.violations] == [(p.name, p.depth) for p in searched.violations] == [("never-one", 1)]
    )
