"""The forecast says something near the truth, or nothing."""

import pytest
from fencepost.checker.explore.native.forecast import forecast

MEDIUM = [1, 6, 33, 154, 700, 2757, 10916, 34261, 89306, 168967, 212943, 216935, 223777, 169856, 62012, 9464, 552]


def test_nothing_is_said_of_few_levels_or_of_steady_growth() -> None:
    assert forecast([], 20) is None
    assert forecast(MEDIUM[:7], 20) is None
    assert forecast([2**depth for depth in range(30)], 20) is None
    assert forecast([7] * 30, 20) is None


@pytest.mark.parametrize("levels", range(11, 17))
def test_a_search_that_slows_down_is_foretold_within_a_factor_of_two_and_a_half(levels: int) -> None:
    guess = forecast(MEDIUM[:levels], 30)
    assert guess is not None
    total = sum(MEDIUM)
    assert total / 2.5 < guess.distinct_low <= guess.distinct_high < 2.5 * total
    assert guess.memory_low == pytest.approx(30 * guess.distinct_low, rel=1e-6)


def test_an_end_out_of_sight_is_not_foretold() -> None:
    assert forecast([round(1.5**depth * 1.001 ** (-depth * depth)) + 1 for depth in range(20)], 20) is None
