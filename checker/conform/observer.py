"""What a spec expects an implementation to show in a state."""

from __future__ import annotations

from typing import Any

from ...spec.lang import BoundSpec, SpecError, State
from ...spec.lang.decoder import decoder
from ...traces.driver import Observation

_KEPT_CELLS = 200_000
"""Cells of the states whose observations are kept: transitions into one state follow each other closely in a search."""


class Observer:
    """Applies the `@observed` function of a spec to its states; without one, what is expected is the decoded state."""

    def __init__(self, bound: BoundSpec) -> None:
        self._decode = decoder(bound.shape)
        self._observed = bound.spec.observed
        self._values = bound.values
        self._kept: dict[State, Observation] = {}
        self._most = max(1, _KEPT_CELLS // max(1, bound.shape.size))

    def expected(self, state: State) -> Observation:
        """What is to be seen in a state; `SpecError` where the spec's function fails on it."""
        found = self._kept.get(state)
        if found is None:
            if len(self._kept) >= self._most:
                self._kept.clear()
            found = self._kept[state] = self._observe(self._decode(state))
        return found

    def _observe(self, decoded: dict[str, Any]) -> Observation:
        if self._observed is None:
            return decoded
        try:
            return self._observed(decoded, self._values)
        except Exception as error:
            raise SpecError(f"@observed {self._observed.__name__}: {type(error).__name__}: {error}") from error
