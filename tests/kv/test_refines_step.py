"""`refines-fence`: one formula says of a transition what `check --refines fence` says of its actions, and it is proved."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from fencepost.checker.cli import kvdata
from fencepost.checker.explore.native.stepper import Stepper
from fencepost.checker.model import Limits, Model
from fencepost.checker.prove.asked import Answer, Asked, Question
from fencepost.checker.prove.case import WHOLE, Piece
from fencepost.checker.prove.induction import Induction
from fencepost.checker.prove.proof import Told, prove
from fencepost.checker.prove.refine import Against, RefinementError
from fencepost.checker.prove.segment import heads_of, reached_by
from fencepost.checker.result import Status, Verdict
from fencepost.spec.lang import Arguments, BoundSpec, Rule, SpecError, State, load_module
from fencepost.spec.lang.decoder import decoder
from fencepost.spec.lang.layout import ArrayShape, Leaf, RecordShape, SeqShape, Shape
from fencepost.spec.lang.views import Cells, read

Values = dict[str, int | str]
KV = load_module("fencepost.spec.kv.kv", "kv")
NAME = "refines-fence"
FORMULA = next(declared.function for declared in KV.lemmas if declared.name == NAME)
ON: Values = {"kv-role": "kv_consumer", "requests": 2, "blocks": 3, "prompt-tokens": 2, "remote-tokens": 1}
CACHED: Values = {**ON, "enable-prefix-caching": 1}
SMALL: Values = {**ON, "blocks": 2, "prompt-tokens": 1}
ROWS = [
    ("reference", ON, True),
    ("vllm-0.33", {**ON, "requests": 3, "blocks": 4, "steps-in-flight": 3}, True),
    ("vllm-0.27", {**CACHED, "kv-role": "kv_both"}, True),
    ("vllm-0.33", {**CACHED, "block-size": 2, "prompt-tokens": 3, "remote-tokens": 2}, True),
    ("reference", {**CACHED, "reset-running": 1, "remote-tokens": 0}, True),
    ("reference", {**ON, "empty-steps": 1, "async-scheduling": 0, "victim-rule": "any"}, True),
    ("vllm-0.23", ON, False),
    ("vllm-0.33", {**ON, "steps-in-flight": 1}, False),
    ("reference", {**ON, "finish-free": "at-once"}, False),
    ("reference", {**ON, "preemption-free": "at-once", "victim-rule": "any", "blocks": 2}, False),
    ("vllm-0.25", {**CACHED, "pin-before-test": "yes", "capacity-counts-hits": "yes"}, True),
    pytest.param("vllm-0.33", SMALL, True, marks=pytest.mark.slow),
    pytest.param("vllm-0.25", {**ON, "kv-role": "kv_both", "steps-in-flight": 3}, True, marks=pytest.mark.slow),
    pytest.param("reference", {**CACHED, "max-tokens": 1}, True, marks=pytest.mark.slow),
    pytest.param("vllm-0.23", CACHED, False, marks=pytest.mark.slow),
    pytest.param("vllm-0.33", {**ON, "kv-role": "none", "remote-tokens": 0}, False, marks=pytest.mark.slow),
    pytest.param("vllm-0.33", {**ON, "abort-of-load": "at-once"}, False, marks=pytest.mark.slow),
    pytest.param("reference", {**CACHED, "abort-free": "at-once"}, False, marks=pytest.mark.slow),
]
MOST = 500
"""Transitions that are looked at, those nearest to the start."""


def bound_at(profile: str, values: Values) -> BoundSpec:
    return Model.of(KV, {**kvdata.profile(profile).switches, **values}).bound


class Roads:
    """What both say of a transition."""

    def __init__(self, bound: BoundSpec) -> None:
        self.bound, self.against, self.decode = bound, Against(bound, "fence"), decoder(bound.shape)
        self.formula = bound.rebind(FORMULA)

    def actions(self, before: State, rule: Rule, args: Arguments, after: State) -> bool:
        """Whether the transition is a row of actions of the protocol."""
        left = self.decode(before)
        return self.against.check(self.against.state(left), left, self.decode(after), rule, args).refusal is None

    def says(self, before: State, after: State) -> bool:
        """Whether the formula holds of it, also where it does not apply."""
        return bool(self.bound.call(self.formula, Cells(before), read(Cells(after), 0, self.bound.shape)))


def nearest(bound: BoundSpec, most: int) -> Iterator[tuple[State, Rule, Arguments, State]]:
    """Transitions out of states that differ in more than names, breadth-first."""
    stepper = Stepper(bound)
    todo = [stepper.canonical(state)[0] for _, _, state in bound.initial()]
    seen, left = set(todo), most
    for state in todo:  # grows on the way
        for rule, args, after in stepper.successors(state):
            yield state, rule, args, after
            left -= 1
            if left == 0:
                return
            known = stepper.canonical(after)[0]
            if known not in seen:
                seen.add(known)
                todo.append(known)


def agreed(bound: BoundSpec) -> Counter[bool]:
    """How many transitions both allow, and refuse."""
    roads, found = Roads(bound), Counter[bool]()
    for before, rule, args, after in nearest(bound, MOST):
        allowed = roads.actions(before, rule, args, after)
        assert roads.says(before, after) == allowed, (rule.name, args)
        found[allowed] += 1
    return found


@pytest.mark.parametrize(("profile", "values", "refines"), ROWS, ids=str)
def test_the_formula_says_what_the_actions_say(profile: str, values: Values, *, refines: bool) -> None:
    found = agreed(bound_at(profile, values))
    assert found[True] > 100
    assert (found[False] == 0) == refines


EARLY = ("B01", "B03-finish", "B03-abort", "B03-preemption", "B22")
"""The faults that free early."""


@pytest.mark.parametrize("fault", EARLY)
def test_so_it_does_of_a_fault_that_frees_early(fault: str) -> None:
    known = kvdata.fault(fault)
    assert agreed(bound_at(known.base, known.values))[False] > 0


@pytest.mark.slow
@pytest.mark.parametrize("fault", sorted({*kvdata.faults()} - {*EARLY}))
def test_so_it_does_of_other_faults(fault: str) -> None:
    known = kvdata.fault(fault)
    assert agreed(bound_at(known.base, known.values)).total() > 0


# Transitions that are none.


def leaves(shape: Shape) -> Iterator[tuple[range, str]]:
    """The range of each cell of a state, and the field of the innermost record that it is in."""
    match shape:
        case RecordShape():
            for name, _, inner in shape.fields:
                yield from ((values, found or name) for values, found in leaves(inner))
        case ArrayShape():
            for _ in range(shape.count):
                yield from leaves(shape.item)
        case SeqShape():
            yield range(0), "length"
            for _ in range(shape.capacity):
                yield from leaves(shape.item)
        case Leaf():
            yield range(shape.low, shape.high + 1), ""
        case _:
            yield range(0), "set"


BENT = ("parked", "fence", "orphan", "key", "status")


@pytest.mark.parametrize(("values", "bends"), [(ON, (*BENT, "table")), (CACHED, BENT)], ids=["off", "on"])
def test_it_refuses_what_the_actions_refuse_of_states_that_are_bent(values: Values, bends: tuple[str, ...]) -> None:
    """Of a transition to a state in which something else stands somewhere, it allows nothing that is no row of actions.

    Where a table changes in the middle it is the stricter one: the actions would be to give all of it up first. With
    caching, who gives up a block that another one parks may do without a parked entry of its own, so tables stay as they are.
    """
    bound, dice, seen = bound_at("vllm-0.33", values), random.Random(1), Counter[tuple[bool, bool]]()
    roads, where = Roads(bound), list(leaves(bound.shape))
    places = [at for at, (values_, name) in enumerate(where) if name in bends and len(values_) > 1]
    assert len(where) == bound.shape.size
    for before, rule, args, after in nearest(bound, 500):
        for _ in range(4):
            bent, at = list(after), dice.choice(places)
            bent[at] = dice.choice(where[at][0])
            try:
                verdicts = roads.actions(before, rule, args, tuple(bent)), roads.says(before, tuple(bent))
            except (RefinementError, SpecError):
                continue  # a fence on a step that there is not
            seen[verdicts] += 1
    assert seen[False, True] == 0, seen
    assert seen[True, False] < seen[False, False] > 10


# The proof.


LARGE: Values = {**ON, "requests": 3, "blocks": 4, "prompt-tokens": 1}


def asked(induction: Induction, action: str, names: Sequence[str], piece: Piece) -> dict[str, Answer]:
    """What is known of these for a tracked block; of what is not shown, nothing."""
    rule = next(rule for rule in induction.bound.actions if rule.name == action)
    question = Asked(induction, induction.facts, Question(rule, tuple(names), piece), [])
    left = question.not_shown_of_tracked(names)
    return {name: answer for name, answer in question.answers.items() if name not in left}


@pytest.mark.parametrize(
    "action",
    ["abort", *(pytest.param(name, marks=pytest.mark.slow) for name in ("submit", "run_step", "process", "land", "report"))],
)
def test_it_is_shown_of_a_tracked_block(action: str) -> None:
    induction = Induction(Model.of(KV, of_release(LARGE)), Limits())
    assert {name: one.answer for name, one in asked(induction, action, [NAME], WHOLE).items()} == {NAME: "proved"}


@pytest.mark.parametrize("number", [0, 1, 2])
def test_schedule_is_shown_in_pieces(number: int) -> None:
    induction = Induction(Model.of(KV, of_release(LARGE)), Limits())
    rule = next(rule for rule in induction.bound.actions if rule.name == "schedule")
    loops = tuple(reached_by(induction.bound, rule))
    starts = (None, *heads_of(induction.bound, rule, loops))
    assert len(starts) == 3
    names = [NAME, *(loop.name for loop in loops if loop.name.endswith("refine-fence"))]
    assert len(names) == 3
    found = asked(induction, "schedule", names, Piece(loops, starts[number], wide=True))
    assert {name: one.answer for name, one in found.items()} == dict.fromkeys(names, "proved")


def of_release(values: Values) -> Values:
    return {**kvdata.profile("vllm-0.33").switches, **values}


@pytest.mark.parametrize(("action", "switch"), [("abort", "abort-free"), ("process", "finish-free")])
def test_what_frees_early_is_not_shown(action: str, switch: str) -> None:
    """With one of the frees at once, the solver has a counterexample, which the interpreter confirms."""
    model = Model.of(KV, of_release({**SMALL, switch: "at-once"}))
    induction = Induction(model, Limits())
    rule = next(rule for rule in model.bound.actions if rule.name == action)
    held = [fact for fact in induction.facts if fact.name != "references-are-protected"]
    question = Asked(induction, held, Question(rule, (NAME,)), [])
    question.decide({}, [NAME])
    unkept = question.answers[NAME].unkept
    assert unkept is not None
    assert unkept.after is not None
    assert not Roads(model.bound).actions(unkept.before, rule, unkept.arguments, unkept.after)


def test_it_applies_where_the_fence_is_on() -> None:
    assert NAME in {lemma.name for lemma in bound_at("vllm-0.33", ON).lemmas}
    assert NAME in bound_at("vllm-0.33", {**ON, "kv-role": "none", "remote-tokens": 0}).not_applicable


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["vllm-0.33", "reference"])
def test_it_is_proved(profile: str) -> None:
    values = {**kvdata.profile(profile).switches, **ON, "prompt-tokens": 1}
    proof = prove(Model.of(KV, values), Limits(), each=60.0, told=Told())
    assert proof.verdict is Verdict.HOLDS, proof.reason
    assert [p.status for p in proof.lemmas if p.name == NAME] == [Status.HOLDS]
