"""Progress properties: small models whose answers are known, and random graphs against a plain enumeration."""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from fencepost.checker.explore import explore
from fencepost.checker.explore.lasso import Fairness, Graph, Lasso, components, fair_parts, find_lasso
from fencepost.checker.explore.liveness import decide
from fencepost.checker.model import Limits, Model, Options
from fencepost.checker.result import PropertyResult, Result, Status, Verdict
from fencepost.spec.lang import BoundSpec, load_file
from fencepost.traces import itf, recorded, short
from fencepost.traces.claims import shows
from fencepost.traces.lasso import objection
from fencepost.traces.origin import Origin
from fencepost.traces.revive import revive, revive_short
from fencepost.traces.trace import ReplayError, Step, Trace, follow
from hypothesis import given, settings
from hypothesis import strategies as st

SPECS = Path(__file__).parent / "specs"
FAIR = {"none": "@action", "weak": '@action(fair="weak")', "strong": '@action(fair="strong")'}


def varied(folder: Path, name: str, fair: str) -> BoundSpec:
    """The spec with another fairness of the action that is marked for it."""
    lines = (SPECS / f"{name}.py").read_text().splitlines(keepends=True)
    text = "".join(f"{FAIR[fair]}\n" if line.endswith("# varied\n") else line for line in lines)
    (folder / f"{name}.py").write_text(text)
    return BoundSpec(load_file(folder / f"{name}.py"), {})


def check(bound: BoundSpec, engine: str = "reference", limits: Limits | None = None) -> Result:
    return explore(Model(bound, bound.spec.name), Options(deadlock=False, limits=limits or Limits()), engine)


def found(result: Result, name: str) -> PropertyResult:
    return next(prop for prop in result.properties if prop.name == name)


@pytest.mark.parametrize(
    ("name", "prop", "fair", "actions", "loop"),
    [
        ("mutex", "ann-gets-in", "none", ["ann_comes"], 1),
        ("mutex", "ann-gets-in", "weak", ["ann_comes", "bob_comes", "bob_enters", "bob_leaves"], 1),
        ("mutex", "ann-gets-in", "strong", None, None),
        ("ring", "token-at-the-last", "none", [], 0),
        ("ring", "token-at-the-last", "weak", None, None),
        ("ring", "token-comes-back", "none", [], 0),
        ("ring", "token-comes-back", "strong", None, None),
        ("ring", "at-once", "none", None, None),
        ("retry", "done-in-the-end", "none", ["try_it", "fail"], 0),
        ("retry", "done-in-the-end", "weak", ["try_it", "fail"], 0),
        ("retry", "done-in-the-end", "strong", None, None),
        ("channel", "all-known", "none", ["send", "lose"], 0),
        ("channel", "all-known", "weak", ["send", "lose"], 0),
        ("channel", "all-known", "strong", None, None),
        ("channel", "heard-of", "none", None, None),
        ("program", "ends", "none", [], 0),
        ("program", "ends", "weak", None, None),
        ("program", "ends", "strong", None, None),
        ("program", "passes-one", "weak", None, None),
    ],
)
def test_known_models(tmp_path: Path, name: str, prop: str, fair: str, actions: list[str] | None, loop: int | None) -> None:
    result = found(check(varied(tmp_path, name, fair)), prop)
    if actions is None:
        assert (result.status, result.trace) == (Status.HOLDS, None)
    else:
        assert result.status is Status.VIOLATED
        assert result.trace is not None
        assert ([step.action for step in result.trace.steps], result.trace.loop) == (actions, loop)
        assert result.depth == len(actions)


def test_fairness_is_about_the_action_as_a_whole() -> None:
    result = check(BoundSpec(load_file(SPECS / "waiter.py"), {}))
    assert found(result, "somebody-is-served").status is Status.HOLDS
    trace = found(result, "nobody-is-hungry").trace
    assert trace is not None
    assert [(s.action, s.arguments) for s in trace.steps[trace.loop or 0 :]] == [("serve", (0,)), ("gets_hungry", (0,))]


def test_a_condition_that_never_holds_is_vacuous() -> None:
    result = check(BoundSpec(load_file(SPECS / "program.py"), {}))
    assert found(result, "comes-back").status is Status.VACUOUS
    assert result.verdict is Verdict.UNDETERMINED
    assert result.reason == "vacuous: comes-back: its condition never holds"


