"""From what an implementation shows to the state of the spec that it stands for."""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from typing import Any, cast

from ...spec.lang import BoundSpec, State
from ...spec.lang.decoder import decoder
from ...spec.lang.encoder import encoder
from ...traces.driver import ANYTHING, Observation, Stopped, UpTo
from .errors import ConformError

_KEPT_CELLS = 2_000_000
"""Cells of the states that are kept: many transitions lead to what was shown before."""


class NoState(Exception):
    """What an implementation shows is no state of the spec at these bounds; the message says where, and why."""


class Abstraction:
    """Applies the `@abstraction` function of a spec; without `@observed`, what is shown is the decoded state itself.

    `ConformError` where the spec says what is shown of its states, and not which state that stands for.
    """

    def __init__(self, bound: BoundSpec) -> None:
        spec = bound.spec
        if spec.observed is not None and spec.abstraction is None:
            raise ConformError(
                f"{spec.name} has an @observed function and no @abstraction: what an implementation shows is no state for its "
                "properties; add one (docs/search-implementation.md)"
            )
        self._name, self._abstract = spec.name, spec.abstraction
        self._values, self._encode = bound.values, encoder(bound.shape)
        self._decode = decoder(bound.shape)
        self._kept: dict[bytes, State] = {}
        self._most = max(1, _KEPT_CELLS // max(1, bound.shape.size))

    def state(self, shown: Observation, before: State | None = None) -> State:
        """The state that an observation stands for; `before` is that of before the event, where it stopped the implementation.

        `NoState` where there is none.
        """
        plain = {name: part if _written(part) is not None else known(part) for name, part in shown.items()}
        key = _written(plain) if before is None else None
        found = None if key is None else self._kept.get(key)
        if found is None:
            found = self._made(plain, before)
            if key is not None:
                if len(self._kept) >= self._most:
                    self._kept.clear()
                self._kept[key] = found
        return found

    def stopped(self, shown: Observation, before: State, error: Stopped) -> State:
        """The state of an implementation that was stopped in the state `before`; `NoState` where it does not show the error.

        The spec knows an error if some variable of its state has the error's kind for a value.
        """
        state = self.state(shown, before)
        if error.kind not in self._decode(state).values():
            raise NoState(f"no variable of {self._name} is {error.kind}")
        return state

    def _made(self, plain: Any, before: State | None) -> State:
        if self._abstract is not None:
            try:
                plain = self._abstract(plain, self._values, None if before is None else self._decode(before))
            except Exception as error:
                raise NoState(f"{self._abstract.__name__} fails: {type(error).__name__}: {error}") from error
        try:
            return self._encode(plain)
        except ValueError as error:
            raise NoState(str(error).removeprefix("state.")) from None


def _written(value: Any) -> bytes | None:
    """A value as bytes, the same for equal values; None for one that is not made of plain ones."""
    try:
        return marshal.dumps(value, 2)
    except ValueError:
        return None


def known(shown: Any) -> Any:
    """A value of an observation as what is known: None where nothing is promised, a number for `UpTo` it."""
    if isinstance(shown, int | str):
        return shown
    if isinstance(shown, list):
        return [known(part) for part in cast("list[Any]", shown)]
    if isinstance(shown, tuple):
        return tuple([known(part) for part in cast("tuple[Any, ...]", shown)])
    if isinstance(shown, Mapping):
        return {name: known(part) for name, part in cast("Mapping[Any, Any]", shown).items()}
    if isinstance(shown, UpTo):
        return shown.most
    return None if shown is ANYTHING else shown
