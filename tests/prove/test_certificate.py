"""Certificates: another solver agrees with every obligation, and refutes those of an invariant that is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.model import Limits, Model
from fencepost.checker.prove.certificate import lines, write
from fencepost.checker.prove.induction import Induction
from fencepost.checker.prove.solver import z3
from fencepost.spec.lang import load_file, load_module

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests" / "models" / "specs"


def model_of(name: str) -> Model:
    return Model.of(load_file(MODELS / f"{name}.py"))


def proved(model: Model) -> set[str]:
    found = Induction(model, Limits()).run()
    return {*found.kept, *found.stepped}


def answers(text: str) -> list[str]:
    """What cvc5 answers to each check-sat of a certificate."""
    cvc5: Any = pytest.importorskip("cvc5")
    solver = cvc5.Solver()
    solver.setOption("incremental", "true")
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "certificate")
    symbols, found = parser.getSymbolManager(), list[str]()
    while not (command := parser.nextCommand()).isNull():
        said = str(command.invoke(solver, symbols)).strip()
        if said and not said.startswith('"'):
            found.append(said)
    return found


@pytest.mark.parametrize("name", ["mutex", "token_ring", "lossy_queue"])
def test_cvc5_agrees_with_every_obligation(name: str, tmp_path: Path) -> None:
    model = model_of(name)
    write(tmp_path / "proof.smt2", model, "its bounds", proved(model))
    text = (tmp_path / "proof.smt2").read_text()
    found = answers(text)
    assert len(found) == text.count("(check-sat)") > len(model.bound.actions)
    assert set(found) == {"unsat"}


def test_z3_reads_its_own_certificate() -> None:
    model = model_of("mutex")
    text = "\n".join(lines(model.bound, "mutex", proved(model)))
    assert text.count("(check-sat)") == len(answers(text))
    context = z3.Context()
    said = z3.Z3_eval_smtlib2_string(context.ref(), text)
    assert said.split().count("unsat") == text.count("(check-sat)")


def test_what_is_no_invariant_is_refuted() -> None:
    model = model_of("peterson")
    assert not proved(model) & {"mutual-exclusion"}
    found = answers("\n".join(lines(model.bound, "peterson", ["mutual-exclusion"])))
    assert "sat" in found


def test_each_obligation_is_named() -> None:
    model = model_of("mutex")
    text = "\n".join(lines(model.bound, "mutex", proved(model)))
    for action in model.bound.actions:
        assert f'(echo "{action.name} keeps mutual-exclusion")' in text
        assert f'(echo "{action.name} stays within the bounds of the spec")' in text
    assert '(echo "initial state 0 satisfies mutual-exclusion")' in text


@pytest.mark.slow
def test_cvc5_agrees_with_a_proof_of_the_kv_spec() -> None:
    bounds: dict[str, int | str] = {"requests": 1, "blocks": 2, "prompt-tokens": 1, "max-tokens": 2, "kv-role": "kv_consumer"}
    model = Model.of(load_module("fencepost.spec.kv.kv", "kv"), {**bounds, "remote-tokens": 1})
    found = answers("\n".join(lines(model.bound, "kv", proved(model))))
    assert set(found) == {"unsat"}