def test_the_native_engine_says_who_decides() -> None:
    result = check(BoundSpec(load_file(SPECS / "retry.py"), {}), "native")
    assert result.verdict is Verdict.UNDETERMINED
    assert result.reason == "done-in-the-end is a progress property, decided by --engine reference only"
    assert found(result, "done-in-the-end").reason == "a progress property, decided by --engine reference only"


IDLE = '''"""A clock that may be looked at."""

from fencepost.spec.lang import Array, Int, action, eventually, state


@state
class Clock:
    """The time."""

    n: Int(0, 3)
    names: Array[2, Int(0, 1)]


@action
def look(s):
    """Somebody looks at the clock."""


@action
def tick(s):
    """Time goes by."""
    s.n = min(s.n + 1, 3)


@eventually
def late(s):
    """It gets late."""
    return GOAL
'''


def test_an_action_that_changes_nothing_is_shown_rather_than_nothing(tmp_path: Path) -> None:
    (tmp_path / "clock.py").write_text(IDLE.replace("GOAL", "s.n == 3"))
    bound = BoundSpec(load_file(tmp_path / "clock.py"), {})
    trace = check(bound).trace
    assert trace is not None
    assert ([step.action for step in trace.steps], trace.loop) == (["look"], 0)


STEPS = '''"""A counter that may go up by nothing."""

from fencepost.spec.lang import Int, action, eventually, state


@state
class Counter:
    """The counter."""

    n: Int(0, 3)


@action(fair="weak")
def go_up(s, by: Int(0, 1)):
    """The counter goes up."""
    s.n = min(s.n + by, 3)


@eventually
def at_three(s):
    """It gets to three."""
    return s.n == 3
'''


def test_an_instance_that_changes_nothing_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "counter.py").write_text(STEPS)
    bound = BoundSpec(load_file(tmp_path / "counter.py"), {})
    assert check(bound).verdict is Verdict.HOLDS
    ((_, _, state),) = bound.initial()
    idle = Trace(bound.spec.name, bound.values, "at-three", None, state, (Step("go_up", (0,), state),), 0)
    assert objection(bound, bound.properties[0], idle) == "it is not fair to go_up"


def test_a_goal_that_cannot_be_evaluated(tmp_path: Path) -> None:
    (tmp_path / "clock.py").write_text(IDLE.replace("GOAL", "s.names[s.n] == 1"))
    result = check(BoundSpec(load_file(tmp_path / "clock.py"), {}))
    assert result.verdict is Verdict.UNDETERMINED
    assert (result.reason or "").endswith("clock.py:28: index 2 is outside an array of 2")


@pytest.mark.parametrize(
    ("limits", "spent", "reason"),
    [
        (Limits(max_states=10), 0.0, "more than 10 states without symmetry (--max-states)"),
        (Limits(max_seconds=60), 61.0, "time limit of 60 s (--max-time)"),
        (Limits(max_bytes=1), 0.0, "memory limit of 1 bytes (--max-memory)"),
        (Limits(cancelled=lambda: True), 0.0, "interrupted"),
    ],
)
def test_limits(limits: Limits, spent: float, reason: str) -> None:
    bound = BoundSpec(load_file(SPECS / "waiter.py"), {"guests": 4})
    assert set(decide(bound, limits, spent).values()) == {reason}


def test_a_limit_that_only_the_full_graph_reaches() -> None:
    result = check(BoundSpec(load_file(SPECS / "waiter.py"), {"guests": 4}), limits=Limits(max_states=10))
    assert (result.cut, result.figures.distinct) == (None, 5)
    assert {p.status for p in result.properties} == {Status.UNDETERMINED}
    reason = "more than 10 states without symmetry (--max-states)"
    assert result.reason == f"somebody-is-served is undetermined: {reason}; nobody-is-hungry is undetermined: {reason}"


