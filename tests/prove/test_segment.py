"""Actions in pieces: every run of an action goes through its pieces, from head to head, and the invariants hold at each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.model import SPEC_ERROR, Limits, Model
from fencepost.checker.prove import induction
from fencepost.checker.prove.induction import Induced, Induction
from fencepost.checker.prove.proof import Told, prove
from fencepost.checker.prove.segment import Ends, Head, Segment, domains_of, locals_of, reached_by
from fencepost.checker.prove.terms import Terms, assignment, evaluate, reachable, symbolic_cells
from fencepost.checker.result import Verdict
from fencepost.spec.lang import Arguments, BoundSpec, LanguageError, Rule, State, load_file, load_module
from fencepost.spec.lang import tree as t
from fencepost.spec.lang.domain import ConcreteDomain
from fencepost.spec.lang.evaluate import Evaluator
from fencepost.spec.lang.evaluate_statements import Left, Run
from fencepost.spec.lang.loops import loop_of

from ..lang import agreement

SPECS = Path(__file__).resolve().parent / "specs"
KV: dict[str, int | str] = {"blocks": 3, "prompt-tokens": 1, "kv-role": "kv_consumer", "remote-tokens": 1}
CASES: dict[str, Callable[[], BoundSpec]] = {
    "kv": lambda: BoundSpec(load_module("fencepost.spec.kv.kv", "kv"), KV),
    "kv with cached prompts": lambda: BoundSpec(
        load_module("fencepost.spec.kv.kv", "kv"), {"blocks": 3, "prompt-tokens": 2, "enable-prefix-caching": 1}
    ),
    "rounds": lambda: BoundSpec(load_file(SPECS / "rounds.py"), {}),
}


@dataclass(frozen=True)
class Visit:
    """Control at the head of a loop with an invariant, for the `last` time or not; or (`left`) where it was left."""

    calls: tuple[int, ...]
    cells: State
    named: Mapping[str, int]
    left: bool = False
    last: bool = False


class Recorder(Run[int]):
    """One execution, which notes each visit to the head of a loop that has an invariant, and how the loop was left."""

    def __init__(self, bound: BoundSpec, state: State) -> None:
        super().__init__(bound, ConcreteDomain(), Evaluator(bound, ConcreteDomain()).cells(state))
        self.names = {loop.declared.declaration.of: list[str]() for loop in bound.loops}
        for loop in bound.loops:
            self.names[loop.declared.declaration.of] += [p.name for p in loop.declared.parameters]
        self.inside: list[t.Function] = []
        self.calls: list[int] = []
        self.visits: list[Visit] = []

    def function(self, function: t.Function, arguments: Sequence[Any]) -> int | None:
        self.inside.append(function)
        made = super().function(function, arguments)
        self.inside.pop()
        return made

    def call(self, node: t.Call) -> int | None:
        self.calls.append(id(node))
        made = super().call(node)
        self.calls.pop()
        return made

    def _visit(self, *, left: bool = False, last: bool = False) -> None:
        cells = tuple(int(cell) for cell in self.memory.cells[: self.bound.shape.size])
        names = self.names[self.inside[-1].original]
        named = {name: int(self.memory.cells[self.frame.slots[name]]) for name in names}
        self.visits.append(Visit(tuple(self.calls), cells, named, left, last))

    def _do_for(self, node: t.For) -> Left[int]:
        left = super()._do_for(node)
        if self._counts(node):
            self._visit(left=True)
        return left

    def _counts(self, node: t.For) -> bool:
        return self.inside[-1].original in self.names and node is loop_of(self.inside[-1])

    def _iterations(self, node: t.For, level: int) -> Iterator[Callable[[], Left[int]]]:
        for step in super()._iterations(node, level):
            if self._counts(node):
                self._visit()
            yield step
        if self._counts(node):
            self._visit(last=True)


class Pieces:
    """The pieces of an action, from states of which only the ranges are known, each made once."""

    def __init__(self, bound: BoundSpec, rule: Rule) -> None:
        self.bound, self.rule = bound, rule

    @cache  # noqa: B019 - one for each case, for as long as a test runs
    def ends(self, start: Head | None) -> Ends:
        terms = Terms()
        named = {} if start is None else locals_of(start, terms, "n.")
        cells = symbolic_cells(self.bound, terms)
        args = [terms.variable(f"a{i}", d.start, d.stop - 1) for i, d in enumerate(self.rule.domains)]
        return Segment(self.bound, terms, cells, lambda _: True, self.bound.loops, start, named).ends(self.rule, args)

    def arrival(self, start: Head | None, known: Mapping[str, int]) -> tuple[Head | None, State, dict[str, int]] | None:
        """Where a piece ends, with cells and locals: in one place at most, and within the bounds of the spec."""
        ends = self.ends(start)
        conditions = [*(o.condition for o in ends.obligations), *(at.condition for at in ends.arrivals)]
        values = evaluate(conditions, _all(known, conditions))
        assert all(values[: len(ends.obligations)])
        there = [at for at, held in zip(ends.arrivals, values[len(ends.obligations) :], strict=True) if held]
        assert len(there) <= 1
        for at in there:
            roots = [*at.cells, *at.named.values()]
            values = evaluate(roots, _all(known, roots))
            return at.head, tuple(values[: len(at.cells)]), dict(zip(at.named, values[len(at.cells) :], strict=True))
        return None


def _all(known: Mapping[str, int], roots: Sequence[Any]) -> dict[str, int]:
    """Values for all variables; those that a run says nothing of do not matter."""
    return {term.value: known.get(term.value, 0) for term in reachable(roots) if term.op == "variable"}


def named(head: Head, values: Mapping[str, int], mark: str) -> dict[str, int]:
    """Locals at a head as values of the variables that stand for them."""
    assert all(domain.start <= values[name] < domain.stop for name, (_, domain) in domains_of(head).items())
    return {f"{mark}{name}": values[name] for name in domains_of(head)}


def follow(pieces: Pieces, state: State, args: Arguments, after: State | None) -> int:
    """Go through the pieces as a run does; asserts that they lead where it leads. Returns how many heads it came to."""
    bound = pieces.bound
    recorder = Recorder(bound, state)
    assert bound.spec.elaborated is not None
    recorder.function(bound.spec.elaborated.of(pieces.rule.declared.function), args)
    left = [visit for visit in recorder.visits if visit.left]
    whole = {f"a{i}": value for i, value in enumerate(args)} | assignment(bound, state, "before.")
    head, known, came = None, assignment(bound, state), 0
    for number, visit in enumerate(recorder.visits):
        if visit.left:
            continue
        arrived = pieces.arrival(head, {**whole, **known})
        assert arrived is not None
        head, cells, locals_ = arrived
        assert head is not None
        assert (head.calls, cells) == (visit.calls, visit.cells)
        assert locals_ == {name: visit.named[name] for name in locals_}
        holds(bound, head, state, visit)
        round_ = {"another round": int(not visit.last)}
        known = assignment(bound, cells) | named(head, visit.named, "n.") | round_
        for n, exit_ in enumerate(one for one in left if recorder.visits.index(one) < number):
            whole |= assignment(bound, exit_.cells, f"any{n + 1}.") | {f"any{n + 1}./{k}": v for k, v in exit_.named.items()}
        came += 1
    arrived = pieces.arrival(head, {**whole, **known})
    assert (None if arrived is None else arrived[:2]) == (None if after is None else (None, after))
    return came


def holds(bound: BoundSpec, head: Head, state: State, visit: Visit) -> None:
    """Assert that invariants and facts hold at a head that a run comes to: by the spec's own functions."""
    for fact in bound.every:
        if fact.kind == "always":
            assert bound.holds(fact, visit.cells), fact.name
    for loop in head.invariants:
        states = [state, visit.cells][-loop.declared.states :]
        values = [visit.named[parameter.name] for parameter in loop.declared.parameters]
        assert bound.invariant_holds(loop, states, tuple(values)), loop.name


