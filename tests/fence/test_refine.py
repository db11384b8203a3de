"""`check --refines fence`: the spec's transitions in the protocol's actions; early frees and mappings that lie are found."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.cli import kvdata
from fencepost.checker.cli.main import main
from fencepost.checker.conform.published import Watched
from fencepost.checker.explore import explore
from fencepost.checker.model import Limits, Model, Options
from fencepost.checker.prove.refine import Against, RefinementError
from fencepost.checker.prove.refine_report import RefinementDocument
from fencepost.checker.prove.refine_search import Refined, refined
from fencepost.checker.result import Verdict
from fencepost.spec.fence.finite import Argument, Finite, State
from fencepost.spec.fence.protocol import Block, Request, Step, fence
from fencepost.spec.fence.settled import settled
from fencepost.spec.kv import pool, scheduler
from fencepost.spec.lang import BoundSpec, LanguageError, Spec, load_file, load_module
from fencepost.spec.lang.layout import decode
from fencepost.traces.trace import follow

KV = load_module("fencepost.spec.kv.kv", "kv")
DESK = Path(__file__).parent / "specs" / "desk.py"
Values = dict[str, int | str]
NONE: Values = {}


def kv(profile: str, bounds: Values, spec: Spec = KV) -> Model:
    return Model.of(spec, {"prompt-tokens": 2, **kvdata.profile(profile).switches, **bounds}, profile=profile)


ON: Values = {"kv-role": "kv_consumer", "requests": 2, "blocks": 3}
HOLDS: list[tuple[str, Values]] = [
    ("reference", {**ON, "remote-tokens": 1}),
    ("vllm-0.25", {**ON, "remote-tokens": 1, "kv-role": "kv_both", "steps-in-flight": 3}),
    ("reference", {**ON, "enable-prefix-caching": 1, "remote-tokens": 1, "max-tokens": 1}),
]
LARGER: list[tuple[str, Values]] = [
    ("vllm-0.33", {**ON, "requests": 3, "blocks": 4, "remote-tokens": 1}),
    ("vllm-0.27", {**ON, "kv-role": "kv_both", "enable-prefix-caching": 1}),
    ("vllm-0.33", {**ON, "blocks": 4, "remote-tokens": 2, "enable-prefix-caching": 1, "max-tokens": 1, "steps-in-flight": 3}),
    ("reference", {**ON, "block-size": 2, "prompt-tokens": 3, "remote-tokens": 2, "enable-prefix-caching": 1}),
    ("reference", {**ON, "reset-running": 1, "enable-prefix-caching": 1, "max-tokens": 1}),
    ("reference", {**ON, "empty-steps": 1, "remote-tokens": 1, "async-scheduling": 0}),
    ("reference", {**ON, "victim-rule": "any", "remote-tokens": 1}),
]
"""Bounds with the fence on, each with something that the others have not."""


def in_full(bounds: Values) -> str:
    return ",".join(f"{name}={value}" for name, value in bounds.items())


@pytest.mark.parametrize(("profile", "bounds"), HOLDS, ids=[f"{p}:{in_full(b)}" for p, b in HOLDS])
def test_it_refines_the_fence(profile: str, bounds: Values) -> None:
    found = refined(kv(profile, bounds), "fence", Limits())
    assert (found.verdict, found.exit_code, found.cut, found.trace) == (Verdict.HOLDS, 0, None, None), found.refusal
    used = {"allocate", "issue", "execute", "process", "free", "park", "drain", "load", "land"}
    used |= {"hit"} if bounds.get("enable-prefix-caching") else set()
    assert {name for name, times in found.taken.items() if times} == used
    assert 0 < found.stutters < found.generated


@pytest.mark.slow
@pytest.mark.parametrize(("profile", "bounds"), [*HOLDS, *LARGER], ids=[f"{p}:{in_full(b)}" for p, b in [*HOLDS, *LARGER]])
def test_every_transition_of_the_native_engine_is_looked_at(profile: str, bounds: Values) -> None:
    model = kv(profile, bounds)
    found = refined(model, "fence", Limits())
    assert (found.verdict, found.exit_code, found.cut, found.trace) == (Verdict.HOLDS, 0, None, None), found.refusal
    model.bound.properties = ()
    searched = explore(model, Options(deadlock=False), "native").figures
    assert (found.distinct, found.generated, found.per_depth) == (searched.distinct, searched.generated, searched.per_depth)
    assert (found.depth, found.symmetry) == (searched.depth, True)
    taken = {action.name: action.taken for action in searched.actions}
    assert (found.taken["execute"], found.taken["process"]) == (taken["run_step"], taken["process"])
    assert found.unused[-2:] == ("send", "sent")


def test_two_engines_and_all_names_of_members() -> None:
    model = kv("reference", {**ON, "blocks": 2, "prompt-tokens": 1, "remote-tokens": 1})
    reduced = refined(model, "fence", Limits())
    whole = refined(model, "fence", Limits(), symmetry=False)
    assert (reduced.verdict, whole.verdict) == (Verdict.HOLDS, Verdict.HOLDS)
    model.bound.properties = ()
    for found, symmetry in ((reduced, True), (whole, False)):
        figures = explore(model, Options(symmetry=symmetry, deadlock=False), "reference").figures
        assert (found.distinct, found.generated, found.depth) == (figures.distinct, figures.generated, figures.depth)
    assert reduced.distinct < whole.distinct
    assert reduced.unused == whole.unused


FAULTS = {
    "B01": (NONE, "free", "processed"),
    "B03-finish": (NONE, "free", "processed"),
    "B03-abort": (NONE, "free", "processed"),
    "B03-preemption": (NONE, "free", "processed"),
    "B22": (NONE, "free", "loaded"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_frees_early_is_found(fault: str) -> None:
    extra, action, guard = FAULTS[fault]
    known = kvdata.fault(fault)
    model = Model.of(KV, {**known.values, **extra}, profile=known.base)
    refused(model, refined(model, "fence", Limits()), action, guard, known.depth)


def refused(model: Model, found: Refined, action: str, guard: str, longest: int | None) -> None:
    """The trace runs in the interpreter, and its last transition alone is none of the protocol, for that guard."""
    assert (found.verdict, found.exit_code) == (Verdict.VIOLATED, 1)
    assert found.refusal is not None
    assert found.trace is not None
    assert (found.refusal.action, found.refusal.guards) == (action, (guard,))
    assert f"guard {guard}: " in found.refusal.reason
    assert follow(model.bound, found.trace) == found.trace
    assert len(found.trace) <= (longest or 99)
    against, states = Against(model.bound, "fence"), [decode(model.bound.shape, state) for state in found.trace.states]
    rules = {rule.name: rule for rule in model.bound.actions}
    for number, step in enumerate(found.trace.steps):
        before, after = states[number : number + 2]
        wrong = against.check(against.state(before), before, after, rules[step.action], step.arguments).refusal
        assert (wrong is not None) == (number == len(found.trace) - 1)


def test_no_trace_to_it_is_shorter() -> None:
    """The interpreter, breadth-first and without symmetry, finds nothing nearer."""
    model = Model.of(KV, kvdata.fault("B03-abort").values)
    found = refined(model, "fence", Limits())
    assert found.trace is not None
    against, level = Against(model.bound, "fence"), [model.bound.initial()[0][2]]
    for _ in range(len(found.trace) - 1):
        following: list[Any] = []
        for state in level:
            left = decode(model.bound.shape, state)
            for rule, args, after in model.bound.transitions(state):
                assert against.check(against.state(left), left, decode(model.bound.shape, after), rule, args).refusal is None
                following.append(after)
        level = list(dict.fromkeys(following))


def test_without_the_fence_it_is_none() -> None:
    """No role that loads, or one step in flight: the gate is off, and blocks are freed while the device still works."""
    for off in ({"kv-role": "none"}, {"steps-in-flight": 1}):
        model = kv("vllm-0.33", {**ON, "blocks": 2, "prompt-tokens": 1, "requests": 1, **off})
        refused(model, refined(model, "fence", Limits()), "free", "processed", 3)


# The mapping: what it says is so.


class Shown:
    """The KV spec's own mapping, for a test to bend."""

    def __init__(self, values: Mapping[str, int | str]) -> None:
        self.honest = KV.refines["fence"](values)
        self.note = self.honest.note
        names = "sizes", "members", "start"
        self.sizes, self.members, self.start = (getattr(type(self), name, getattr(self.honest, name)) for name in names)

    def state(self, s: Any) -> Any:
        return self.honest.state(s)

    def steps(self, before: Any, after: Any, action: str, arguments: Any) -> Any:
        return self.honest.steps(before, after, action, arguments)