@pytest.fixture(params=[("mutex", "none"), ("mutex", "weak"), ("ring", "none"), ("retry", "weak"), ("retry", "none")])
def lasso(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[BoundSpec, Trace]:
    """A spec, and a lasso that violates a property of it."""
    bound = varied(tmp_path, *request.param)
    trace = check(bound).trace
    assert trace is not None
    return bound, trace


def test_a_lasso_must_close(lasso: tuple[BoundSpec, Trace]) -> None:
    bound, trace = lasso
    prop = next(p for p in bound.properties if p.name == trace.property)
    assert follow(bound, trace) == trace
    assert objection(bound, prop, trace) is None
    assert shows(bound, trace)
    for loop in (-1, len(trace) + 1, *(n for n, state in enumerate(trace.states) if state != trace.last)):
        wrong = replace(trace, loop=loop)
        with pytest.raises(ReplayError, match=f"the last state is not state {loop}, to which the trace returns"):
            follow(bound, wrong)
        assert objection(bound, prop, wrong) == "its end is not the state that it returns to"
        assert not shows(bound, wrong)
    assert objection(bound, prop, replace(trace, loop=None)) == "it does not go on for ever"


def test_an_unfair_lasso_shows_nothing(tmp_path: Path) -> None:
    trace = check(varied(tmp_path, "mutex", "weak")).trace
    assert trace is not None
    strong = varied(tmp_path, "mutex", "strong")
    prop = next(p for p in strong.properties if p.name == trace.property)
    assert objection(strong, prop, trace) == "it is not fair to ann_enters"
    assert not shows(strong, trace)


def test_a_lasso_in_a_file(lasso: tuple[BoundSpec, Trace]) -> None:
    bound, trace = lasso
    made = itf.document(bound, trace, Origin.of(bound, trace.property))
    states, loop = trace.states, made["loop"]
    assert trace.loop is not None
    path = [*states, *(states[trace.loop + 1 :] or states[-1:])]
    assert path == [*states, *states[loop:]]
    assert revive(bound, recorded.parse(json.dumps(made), "x")).trace == trace
    assert revive_short(bound, short.parse(short.shorten(bound, trace))).trace == trace


def test_a_lasso_of_another_tool_that_leaves_out_the_way_back(tmp_path: Path) -> None:
    bound = varied(tmp_path, "retry", "weak")
    trace = check(bound).trace
    assert trace is not None
    made = itf.document(bound, trace, Origin.of(bound, trace.property))
    del made["#meta"], made["states"][-1]
    made["loop"] = 0
    assert revive(bound, recorded.parse(json.dumps(made), "x")).trace == trace


def test_the_command_line(tmp_path: Path) -> None:
    varied(tmp_path, "retry", "weak")
    script = "import sys; from fencepost.checker.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", script, "check", "retry.py", "--engine", "reference"]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}

    def run(*more: str) -> str:
        done = subprocess.run([*command, *more], capture_output=True, text=True, cwd=tmp_path, env=environment)
        assert done.returncode == 1, done.stderr
        return done.stdout

    text = run()
    assert "VIOLATED: done-in-the-end at its one size (no bounds)" in text
    assert "then back to state 0: 1 to 2 again and again, for ever" in text
    made = json.loads(run("--json"))
    assert made["trace"]["loop"] == 1
    assert made["properties"][0]["trace"] == made["trace"]


@dataclass(frozen=True)
class Case:
    """A random graph: edges as (from, action, to), initial states, states to stay in, and where the path may begin."""

    edges: tuple[tuple[int, int, int], ...]
    initial: tuple[int, ...]
    stays: tuple[bool, ...]
    asks: tuple[bool, ...] | None
    fair: tuple[str, ...]

    @property
    def fairness(self) -> Fairness:
        """The fairness as bits."""
        weak, strong = (sum(1 << a for a, kind in enumerate(self.fair) if kind == k) for k in ("weak", "strong"))
        return Fairness(weak, strong)

    def graph(self) -> Graph:
        """The part that can be reached, as the search wants it; its states are `(number here,)`."""
        graph = Graph.starting((n,) for n in self.initial)
        while (state := graph.waiting()) is not None:
            graph.expand((action, (), (to,)) for n, action, to in self.edges if n == state[0])
        return graph

    def begins(self, here: int) -> bool:
        """Whether a path that does not get there may begin in a state."""
        asked = here in self.initial if self.asks is None else self.asks[here]
        return asked and self.stays[here]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    size = draw(st.integers(1, 6))
    states = st.integers(0, size - 1)
    edges = draw(st.lists(st.tuples(states, st.integers(0, 2), states), max_size=14))
    initial = draw(st.lists(states, min_size=1, max_size=2, unique=True))
    flags = st.tuples(*[st.booleans()] * size)
    stays = draw(st.one_of(st.just((True,) * size), flags))
    fair = draw(st.tuples(*[st.sampled_from(sorted(FAIR))] * 3))
    return Case(tuple(edges), tuple(initial), stays, draw(st.none() | flags), fair)


