"""Partial observations: what a log line may leave out, and what it may not say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.conform.errors import ConformError
from fencepost.checker.conform.log import Log, LogError
from fencepost.checker.result import Verdict
from fencepost.spec.lang import BoundSpec, SpecError, load_file

from .validating import KV, check


@pytest.mark.parametrize(
    ("said", "matches"),
    [
        ({"table": {"A": [0]}}, True),
        ({"table": {"0": [0]}}, True),
        ({"table": {"0": ["0"]}}, True),
        ({"table": {"A": [1]}}, False),
        ({"table": {"A": []}}, False),
        ({"table": {"B": []}}, False),
        ({"table": {"B": None}}, True),
        ({"table": {}}, True),
        ({"table": []}, False),
        ({"first": "A"}, True),
        ({"first": "B"}, False),
        ({"first": 0}, True),
        ({"first": "0"}, True),
        ({"load": {"A": None, "1": None}}, True),
        ({"none": {"B": None}}, True),
        ({"count": "0"}, True),
        ({"made": [0]}, True),
        ({"owner": ["A", None]}, True),
        ({"owner": ["B", None]}, False),
        ({"owner": [0, None]}, True),
        ({"owner": {"1": None}}, True),
        ({"owner": {"0": None}}, False),
        ({"owner": {"2": None}}, True),
        ({"owner": {"2": "A"}}, False),
        ({"pairs": [[0, True], [1, False]]}, True),
        ({"pairs": [[0, 1], [1, 0]]}, False),
        ({"pairs": [[0, True]]}, False),
        ({"steps": [{"ran": True}]}, True),
        ({"steps": [{"ran": False}]}, False),
        ({"steps": [{"ran": True}, {}]}, False),
        ({"steps": []}, False),
        ({"steps": [{"ran": True}, None]}, False),
        ({"steps": [None]}, False),
        ({"steps": {"0": {"more": [1]}, "1": None}}, True),
        ({"steps": {"0": {"more": [2]}}}, False),
        ({"set": [1, "0"]}, True),
        ({"set": [0, 0]}, False),
        ({"set": [0]}, False),
        ({"kind": "FREE"}, True),
        ({"kind": "BUSY"}, False),
        ({"late": 1}, False),
        ({"late": None}, True),
    ],
)
def test_partial_observations_of_an_observed_function(tmp_path: Path, said: dict[str, Any], matches: bool) -> None:
    spec = tmp_path / "shown.py"
    spec.write_text(OBSERVED)
    bound = BoundSpec(load_file(spec), {})
    found = check(tmp_path, bound, [json.dumps({"event": "go", "after": said})])
    assert (found.verdict is Verdict.HOLDS) == matches
    assert bool(found.unexplained and found.unexplained.differences) != matches


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"table": {"a": None}}, "after.table: 'a' is in no state up to the end of the log, so it says nothing; its keys are"),
        ({"table": {"C": None}}, "after.table: 'C' is in no state"),
        ({"table": {"2": None}}, "after.table: '2' is in no state"),
        ({"none": {"C": None}}, "after.none: 'C' is in no state"),
        ({"owner": {"first": None}}, "after.owner: 'first' is in no state"),
        (
            {"steps": {"0": {"rann": None}}},
            "after.steps[0]: 'rann' is in no state up to the end of the log, so it says nothing;",
        ),
        ({"steps": [{"rann": None}]}, "did you mean 'ran'?"),
        ({"steps": [{"0": None}]}, "after.steps[0]: '0' is in no state"),
        ({"load": {"A": None}, "steps": {"1": {"x": None}, "0": {}}}, None),
    ],
)
def test_a_key_that_no_state_has_says_nothing_and_is_refused(tmp_path: Path, said: dict[str, Any], told: str | None) -> None:
    (tmp_path / "shown.py").write_text(OBSERVED)
    bound = BoundSpec(load_file(tmp_path / "shown.py"), {})
    lines = [json.dumps({"event": "go", "after": each}) for each in ({"first": 0}, said, {"first": "A"})]
    if told is None:
        assert check(tmp_path, bound, lines).verdict is Verdict.VIOLATED
        return
    with pytest.raises(LogError) as error:
        check(tmp_path, bound, lines)
    assert "a.jsonl:2: after." in str(error.value)
    assert told in str(error.value)
    assert check(tmp_path, bound, [*lines, '{"gap": "x"}']).verdict is Verdict.UNDETERMINED


def test_a_key_may_be_met_after_the_line_or_before_it(tmp_path: Path) -> None:
    (tmp_path / "shown.py").write_text(OBSERVED)
    bound = BoundSpec(load_file(tmp_path / "shown.py"), {})
    assert check(tmp_path, bound, ['{"event": "go", "after": {"load": {"A": null}}}']).verdict is Verdict.HOLDS
    lines = [
        '{"event": "submit", "arguments": {"r": "A"}, "after": {"requests": {"B": null}}}',
        '{"event": "abort", "arguments": {"r": "A"}, "after": {"requests": {"A": null}}}',
    ]
    assert check(tmp_path, KV, lines).verdict is Verdict.HOLDS
    for wrong in ('{"a": null}', '{"A": {"statsu": null}}'):
        with pytest.raises(LogError, match=r"a\.jsonl:1: after\.requests"):
            check(tmp_path, KV, [f'{{"event": "submit", "arguments": {{"r": "A"}}, "after": {{"requests": {wrong}}}}}'])


@pytest.mark.parametrize(
    ("said", "place"),
    [({"count": "A"}, "count"), ({"made": ["A"]}, "made[0]"), ({"pairs": [["A", True], [1, False]]}, "pairs[0][0]")],
)
def test_a_letter_is_no_number_that_is_not_known_to_be_a_member(tmp_path: Path, said: dict[str, Any], place: str) -> None:
    (tmp_path / "shown.py").write_text(OBSERVED)
    bound = BoundSpec(load_file(tmp_path / "shown.py"), {})
    with pytest.raises(LogError) as error:
        check(tmp_path, bound, [json.dumps({"event": "go", "after": said})])
    assert f"a.jsonl:1: {place}: 'A' is a letter, where the spec shows a number; write the number" in str(error.value)


def test_letters_of_the_kv_spec_are_those_of_requests(tmp_path: Path) -> None:
    submit = (
        '{"event": "submit", "arguments": {"r": "A", "prompt": 1, "group": 0, "remote": false}, "after": {"waiting": ["A"]}}'
    )
    step = ["A", 0, 1, True, [0]]
    assert check(tmp_path, KV, [submit, schedule({"running": ["A"], "flight": [{"rows": [step]}]})]).verdict is Verdict.HOLDS
    assert check(tmp_path, KV, [submit, schedule({"running": ["B"]})]).verdict is Verdict.VIOLATED
    for wrong in ({"free": ["B", 2]}, {"requests": {"A": {"outputs": "A"}}}, {"requests": {"A": {"table": ["A"]}}}):
        with pytest.raises(LogError, match="is a letter, where the spec shows a number"):
            check(tmp_path, KV, [submit, schedule(wrong)])


def schedule(shown: dict[str, Any]) -> str:
    """A line of the KV spec."""
    return json.dumps({"event": "schedule", "after": shown})


OBSERVED = """
from fencepost.spec.lang import Array, Bool, Index, Maybe, action, observed, state

