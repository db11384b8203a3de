"""A recorded trace is accepted where it fits or still runs, and refused with the difference named."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fencepost.spec.lang import BoundSpec, load_file
from fencepost.traces import itf, recorded
from fencepost.traces.claims import shown_by, shows, spec_error_after
from fencepost.traces.files import TraceError
from fencepost.traces.origin import Origin
from fencepost.traces.revive import revive
from fencepost.traces.trace import ReplayError, Trace

Walk = Callable[..., Trace]
VIOLATION = (("borrow", (1,)), ("launch", (1,)), ("finish", (1,)))


def read(bound: BoundSpec, trace: Trace, **more: Any) -> recorded.Recorded:
    made = itf.document(bound, trace, Origin.of(bound, trace.property), **more)
    return recorded.parse(itf.dump(made), "x")


def test_a_trace_that_fits_comes_back_unchanged(lending: BoundSpec, kinds: BoundSpec, walk: Walk) -> None:
    trace = walk(lending, "no-free-block-is-written", *VIOLATION)
    assert revive(lending, read(lending, trace)).trace == trace
    jobs = walk(kinds, "one-job", ("begin", (0, 0b111, 1)), ("count", (1,)), start=1)
    back = revive(kinds, read(kinds, jobs, mbt=True))
    assert (back.trace, back.notes) == (jobs, ())


def test_another_version_of_fencepost_is_noted(lending: BoundSpec, walk: Walk) -> None:
    old = read(lending, walk(lending, "no-free-block-is-written", *VIOLATION))
    assert old.origin is not None
    back = revive(lending, replace(old, origin=replace(old.origin, version="0.0.1")))
    assert back.notes[0].startswith("written by Fencepost 0.0.1, this is ")


def test_other_bounds_are_noted_if_it_still_runs(lending: BoundSpec, walk: Walk) -> None:
    old = read(lending, walk(lending, "no-free-block-is-written", *VIOLATION))
    larger = BoundSpec(lending.spec, {"blocks": 3})
    back = revive(larger, old)
    assert "blocks was 2, is 3" in back.notes[0]
    assert shows(larger, back.trace)
    with pytest.raises(ReplayError, match=r"requests was 2, is 1.*step 1: borrow.* is outside the bounds"):
        revive(BoundSpec(lending.spec, {"requests": 1}), old)
    with pytest.raises(ReplayError, match=r"fence was off, is on.*step 3: finish is not enabled"):
        revive(BoundSpec(lending.spec, {"fence": "on"}), old)


def test_another_text_of_the_spec_is_noted_if_it_still_runs(lending: BoundSpec, walk: Walk, tmp_path: Path) -> None:
    old = read(lending, walk(lending, "no-free-block-is-written", *VIOLATION))
    text = Path(str(lending.spec.module.__file__)).read_text()
    (tmp_path / "lending.py").write_text(text.replace("s.free.append(s.held[r])", "s.free.push_front(s.held[r])"))
    changed = BoundSpec(load_file(tmp_path / "lending.py"), {})
    back = revive(changed, old)
    assert "the spec has another text" in back.notes[0]
    assert shown_by(changed, back.trace) == ("no-free-block-is-written",)
    other = tmp_path / "other" / "lending.py"  # sources are remembered by the name of their file
    other.parent.mkdir()
    other.write_text(text.replace("def launch", "def launch_step"))
    with pytest.raises(TraceError, match=r"another text.*step 2: this spec has no action launch"):
        revive(BoundSpec(load_file(other), {}), old)


def test_a_file_changed_by_hand_is_refused(lending: BoundSpec, walk: Walk) -> None:
    document = itf.document(lending, walk(lending, "x", *VIOLATION), Origin.of(lending, "no-free-block-is-written"))
    document["states"][2]["writing"] = {"#set": []}
    with pytest.raises(ReplayError, match=r"step 2: launch leads to another state.*though spec and bounds"):
        revive(lending, recorded.parse(json.dumps(document), "x"))
    document["states"][2]["writing"] = {"#set": [{"#bigint": "7"}]}
    with pytest.raises(TraceError, match=r"states\[2\].writing: .*is not a set of members"):
        revive(lending, recorded.parse(json.dumps(document), "x"))
    document["states"][1]["#meta"]["arguments"] = {"q": 0}
    with pytest.raises(TraceError):
        revive(lending, recorded.parse(json.dumps(document), "x"))


@pytest.mark.parametrize("given", [{"r": "A"}, {"r": True}, {}, {"r": 0, "q": 1}, {"r": 5}])
def test_arguments_that_do_not_fit(lending: BoundSpec, walk: Walk, given: dict[str, Any]) -> None:
    document = itf.document(lending, walk(lending, "x", ("borrow", (0,))), Origin.of(lending, "x"))
    document["states"][1]["#meta"]["arguments"] = given
    with pytest.raises((TraceError, ReplayError), match="step 1: borrow"):
        revive(lending, recorded.parse(json.dumps(document), "x"))


def test_a_trace_of_another_tool_needs_only_the_variables(lending: BoundSpec, walk: Walk) -> None:
    trace = walk(lending, "no-free-block-is-written", *VIOLATION)
    document = itf.document(lending, trace, Origin.of(lending, trace.property))
    del document["#meta"]
    for state in document["states"]:
        del state["#meta"]
    back = revive(lending, recorded.parse(json.dumps(document), "x"))
    assert back.trace == trace
    assert back.notes == ("not written by Fencepost: the actions were found by search",)
    document["states"].pop(1)
    with pytest.raises(ReplayError, match="step 1: no action leads from its state to the next"):
        revive(lending, recorded.parse(json.dumps(document), "x"))
    document["states"].pop(0)
    with pytest.raises(ReplayError, match="its first state is no initial state"):
        revive(lending, recorded.parse(json.dumps(document), "x"))


def test_variables_of_another_spec(lending: BoundSpec, kinds: BoundSpec, walk: Walk) -> None:
    document = itf.document(lending, walk(lending, ""), Origin.of(lending, ""))
    del document["#meta"]
    with pytest.raises(TraceError, match="vars: the variables differ from those of kinds: free, held, jobs"):
        revive(kinds, recorded.parse(json.dumps(document), "x"))


BEGIN = ("begin", (0, 1, 0))
NOISE = ("begin", (0, 1, 1))


@pytest.mark.parametrize(
    ("actions", "loop", "found"),
    [
        ((BEGIN,), None, ()),
        ((BEGIN, BEGIN), None, ("one-job",)),
        ((NOISE, BEGIN), None, ("one-job", "never-quieter")),
        ((BEGIN, ("end", ())), None, ("idle-is-calm",)),
        ((BEGIN, ("count", (0,))), 1, ()),
        ((NOISE, ("count", (0,))), 1, ("quiet-again",)),
        ((NOISE, ("count", (0,))), 0, ()),
        ((BEGIN, ("count", (-1,)), ("count", (-1,))), None, ("spec-error",)),
    ],
)
def test_what_a_trace_shows(kinds: BoundSpec, walk: Walk, actions: Any, loop: int | None, found: tuple[str, ...]) -> None:
    trace = walk(kinds, "", *actions, loop=loop)
    assert shown_by(kinds, trace) == found
    assert all(shows(kinds, replace(trace, property=name)) for name in found)
    assert not shows(kinds, replace(trace, property="no-such-property"))


def test_a_witness_is_shown_by_the_state_at_the_end(kinds: BoundSpec, walk: Walk) -> None:
    assert shows(kinds, walk(kinds, "a-job", BEGIN))
    assert not shows(kinds, walk(kinds, "a-job"))


def test_a_spec_error_is_named_with_its_place(kinds: BoundSpec, walk: Walk) -> None:
    trace = walk(kinds, "spec-error", BEGIN, ("count", (-1,)), ("count", (-1,)))
    found = spec_error_after(kinds, trace)
    assert found is not None
    assert found.endswith("(in count(by=-1))")
    assert "kinds.py:" in found
    assert "-3 is stored where -2..3 is declared" in found
