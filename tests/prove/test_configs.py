"""Which configurations need the fence: the same by two engines and by bounded search, and errors in a gate are found."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from fencepost.checker.cli import kvdata
from fencepost.checker.cli.main import main
from fencepost.checker.cli.target import load_shipped
from fencepost.checker.explore import explore
from fencepost.checker.explore.native.engine import NativeEngine
from fencepost.checker.model import Limits, Model, Options
from fencepost.checker.prove import configs
from fencepost.checker.prove.bmc import BoundedSearch
from fencepost.checker.prove.condition import Value
from fencepost.checker.prove.configs import CORRUPTION, GRID, PATHS, STAKES, Answer, Need, Row, deferred, find_configs, grid
from fencepost.checker.prove.configs_report import ConfigsDocument
from fencepost.checker.result import Verdict
from fencepost.spec.lang import BoundSpec, Spec, load_module
from fencepost.traces.claims import shows
from fencepost.traces.trace import follow

SPEC_FOLDER = Path(str(load_shipped("kv").module.__file__)).parent
RELEASE = "vllm-0.33"
SMALL: dict[str, Value] = {"blocks": "2", "prompt-tokens": "1"}
PAIR: dict[str, Value] = {**SMALL, "enable-prefix-caching": "0", "async-scheduling": "1", "steps-in-flight": "2"}
"""What leaves the roles, with and without loads; small, for the sake of time."""
ONE: dict[str, Value] = {**PAIR, "kv-role": "kv_consumer", "remote-tokens": "1"}
"""One configuration, which needs the fence."""
CLI = ["prove", "kv", "--find-configs", "--profile", RELEASE, "--bounds", ",".join(f"{n}={v}" for n, v in PAIR.items())]


def unheard(profile: str, number: int, of: int) -> None:
    """Progress that nobody looks at."""


def answer_of(
    given: dict[str, Value], *profiles: str, spec: Spec | None = None, limits: Limits | None = None, engine: str = "native"
) -> Answer:
    """The answer for some profiles (0.33 if none is named)."""
    switches = {name: kvdata.profile(name).switches for name in profiles or (RELEASE,)}
    return find_configs(spec or load_shipped("kv"), switches, given, limits or Limits(), unheard, engine)


@pytest.fixture(scope="module")
def pair() -> Answer:
    """The roles with two steps in flight."""
    return answer_of({**PAIR})


def needs(answer: Answer) -> dict[tuple[Value, ...], Need]:
    """What each role, with its loads, makes of the gate."""
    return {row.combination[:2]: row.need for row in answer.releases[0].rows}


def test_names_are_those_of_the_spec() -> None:
    spec = load_shipped("kv")
    assert {*CORRUPTION, *STAKES} <= {prop.name for prop in spec.properties}
    assert {*GRID, *PATHS} <= {*spec.bounds}
    assert all(spec.bounds[name].parse(value) == value for name, values in GRID.items() for value in values)


def test_combinations_are_those_that_an_engine_can_have() -> None:
    features, combinations = grid(load_shipped("kv"), {})
    assert [f.name for f in features] == [*GRID]
    assert len(combinations) == (1 + 3 * 2) * 2 * (1 + 2 + 2)
    assert ("none", 1, 2, 0, 1) not in combinations, "loads need a role"
    assert ("kv_both", 1, 1, 0, 1) not in combinations, "asynchronous scheduling runs ahead"
    assert grid(load_shipped("kv"), {"kv-role": "none", "remote-tokens": "2"})[1] == []


def test_a_producer_that_loads_has_no_fence(pair: Answer) -> None:
    assert needs(pair) == {
        ("none", 0): Need.NONE,
        ("kv_consumer", 0): Need.IDLE,
        ("kv_consumer", 1): Need.HAS,
        ("kv_both", 0): Need.IDLE,
        ("kv_both", 1): Need.HAS,
        ("kv_producer", 0): Need.NONE,
        ("kv_producer", 1): Need.OFF,
    }
    release = pair.releases[0]
    conditions = (release.unsafe, release.gate, release.exposed, release.idle)
    assert [c and c.words for c in conditions] == [
        "remote-tokens = 1",
        "kv-role in {kv_consumer, kv_both}",
        "kv-role = kv_producer and remote-tokens = 1",
        "kv-role in {kv_consumer, kv_both} and remote-tokens = 0",
    ]
    assert (pair.verdict, pair.exit_code, pair.notes) == (Verdict.VIOLATED, 1, [])


def test_traces_run_in_the_release_as_it_is(pair: Answer) -> None:
    rows = [row for row in pair.releases[0].rows if row.at_once.trace is not None]
    assert len(rows) == 3
    for row in rows:
        trace = row.at_once.trace
        assert trace is not None
        once = BoundSpec(row.model.spec, {**row.model.bound.values, **dict.fromkeys(PATHS, "at-once")})
        assert trace.values == once.values
        assert shows(once, follow(once, trace))
    (exposed,) = pair.releases[0].open
    assert exposed.as_is.trace is not None
    assert exposed.as_is.trace.values == exposed.model.bound.values
    assert shows(exposed.model.bound, follow(exposed.model.bound, exposed.as_is.trace))


def said(row: Row) -> tuple[object, ...]:
    """What two engines must agree on."""
    decisions = [(d.verdict, d.distinct, d.trace) for d in (row.at_once, row.as_is)]
    return row.combination, row.deferred, row.need, decisions


def test_the_interpreted_search_decides_the_same(pair: Answer) -> None:
    slow = answer_of({**PAIR}, engine="reference")
    assert list(map(said, slow.releases[0].rows)) == list(map(said, pair.releases[0].rows))


def needed(answer: Answer) -> tuple[Row, Model, Model]:
    """A row that needs the fence and has it; its models freed at once and as it is, with the properties that count."""
    row = next(row for row in answer.releases[0].rows if row.need is Need.HAS)
    values = row.model.bound.values
    once, as_is = (Model.of(row.model.spec, {**values, **more}) for more in (dict.fromkeys(PATHS, "at-once"), {}))
    for model in (once, as_is):
        model.bound.properties = tuple(p for p in model.bound.every if p.name in CORRUPTION)
    return row, once, as_is


def test_compiled_code_decides_the_same(pair: Answer) -> None:
    row, once, as_is = needed(pair)
    assert row.at_once.found is not None
    found = NativeEngine(once).run(Options(deadlock=False))
    assert ({*found.failures}, found.distinct) == ({row.at_once.found.name}, row.at_once.distinct)
    found = NativeEngine(as_is).run(Options(deadlock=False))
    assert ({*found.failures}, found.distinct) == (set(), row.as_is.distinct)


@pytest.mark.slow
def test_bounded_search_decides_the_same(pair: Answer) -> None:
    row, once, as_is = needed(pair)
    assert row.at_once.found is not None
    length = row.at_once.found.depth
    short = Limits(max_depth=length)
    assert [(p.name, p.depth) for p in BoundedSearch(once, short).run().violations] == [(row.at_once.found.name, length)]
    assert not BoundedSearch(as_is, short).run().violations


def test_equal_programs_are_searched_once() -> None:
    decider = configs.Decider(Limits())
    for name in ("reference", RELEASE, "vllm-0.23"):
        values = {**kvdata.profile(name).switches, **ONE, "requests": 2, **dict.fromkeys(PATHS, "at-once")}
        trace = decider.decide(Model.of(load_shipped("kv"), values), fenced=False).trace
        assert trace is not None
        assert trace.values["reset-while-parked"] == ("refuse" if name == "reference" else "raise")
    assert decider.searches == 2, "without resets of running requests, the reference does what 0.33 does"


@pytest.mark.parametrize("path", PATHS)
def test_one_path_without_the_fence_is_found(path: str) -> None:
    sizes: Mapping[str, Value] = (
        configs.SIZES if path == "preemption-free" else {}
    )  # a victim must have had blocks to give back
    (row,) = answer_of({**ONE, **sizes, path: "at-once"}).releases[0].rows
    assert row.deferred == tuple(other for other in PATHS if other != path)
    assert row.need is Need.FAILS


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    """The spec with a gate that forgets one of the roles that load."""
    folder = tmp_path_factory.mktemp("planted") / "planted_kv"
    shutil.copytree(SPEC_FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__", "data"))
    for path in folder.glob("*.py"):
        path.write_text(path.read_text().replace("from ..lang", "from fencepost.spec.lang"))
    pool = folder / "pool.py"
    right = 'return STEPS > 1 and (ROLE == "kv_consumer" or ROLE == "kv_both")'
    assert right in pool.read_text()
    pool.write_text(pool.read_text().replace(right, 'return STEPS > 1 and ROLE == "kv_both"'))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(folder.parent), *sys.path])
        return load_module("planted_kv.kv", "kv")


def test_an_error_planted_in_the_gate_is_found(planted: Spec) -> None:
    answer = answer_of({**PAIR}, spec=planted)
    assert needs(answer)["kv_consumer", 1] is Need.OFF
    assert needs(answer)["kv_both", 1] is Need.HAS
    exposed = answer.releases[0].exposed
    assert exposed is not None
    assert exposed.words == "kv-role in {kv_consumer, kv_producer} and remote-tokens = 1"


def test_the_gate_is_that_of_the_spec(planted: Spec) -> None:
    values = {**kvdata.profile("vllm-0.25").switches, **ONE}
    assert deferred(BoundSpec(load_shipped("kv"), values)) == PATHS
    assert deferred(BoundSpec(planted, values)) == ()
    assert deferred(BoundSpec(load_shipped("kv"), {**values, "steps-in-flight": 1, "async-scheduling": 0})) == ()
    assert deferred(BoundSpec(load_shipped("kv"), {**values, **kvdata.profile("vllm-0.23").switches})) == ()


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (Limits(max_seconds=0.0), "time limit of 0 s (--max-time)"),
        (Limits(cancelled=lambda: True), "interrupted"),
        (Limits(max_bytes=1), "memory limit of 1 bytes (--max-memory)"),
    ],
)
def test_a_limit_leaves_it_undecided(limits: Limits, why: str) -> None:
    answer = answer_of({**ONE}, limits=limits, engine="reference")
    (release,) = answer.releases
    assert [row.need for row in release.rows] == [Need.UNDECIDED]
    assert [row.at_once.reason for row in release.rows] == [why]
    assert (release.unsafe, release.exposed, release.idle) == (None, None, None), "a condition would not be exact"
    assert answer.exit_code == 3


def test_safe_is_nothing_where_nothing_is_at_stake(monkeypatch: pytest.MonkeyPatch) -> None:
    one = {**ONE, "kv-role": "kv_producer", "remote-tokens": "0", "blocks": "1", "prompt-tokens": "1", "max-tokens": "1"}
    (row,) = answer_of(one).releases[0].rows
    assert (row.need, row.at_once.reason) == (
        Need.UNDECIDED,
        "vacuous: witness preemption-with-a-step-in-flight is never reached",
    )
    monkeypatch.setattr(configs, "WALK", 3)
    one = {**ONE, "steps-in-flight": "1", "async-scheduling": "0"}
    (row,) = answer_of(one).releases[0].rows
    assert row.at_once.reason == "vacuous: no load into a block that was freed, in 3 transitions at random"


def test_the_walk_looks_at_loads_into_blocks_that_were_freed() -> None:
    values = {**kvdata.profile(RELEASE).switches, **ONE, "requests": 1, "max-tokens": 1, "aborts": 0}
    again = {**values, "blocks": 1}
    assert configs.reuses(BoundSpec(load_shipped("kv"), again)), "its own block of the last time"
    one_by_one = {**again, "blocks": 9, "uncached-free-order": "tail"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(configs, "WALK", 20)
        assert not configs.reuses(BoundSpec(load_shipped("kv"), one_by_one)), "each block is taken for the first time"


def test_nothing_unsafe_is_noted() -> None:
    answer = answer_of({**PAIR, "kv-role": "none"})
    assert (answer.exit_code, len(answer.notes)) == (0, 1)
    assert "unsafe nowhere" in answer.notes[0]


def test_releases_are_compared() -> None:
    answer = answer_of({**ONE}, "vllm-0.33", "vllm-0.27", "vllm-0.23")
    assert {r.name: [row.need for row in r.rows] for r in answer.releases} == {
        "vllm-0.33": [Need.HAS],
        "vllm-0.27": [Need.HAS],
        "vllm-0.23": [Need.OFF],
    }
    assert answer.exit_code == 1


def test_the_document_and_its_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CLI, "--json", "--trace-out", str(tmp_path / "found.itf.json")]) == 1
    made = ConfigsDocument.model_validate(json.loads(capsys.readouterr().out))
    assert (made.verdict, made.exit_code, made.properties) == ("VIOLATED", 1, [*CORRUPTION])
    (release,) = made.releases
    assert release.exposed.terms == [{"kv-role": ["kv_producer"], "remote-tokens": [1]}]
    (row,) = [row for row in release.rows if row.need == "needed, OFF"]
    assert row.violation is not None
    assert (row.violation.name, row.violation.depth, row.at_once.depth) == ("no-unordered-write-in-flight", 5, 5)
    assert [path.name for path in tmp_path.iterdir()] == ["found.itf.json"]
    assert row.violation.replay is not None
    assert main(shlex.split(row.violation.replay)[1:]) == 0
    assert main([*CLI, "-q"]) == 1


def test_every_trace_has_a_file_and_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        *CLI[:-1],
        "kv-role=kv_producer,remote-tokens=1,enable-prefix-caching=0,async-scheduling=1,blocks=2,prompt-tokens=1",
    ]
    assert main([*words, "--trace-out", str(tmp_path / "found.itf.json")]) == 1
    text = capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "found.itf.json",
        "found.vllm-0.33.kv_producer-1-3-0-1.itf.json",
    ]
    for path in tmp_path.iterdir():
        assert f"fencepost replay {path}" in text
        assert main(["replay", str(path)]) == 0
    assert main(words) == 1
    commands = [line.strip() for line in capsys.readouterr().out.splitlines() if line.startswith("  fencepost replay")]
    assert len(commands) == 2
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0


UNSAFE = "remote-tokens = 1 and steps-in-flight >= 2"
FENCED = "kv-role in {kv_consumer, kv_both} and steps-in-flight >= 2"


@pytest.mark.slow
def test_the_whole_grid_of_every_release() -> None:
    answer = answer_of({}, *kvdata.profiles())
    for release in answer.releases:
        words = [c and c.words for c in (release.unsafe, release.gate, release.exposed, release.idle)]
        if release.name == "vllm-0.23":
            assert words == [UNSAFE, "never", UNSAFE, "never"]
        else:
            exposed = f"kv-role = kv_producer and {UNSAFE}"
            assert words == [UNSAFE, FENCED, exposed, FENCED.replace(" and ", " and remote-tokens = 0 and ")]
    assert answer.notes == []


@pytest.mark.slow
@pytest.mark.parametrize("caching", [0, 1])
def test_what_is_unsafe_ends_in_wrong_tokens(caching: int) -> None:
    spec = load_shipped("kv")
    features, combinations = grid(spec, {"kv-role": "kv_producer", "remote-tokens": 1, "enable-prefix-caching": caching})
    for combination in combinations:
        chosen = {f.name: v for f, v in zip(features, combination, strict=True)}
        values = {**kvdata.profile(RELEASE).switches, **configs.SIZES, **chosen}
        model = replace(Model.of(spec, values), profile=RELEASE)
        model.bound.properties = tuple(p for p in model.bound.every if p.name == "read-freshness")
        wrong = explore(model, Options(deadlock=False)).verdict is Verdict.VIOLATED
        assert wrong == (int(chosen["steps-in-flight"]) > 1), chosen
