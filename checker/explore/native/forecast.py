"""A guess, from the sizes of the levels so far, at how many states a search will find."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_WINDOWS = (5, 9)
_MOST_LEVELS = 10_000
_FARTHEST = 200
_WIDEST = 10


@dataclass(frozen=True)
class Forecast:
    """What a whole search would take if growth goes on slowing down: two guesses, from two spans of levels."""

    distinct_low: int
    distinct_high: int
    memory_low: int
    memory_high: int


def forecast(per_depth: Sequence[int], bytes_per_state: float) -> Forecast | None:
    """Extrapolate from complete levels; None as long as nothing sensible can be said.

    The logarithm of the growth from level to level is taken to fall along a straight line. Nothing is said while
    growth does not slow down, while two fits differ by more than ten times, or if the end seems very far away.
    """
    if len(per_depth) <= max(_WINDOWS) or min(per_depth) <= 0:
        return None
    guesses = [_extrapolate(per_depth, window) for window in _WINDOWS]
    low, high = min(guesses), max(guesses)
    if high > _FARTHEST * sum(per_depth) or high > _WIDEST * low:
        return None
    return Forecast(round(low), round(high), round(low * bytes_per_state), round(high * bytes_per_state))


def _extrapolate(per_depth: Sequence[int], window: int) -> float:
    """Return the total that a straight line through the latest growth rates leads to; infinity if there is no end."""
    recent = per_depth[-window - 1 :]
    growth = [math.log(later / earlier) for earlier, later in pairwise(recent)]
    middle, mean = (window - 1) / 2, sum(growth) / window
    spread = sum((index - middle) ** 2 for index in range(window))
    slope = sum((index - middle) * (value - mean) for index, value in enumerate(growth)) / spread
    current, size, total = mean + slope * middle, float(per_depth[-1]), float(sum(per_depth))
    limit = 10 * _FARTHEST * total
    for _ in range(_MOST_LEVELS):
        current += slope
        size *= math.exp(min(current, 50.0))
        if size < 1:
            return total
        total += size
        if total > limit:
            break
    return math.inf