def bent(**bends: Any) -> Model:
    """The KV spec with a mapping of which some parts are others."""
    made = type("Bent", (Shown,), bends)

    def bent_refinement(values: Mapping[str, int | str]) -> Any:
        return made(values)

    spec = replace(KV, refines={"fence": bent_refinement})
    return kv("reference", {**ON, "blocks": 2, "prompt-tokens": 1, "remote-tokens": 1}, spec)


def saying(row: Any) -> Callable[..., Any]:
    """A method that says the same of everything."""

    def said(*_: Any) -> Any:
        return row

    return said


def failing(*_: Any) -> Any:
    raise KeyError("x")


def without(name: str) -> Model:
    """A mapping that keeps one kind of action to itself."""

    def steps(self: Shown, before: Any, after: Any, action: str, arguments: Any) -> Any:
        return [one for one in self.honest.steps(before, after, action, arguments) if one[0] != name]

    return bent(steps=steps)


@pytest.mark.parametrize("name", ["allocate", "issue", "execute", "process", "free", "park", "drain", "load", "land"])
def test_a_mapping_that_drops_an_action_is_found(name: str) -> None:
    found = refined(without(name), "fence", Limits())
    assert found.verdict is Verdict.VIOLATED
    assert found.refusal is not None
    if found.refusal.action is None:
        assert "should lead to the same state, but it differs: " in found.refusal.reason


