"""One arbitrary member: whatever a run does with all members told apart, one does where only a few are."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from pathlib import Path

import pytest
from fencepost.checker.explore import explore
from fencepost.checker.model import SPEC_ERROR, Limits, Model, Options
from fencepost.checker.prove import induction
from fencepost.checker.prove.alarms import alarms_of, raises
from fencepost.checker.prove.asked import Asked, Question
from fencepost.checker.prove.bits import Bits
from fencepost.checker.prove.induction import Induction
from fencepost.checker.prove.solver import z3
from fencepost.checker.prove.terms import Term, Terms
from fencepost.checker.prove.tracked import TrackedBound, TrackedEvaluator, Untracked, tracked_bounds, tracked_by
from fencepost.checker.result import Status
from fencepost.spec.lang import Arguments, BoundSpec, Property, Rule, State, load_file, load_module
from fencepost.spec.lang import tree as t
from fencepost.spec.lang.errors import FencepostSpecError
from fencepost.spec.lang.evaluate import UnboundedLoop
from fencepost.spec.lang.layout import NONE, ArrayShape, Leaf, RecordShape, SeqShape, SetShape, Shape, leaves
from fencepost.spec.lang.types import Bool, Member, SetOf

from ..lang import agreement
from ..models.random_specs import Writer
from ..models.test_random_specs import accepted

SPECS = Path(__file__).resolve().parent / "specs"
LOCKERS = SPECS / "lockers.py"
LOADS: dict[str, int | str] = {"blocks": 3, "prompt-tokens": 1, "kv-role": "kv_consumer", "remote-tokens": 1}
CACHED: dict[str, int | str] = {"blocks": 3, "prompt-tokens": 2, "enable-prefix-caching": 1, "max-tokens": 1}
CASES: dict[str, Callable[[], tuple[BoundSpec, str]]] = {
    "lockers": lambda: (BoundSpec(load_file(LOCKERS), {}), "lockers"),
    "kv": lambda: (BoundSpec(load_module("fencepost.spec.kv.kv", "kv"), LOADS), "blocks"),
    "kv with cached prompts": lambda: (BoundSpec(load_module("fencepost.spec.kv.kv", "kv"), CACHED), "blocks"),
}

Seen = int | tuple[bool, ...] | None
"""A cell as it is seen where few members are told apart: a number, which of these are in a set, or None for anything."""


class Looked:
    """A state, looked at with an eye for some members: the terms that stand for its cells, and what says that cells are so."""

    def __init__(self, bound: BoundSpec, tracked: TrackedBound, members: Sequence[int]) -> None:
        self.bound, self.tracked, self.members = bound, tracked, members

    def member(self, value: int) -> int:
        if value == NONE:
            return NONE
        return self.members.index(value) if value in self.members else self.tracked.told

    def cells(self, state: State) -> list[Seen]:
        return list(self._cells(self.bound.shape, state, 0))

    def _cells(self, shape: Shape, state: State, at: int) -> Iterator[Seen]:
        match shape:
            case Leaf():
                yield self.member(state[at]) if shape.index == self.tracked.index else state[at]
            case SetShape():
                mine = shape.index == self.tracked.index
                yield tuple(bool(state[at] >> i & 1) for i in (self.members if mine else range(shape.count)))
            case ArrayShape():
                mine = shape.index == self.tracked.index
                for i in self.members if mine else range(shape.count):
                    yield from self._cells(shape.item, state, at + i * shape.item.size)
                if mine:
                    yield from [None] * shape.item.size
            case SeqShape():
                yield state[at]
                for i in range(shape.capacity):
                    if i < state[at]:
                        yield from self._cells(shape.item, state, at + 1 + i * shape.item.size)
                    else:
                        yield from self._blank(shape.item)
            case RecordShape():
                for _, offset, inner in shape.fields:
                    yield from self._cells(inner, state, at + offset)

    def _blank(self, shape: Shape) -> Iterator[Seen]:
        for value, (_, leaf) in zip(shape.blank, leaves(shape), strict=True):
            yield tuple(False for _ in range(leaf.count)) if isinstance(leaf, SetShape) else value

    def terms(self, terms: Terms, state: State, mark: str) -> list[Term]:
        """The cells as terms: constants, and what may be anything."""
        made: list[Term] = []
        for at, (seen, (_, leaf)) in enumerate(zip(self.cells(state), self.tracked.cells(), strict=True)):
            name = f"{mark}{at}"
            if isinstance(leaf, SetShape):
                bits = [terms.truth(bit) for bit in seen] if isinstance(seen, tuple) else []
                bits += [terms.unknown(f"{name}.{i}") for i in range(len(bits), leaf.count)]
                made.append(terms.set_of(bits))
            elif leaf.kind == "bool":
                made.append(terms.unknown(name) if seen is None else terms.truth(bool(seen)))
            else:
                assert not isinstance(seen, tuple)
                made.append(terms.variable(name, leaf.low, leaf.high) if seen is None else terms.number(seen))
        return made

    def arguments(self, terms: Terms, rule: Rule, args: Arguments) -> list[Term]:
        made: list[Term] = []
        for parameter, value in zip(rule.declared.parameters, args, strict=True):
            match parameter.type:
                case Member(index):
                    made.append(terms.number(self.member(value) if index.name == self.tracked.index else value))
                case Bool():
                    made.append(terms.truth(bool(value)))
                case SetOf():
                    made.append(terms.mask(value))
                case _:
                    made.append(terms.number(value))
        return made

    def so(self, terms: Terms, cells: Sequence[Term], state: State) -> Term:
        """That cells are those of a state."""
        parts: list[Term] = []
        for term, seen in zip(cells, self.cells(state), strict=True):
            if isinstance(seen, tuple):
                parts += [terms.equal(terms.has(term, i), terms.truth(bit)) for i, bit in enumerate(seen)]
            elif seen is not None:
                value = terms.truth(bool(seen)) if term.sort == "truth" else terms.number(seen)
                parts.append(terms.equal(term, value))
        return terms.together(parts)


def can_be(terms: Terms, *conditions: Term) -> bool:
    """Whether these can hold together."""
    solver, bits = z3.SolverFor("QF_FD"), Bits()
    solver.add(*[bits.of(condition) for condition in conditions], *bits.ranges(terms))
    return solver.check() == z3.sat


def leads(look: Looked, before: State, rule: Rule, args: Arguments, after: State) -> bool:
    """Whether an action leads from the one state to the other, as far as is seen of them."""
    terms = Terms()
    made = TrackedEvaluator(look.tracked, terms).action(look.terms(terms, before, "c"), rule, look.arguments(terms, rule, args))
    obliged = [obligation.condition for obligation in made.obligations]
    return can_be(terms, made.enabled, look.so(terms, made.cells, after), *obliged)


def transitions(bound: BoundSpec, most: int) -> list[tuple[State, Rule, Arguments, State]]:
    """Transitions between states that are found first."""
    todo = [state for _, _, state in bound.initial()]
    seen, made = set(todo), list[tuple[State, Rule, Arguments, State]]()
    for state in todo:
        for rule, args, after in bound.transitions(state):
            made.append((state, rule, args, after))
            if after not in seen and len(seen) < most:
                seen.add(after)
                todo.append(after)
    return made


def sample(bound: BoundSpec, each: int) -> list[tuple[State, Rule, Arguments, State]]:
    """So many transitions of each action."""
    made, chance = transitions(bound, 1_500), random.Random(5)
    chosen: list[tuple[State, Rule, Arguments, State]] = []
    for rule in bound.actions:
        mine = [one for one in made if one[1] is rule]
        chosen += chance.sample(mine, min(each, len(mine)))
    return chosen


@pytest.mark.parametrize(
    ("name", "told"),
    [(name, told) for name in ("lockers", "kv") for told in (1, 2)]
    + [pytest.param("kv with cached prompts", told, marks=pytest.mark.slow) for told in (1, 2)],
)
def test_every_transition_is_one_of_those_with_few_members_told_apart(name: str, told: int) -> None:
    bound, index = CASES[name]()
    tracked = TrackedBound(bound, index, told)
    taken = sample(bound, 12 if name == "lockers" else 6)
    assert {rule.name for _, rule, _, _ in taken} == {rule.name for rule in bound.actions}
    for before, rule, args, after in taken:
        for members in permutations(range(tracked.size), told):
            assert leads(Looked(bound, tracked, members), before, rule, args, after), (rule.name, args, members)


@pytest.mark.slow
@pytest.mark.parametrize("values", [{**LOADS, "blocks": 2}, {**CACHED, "requests": 1}], ids=str)
def test_every_explored_transition_is_one_of_those_for_every_block(values: dict[str, int | str]) -> None:
    bound = BoundSpec(load_module("fencepost.spec.kv.kv", "kv"), values)
    tracked = TrackedBound(bound, "blocks", 1)
    every = transitions(bound, 1_000_000)
    assert len(every) > 100
    for before, rule, args, after in every:
        for block in range(tracked.size):
            assert leads(Looked(bound, tracked, (block,)), before, rule, args, after), (rule.name, args, block)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("lockers", 1),
        ("kv", 1),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in (("kv with cached prompts", 1), ("lockers", 2))),
    ],
)
def test_what_is_broken_is_seen_of_some_members_and_what_holds_of_all(name: str, told: int) -> None:
    bound, index = CASES[name]()
    tracked = TrackedBound(bound, index, told)
    facts = [p for p in bound.every if p.kind in ("always", "quiescent", "step") and tracked_by(bound, p, index) <= told]
    outcomes: dict[tuple[str, bool], int] = {}
    for before, _, _, after in sample(bound, 5 if name == "lockers" else 1):
        for prop in facts:
            holds = _holds(bound, prop, before, after)
            outcomes[prop.name, holds] = outcomes.get((prop.name, holds), 0) + 1
            said = [_said(bound, tracked, prop, members, before, after) for members in permutations(range(tracked.size), told)]
            assert all(can for can, _ in said) if holds else any(cannot for _, cannot in said), (prop.name, holds)
    assert len({prop for prop, _ in outcomes}) == len(facts) > 3
    assert name != "lockers" or sum(not holds for _, holds in outcomes) > 2


def _holds(bound: BoundSpec, prop: Property, before: State, after: State) -> bool:
    if prop.kind == "step":
        return bound.holds(prop, before, after)
    return (prop.condition is not None and not bound.condition_holds(prop, after)) or bound.holds(prop, after)


def _said(
    bound: BoundSpec, tracked: TrackedBound, prop: Property, members: Sequence[int], before: State, after: State
) -> tuple[bool, bool]:
    """Whether the property can be true, and can be false, where these members are told apart."""
    look, terms = Looked(bound, tracked, members), Terms()
    evaluator = TrackedEvaluator(tracked, terms)
    states = [look.terms(terms, state, mark) for state, mark in ((before, "b"), (after, "a"))]
    value, obliged = evaluator.holds(prop, *(states if prop.kind == "step" else states[1:]))
    if prop.condition is not None:
        quiet, more = evaluator.condition(prop, states[1])
        value, obliged = terms.either(terms.negation(quiet), value), (*obliged, *more)
    met = terms.together(obligation.condition for obligation in obliged)
    return can_be(terms, value, met), can_be(terms, terms.negation(terms.both(value, met)))


def test_what_is_proved_of_one_arbitrary_member_holds_in_every_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(induction, "WHOLE_CELLS", 0)
    model = Model.of(load_file(LOCKERS), {"lockers": 4})
    asked = Induction(model, Limits(), each=60.0)
    assert [bound.told for bound in asked.tracked] == [1, 2]
    made = asked.run()
    proved = {*made.kept, *made.stepped}
    found = explore(model, Options(deadlock=False, keep_going=True))
    holds = {p.name for p in found.properties if p.status is Status.HOLDS}
    assert found.cut is None
    assert proved - {"spec-error"} == holds
    assert {name for name in holds if name.startswith("wrong")} == set()
    assert len(holds) == 8
    facts = [fact for fact in asked.facts if fact.name in holds]
    for rule in model.bound.actions:
        question = Question(rule, (*(p.name for p in (*facts, *asked.steps) if p.name in holds), SPEC_ERROR))
        left = Asked(asked, facts, question, []).not_shown_of_tracked(question.names)
        assert left == [], (rule.name, left)


ALARM = '''"""A room with an alarm."""

from fencepost.spec.lang import Array, Bool, Index, Int, action, always, require, state

DOORS = Index("doors", default=3)


@state
class Room:
    open: Array[DOORS, Bool]
    alarm: Int(0, 2)


@action
def pull(s, d: DOORS):
    """A door is opened; where it was open, the alarm goes off."""
    if s.open[d]:
        BODY
    s.open[d] = True


@always
def quiet(s):
    """The alarm is quiet."""
    return RETURN
'''


@pytest.mark.parametrize(
    ("body", "returned", "expected"),
    [
        ("s.alarm = 1", "s.alarm == 0", {"alarm": 0}),
        ("s.alarm = 1", "s.alarm == 1", {}),
        ("s.alarm = 1", "s.alarm <= 0", {}),
        ("s.alarm = 1", "s.alarm == 0 and True", {}),
        ("s.alarm += 1", "s.alarm == 0", {}),
        ("s.alarm = s.alarm", "s.alarm == 0", {}),
        ("s.alarm = 1\n    if not s.open[d]:\n        s.alarm = 0", "s.alarm == 0", {}),
    ],
)
def test_an_alarm_is_what_is_to_stay_as_it_is_and_is_never_put_back(
    body: str, returned: str, expected: dict[str, int], tmp_path: Path
) -> None:
    path = tmp_path / "room.py"
    path.write_text(ALARM.replace("BODY", body).replace("RETURN", returned))
    bound = BoundSpec(load_file(path), {})
    assert alarms_of(bound, bound.every) == expected


@pytest.mark.parametrize(
    ("body", "raised"),
    [
        ("s.alarm = 1", True),
        ("s.alarm = 1\n        s.open[d] = False", True),
        ("s.open[d] = False\n        s.alarm = 1", False),
        ("require(s.open[d])\n        s.alarm = 1", False),
        ("if s.open[d]:\n            s.alarm = 1", False),
        ("s.open[d] = False", False),
    ],
)
def test_a_branch_raises_an_alarm_if_it_does_so_before_anything_else_can_happen(
    body: str, raised: bool, tmp_path: Path
) -> None:
    path = tmp_path / "room.py"
    path.write_text(ALARM.replace("BODY", body).replace("RETURN", "s.alarm == 0"))
    bound = BoundSpec(load_file(path), {})
    assert bound.spec.elaborated is not None
    (branch, _) = bound.spec.elaborated.of(bound.actions[0].declared.function).body
    assert isinstance(branch, t.If)
    assert raises(branch.then, alarms_of(bound, bound.every)) == raised


BREAKS = '''"""Doors, some of them in a queue, that are counted."""

from fencepost.spec.lang import Array, Bool, Index, Int, Maybe, Seq, SetOf, action, always, require, state

DOORS = Index("doors", default=4)


@state
class Room:
    open: Array[DOORS, Bool]
    count: Array[DOORS, Int(0, 2)]
    queue: Seq[DOORS, DOORS]
    used: SetOf[DOORS]
    holder: Maybe[DOORS]
    alarm: Bool


@action
def turn(s, d: DOORS):
    """A door is opened or shut, and held."""
    s.open[d] = not s.open[d]
    s.holder = d


@action
def come(s, d: DOORS):
    """A door comes into the queue."""
    require(d not in s.queue)
    s.queue.append(d)


@action
def act(s, d: DOORS):
    """What is looked at."""
    BODY


@always
def quiet(s):
    """No alarm."""
    return not s.alarm


@always
def queued_once(s):
    """A door is in the queue once at most."""
    return all(sum(1 for c in s.queue if c == d) <= 1 for d in range(DOORS))
'''


@pytest.mark.parametrize(
    ("body", "lost"),
    [
        ("s.count[d] += 1", {SPEC_ERROR}),
        ("require(s.count[d] < 2)\n    s.count[d] += 1", set[str]()),
        ("s.count[d] += 1\n    require(s.count[d] < 2)", {SPEC_ERROR}),
        ("require(d not in s.queue)\n    s.queue.append(d)", set[str]()),
        ("s.queue.append(d)", {SPEC_ERROR, "queued-once"}),
        ("s.queue.remove(d)", {SPEC_ERROR}),
        ("for c in s.queue:\n        if s.count[c] < 2:\n            s.count[c] += 1", set[str]()),
        ("for c in s.queue:\n        s.count[c] = 1\n        s.count[d] += 1", {SPEC_ERROR}),
        ("for c in s.queue:\n        if s.open[c]:\n            s.alarm = True", {"quiet"}),
        # a second one raises the alarm, too
        (
            "total = 0\n    for c in s.queue:\n        if s.open[c]:\n            s.alarm = True\n            total += 1\n"
            "    require(total != 1)",
            {"quiet"},
        ),
        (
            "total = 0\n    for c in s.queue:\n        if s.open[c]:\n            s.alarm = True\n            total += 1\n"
            "    if total == 2:\n        s.count[d] = total + 1\n    require(not s.alarm)",
            {SPEC_ERROR},
        ),
        ("if any(s.open[c] for c in s.queue):\n        s.alarm = True", {"quiet"}),
        # what goes wrong is about another one than what raises the alarm
        (
            "require(not s.open[d])\n    for c in s.queue:\n        if s.open[c]:\n            s.count[d] += 1\n"
            "            s.alarm = True\n    require(not s.alarm)",
            {SPEC_ERROR},
        ),
        ("require(d not in s.queue)\n    s.queue.insert(1, d)", {SPEC_ERROR}),
        ("s.used.add(s.holder)", {SPEC_ERROR}),
        (
            # whoever raises the alarm, it is another one that cannot be counted, and then nothing may go on
            "for c in s.queue:\n        if s.open[c]:\n            s.alarm = True\n    for c in s.queue:\n        if s.alarm:\n"
            "            if not s.open[c]:\n                s.count[c] += 2\n    require(not s.alarm)",
            {SPEC_ERROR},
        ),
    ],
)
def test_what_breaks_bounds_is_not_shown_of_tracked_members(
    body: str, lost: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(induction, "WHOLE_CELLS", 0)
    path = tmp_path / "room.py"
    path.write_text(BREAKS.replace("BODY", body))
    asked = Induction(Model.of(load_file(path), {}), Limits(), each=60.0)
    assert [bound.told for bound in asked.tracked] == [1]
    left: set[str] = set()
    for rule in asked.bound.actions:
        for question in asked._questions(rule, asked.facts, ()):  # pyright: ignore[reportPrivateUsage]
            left |= {*Asked(asked, asked.facts, question, []).not_shown_of_tracked(question.names)}
    assert left == lost


GUARDS = (
    "s.open[X]",
    "not s.open[X]",
    "s.count[X] < 2",
    "X in s.used",
    "s.holder == X",
    "s.alarm",
    "total == 1",
    "X not in s.queue",
)
DEEDS = (
    "s.alarm = True",
    "s.count[X] += 1",
    "s.count[X] = total",
    "s.open[X] = not s.open[X]",
    "s.used.add(X)",
    "s.used.discard(s.holder)",
    "total += 1",
    "s.queue.append(X)",
    "s.queue.insert(1, X)",
    "s.queue.remove(X)",
    "s.holder = X",
    "s.holder = None",
)


def body(pick: random.Random) -> str:
    """A random action on doors: what is done to the one given and to each in the queue, and what must be so around it."""

    def some(member: str, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(pick.randint(1, 2)):
            deed = pick.choice(DEEDS).replace("X", member)
            if pick.random() < 0.6:
                lines += [f"if {pick.choice(GUARDS).replace('X', member)}:", f"    {deed}"]
                lines += [f"    {pick.choice(DEEDS).replace('X', pick.choice((member, 'd')))}"] * (pick.random() < 0.4)
            else:
                lines.append(deed)
        return ["    " * depth + line for line in lines]

    lines = [f"require({pick.choice(GUARDS[:4]).replace('X', 'd')})", "total = 0"]
    for _ in range(pick.randint(1, 2)):
        lines += some("d", 0) if pick.random() < 0.4 else ["for c in s.queue:", *some("c", 1)]
    if pick.random() < 0.7:  # the alarm goes off on the way, for some
        lines += ["for c in s.queue:", f"    if {pick.choice(GUARDS[:4]).replace('X', 'c')}:", "        s.alarm = True"]
        lines += ["        total += 1"] * (pick.random() < 0.7)
    lines.append(f"require({pick.choice(('not s.alarm', 'total != 1', 'total == 2', 'True'))})")
    if pick.random() < 0.5:
        lines.insert(-1, f"if total == {pick.randint(1, 2)}:\n        {pick.choice(DEEDS).replace('X', 'd')}")
    return "\n    ".join(lines)


def overrated(seed: int, folder: Path) -> set[str] | None:
    """What is proved of a random spec, and is violated all the same; None where it is no spec, or nothing is proved of it."""
    path = folder / f"room{seed}.py"
    path.write_text(BREAKS.replace("BODY", body(random.Random(seed))).replace("default=4", "default=3"))
    try:
        spec = load_file(path)
    except FencepostSpecError:
        return None
    made = Induction(Model.of(spec, {}), Limits(), each=10.0).run()
    proved = {*made.kept, *made.stepped}
    model = Model.of(spec, {})
    kept, model.bound.properties = model.bound.properties, model.bound.every
    found = explore(model, Options(deadlock=False, keep_going=True))
    model.bound.properties = kept
    violated = {p.name for p in found.violations}
    return proved & violated if proved else None


def test_what_is_proved_of_random_specs_with_an_alarm_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(induction, "WHOLE_CELLS", 0)
    found = {seed: overrated(seed, tmp_path) for seed in range(6)}
    assert [seed for seed, wrong in found.items() if wrong] == []
    assert sum(wrong is not None for wrong in found.values()) >= 3


@pytest.mark.slow
def test_what_is_proved_of_many_random_specs_with_an_alarm_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(induction, "WHOLE_CELLS", 0)
    found = {seed: overrated(seed, tmp_path) for seed in range(6, 200)}
    assert [seed for seed, wrong in found.items() if wrong] == []
    assert sum(wrong is not None for wrong in found.values()) >= 60


def test_what_a_property_of_one_member_cannot_tell_of_another_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(induction, "WHOLE_CELLS", 0)
    path = tmp_path / "room.py"
    more = """

