"""A spec as an implementation: its interpreter driven by the events of itself or of another spec."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, cast

from fencepost.spec.lang import Arguments, BoundSpec, State
from fencepost.spec.lang.layout import decode
from fencepost.spec.lang.symmetry import Symmetry
from fencepost.traces.driver import Observation, Refused


class SpecDriver:
    """Runs a bound spec; `hidden` is one more number, which subclasses count and act upon."""

    def __init__(self, bound: BoundSpec, quiet: Sequence[str] = ()) -> None:
        self.bound = bound
        self.rules = {rule.name: rule for rule in bound.actions}
        self.symmetry = Symmetry(bound.shape, bound.permutable())
        self.title = f"{bound.spec.name}, interpreted"
        self.quiet = frozenset(quiet)
        self.reset()

    def reset(self) -> None:
        """Go to the first initial state."""
        self.state: State = self.bound.initial()[0][2]
        self.hidden = 0

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        """Take the action; refused where the spec has it disabled."""
        after = self.bound.after(self.state, self.rules[action], encoded(arguments))
        if after is None:
            raise Refused(f"{action} is disabled")
        self.state = after

    def observe(self) -> Observation:
        """What the spec's `@observed` function shows."""
        decoded = decode(self.bound.shape, self.state)
        observed = self.bound.spec.observed
        return decoded if observed is None else observed(decoded, self.bound.values)

    def digest(self, names: Mapping[str, Sequence[int]] | None = None) -> Hashable:
        """The state and the hidden number."""
        state = self.state if names is None else self.symmetry.permute(self.state, names)
        return ("state", state), ("hidden", self.hidden)

    def save(self) -> Any:
        """The same, as they are."""
        return self.state, self.hidden

    def restore(self, saved: Any) -> None:
        """Go back."""
        self.state, self.hidden = saved


class NotCopyable:
    """Another driver without its `save` and `restore`; `resets` says how often it was run again."""

    def __init__(self, driver: SpecDriver) -> None:
        self.driver = driver
        self.title, self.quiet, self.resets = driver.title, driver.quiet, 0
        self.take, self.observe, self.digest = driver.take, driver.observe, driver.digest

    def reset(self) -> None:
        """Begin again."""
        self.resets += 1
        self.driver.reset()


def encoded(arguments: tuple[Any, ...]) -> Arguments:
    """Arguments as the interpreter numbers them."""
    return tuple(_mask(cast("frozenset[int]", a)) if isinstance(a, frozenset) else int(a) for a in arguments)


def _mask(members: Iterable[int]) -> int:
    return sum(1 << member for member in members)
