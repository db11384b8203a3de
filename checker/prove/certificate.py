"""A proof by induction as SMT-LIB 2: the invariant, and every obligation that makes it one, for another solver to check.

Nothing that shortens our own queries is used: no order of names, no constants, no parts. Each `check-sat` must say unsat.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from ...spec.lang import BoundSpec, Property, Rule
from ...traces.files import write_whole
from ..model import Model
from .bits import Bits
from .case import Case
from .terms import Term, conjuncts

LOGIC = "QF_BV"


def write(path: Path, model: Model, bounds: str, proved: Collection[str]) -> None:
    """Write the certificate of the facts and step properties that were proved, by name."""
    write_whole(path, "\n".join(lines(model.bound, f"{model.spec.name} at {bounds}", proved)) + "\n")


def lines(bound: BoundSpec, subject: str, proved: Collection[str]) -> Iterator[str]:
    """The lines of a certificate."""
    facts = [prop for prop in bound.every if prop.kind in ("always", "quiescent") and prop.name in proved]
    steps = [prop for prop in bound.every if prop.kind == "step" and prop.name in proved]
    yield f"; fencepost prove: {' '.join(subject.split())}"
    yield f"; spec source sha256 {bound.spec.source_hash()}"
    yield "; the invariant is the conjunction of: " + ", ".join(fact.name for fact in facts)
    yield "; a variable cN is cell N of the state; every check-sat must answer unsat"
    yield f"(set-logic {LOGIC})"
    yield from _initial(bound, facts)
    for rule in bound.actions:
        yield from _kept(bound, facts, steps, rule)
    yield "(exit)"


def _initial(bound: BoundSpec, facts: Sequence[Property]) -> Iterator[str]:
    """That every initial state satisfies every fact."""
    case = Case(bound, facts, bound.actions[0], {}, plain=True)
    goals = {fact.name: case.parts(fact, case.cells) for fact in facts}
    for number, (_, _, state) in enumerate(bound.initial()):
        cells = [case.terms.is_value(cell, value) for cell, value in _cells(case, state)]
        named = {f"initial state {number} satisfies {name}": goal for name, goal in goals.items()}
        yield from _block(case, cells, named)


def _cells(case: Case, state: Sequence[int]) -> Iterator[tuple[Term, int]]:
    for cell, value in zip(case.cells, state, strict=True):
        if cell.sort == "set":
            yield from ((member, value >> i & 1) for i, member in enumerate(cell.args))
        else:
            yield cell, value


def _kept(bound: BoundSpec, facts: Sequence[Property], steps: Sequence[Property], rule: Rule) -> Iterator[str]:
    """That an action keeps every fact, and the spec's own bounds, where all facts hold; and every property of steps."""
    case = Case(bound, facts, rule, {}, plain=True)
    after = case.ends.arrivals[-1].cells
    goals = {f"{rule.name} keeps {fact.name}": case.parts(fact, after) for fact in facts}
    goals |= {f"{rule.name} satisfies {prop.name}": case.parts(prop, case.cells, after) for prop in steps}
    yield from _block(case, case.known, goals)
    anyhow = Case(bound, facts, rule, {}, enabled=False, plain=True)
    own = [part for obligation in anyhow.ends.obligations for part in conjuncts(obligation.condition)]
    yield from _block(anyhow, anyhow.known, {f"{rule.name} stays within the bounds of the spec": own})


def _block(case: Case, known: Sequence[Term], goals: Mapping[str, Sequence[Term]]) -> Iterator[str]:
    """Obligations that rest on the same."""
    bits = Bits()
    wrong = {words: bits.of(case.some_fails(goal)) for words, goal in goals.items()}
    base = [*map(bits.of, known), *bits.ranges(case.terms)]
    yield "(push 1)"
    for term, made in bits.made.items():
        if term.op == "variable":
            yield f"(declare-const {made.sexpr()} {made.sort().sexpr()})"
    yield from (f"(assert {constraint.sexpr()})" for constraint in base)
    for words, formula in wrong.items():
        yield f'(echo "{words}")'
        yield f"(push 1)\n(assert {formula.sexpr()})\n(check-sat)\n(pop 1)"
    yield "(pop 1)"
