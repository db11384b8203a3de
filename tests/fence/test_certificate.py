"""The certificate is checked by another solver, and by Z3 as a reader of text."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.cli.main import main
from fencepost.checker.prove.protocol_certificate import certificate
from fencepost.checker.prove.protocol_fence import PROVED, WEAKER
from fencepost.checker.prove.protocol_obligations import Kind, obligations
from fencepost.checker.prove.solver import z3
from fencepost.spec.fence.declare import Protocol
from fencepost.spec.fence.protocol import fence, scheduler
from fencepost.spec.fence.queue import queue, tail

PROTOCOLS = {"scheduler": scheduler, "memory": fence, "weaker": WEAKER, "queue": queue}
BROKEN = {"scheduler": fence.without_guard("free", "processed"), "queue": tail}


def count(whole: Protocol) -> int:
    """How many obligations must have no model."""
    return sum(obligation.kind is not Kind.POSSIBLE for obligation in obligations(whole))


def cvc5_answers(text: str, path: Path) -> list[str]:
    """What cvc5 answers to a file, in order."""
    pytest.importorskip("cvc5")
    cvc5: Any = import_module("cvc5")
    path.write_text(text)
    solver = cvc5.Solver(cvc5.TermManager())
    solver.setOption("incremental", "true")
    solver.setOption("finite-model-find", "true")
    solver.setOption("tlimit-per", "10000")
    parser = cvc5.InputParser(solver)
    parser.setFileInput(cvc5.InputLanguage.SMT_LIB_2_6, str(path))
    answers: list[str] = []
    while not (command := parser.nextCommand()).isNull():
        answers += str(command.invoke(solver, parser.getSymbolManager())).split()
    return [answer for answer in answers if answer != "success"]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_cvc5_agrees(name: str, tmp_path: Path) -> None:
    whole = PROTOCOLS[name]
    assert cvc5_answers(certificate(whole), tmp_path / "proof.smt2") == ["unsat"] * count(whole)


def test_cvc5_agrees_to_all_in_one_text(tmp_path: Path) -> None:
    assert cvc5_answers(certificate(*PROVED), tmp_path / "proof.smt2") == ["unsat"] * sum(map(count, PROVED))


def test_z3_reads_all_in_one_text() -> None:
    context = z3.Context()
    answers = z3.Z3_eval_smtlib2_string(context.ref(), certificate(*PROVED))
    assert answers.split() == ["unsat"] * sum(map(count, PROVED))


@pytest.mark.parametrize("name", BROKEN)
def test_cvc5_does_not_agree_to_what_is_wrong(name: str, tmp_path: Path) -> None:
    text = certificate(BROKEN[name]).replace("(set-info :status unsat)\n", "")
    answers = cvc5_answers(text, tmp_path / "proof.smt2")
    assert len(answers) == count(BROKEN[name])
    assert "sat" in answers


@pytest.mark.parametrize("name", PROTOCOLS)
def test_z3_reads_the_text_as_it_was_meant(name: str) -> None:
    whole = PROTOCOLS[name]
    context = z3.Context()
    answers = z3.Z3_eval_smtlib2_string(context.ref(), certificate(whole))
    assert answers.split() == ["unsat"] * count(whole)


def test_every_obligation_is_named_and_explained() -> None:
    text = certificate(fence)
    for obligation in obligations(fence):
        assert (f"\n; {obligation.name}: {obligation.kind.value}\n(push 1)\n" in text) == (obligation.kind is not Kind.POSSIBLE)
    for relation in fence.relations.values():
        assert f"; {relation.name}: {relation.sentence}\n" in text
    assert "\n; axiom output-implies-done\n" in text


def test_none_is_written_of_what_is_not_proved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "proof.smt2"
    assert main(["prove", "fence", "--quiet", "--query-time", "0.001s", "--certificate", str(path)]) == 3
    printed = capsys.readouterr()
    assert not path.exists()
    assert printed.err == f"note: it is not proved, so {path} is not written\n"
    assert re.search(r"no answer in\s+time; and\s+\d+\s+more", printed.out)