def test_a_mapping_that_calls_everything_a_stutter_is_found() -> None:
    found = refined(bent(steps=saying(())), "fence", Limits())
    assert found.refusal is not None
    assert found.trace is not None
    assert found.refusal.reason.startswith("no action should lead to the same state, but it differs: issued of {2} in the spec")
    assert [step.action for step in found.trace.steps] == ["submit", "schedule"]


def test_a_mapping_with_one_state_for_all_says_nothing() -> None:
    def state(self: Shown, s: Any) -> Any:
        nothing = {name: set[Any]() for name in self.honest.state(s)}
        return {**nothing, "issued": {(0,)}, "executed": {(0,)}, "processed": {(0,)}}

    found = refined(bent(state=state, steps=saying(())), "fence", Limits())
    assert (found.verdict, found.exit_code) == (Verdict.UNDETERMINED, 3)
    assert found.reason == "vacuous: no transition is an action of the protocol"


def test_a_mapping_that_begins_elsewhere_is_found() -> None:
    found = refined(bent(start=()), "fence", Limits())
    assert found.verdict is Verdict.VIOLATED
    assert found.trace is not None
    assert found.trace.steps == ()
    assert found.refusal is not None
    assert "issued of {1} in the spec only" in found.refusal.reason


def test_an_axiom_that_fails_is_named() -> None:
    """Were the output of a step there before the device is through with it, `process` would break the axiom."""

    def steps(self: Shown, before: Any, after: Any, action: str, arguments: Any) -> Any:
        row = list(self.honest.steps(before, after, action, arguments))
        return [("process", (1,))] if row == [("execute", (1,))] else row

    found = refined(bent(steps=steps), "fence", Limits())
    assert found.refusal is not None
    assert found.refusal.guards == ("output-implies-done",)
    assert "axiom output-implies-done: if processed(2), then executed(2)" in found.refusal.reason


