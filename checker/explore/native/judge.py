"""Compiled properties of single states and transitions, wherever these come from."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ....spec.lang import BoundSpec, State
from ..watch import Watch
from .cache import Cache
from .lower import Lowering
from .machine import Unit, build
from .stepper import buffer, cell_struct

Sides = frozenset[tuple[str, int]]
"""Left sides of properties that held, by the property's name and their number."""


class Judge:
    """The properties of a spec at given bounds; compiled, or loaded from the cache.

    `BoundsError` where there are more properties than compiled code takes at once. A forked child may go on using one; two
    threads may not use one at the same time.
    """

    def __init__(self, bound: BoundSpec) -> None:
        self.bound = bound
        lowering = Lowering(bound, symmetry=False)
        check, check_step = lowering.check(), lowering.check_step()
        text = "\n".join([*lowering.texts, check, check_step])
        library = build([Unit("properties", text)], ["check", "check_step"], Cache())
        self._check, self._check_step = library.function("check"), library.function("check_step")
        self._failing = [prop.name for prop in lowering.failing]
        self._witnesses = [prop.name for prop in lowering.witnesses]
        self._sides, self._masks, cells = tuple(lowering.covers), struct.Struct("<QQ"), cell_struct(lowering.layout)
        self._pack = cells.pack
        self._before, self._at_before = buffer(cells.size)
        self._after, self._at_after = buffer(cells.size)
        self._out, self._at_out = buffer(self._masks.size)
        self._cover, self._at_cover = buffer(max(1, len(self._sides)))

    def state(self, state: State) -> tuple[list[str], list[str]]:
        """The properties that fail in a state, and the witnesses that it is; `SpecError` where one cannot be evaluated."""
        self._after[:] = self._pack(*state)
        if self._check(self._at_after, self._at_out, self._at_cover):
            Watch(self.bound, set()).check(state)
            raise AssertionError("compiled properties and the spec disagree on a state")
        failed, reached = self._masks.unpack(self._out)
        return _named(self._failing, failed), _named(self._witnesses, reached)

    def step(self, before: State, after: State) -> list[str]:
        """The step properties that fail on a transition; `SpecError` where one cannot be evaluated."""
        self._before[:], self._after[:] = self._pack(*before), self._pack(*after)
        if self._check_step(self._at_before, self._at_after, self._at_out, self._at_cover):
            Watch(self.bound, set()).check_step(before, after)
            raise AssertionError("compiled properties and the spec disagree on a transition")
        return _named(self._failing, self._masks.unpack(self._out)[0])

    def covered(self) -> Sides:
        """The left sides that held in any state or transition so far."""
        return frozenset(side for side, held in zip(self._sides, self._cover, strict=False) if held)


def _named(names: Sequence[str], mask: int) -> list[str]:
    return [name for bit, name in enumerate(names) if mask >> bit & 1] if mask else []