@pytest.mark.parametrize("name", ["rounds", "kv", pytest.param("kv with cached prompts", marks=pytest.mark.slow)])
def test_every_run_goes_through_the_pieces(name: str) -> None:
    bound = CASES[name]()
    came = 0
    for rule in bound.actions:
        if not reached_by(bound, rule):
            continue
        pieces = Pieces(bound, rule)
        states = agreement.reached(bound, 3000)
        for state in random.Random(1).sample(states, min(30, len(states))):
            for args in rule.choices():
                came += follow(pieces, state, args, bound.after(state, rule, args))
    assert came > 20


def rounds(*without: str, tmp_path: Path, changed: tuple[str, str] = ("", "")) -> BoundSpec:
    """The small spec, without some of its invariants, and with a piece of its text changed."""
    text = (SPECS / "rounds.py").read_text().replace(*changed)
    for name in without:
        text = text.replace(f"@loop_invariant(take)\ndef {name}", f"def {name}")
    path = tmp_path / "changed.py"
    path.write_text(text + "\n\nfrom fencepost.spec.lang import Seq, fresh\n")
    return BoundSpec(load_file(path), {})


NEITHER = ("tray_only_gives", "taken_is_in_the_hand")


@pytest.mark.parametrize("without", [(), NEITHER[:1], NEITHER[1:], NEITHER])
def test_pieces_prove_what_the_whole_proves(without: tuple[str, ...], tmp_path: Path) -> None:
    found = induced(rounds(*without, tmp_path=tmp_path))
    assert set(found.kept) == {"letters-fit"}
    assert set(found.stepped) == {"nothing-comes-back", SPEC_ERROR}
    names = {a.fact for a in found.answers if a.action == "work"}
    assert len(names & {"taken-is-in-the-hand", "tray-only-gives"}) == 2 - len(without)
    assert not found.vacuous