def test_a_mapping_that_prefers_a_member_is_told_from_a_spec_that_is_wrong() -> None:
    """Transitions of the representative of a state are looked at only: they must stand for those of all its namesakes."""

    def steps(self: Shown, before: Any, after: Any, action: str, arguments: Any) -> Any:
        row = self.honest.steps(before, after, action, arguments)
        return () if any(name == "allocate" and args[0] == 1 for name, args in row) else row

    with pytest.raises(RefinementError, match="make it treat them alike"):
        refined(bent(steps=steps), "fence", Limits())
    assert refined(bent(steps=steps), "fence", Limits(), symmetry=False).verdict is Verdict.VIOLATED


def test_a_mapping_that_hides_a_member_is_found_though_each_transition_that_is_looked_at_is_fine() -> None:
    """Nothing that concerns block 1 is said, neither of states nor of transitions."""

    def state(self: Shown, s: Any) -> Any:
        said = self.honest.state(s)
        return {**said, "owns": {(r, b) for r, b in said["owns"] if b != 1}, **dict.fromkeys(("names", "waits", "loading"), ())}

    def steps(self: Shown, before: Any, after: Any, action: str, arguments: Any) -> Any:
        row = self.honest.steps(before, after, action, arguments)
        row = [("issue", (k[0], frozenset[Any]())) if name == "issue" else (name, k) for name, k in row]
        row = [("free", k[:2]) if name == "park" else (name, k) for name, k in row if name not in ("drain", "land")]
        row = [("allocate", k) if name in ("load", "hit") else (name, k) for name, k in row]
        return [(name, k) for name, k in row if name not in ("allocate", "free") or k[1] != 1]

    with pytest.raises(
        RefinementError, match=r"apart that nothing else does: state\(\) should say owns of {.*} where members "
    ):
        refined(bent(state=state, steps=steps), "fence", Limits())
    assert refined(bent(state=state, steps=steps), "fence", Limits(), symmetry=False).verdict is Verdict.HOLDS


def test_members_of_a_sort_that_are_those_of_an_index_must_be_said_to_be() -> None:
    with pytest.raises(RefinementError, match="let `members` say which sorts have them"):
        refined(bent(members={}), "fence", Limits())
    assert refined(bent(members={}), "fence", Limits(), symmetry=False).verdict is Verdict.HOLDS


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"sizes": {"Request": 2}}, "sizes are .*; give a size of at least 1 to Step, Request, Block"),
    (
        {"sizes": {"Request": 1, "Block": 2, "Step": 3}},
        "members says {'Request': 'requests'}; .* as large as it: .*requests of 2",
    ),
    ({"members": {"Page": "blocks"}}, "members says {'Page': 'blocks'}; a sort's members are those of an index"),
    ({"members": {"Step": "blocks"}}, "members says {'Step': 'blocks'}; a sort's members are those of an index"),
    ({"steps": saying([("allocated", (0, 0))])}, r"steps\(\) gives \('allocated', \(0, 0\)\); actions are allocate, "),
    ({"steps": saying([("allocate", (0,))])}, "allocate takes r, b, members of their sorts by number"),
    ({"steps": saying([("allocate", (0, 7))])}, "allocate takes r, b, members of their sorts by number"),
    ({"steps": saying([("issue", (1, frozenset({(9, 9)})))])}, "issue takes s, plan"),
    ({"steps": saying([("issue", (1, {(0, 0)}))])}, "an action is a name and a tuple of members and frozensets"),
    ({"steps": saying(["free"])}, r"steps\(\) gives 'free'; actions are"),
    ({"steps": saying(1)}, "@refines fence failed: TypeError"),
    ({"state": saying({})}, r"state\(\) says 'issued' of a relation; it gives tuples for each of issued, executed"),
    ({"state": failing}, "@refines fence failed: KeyError: 'x'"),
]


