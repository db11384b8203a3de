"""State values in ITF: what is written can be read back, and what does not fit is refused with its place."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from fencepost.spec.lang import BoundSpec
from fencepost.spec.lang.layout import ArrayShape, Leaf, RecordShape, SeqShape, SetShape, Shape
from fencepost.traces.untyped import is_list, is_object
from fencepost.traces.values import big, from_itf, to_itf, type_in_apalache
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def cells(shape: Shape) -> st.SearchStrategy[tuple[int, ...]]:
    """Any contents of a shape."""
    match shape:
        case Leaf():
            low = -1 if shape.maybe else shape.low
            return st.tuples(st.integers(low, shape.high))
        case SetShape(_, count):
            return st.tuples(st.integers(0, (1 << count) - 1))
        case ArrayShape(count, item, _):
            return st.tuples(*(cells(item) for _ in range(count))).map(flat)
        case RecordShape():
            return st.tuples(*(cells(inner) for _, _, inner in shape.fields)).map(flat)
        case SeqShape(capacity, item):
            rows = st.lists(cells(item), max_size=capacity)
            return rows.map(lambda r: (len(r), *flat(tuple(r)), *(item.blank * (capacity - len(r)))))


def flat(parts: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """The cells of all parts, one after another."""
    return tuple(cell for part in parts for cell in part)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(data=st.data())
def test_a_state_survives_itf(kinds: BoundSpec, data: st.DataObject) -> None:
    state = data.draw(cells(kinds.shape))
    written = json.loads(json.dumps(to_itf(kinds.shape, state)))
    assert from_itf(kinds.shape, written, "state") == state
    assert no_bare_numbers(written)


def no_bare_numbers(value: Any) -> bool:
    """ITF has no JSON numbers since 2023-09-14."""
    if is_object(value):
        return all(no_bare_numbers(v) for v in value.values())
    if is_list(value):
        return all(map(no_bare_numbers, value))
    return isinstance(value, bool | str)


def test_every_kind_of_value_is_written_as_itf_says(kinds: BoundSpec) -> None:
    written = to_itf(kinds.shape, kinds.shape.blank)
    assert written == {
        "mood": "CALM",
        "last": {"tag": "None", "value": "U_OF_UNIT"},
        "on": False,
        "low": big(0),
        "owner": [{"tag": "None", "value": "U_OF_UNIT"}] * 3,
        "queue": [],
        "jobs": [],
    }


def test_types_in_the_notation_of_apalache(kinds: BoundSpec) -> None:
    types = {name: type_in_apalache(shape) for name, _, shape in kinds.shape.fields}
    assert types == {
        "mood": "Str",
        "last": "Some(Str) | None(UNIT)",
        "on": "Bool",
        "low": "Int",
        "owner": "Seq(Some(Int) | None(UNIT))",
        "queue": "Seq(Int)",
        "jobs": "Seq({ who: Some(Int) | None(UNIT), blocks: Set(Int), counts: Seq(Int) })",
    }


def test_an_array_may_be_a_function(kinds: BoundSpec) -> None:
    written = to_itf(kinds.shape, kinds.shape.blank)
    written["owner"] = {"#map": [[big(i), {"tag": "Some", "value": big(1)}] for i in (2, 0, 1)]}
    assert to_itf(kinds.shape, from_itf(kinds.shape, written, "s"))["owner"] == [{"tag": "Some", "value": big(1)}] * 3


MISFITS: list[tuple[str, Any, str]] = [
    ("low", 1, "s.low: 1 is not a whole number"),
    ("low", big(9), "s.low: 9 is not in -2..3"),
    ("low", {"#bigint": "x"}, "s.low: {'#bigint': 'x'} is not a whole number"),
    ("low", {"#bigint": "9" * 5000}, "s.low: {'#bigint': '999"),
    ("mood", "ANGRY", "s.mood: 'ANGRY' is not in {CALM, BUSY}"),
    ("mood", True, "s.mood: True is not a name"),
    ("on", "yes", "s.on: 'yes' is not a truth value"),
    ("last", "CALM", "s.last: expected"),
    ("owner", [], "s.owner: expected a list of 3 elements"),
    ("owner", {"#map": [[big(0), big(0)]]}, "s.owner: expected the keys 0 to 2"),
    ("owner", {"#map": [[big(0)]]}, "s.owner: a #map holds pairs"),
    ("queue", [big(0)] * 4, "s.queue: expected a list of at most 3 elements"),
    ("queue", {"#set": []}, "s.queue: {'#set': []} is not a list"),
    ("jobs", [[]], "s.jobs[0]: expected an object"),
    ("jobs", [{"who": {"tag": "None"}}], "s.jobs[0]: expected the fields who, blocks, counts"),
]


@pytest.mark.parametrize(("name", "value", "complaint"), MISFITS)
def test_what_does_not_fit_is_named(kinds: BoundSpec, name: str, value: Any, complaint: str) -> None:
    written = to_itf(kinds.shape, kinds.shape.blank) | {name: value}
    with pytest.raises(ValueError, match=re.escape(complaint)):
        from_itf(kinds.shape, written, "s")