@always
def shares(s):
    \"\"\"What there is can be shared.\"\"\"
    return all(share(s, d) >= 0 for d in range(DOORS))


def share(s, d):
    \"\"\"The same for one door.\"\"\"
    total = 0
    for c in s.queue:
        if c != d:
            total += int(s.queue[s.count[c]] == d)
    return total
"""
    path.write_text(BREAKS.replace("BODY", "s.open[d] = True") + more)
    asked = Induction(Model.of(load_file(path), {}), Limits(), each=60.0)
    facts = [fact for fact in asked.facts if fact.name != "shares"]
    act = next(rule for rule in asked.bound.actions if rule.name == "act")
    question = Question(act, ("shares", "queued-once"))
    assert Asked(asked, facts, question, []).not_shown_of_tracked(question.names) == ["shares"]


def test_what_a_helper_says_of_another_member_it_need_not_say_of_the_next(tmp_path: Path) -> None:
    path = tmp_path / "room.py"
    more = """

@always
def alike(s):
    \"\"\"A door that is shut has no two others that differ.\"\"\"
    return all(is_open(s, d) or not differ(s, d) for d in range(DOORS))


def differ(s, d):
    \"\"\"Whether two other doors do.\"\"\"
    return any(is_open(s, c) != is_open(s, e) for c in range(DOORS) if c != d for e in range(DOORS) if e != d)