def test_a_loop_with_an_invariant_is_in_no_other_loop(tmp_path: Path) -> None:
    text = "    taken = 0\n    for _ in range(2):\n        taken += take(s, 1)\n"
    with pytest.raises(LanguageError, match="within another loop"):
        rounds(tmp_path=tmp_path, changed=("    taken = take(s, 1)\n", text))


BREAKS = [
    ("s.hand += 1", "s.hand += 2", "letters-fit"),
    ("        s.tray -= 1\n        s.hand", "        s.hand", "letters-fit"),
    ("        s.hand -= 1\n            s.sent", "        s.sent", "letters-fit"),
    ("s.hand += 1\n", "s.hand += 1\n        s.tray = 2\n", "nothing-comes-back"),
    ("    return taken\n", "    return most\n", ""),
]


@pytest.mark.parametrize(("old", "new", "broken"), BREAKS)
def test_what_breaks_the_whole_breaks_a_piece(old: str, new: str, broken: str, tmp_path: Path) -> None:
    cut = induced(rounds(tmp_path=tmp_path, changed=(old, new)))
    whole = induced(rounds(*NEITHER, tmp_path=tmp_path, changed=(old, new)))
    assert (broken in whole.kept, broken in cut.kept) == (False, False)
    assert not {*cut.kept, *cut.stepped} - {*whole.kept, *whole.stepped}
    if broken:
        assert any(a.fact == broken and a.unkept is not None for a in cut.missing)


WRONG = [
    ("taken <= most and taken <= s.hand", "taken < most", "taken-is-in-the-hand"),
    ("taken <= most and taken <= s.hand", "taken == s.hand", "taken-is-in-the-hand"),
    ('taken: Int(0, LETTERS)):\n    """What', 'taken: Int(0, 1)):\n    """What', "taken-is-in-the-hand"),
    ("return t.tray <= s.tray and", "return t.tray < s.tray and", "tray-only-gives"),
]


@pytest.mark.parametrize(("old", "new", "lost"), WRONG)
def test_an_invariant_that_is_not_kept_is_left_out_and_shown(old: str, new: str, lost: str, tmp_path: Path) -> None:
    model = Model(rounds(tmp_path=tmp_path, changed=(old, new)), "rounds")
    found = prove(model, Limits(), each=60.0, told=Told())
    assert found.verdict is Verdict.HOLDS
    assert [gap.name for gap in found.gaps] == [lost]
    unkept = found.gaps[0].unkept
    assert unkept is not None
    assert unkept.ends == "the loop of take"


def test_a_loop_that_is_never_come_to_is_vacuous(tmp_path: Path) -> None:
    changed = ("    taken = take(s, 1)\n", "    require(s.sent > LETTERS)\n    taken = take(s, 1)\n")
    found = induced(rounds(tmp_path=tmp_path, changed=changed))
    assert any("work is never enabled" in words for words in found.vacuous)


def test_a_local_container_and_a_loop_with_an_invariant_do_not_go_together(tmp_path: Path) -> None:
    text = "    box = fresh(Seq[Int(0, 3), 2])\n    box.append(s.tray)\n    taken = take(s, 1)\n"
    with pytest.raises(LanguageError, match="has a local container"):
        rounds(tmp_path=tmp_path, changed=("    taken = take(s, 1)\n", text))


@pytest.fixture(autouse=True)
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small the states are."""
    monkeypatch.setattr(induction, "WHOLE_CELLS", 0)


def induced(bound: BoundSpec) -> Induced:
    return Induction(Model(bound, "rounds"), Limits()).run()
