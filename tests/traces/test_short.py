"""Traces as one word."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fencepost.spec.lang import BoundSpec
from fencepost.traces.files import TraceError
from fencepost.traces.revive import revive_short
from fencepost.traces.short import Short, difference, hash_of, is_short, parse, shorten
from fencepost.traces.trace import ReplayError, Trace

Walk = Callable[..., Trace]


def test_a_trace_is_one_word(lending: BoundSpec, kinds: BoundSpec, walk: Walk) -> None:
    trace = walk(lending, "no-free-block-is-written", ("borrow", (1,)), ("launch", (1,)), ("finish", (1,)))
    assert shorten(lending, trace) == f"lending:{hash_of(lending)}:0.1,1.1,2.1"
    jobs = walk(kinds, "idle-is-calm", ("begin", (1, 0b101, 1)), ("count", (-1,)), ("end", ()), start=1, loop=2)
    assert shorten(kinds, jobs) == f"kinds:{hash_of(kinds)}:@0.1,0.1.5.1,2.-1,1,~2"


def test_it_is_brought_back_to_life(lending: BoundSpec, kinds: BoundSpec, walk: Walk) -> None:
    trace = walk(lending, "no-free-block-is-written", ("borrow", (1,)), ("launch", (1,)), ("finish", (1,)))
    assert revive_short(lending, parse(shorten(lending, trace))).trace == trace
    jobs = walk(kinds, "idle-is-calm", ("begin", (1, 0b101, 0)), ("count", (-1,)), ("end", ()), start=1)
    assert revive_short(kinds, parse(shorten(kinds, jobs))).trace == jobs
    nothing = walk(lending, "")
    assert revive_short(lending, parse(shorten(lending, nothing))).trace == nothing


def test_the_parts_of_a_word() -> None:
    found = parse("my-spec.2:0123456789abcdef:@1.-2,0,3.1,~1")
    assert found == Short("my-spec.2", "0123456789abcdef", (1, (-2,)), ((0, ()), (3, (1,))), 1)


@pytest.mark.parametrize(
    "text",
    [
        "kv",
        "kv:12:0",
        "kv:0123456789abcdef",
        "kv:0123456789abcdef:a",
        "kv:0123456789abcdef:0,,1",
        "kv:0123456789abcdef:1.",
    ],
)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(TraceError, match="is not"):
        parse(text)


def test_files_are_no_words() -> None:
    assert is_short("kv:0123456789abcdef:0")
    assert is_short("kv:0123:oops")
    assert not is_short("traces/corpus/B01.itf.json")
    assert not is_short("C:/x")


def test_what_differs_is_named(lending: BoundSpec) -> None:
    here = hash_of(lending)
    assert difference(parse(f"lending:{here}:0"), lending) is None
    assert "other bounds" in str(difference(parse(f"lending:{here[:8]}00000000:0"), lending))
    assert "another text" in str(difference(parse(f"lending:00000000{here[8:]}:0"), lending))
    assert "of spec other" in str(difference(parse(f"other:{here}:0"), lending))


def test_a_difference_is_noted_if_it_runs_and_refused_if_not(lending: BoundSpec) -> None:
    word = "lending:0000000000000000:"
    assert "its actions still run" in revive_short(lending, parse(f"{word}0.0")).notes[0]
    with pytest.raises(ReplayError, match=r"another text.*does not run here: step 1: launch is not enabled"):
        revive_short(lending, parse(f"{word}1.0"))


@pytest.mark.parametrize(
    ("items", "complaint"),
    [
        ("9", "there is no action 9"),
        ("0.7", "outside the bounds"),
        ("0", "outside the bounds"),
        ("@0.5,0.0", "no initial"),
    ],
)
def test_actions_that_are_not_there(lending: BoundSpec, items: str, complaint: str) -> None:
    with pytest.raises((TraceError, ReplayError), match=complaint):
        revive_short(lending, parse(f"lending:{hash_of(lending)}:{items}"))