def ignored(case: Case, states: Iterable[int], taken: set[int]) -> bool:
    """Whether a path that visits these states for ever, and takes these actions, is unfair."""
    able = [{a for n, a, to in case.edges if n == state and to != n} for state in states]
    for action, kind in enumerate(case.fair):
        always, ever = all(action in a for a in able), any(action in a for a in able)
        if action not in taken and ((kind == "weak" and always) or (kind == "strong" and ever)):
            return True
    return False


def connected(states: Sequence[int], edges: Sequence[tuple[int, int, int]]) -> bool:
    """Whether each of the states leads to each other one, by repeated squaring of the relation."""
    leads = {(n, n) for n in states} | {(n, to) for n, _, to in edges}
    while True:
        more = leads | {(a, d) for a, b in leads for c, d in leads if b == c}
        if more == leads:
            return len(leads) == len(states) ** 2
        leads = more


def fair_sets(case: Case) -> list[set[int]]:
    """Every set of states that some fair path within `stays` visits again and again, just those."""
    allowed = [n for n, stays in enumerate(case.stays) if stays]
    made: list[set[int]] = []
    for size in range(1, len(allowed) + 1):
        for states in itertools.combinations(allowed, size):
            inner = [e for e in case.edges if e[0] in states and e[2] in states and e[0] != e[2]]
            if connected(states, inner) and not ignored(case, states, {a for _, a, _ in inner}):
                made.append(set(states))
    return made


def shortest_stem(case: Case, goals: set[int]) -> int | None:
    """The fewest transitions from an initial state to one of the goals, within `stays` from some beginning on."""
    level = {(n, False) for n in case.initial}
    for length in range(2 * len(case.stays) + 1):
        level |= {(n, True) for n, _ in level if case.begins(n)}
        if any(begun and n in goals for n, begun in level):
            return length
        level |= {(to, begun) for n, begun in level for a, _, to in case.edges if a == n and (case.stays[to] or not begun)}
    return None


def assert_is_a_lasso(case: Case, graph: Graph, lasso: Lasso) -> None:
    edges = [*lasso.stem, *lasso.cycle]
    states = [graph.states[lasso.start][0], *(graph.states[graph.to[e]][0] for e in edges)]
    for before, edge, after in zip(states, edges, states[1:], strict=False):
        assert graph.states[graph.source[edge]] == (before,)
        assert (before, graph.action(edge), after) in case.edges
    entry = len(lasso.stem)
    assert states[0] in case.initial
    assert states[entry] == states[-1]
    assert any(
        case.begins(state) and all(case.stays[s] for s in states[number:]) for number, state in enumerate(states[: entry + 1])
    )
    assert not ignored(case, states[entry:], {graph.action(e) for e in lasso.cycle})


@settings(max_examples=400, deadline=None)
@given(cases())
def test_lassos_on_random_graphs(case: Case) -> None:
    graph = case.graph()
    here = [state[0] for state in graph.states]
    starts = [number for number, n in enumerate(here) if case.begins(n)]
    lasso = find_lasso(graph, case.fairness, starts, [case.stays[n] for n in here])
    expected = shortest_stem(case, {n for states in fair_sets(case) for n in states})
    assert (None if lasso is None else len(lasso.stem)) == expected
    if lasso is not None:
        assert_is_a_lasso(case, graph, lasso)


@settings(max_examples=100, deadline=None)
@given(cases())
def test_fair_parts_are_the_largest_fair_sets(case: Case) -> None:
    graph = case.graph()
    inside = [number for number, (n,) in enumerate(graph.states) if case.stays[n]]
    parts = [{graph.states[n][0] for n in part} for part in fair_parts(graph, case.fairness, set(inside))]
    reached = {graph.states[n][0] for n in inside}
    sets = [states for states in fair_sets(case) if states <= reached]
    largest = [states for states in sets if not any(states < other for other in sets)]
    assert sorted(map(sorted, parts)) == sorted(map(sorted, largest))


def test_long_ways_do_not_exhaust_the_stack() -> None:
    size = 20_000
    graph = Graph.starting([(0,)])
    while (state := graph.waiting()) is not None:
        graph.expand([(0, (), ((state[0] + 1) % size,))])
    assert [len(part) for part in components(graph, range(size))] == [size]
    lasso = find_lasso(graph, Fairness(weak=1), [0], bytes([1]) * size)
    assert lasso is not None
    assert (len(lasso.stem), len(lasso.cycle)) == (0, size)