@pytest.mark.parametrize(("bend", "message"), WRONG)
def test_a_mapping_that_is_none_is_an_error_with_its_place(bend: dict[str, Any], message: str) -> None:
    with pytest.raises(RefinementError, match=message) as raised:
        refined(bent(**bend), "fence", Limits())
    assert str(raised.value).startswith(__file__)


def noted(name: str) -> Callable[..., Any]:
    """What a helper of the spec does with the blocks of a request, as the mapping should say it."""

    def hook(made: Callable[..., None], s: Any, *arguments: Any) -> list[tuple[str, int, int]]:
        r = arguments[0] if arguments else -1
        before = list(s.table[r]) if arguments else []
        drained = [s.parked[i] for i in range(s.entries[0].size)] if name == "drain" else []
        made(s, *arguments)
        blocks = drained or (before if name in ("free", "park") else list(s.table[r])[len(before) :])
        return [(name, r, b) for b in blocks]

    return hook


WATCHED: dict[Callable[..., Any], Callable[..., Any]] = {
    vars(pool)["take"]: noted("take"),
    vars(scheduler)["adopt"]: noted("hit"),
    vars(pool)["free_table"]: noted("free"),
    vars(pool)["park"]: noted("park"),
    vars(pool)["drain_entry"]: noted("drain"),
}


@pytest.mark.parametrize(("profile", "bounds"), [HOLDS[2], ("vllm-0.27", LARGER[1][1]), ("vllm-0.33", {**ON, **NONE})])
def test_the_actions_are_what_the_spec_itself_does(profile: str, bounds: Values) -> None:
    """The interpreted spec's own helpers, watched, take, share, park, free and drain the blocks that the mapping says."""
    bound = kv(profile, {**bounds, "kv-role": "kv_consumer"}).bound
    watched, against = Watched(bound, WATCHED), Against(bound, "fence")
    dice, seen = random.Random(1), Counter[str]()
    for _ in range(25):
        state = bound.initial()[0][2]
        for _ in range(25):
            steps = list(bound.transitions(state))
            if not steps:
                break
            rule, args, after = dice.choice(steps)
            left, right = decode(bound.shape, state), decode(bound.shape, after)
            _, row, refusal = against.check(against.state(left), left, right, rule, args)
            assert refusal is None
            as_observed(dict(zip(fence.relations, against.state(left), strict=True)), bound, left)
            wanted = Counter(so_far(watched.notes(state, rule, args), left))
            assert Counter(_said(row)) == wanted, (rule.name, row)
            seen.update(name for name, _, _ in wanted)
            state = after
    assert all(seen[name] for name in ("take", "park", "free", "drain"))
    assert bool(seen["hit"]) == bool(bounds.get("enable-prefix-caching"))


def as_observed(held: Mapping[str, Any], bound: BoundSpec, decoded: Any) -> None:
    """The protocol's state is what an implementation would show, read by the `@observed` function and not by the mapping."""
    assert KV.observed is not None
    shown: Mapping[str, Any] = KV.observed(decoded, bound.values)
    steps: list[Any] = shown["flight"]
    flight = list(enumerate(steps, 1))
    with_tokens: list[int] = [0, *(k for k, step in flight if step["rows"])]
    assert held["names"] == {(k, r, b) for k, step in flight for r, *_, blocks in step["rows"] for b in blocks}
    assert held["owns"] == {(r, b) for r, one in shown["requests"].items() for b in one.get("table", ())}
    assert held["executed"] == {(0,), *((k,) for k, step in flight if step["ran"])}
    until: list[tuple[int, int]] = [(b, with_tokens[fence]) for fence, blocks in shown["parked"] for b in blocks]
    assert held["waits"] == {(b, k) for b, last in until for k in range(last + 1)}
    for r, b in held["loading"]:
        assert shown["loads"][r] == "MOVING"
        assert (r, b) in held["owns"]
        assert shown["hashes"][b] is None
    moving: set[int] = {r for r, job in shown["loads"].items() if job == "MOVING"}
    unhashed: set[tuple[int, int]] = {(r, b) for r, b in held["owns"] if r in moving and shown["hashes"][b] is None}
    assert held["loading"] == unhashed


