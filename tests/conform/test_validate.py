"""Log validation against brute force: single paths of the spec, tried one after the other."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.conform.log import Log, LogError, log_line
from fencepost.checker.conform.observer import Observer
from fencepost.checker.conform.validate import boxes, said, validate
from fencepost.checker.explore.native.stepper import Stepper
from fencepost.checker.model import Limits
from fencepost.checker.result import Verdict
from fencepost.spec.lang import Arguments, BoundSpec, Rule, SetOf, State, load_file
from fencepost.spec.lang.layout import ArrayShape, RecordShape, Shape
from fencepost.traces.driver import ANYTHING
from fencepost.traces.trace import follow
from hypothesis import given, settings
from hypothesis import strategies as st

from .validating import KV, check

ROOT = Path(__file__).resolve().parents[2]
LENDING = BoundSpec(load_file(ROOT / "tests/cli/specs/lending.py"), {})
QUEUE = BoundSpec(load_file(ROOT / "tests/models/specs/lossy_queue.py"), {})
LAMPS = BoundSpec(load_file(ROOT / "tests/models/specs/switches.py"), {"lamps": 3})
SPECS = [LENDING, QUEUE, LAMPS, KV]
UNLOGGED = {"lending": ["land", "launch"], "lossy_queue": ["lose"], "switches": [], "kv": ["run_step"]}
OFTEN = settings(deadline=None, max_examples=60)
by_name = pytest.mark.parametrize("bound", SPECS, ids=lambda bound: bound.spec.name)


@dataclass(frozen=True)
class Line:
    """An event as a log tells it: `args` with None for an argument that it leaves out, `shown` with parts left out."""

    rule: Rule
    args: tuple[int | None, ...]
    shown: Mapping[str, Any]


class Brute:
    """Which lines can be explained, by following single paths of the spec."""

    def __init__(self, bound: BoundSpec, unlogged: tuple[str, ...] = ()) -> None:
        self.bound, self.unlogged = bound, unlogged
        self.known: dict[State, list[tuple[Rule, Arguments, State]]] = {}
        self.expected = Observer(bound).expected

    def steps(self, state: State) -> list[tuple[Rule, Arguments, State]]:
        """The transitions out of a state."""
        if state not in self.known:
            self.known[state] = list(self.bound.transitions(state))
        return self.known[state]

    def silent(self, state: State) -> set[State]:
        """The states that unlogged events lead to."""
        seen: set[State] = set()
        stack = [state]
        while stack:
            one = stack.pop()
            if one not in seen:
                seen.add(one)
                stack += [after for rule, _, after in self.steps(one) if rule.name in self.unlogged]
        return seen

    def ends(self, state: State, lines: list[Line]) -> Iterator[State]:
        """The state at the end of each path that the lines tell of."""
        if not lines:
            yield state
            return
        for before in self.silent(state):
            for rule, args, after in self.steps(before):
                if rule is lines[0].rule and fits(lines[0].args, args) and shows(lines[0].shown, self.expected(after)):
                    yield from self.ends(after, lines[1:])

    def possible(self, lines: list[Line]) -> set[State]:
        """The states that may be the last one."""
        return {end for _, _, state in self.bound.initial() for end in self.ends(state, lines)}

    def allowed(self, states: set[State]) -> list[str]:
        """The events that some of the states allow, after unlogged ones."""
        steps = [step for state in states for before in self.silent(state) for step in self.steps(before)]
        words: list[str] = []
        for rule in self.bound.actions:
            words += [said(self.bound, rule, b) for b in boxes(sorted({args for r, args, _ in steps if r is rule}))]
        return words


def fits(given: tuple[int | None, ...], args: Arguments) -> bool:
    """Whether arguments are those that a line gives."""
    return all(one is None or one == other for one, other in zip(given, args, strict=True))


def shows(shown: Any, expected: Any) -> bool:
    """Whether a state shows what a line says: of dicts what is in them; ANYTHING equals everything."""
    if isinstance(shown, dict) and isinstance(expected, dict):
        parts: list[tuple[Any, Any]] = list(shown.items())  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return all(key in expected and shows(part, expected[key]) for key, part in parts)
    if isinstance(shown, list) and isinstance(expected, list):
        pairs: list[tuple[Any, Any]] = list(itertools.zip_longest(shown, expected, fillvalue="nothing"))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return all(shows(part, other) for part, other in pairs)
    return shown == expected


class Teller:
    """Tells random runs of a spec, leaving out parts at random."""

    def __init__(self, bound: BoundSpec, seed: int) -> None:
        self.bound, self.chosen = bound, random.Random(seed)
        self.expected = Observer(bound).expected

    def run(self, length: int, unlogged: tuple[str, ...] = ()) -> list[Line]:
        """The lines of a run."""
        state = self.chosen.choice(self.bound.initial())[2]
        lines: list[Line] = []
        for _ in range(length):
            steps = list(self.bound.transitions(state))
            if not steps:
                break
            rule, args, state = self.chosen.choice(steps)
            if rule.name not in unlogged:
                lines.append(self.line(rule, args, state))
        return lines

    def line(self, rule: Rule, args: Arguments, after: State) -> Line:
        """A line with less than everything."""
        expected = self.expected(after)
        if self.bound.spec.observed is None:
            shown = self.some(self.bound.shape, expected)
        else:
            shown = {name: value for name, value in expected.items() if self.chosen.random() < 0.5}
        return Line(rule, tuple(None if self.chosen.random() < 0.3 else arg for arg in args), shown)

    def some(self, shape: Shape, value: Any) -> Any:
        """A value with parts left out; never inside of sequences, whose length would be left out with them."""
        match shape:
            case RecordShape():
                parts = {name: self.some(inner, value[name]) for name, _, inner in shape.fields}
                return {name: part for name, part in parts.items() if part is not ANYTHING}
            case ArrayShape():
                return [self.some(shape.item, part) for part in value]
            case _:
                return value if self.chosen.random() < 0.4 else ANYTHING

    def spoiled(self, lines: list[Line]) -> list[Line]:
        """The lines with one changed: another event, other arguments, or what another state shows."""
        at = self.chosen.randrange(len(lines))
        line = lines[at]
        rule, args = line.rule, line.args
        if self.chosen.random() < 0.5:
            rule = self.chosen.choice(self.bound.actions)
            args = self.chosen.choice(list(rule.choices()))
        other = self.chosen.choice(lines).shown if self.chosen.random() < 0.5 else line.shown
        return [*lines[:at], Line(rule, args, other), *lines[at + 1 :]]


def written(bound: BoundSpec, line: Line) -> str:
    """A line as JSON."""
    full = tuple(domain[0] if arg is None else arg for arg, domain in zip(line.args, line.rule.domains, strict=True))
    made = json.loads(log_line(bound, line.rule, full, line.shown))
    for parameter, arg in zip(line.rule.declared.parameters, line.args, strict=True):
        if arg is None:
            del made["arguments"][parameter.name]
    return json.dumps(made)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


@by_name
@OFTEN
@given(seed=st.integers(0, 2**32), silent=st.booleans())
def test_a_run_of_the_spec_holds(folder: Path, bound: BoundSpec, seed: int, silent: bool) -> None:
    unlogged = tuple(UNLOGGED[bound.spec.name]) if silent else ()
    lines = Teller(bound, seed).run(8, unlogged)
    found = check(folder, bound, [written(bound, line) for line in lines], *unlogged, trace=True)
    assert found.verdict is (Verdict.HOLDS if lines else Verdict.UNDETERMINED)
    assert (found.events, found.line) == (len(lines), len(lines))
    assert found.trace is not None
    follow(bound, found.trace)
    logged = [step for step in found.trace.steps if step.action not in unlogged]
    assert [step.action for step in logged] == [line.rule.name for line in lines]
    assert all(fits(line.args, step.arguments) for line, step in zip(lines, logged, strict=True))


@by_name
@OFTEN
@given(seed=st.integers(0, 2**32), silent=st.booleans())
def test_a_changed_run_is_violated_where_brute_force_says(folder: Path, bound: BoundSpec, seed: int, silent: bool) -> None:
    unlogged = tuple(UNLOGGED[bound.spec.name])[:1] if silent else ()
    teller = Teller(bound, seed)
    lines = teller.run(5, unlogged)
    if not lines:
        return
    lines = teller.spoiled(lines)
    brute = Brute(bound, unlogged)
    found = check(folder, bound, [written(bound, line) for line in lines], *unlogged, trace=True)
    good = next((n for n in range(1, len(lines) + 1) if not brute.possible(lines[:n])), len(lines) + 1) - 1
    states = brute.possible(lines[:good])
    assert found.events == good
    if good == len(lines):
        assert found.verdict is Verdict.HOLDS
        assert found.states == len(states)
        return
    lost = found.unexplained
    assert found.verdict is Verdict.VIOLATED
    assert lost is not None
    assert (lost.line, lost.since) == (good + 1, good)
    assert lost.states == len({after for state in states for after in brute.silent(state)})
    assert list(lost.allowed) == brute.allowed(states)
    blind = Line(lines[good].rule, lines[good].args, {})
    assert lost.candidates == len(brute.possible([*lines[:good], blind]))
    assert bool(lost.differences) == bool(lost.candidates)
    assert found.trace is not None
    follow(bound, found.trace)
    assert found.trace.last in states


@given(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2))))
def test_boxes_hold_the_instances_and_no_other(instances: set[tuple[int, int, int]]) -> None:
    made = boxes(sorted(instances))
    meant = [args for box in made for args in itertools.product(*box)]
    assert sorted(meant) == sorted(instances)


def test_boxes_of_a_product_are_one() -> None:
    assert boxes([(a, b) for a in (0, 2) for b in (1, 2)]) == [((0, 2), (1, 2))]
    assert boxes([]) == []
    assert boxes([()]) == [()]


def test_words_for_several_instances() -> None:
    rules = {rule.name: rule for rule in KV.actions}
    assert said(KV, rules["schedule"], ()) == "schedule()"
    assert said(KV, rules["abort"], [(1,)]) == "abort(r=B)"
    assert said(KV, rules["abort"], [(0, 1)]) == "abort(r=any)"
    assert said(KV, rules["submit"], [(1,), (1, 2), (0,), (0,)]) == "submit(r=B, prompt=any, group=0, remote=no)"
    process = rules["process"]
    assert isinstance(process.declared.parameters[0].type, SetOf)
    assert said(KV, process, [(0, 2)]) == "process(stops={} or {B})"


def test_an_event_that_nothing_allows(folder: Path) -> None:
    found = check(folder, LENDING, ['{"event": "borrow", "arguments": {"r": "A"}}', '{"note": "x"}', '{"event": "land"}'])
    lost = found.unexplained
    assert lost is not None
    assert (lost.line, lost.since, lost.event, lost.states, lost.candidates) == (3, 1, "land(b=any)", 1, 0)
    assert lost.allowed == ("borrow(r=B)", "launch(r=A)", "finish(r=A)")


def test_an_observation_that_no_state_shows(folder: Path) -> None:
    lines = ['{"event": "borrow", "after": {"held": {"A": 0, "B": 1}, "free": {"0": 1}}}']
    lost = check(folder, LENDING, lines).unexplained
    assert lost is not None
    assert (lost.line, lost.since, lost.candidates) == (1, 0, 2)
    assert [(d.path, d.implementation, d.spec) for d in lost.differences] == [("held[B]", 1, None)]


def test_the_start_chooses_among_initial_states(folder: Path) -> None:
    bound = BoundSpec(load_file(ROOT / "tests/traces/specs/kinds.py"), {})
    starts = bound.initial()
    assert len(starts) > 1
    expected = Observer(bound).expected
    action = bound.actions[0]
    for _, _, state in starts:
        start = json.loads(log_line(bound, action, next(action.choices()), expected(state)))["after"]
        found = check(folder, bound, [json.dumps({"start": start}), json.dumps({"gap": "x"})], trace=True)
        assert found.states == 1
        assert found.trace is not None
        assert found.trace.initial == state


def test_a_start_that_is_no_initial_state(folder: Path) -> None:
    found = check(folder, LENDING, ['{"start": {"free": [1, 0]}}', '{"event": "borrow"}'])
    assert found.verdict is Verdict.VIOLATED
    lost = found.unexplained
    assert lost is not None
    assert (lost.line, lost.event, lost.candidates) == (1, "start", 1)
    assert [(d.path, d.implementation, d.spec) for d in lost.differences] == [("free", [1, 0], [0, 1])]


def test_a_start_after_an_event_is_refused(folder: Path) -> None:
    with pytest.raises(LogError, match=r"a\.jsonl:2: 'start' stands before the first event"):
        check(folder, LENDING, ['{"event": "borrow"}', '{"start": {}}'])


def test_after_a_gap_nothing_is_known(folder: Path) -> None:
    good, bad = '{"event": "borrow", "arguments": {"r": "A"}}', '{"event": "land"}'
    found = check(folder, LENDING, [good, '{"gap": "restarted"}', bad, good])
    assert found.verdict is Verdict.UNDETERMINED
    assert (found.events, found.unchecked) == (1, 2)
    assert str(found.reason).endswith("a.jsonl:2: events may be missing here (restarted)")
    found = check(folder, LENDING, [bad, '{"gap": "restarted"}', good])
    assert found.verdict is Verdict.VIOLATED
    with pytest.raises(LogError, match=r"a\.jsonl:3: unknown event"):
        check(folder, LENDING, [good, '{"gap": "restarted"}', '{"event": "lent"}'])


def test_a_log_that_is_cut_off_is_undetermined_unless_it_was_violated(folder: Path) -> None:
    path = folder / "cut.jsonl"
    path.write_text('{"event": "borrow"}\n{"event": "bor')
    found = validate(Log(path, LENDING))
    assert (found.verdict, found.events) == (Verdict.UNDETERMINED, 1)
    assert str(found.reason).endswith("cut.jsonl:2: the last line is cut off")
    path.write_text('{"event": "land"}\n{"event": "bor')
    assert validate(Log(path, LENDING)).verdict is Verdict.VIOLATED


def test_a_log_without_events_is_undetermined(folder: Path) -> None:
    found = check(folder, LENDING, ['{"start": {}}', '{"note": "nothing happened"}'])
    assert (found.verdict, found.reason) == (Verdict.UNDETERMINED, "the log has no event")


def test_the_cap_on_states_is_no_silent_cut(folder: Path) -> None:
    lines = ['{"event": "press"}'] * 3
    assert check(folder, LAMPS, lines).states == 4
    found = check(folder, LAMPS, lines, limits=Limits(max_states=3))
    assert found.verdict is Verdict.UNDETERMINED
    assert str(found.reason).endswith("a.jsonl:2: more than 3 states (--max-states)")
    assert (found.events, found.states, found.unchecked) == (1, 3, 2)
    found = check(folder, LAMPS, ['{"event": "press"}'], "press", limits=Limits(max_states=7))
    assert (found.verdict, found.events, found.unchecked) == (Verdict.UNDETERMINED, 0, 1)


def test_an_interrupt_and_the_end_of_memory_are_reasons(folder: Path) -> None:
    bound = BoundSpec(LAMPS.spec, {"lamps": 12})
    lines = ['{"event": "press"}'] * 6
    found = check(folder, bound, lines, limits=Limits(cancelled=lambda: True))
    assert (found.verdict, found.unchecked) == (Verdict.UNDETERMINED, None)
    assert str(found.reason).endswith("interrupted")
    found = check(folder, bound, lines, limits=Limits(max_bytes=1))
    assert found.verdict is Verdict.UNDETERMINED
    assert "memory limit" in str(found.reason)


def test_long_work_is_compiled_and_comes_out_alike(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bound = BoundSpec(LAMPS.spec, {"lamps": 6})
    lines = ['{"event": "press", "after": {"on": {"0": false}}}'] * 6
    plain = check(folder, bound, lines, trace=True)
    compiled: list[BoundSpec] = []

    class Watched(Stepper):
        def __init__(self, bound: BoundSpec, *, symmetry: bool = True) -> None:
            compiled.append(bound)
            super().__init__(bound, symmetry=symmetry)

    monkeypatch.setattr("fencepost.checker.conform.validate.WORTH_COMPILING", 0.0)
    monkeypatch.setattr("fencepost.checker.conform.validate.Stepper", Watched)
    assert check(folder, bound, lines, trace=True) == plain
    assert compiled == [bound]


def test_sizes_at_which_instances_cannot_be_listed(folder: Path) -> None:
    sizes = {"requests": 100, "blocks": 200, "prompt-tokens": 50, "max-num-batched-tokens": 64}
    bound = BoundSpec(KV.spec, sizes, enumerable=False)
    lines = [
        '{"event": "submit", "arguments": {"r": "99", "prompt": 50, "group": 0, "remote": false}}',
        '{"event": "schedule", "after": {"running": ["99"]}}',
        '{"event": "run_step"}',
        '{"event": "process", "arguments": {"stops": ["99"]}, "after": {"running": []}}',
    ]
    assert check(folder, bound, lines).verdict is Verdict.HOLDS
    lost = check(folder, bound, [*lines[:2], *lines[3:]]).unexplained
    assert lost is not None
    assert lost.event == "process(stops={99})"
    assert "run_step()" in lost.allowed
    assert "process(…), perhaps: it has too many instances to try them" in lost.allowed
    with pytest.raises(LogError, match=r"a\.jsonl:1: process can be .* events, at most 1,000,000 are tried; give more"):
        check(folder, bound, ['{"event": "process"}'])


def test_a_spec_that_leaves_its_bounds_is_an_error_of_input(tmp_path: Path) -> None:
    bound = BoundSpec(load_file(ROOT / "tests/cli/specs/overflow.py"), {})
    with pytest.raises(LogError, match=r"a\.jsonl:4: the spec leaves its own bounds"):
        check(tmp_path, bound, ['{"event": "add"}'] * 5)
