"""The made encoder does what `encode` does: for values that fit, and with the same words for those that do not."""

from __future__ import annotations

import random
from typing import Any

import pytest
from fencepost.spec.lang.encoder import encoder
from fencepost.spec.lang.layout import ArrayShape, Leaf, RecordShape, SeqShape, SetShape, Shape, decode, encode, leaves

NUMBER, SIGNED, FLAG = Leaf("int", 0, 3), Leaf("int", -2, 2), Leaf("bool", 0, 1)
PERHAPS = Leaf("index", -1, 2, "things", maybe=True)
ROW = RecordShape("Row", (("n", 0, NUMBER), ("seq", 1, SeqShape(2, SIGNED))), 4)
SHAPE = RecordShape(
    "All",
    (
        ("plain", 0, ArrayShape(3, NUMBER, None)),
        ("flags", 3, ArrayShape(2, FLAG, None)),
        ("who", 5, ArrayShape(2, PERHAPS, None)),
        ("set", 7, SetShape("things", 3)),
        ("rows", 8, SeqShape(2, ROW)),
        ("deep", 17, ArrayShape(2, SeqShape(2, NUMBER), None)),
    ),
    23,
)


def drawn(shape: Shape, dice: random.Random) -> Any:
    """A value of a shape."""
    match shape:
        case Leaf():
            return decode(shape, (dice.randint(shape.low, shape.high),))
        case SetShape(_, count):
            return frozenset(i for i in range(count) if dice.random() < 0.5)
        case ArrayShape(count, item, _):
            return [drawn(item, dice) for _ in range(count)]
        case SeqShape(capacity, item):
            return [drawn(item, dice) for _ in range(dice.randint(0, capacity))]
        case RecordShape():
            return {name: drawn(inner, dice) for name, _, inner in shape.fields}


def test_values_that_fit() -> None:
    dice = random.Random(5)
    assert len(list(leaves(SHAPE))) == SHAPE.size
    for _ in range(500):
        value = drawn(SHAPE, dice)
        cells = encoder(SHAPE)(value)
        assert cells == encode(SHAPE, value)
        assert decode(SHAPE, cells) == value


WRONG: list[tuple[str, Any]] = [
    ("plain", [1, 2]),
    ("plain", [1, 2, 4]),
    ("plain", [1, 2, True]),
    ("plain", [1, 2, None]),
    ("plain", (1, 2, 3)),
    ("plain", None),
    ("flags", [0, True]),
    ("who", [3, None]),
    ("set", {7}),
    ("set", [1]),
    ("rows", [{"n": 1}]),
    ("rows", [{"n": 1, "seq": [], "more": 1}]),
    ("rows", [{"n": 1, "other": []}]),
    ("rows", [{"n": 1, "seq": [3]}]),
    ("rows", [None]),
    ("rows", [{"n": 1, "seq": []}] * 3),
    ("deep", [[], [1, 2, 3]]),
]


@pytest.mark.parametrize(("name", "wrong"), WRONG)
def test_values_that_do_not_fit_are_refused_in_the_same_words(name: str, wrong: Any) -> None:
    value = {**drawn(SHAPE, random.Random(1)), name: wrong}
    with pytest.raises(ValueError, match=r".") as expected:
        encode(SHAPE, value)
    with pytest.raises(ValueError, match=r".") as found:
        encoder(SHAPE)(value)
    assert str(found.value) == str(expected.value)
    assert f"state.{name}" in str(found.value)