def so_far(notes: Any, before: Any) -> list[tuple[str, int, int]]:
    """All notes of a transition; of drained blocks, once each that no other entry holds."""
    found = [one for note in notes for one in note]
    drained = [b for name, _, b in found if name == "drain"]
    back = set(drained) - set(before["parked"][len(drained) :])
    return [*(one for one in found if one[0] != "drain"), *(("drain", -1, b) for b in back)]


def _said(row: Any) -> list[tuple[str, int, int]]:
    names = {"allocate": "take", "load": "take", "hit": "hit", "free": "free", "park": "park"}
    found = [(names[name], args[0], args[1]) for name, args in row if name in names]
    return [*found, *(("drain", -1, args[0]) for name, args in row if name == "drain")]


def test_a_block_that_gets_its_old_hash_again_is_no_hit() -> None:
    """The one block is cached, evicted and given out again in one transition: the last token is always computed."""
    model = kv("reference", {**ON, "requests": 1, "blocks": 1, "prompt-tokens": 1, "max-tokens": 1, "enable-prefix-caching": 1})
    found = refined(model, "fence", Limits())
    assert found.verdict is Verdict.HOLDS
    assert (found.taken["hit"], found.taken["allocate"] > 1) == (0, True)


# What of the past does not matter.


@pytest.mark.parametrize(("requests", "blocks", "steps"), [(1, 1, 2), (2, 1, 1), (1, 2, 1), (1, 1, 3)])
def test_processed_steps_are_one(requests: int, blocks: int, steps: int) -> None:
    """In a state and in the settled one, the same actions are possible, and lead to states that settle to the same."""
    finite = Finite(fence, {Request: requests, Block: blocks, Step: steps})
    names, merged = list(fence.relations), 0
    for state, out in finite.reachable():
        rest = settled(state)
        last = max((s for (s,) in state[names.index("processed")]), default=0)
        merged += rest != state
        assert settled(rest) == rest
        assert finite.assumed(rest)
        late = {(a.name, _moved(a.parameters, args, -last)): after for a, args, after in out}
        near = [one for one in finite.transitions(rest) if _there(one[0].parameters, one[1], last, steps)]
        early = {(a.name, args): after for a, args, after in near}
        assert set(late) == set(early)
        assert {key: settled(after) for key, after in late.items()} == {key: settled(after) for key, after in early.items()}
    assert merged > 0


def _moved(parameters: Any, args: tuple[Argument, ...], by: int) -> tuple[Argument, ...]:
    return tuple(max(0, a + by) if type(p) is Step and isinstance(a, int) else a for p, a in zip(parameters, args, strict=True))


def _there(parameters: Any, args: tuple[Argument, ...], last: int, steps: int) -> bool:
    return all(type(p) is not Step or not isinstance(a, int) or a + last < steps for p, a in zip(parameters, args, strict=True))


def test_a_state_whose_steps_are_not_processed_in_order_is_left_alone() -> None:
    nothing: State = tuple(frozenset() for _ in fence.relations)
    assert settled(nothing) == nothing
    said = {"issued": frozenset({(0,), (1,)}), "processed": frozenset({(1,)})}
    odd: State = tuple(said.get(name, frozenset()) for name in fence.relations)
    assert settled(odd) == odd


# Limits, the command line, and specs of one's own.


def test_limits_leave_it_undetermined() -> None:
    model = kv("reference", {**ON, "blocks": 2, "prompt-tokens": 1, "remote-tokens": 1})
    for limits, word in (
        (Limits(max_states=20), "more than 20 states (--max-states)"),
        (Limits(max_depth=3), "depth limit of 3 (--max-depth)"),
        (Limits(max_seconds=0.0), "time limit of 0 s (--max-time)"),
        (Limits(max_bytes=1), "memory limit of 1 bytes (--max-memory)"),
        (Limits(cancelled=lambda: True), "interrupted"),
    ):
        found = refined(model, "fence", limits)
        assert (found.verdict, found.exit_code, found.reason) == (Verdict.UNDETERMINED, 3, word)
    assert refined(model, "fence", Limits(max_depth=3)).depth == 3


