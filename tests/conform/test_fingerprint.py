"""Digests are kept as fingerprints: equal ones for equal digests, and different ones for all others."""

from __future__ import annotations

from typing import Any

import pytest
from fencepost.checker.conform.errors import ConformError
from fencepost.checker.conform.follow import fingerprint
from hypothesis import given
from hypothesis import strategies as st

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.integers() | st.text(max_size=3) | st.binary(max_size=3)
DIGESTS = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=8)


def strict(value: Any) -> Any:
    """A value with its types, so that 1 and True are told apart."""
    return tuple(map(strict, value)) if isinstance(value, tuple) else (type(value), value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


@given(DIGESTS, DIGESTS)
def test_fingerprints_are_equal_where_digests_are(one: Any, other: Any) -> None:
    assert (fingerprint(one) == fingerprint(other)) == (strict(one) == strict(other))


def test_how_a_digest_was_made_does_not_matter() -> None:
    """Neither shared parts, nor interned strings, nor the order in which a set was filled."""
    part = (1, "name")
    name = "".join(["na", "me"])
    assert fingerprint((part, part)) == fingerprint(((1, name), (1, name)))
    assert fingerprint(frozenset((8, 0))) == fingerprint(frozenset((0, 8)))


def test_true_one_and_none_are_told_apart() -> None:
    assert len({fingerprint((value,)) for value in (True, 1, "1", b"1", None, False, 0, (), "")}) == 9


@pytest.mark.parametrize("odd", [(object(),), (range(3),), ((1, lambda: 0),)])
def test_anything_else_is_refused(odd: Any) -> None:
    with pytest.raises(ConformError, match="nested tuples of plain values"):
        fingerprint(odd)