def is_open(s, d):
    \"\"\"Whether a door is.\"\"\"
    return s.open[d]
"""
    path.write_text(BREAKS.replace("BODY", "s.open[d] = True") + more)
    bound = BoundSpec(load_file(path), {})
    prop = next(p for p in bound.every if p.name == "alike")
    tracked = TrackedBound(bound, "doors", 1)
    (_, _, shut), *_ = bound.initial()
    found = bound.shape.field("open")
    assert found is not None
    differ = tuple(1 if cell == found[0] + 2 else value for cell, value in enumerate(shut))
    assert (bound.holds(prop, shut), bound.holds(prop, differ)) == (True, False)
    assert _said(bound, tracked, prop, (0,), shut, shut)[0]
    assert _said(bound, tracked, prop, (0,), differ, differ)[1]


def breaks(tracked: TrackedBound, bound: BoundSpec, rule: Rule, args: Arguments, state: State) -> bool:
    """Whether an action that breaks the bounds of the spec is seen to do so, whatever members it is about."""
    seen = False
    for members in permutations(range(tracked.size), tracked.told):
        look, terms = Looked(bound, tracked, members), Terms()
        made = TrackedEvaluator(tracked, terms).action(look.terms(terms, state, "c"), rule, look.arguments(terms, rule, args))
        met = terms.together(obligation.condition for obligation in made.obligations)
        seen = seen or can_be(terms, terms.negation(met))
    return seen


def followed(seed: int, folder: Path) -> int:
    """How many transitions of a random spec, steps out of its bounds and properties are followed with few blocks told apart."""
    spec = accepted(Writer(random.Random(seed).choice).spec(), folder)
    if spec is None:
        return 0
    bound = BoundSpec(spec, {"reqs": 2, "blks": 3, "mode": "two"})
    if "blks" not in bound.permutable():
        return 0
    number, states = 0, agreement.random_states(bound, 6, seed)
    for tracked, members in ((TrackedBound(bound, "blks", told), m) for told in (1, 2) for m in ((1, 2)[:told], (2, 0)[:told])):
        look = Looked(bound, tracked, members)
        for rule in bound.actions:
            for args, state in ((args, state) for args in rule.choices() for state in states):
                outcome, after = agreement.expected(bound, rule, args, state)
                with contextlib.suppress(Untracked, UnboundedLoop):
                    tracked.rule(rule)
                    if outcome == "error":
                        assert breaks(tracked, bound, rule, args, state), (seed, rule.name, args, state)
                        number += 1
                    if after is not None:
                        assert leads(look, state, rule, args, after), (seed, rule.name, args, state, members)
                        number += 1
        for prop in (p for p in bound.every if p.kind == "always" and tracked_by(bound, p, "blks") <= tracked.told):
            for state in states:
                with contextlib.suppress(Untracked, UnboundedLoop):
                    if agreement.truth(bound, prop, state) == "True":
                        assert _said(bound, tracked, prop, members, state, state)[0], (seed, prop.name, state, members)
                        number += 1
    return number


def test_random_specs(tmp_path: Path) -> None:
    assert sum(followed(seed, tmp_path) > 0 for seed in range(12)) >= 4


@pytest.mark.slow
def test_many_random_specs(tmp_path: Path) -> None:
    assert sum(followed(seed, tmp_path) > 0 for seed in range(12, 400)) >= 100


def test_members_are_told_apart_where_a_property_is_about_one_of_many() -> None:
    bound = BoundSpec(load_module("fencepost.spec.kv.kv", "kv"), {**LOADS, "blocks": 8})
    assert [(one.index, one.told) for one in tracked_bounds(bound, bound.every)] == [("blocks", 1), ("blocks", 2)]
    few = BoundSpec(load_module("fencepost.spec.kv.kv", "kv"), {**LOADS, "blocks": 2, "requests": 2})
    assert tracked_bounds(few, few.every) == []