def check(*words: str | Path) -> int:
    return main(["check", *map(str, words)])


def test_a_spec_of_ones_own(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert check(DESK, "--refines", "fence") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "HOLDS: desk refines fence at papers=2, fence=on: each of its transitions is a row of actions" in text
    assert "not exercised hit, load, land, send, sent" in text
    file = tmp_path / "early.itf.json"
    assert check(DESK, "--refines", "fence", "--bounds", "fence=off", "--trace-out", file) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "VIOLATED: desk does not refine fence" in text
    assert "free is not allowed by fence: false is guard processed: if names(2, A, 0), then processed(2)" in text
    assert "3 put_back(p=0)" in text
    assert "NOT ALLOWED: Request A gives up block 0 at once" in text
    assert "There is one request." in text
    assert main(["replay", str(file)]) == 0
    assert "what of it fence does not is what check --refines fence says" in " ".join(capsys.readouterr().out.split())


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("--fault", "B03-abort", "--refines", "fence", "--json") == 1
    text = capsys.readouterr().out
    RefinementDocument.model_validate_json(text)
    made = json.loads(text)
    assert (made["protocol"], made["verdict"], made["exit_code"], made["cut"]) == ("fence", "VIOLATED", 1, None)
    assert (made["refusal"]["action"], made["refusal"]["guards"], made["refusal"]["taken"]) == ("free", ["processed"], [])
    assert made["refusal"]["before"]["names"] == "{2 A 0}"
    assert len(made["violation"]["trace"]["states"]) == made["violation"]["depth"] + 1
    assert made["model"]["fault"] == "B03-abort"
    assert made["taken"]["sent"] == 0
    assert check(DESK, "--refines", "fence", "--json") == 0
    assert json.loads(capsys.readouterr().out)["refusal"] is None


def test_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(DESK, "--refines", "fence", "-q", "--max-states", "3") == 3
    shown = capsys.readouterr()
    assert shown.out.startswith("UNDETERMINED: more than 3 states (--max-states); at papers=2")
    assert shown.err == ""


@pytest.mark.parametrize(
    "words",
    [
        ("--engine", "reference"),
        ("--target", "reference"),
        ("--property", "no-leak"),
        ("--check-symmetry",),
        ("--deadlock", "off"),
        ("--keep-going",),
        ("--threads", "2"),
        ("--mbt", "--trace-out", "trace.itf.json"),
    ],
)
def test_options_that_contradict_it(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    assert check("kv", "--refines", "fence", *words) == 2
    assert capsys.readouterr().err.startswith(f"error: {words[0]}: --refines holds the transitions of the spec against")


def test_what_there_is_not(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert check("kv", "--refines", "hedge") == 2
    assert "there is no protocol 'hedge'; there is fence" in capsys.readouterr().err
    bare = tmp_path / "bare.py"
    bare.write_text(DESK.read_text().split("class AsFence")[0])
    assert check(bare, "--refines", "fence") == 2
    assert 'bare does not say how it refines fence; declare it with @refines("fence")' in capsys.readouterr().err


def test_declarations(tmp_path: Path) -> None:
    assert set(load_file(DESK).refines) == {"fence"}
    twice = tmp_path / "twice.py"
    text = DESK.read_text()
    twice.write_text(text + '\n\n@refines("fence")\ndef again(values):\n    return AsFence(2)\n')
    with pytest.raises(LanguageError, match=r"refinement of 'fence' is declared twice"):
        load_file(twice)
    forgotten = tmp_path / "forgotten.py"
    forgotten.write_text(text.replace('@refines("fence")', "@refines"))
    with pytest.raises(Exception, match=r'@refines takes the name of a protocol: @refines\("fence"\)'):
        load_file(forgotten)
    assert isinstance(BoundSpec(load_file(DESK), {}).values["papers"], int)
