"""Trace files: their form, and reading them back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fencepost.spec.lang import BoundSpec
from fencepost.traces import itf, recorded
from fencepost.traces.files import TraceError
from fencepost.traces.origin import Origin
from fencepost.traces.trace import Trace

Walk = Callable[..., Trace]
JOBS = (("begin", (1, 0b101, 1)), ("count", (-1,)), ("end", ()))


def made(bound: BoundSpec, walk: Walk, **more: Any) -> dict[str, Any]:
    trace = walk(bound, "idle-is-calm", *JOBS, start=1)
    origin = Origin.of(bound, trace.property, source="kinds.py", engine="reference")
    return itf.document(bound, trace, origin, **more)


def test_a_trace_is_valid_itf(kinds: BoundSpec, walk: Walk) -> None:
    document = made(kinds, walk)
    assert set(document) == {"#meta", "vars", "states"}
    assert document["vars"] == ["mood", "last", "on", "low", "owner", "queue", "jobs"]
    for index, state in enumerate(document["states"]):
        assert set(state) == {"#meta", *document["vars"]}
        assert state["#meta"]["index"] == index
    assert document["#meta"]["format"] == "ITF"
    assert set(document["#meta"]["varTypes"]) == set(document["vars"])


def test_what_fencepost_adds_stands_under_meta(kinds: BoundSpec, walk: Walk) -> None:
    document = made(kinds, walk)
    own = document["#meta"]["fencepost"]
    assert own["format"] == 1
    assert own["spec"] == {"name": "kinds", "source": "kinds.py", "sha256": kinds.spec.source_hash()}
    assert own["bounds"]["values"] == {"requests": 2, "blocks": 3, "limit": 3}
    assert own["property"]["statement"] == "Without jobs, the mood is calm and nobody was last."
    assert own["init"] == {"action": "start", "arguments": {"n": 1}}
    assert [state["#meta"] for state in document["states"]] == [
        {"index": 0, "action": "start", "arguments": {"n": 1}},
        {
            "index": 1,
            "action": "begin",
            "arguments": {"r": 1, "picked": [0, 2], "loud": True},
            "changed": ["mood", "last", "on", "jobs"],
        },
        {"index": 2, "action": "count", "arguments": {"by": -1}, "changed": ["low"]},
        {"index": 3, "action": "end", "arguments": {}, "changed": ["mood", "jobs"]},
    ]


def test_the_variables_of_quint_are_written_when_asked_for(kinds: BoundSpec, walk: Walk) -> None:
    document = made(kinds, walk, mbt=True)
    assert document["vars"][-2:] == ["mbt::actionTaken", "mbt::nondetPicks"]
    state = document["states"][1]
    assert state["mbt::actionTaken"] == "begin"
    assert state["mbt::nondetPicks"] == {
        "n": {"tag": "None", "value": "U_OF_UNIT"},
        "r": {"tag": "Some", "value": {"#bigint": "1"}},
        "picked": {"tag": "Some", "value": {"#set": [{"#bigint": "0"}, {"#bigint": "2"}]}},
        "loud": {"tag": "Some", "value": True},
        "by": {"tag": "None", "value": "U_OF_UNIT"},
    }
    assert "picked: Some(Set(Int)) | None(UNIT)" in document["#meta"]["varTypes"]["mbt::nondetPicks"]
    assert "mbt::actionTaken" not in recorded.parse(itf.dump(document), "x").variables


def test_a_file_is_the_same_every_time(kinds: BoundSpec, walk: Walk, tmp_path: Path) -> None:
    itf.write(tmp_path / "a", made(kinds, walk))
    itf.write(tmp_path / "b", made(kinds, walk))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert json.loads((tmp_path / "a").read_text()) == made(kinds, walk)


def test_a_file_is_read_back(kinds: BoundSpec, walk: Walk) -> None:
    read = recorded.parse(itf.dump(made(kinds, walk)), "x")
    assert read.origin == Origin.of(kinds, "idle-is-calm", source="kinds.py", engine="reference")
    assert read.start == ("start", {"n": 1})
    assert read.steps[1] == ("count", {"by": -1})
    assert len(read.states) == 4
    assert read.loop is None


def change(document: dict[str, Any], path: str, value: Any) -> str:
    """The document with one value changed (or deleted, for `...`), as text."""
    at: Any = document
    *way, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    for part in way:
        at = at[part]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        ("vars", ..., "is JSON, but no ITF trace: it has no vars and states"),
        ("vars", "mood", "vars: expected a list of names, found str"),
        ("states", {}, "states: expected a list, found dict"),
        ("states", [], "states: a trace has at least one state"),
        ("states/1", 5, "states[1]: expected an object, found int"),
        ("states/1/low", ..., "states[1]: has no value for low"),
        ("states/2/#meta/action", 7, "states[2].#meta.action: expected the name of an action, found int"),
        ("states/2/#meta/arguments", [], "states[2].#meta.arguments: expected an object, found list"),
        ("loop", 4, "loop: 4 is not the number of a state (0 to 3)"),
        ("loop", True, "loop: expected the number of a state, found bool"),
        (
            "#meta/fencepost/format",
            2,
            "the trace has format 2, written by Fencepost 0.1.0; this version reads up to format 1",
        ),
        ("#meta/fencepost/format", ..., "#meta.fencepost.format: expected a number, found NoneType"),
        ("#meta/fencepost/spec", "kinds", "#meta.fencepost.spec: expected an object, found str"),
        ("#meta/fencepost/spec/sha256", ..., "#meta.fencepost.spec.sha256: expected text, found NoneType"),
        ("#meta/fencepost/bounds/values/limit", [], "bounds.values.limit: expected a number or a name, found list"),
    ],
)
def test_a_wrong_form_is_named(kinds: BoundSpec, walk: Walk, path: str, value: Any, complaint: str) -> None:
    text = change(made(kinds, walk), path, value)
    with pytest.raises(TraceError, match=re.escape(complaint)):
        recorded.parse(text, "x.itf.json")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("not json", "is not JSON: Expecting value"),
        ("[1, 2]", "is JSON, but no ITF trace"),
        ("3", "is JSON, but no ITF trace"),
        ('{"vars": ["x"], "states": [{"x": tr', "is not JSON"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_trace_at_all(text: str, complaint: str) -> None:
    with pytest.raises(TraceError, match=complaint):
        recorded.parse(text, "x.itf.json")


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9, 0.99])
def test_a_file_that_is_cut_off_is_said_to_be(kinds: BoundSpec, walk: Walk, kept: float) -> None:
    text = itf.dump(made(kinds, walk))
    with pytest.raises(TraceError, match="is not JSON"):
        recorded.parse(text[: int(len(text) * kept)], "x.itf.json")
