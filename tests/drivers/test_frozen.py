"""Frozen values: what differs from the beginning is named, and requests that are gone do not add up for ever."""

from __future__ import annotations

from typing import Any

import pytest
from fencepost.impl.drivers.frozen import changes, few_of_the_gone

BEFORE = ("Plan", (".name", "a"), (".steps", ("list", 1, 2)), (".own", ("Box", (".size", 3))))


@pytest.mark.parametrize(
    ("now", "found"),
    [
        (BEFORE, []),
        (("Plan", (".name", "b"), BEFORE[2], BEFORE[3]), [("plan.name", "b")]),
        (("Plan", BEFORE[1], ("list", 1), BEFORE[3]), [("plan[1]", ("list", 1))]),
        (("Plan", BEFORE[1], (".steps", ("list", 1, 4)), BEFORE[3]), [("plan.steps[1]", 4)]),
        (("Plan", BEFORE[1], (".steps", ("list", 1)), BEFORE[3]), [("plan.steps", ("list", 1))]),
        (("Plan", BEFORE[1], BEFORE[2], (".own", ("Box", (".size", 4)))), [("plan.own.size", 4)]),
        (("Plan", BEFORE[1], BEFORE[2], (".own", ("Bin", (".size", 3)))), [("plan.own", ("Bin", (".size", 3)))]),
        (("Plan", BEFORE[1]), [("plan", ("Plan", BEFORE[1]))]),
        (None, [("plan", None)]),
    ],
)
def test_what_is_not_as_before_is_told_by_its_place(now: Any, found: list[Any]) -> None:
    """The innermost place at which both sides still have the same parts."""
    assert list(changes("plan", now, now, BEFORE)) == found


def test_numbers_are_named_only_where_something_changed() -> None:
    """A number that was there before anybody came names nobody."""
    before, now = ("list", 1, 1), ("list", 1, 2)
    named = ("list", (1, "name of one"), (2, "name of two"))
    assert list(changes("x", named, now, before)) == [("x[1]", (2, "name of two"))]


GONE = [("(gone)", number) for number in (7, 3, 9, 4)]
TWO = [("(gone)", 0), ("(gone)", 1)]


@pytest.mark.parametrize(
    ("value", "left"),
    [
        (("list", GONE[0]), ("list", ("(gone)", 0))),
        (("list", *GONE), ("list", ("(gone)", 0), ("(gone)", 1))),
        (
            ("dict", *((one, ("tuple", one, 5)) for one in GONE)),
            ("dict", *((("(gone)", i), ("tuple", ("(gone)", i), 5)) for i in (0, 1))),
        ),
        # of another kind, named twice or elsewhere, or with somebody who is there: each counts
        (("list", *GONE[:2], ("tuple", GONE[2])), ("list", ("(gone)", 0), ("(gone)", 1), ("tuple", ("(gone)", 2)))),
        (
            ("x", ("list", *GONE[:3]), ("list", GONE[2])),
            ("x", ("list", ("(gone)", 0), ("(gone)", 1), ("(gone)", 2)), ("list", ("(gone)", 2))),
        ),
        (
            ("dict", *((one, ("(request)", 1)) for one in GONE[:2]), (GONE[2], ("(request)", 2))),
            ("dict", (("(gone)", 0), ("(request)", 1)), (("(gone)", 1), ("(request)", 1)), (("(gone)", 2), ("(request)", 2))),
        ),
        (("list", 1, 1, 1), ("list", 1, 1, 1)),
    ],
)
def test_three_requests_that_are_gone_are_as_good_as_two(value: Any, left: Any) -> None:
    """If nothing else speaks of them, and they are spoken of alike."""
    assert few_of_the_gone(value) == left