REQUESTS = Index("requests", default=2, letters=True)


@state
class All:
    on: Array[REQUESTS, Bool]
    first: Maybe[REQUESTS]


@action
def go(s):
    s.on[0] = True
    s.first = 0


@observed
def show(s, values):
    assert values == {"requests": 2}
    shown = {
        "table": {r: [r] for r in range(2) if s["on"][r]},
        "first": s["first"],
        "owner": [s["first"], None],
        "count": 0,
        "load": {r: {"of": r} for r in range(2) if not s["on"][0]},
        "none": {},
        "made": [r for r in range(2) if s["on"][r]],
        "pairs": [(r, s["on"][r]) for r in range(2)],
        "steps": [{"ran": True, "more": (1,)}],
        "set": frozenset({0, 1}),
        "kind": "FREE",
    }
    return shown if s["on"][0] else {**shown, "late": 1}
"""


def test_an_observed_function_that_fails_is_named(tmp_path: Path) -> None:
    spec = tmp_path / "shown.py"
    spec.write_text(OBSERVED.replace('"FREE"', 's["off"]'))
    with pytest.raises(SpecError, match="@observed show: KeyError"):
        Log(tmp_path / "x", BoundSpec(load_file(spec), {}))
    spec.write_text(f"{OBSERVED}    return 3\n".replace("return shown", "shown"))
    with pytest.raises(ConformError, match="its @observed function returns int, not a dict"):
        Log(tmp_path / "x", BoundSpec(load_file(spec), {}))
