"""The `Driver` protocol: an implementation that is driven by the actions of a spec, and shows what the spec says of it.

A driver does only what the environment can do: clients, time, the device, the network. What the implementation decides
by itself it decides inside of an event. Everything it shows is said in the words of the spec's `@observed` function, or
of its decoded state where it has none, so that an observation and a state are compared with `==`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

Observation = Mapping[str, Any]
"""What an implementation shows of its state: plain values (numbers, strings, None, lists, dicts) by name."""

Names = Mapping[str, Sequence[int]]
"""New names of members, by index: member x of an index is called `names[index][x]`."""


class _Anything:
    """Equal to every value."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "anything"


ANYTHING = _Anything()
"""A value of an observation that is not compared: nothing is promised about it there."""


class UpTo:
    """Equal to every number from 0 to `most`: a count of which the spec may promise less than is there."""

    def __init__(self, most: int) -> None:
        self.most = most

    def __eq__(self, other: object) -> bool:
        if isinstance(other, UpTo):
            return other.most == self.most
        return isinstance(other, int) and 0 <= other <= self.most

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"up to {self.most}"


class Refused(Exception):
    """An event that the implementation refuses, without any effect; the message says why."""


class Stopped(Exception):
    """An error of the implementation's own that stops it; `kind` is its name in the words of the spec."""

    def __init__(self, kind: str, message: str = "") -> None:
        super().__init__(message or kind)
        self.kind = kind


class Driver(Protocol):
    """An implementation under an adapter; at any time in one state of its own."""

    @property
    def title(self) -> str:
        """One line: which implementation, what of it is real, and what stands in."""
        ...

    @property
    def quiet(self) -> frozenset[str]:
        """The actions that are safe to try where the spec has them disabled: they are refused, or change nothing."""
        ...

    def reset(self) -> None:
        """Begin again in the initial state."""
        ...

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        """Let an event happen: members as numbers, truth values, sets as frozensets.

        Raises `Refused` where nothing happens, and `Stopped` where it stops the implementation; a stopped one still
        shows its observation, and takes no more events.
        """
        ...

    def observe(self) -> Observation:
        """What the implementation shows now."""
        ...

    def digest(self, names: Names | None = None) -> Hashable:
        """The hidden part of the state, as a value: with what `observe` shows it is the whole state of the implementation.

        Two states with equal observations have equal digests only if nothing that can happen later tells them apart.
        Values are nested tuples of numbers, strings, bytes, truth values and None. Members are called by `names`, so that
        states which differ only in names have one digest.
        """
        ...


@runtime_checkable
class Copyable(Protocol):
    """A driver that can go back to a state it was in; others are run again from the start."""

    def save(self) -> Any:
        """The whole state, to be restored any number of times by the process that saved it."""
        ...

    def restore(self, saved: Any) -> None:
        """Go back to a saved state."""
        ...


@runtime_checkable
class Exhibits(Protocol):
    """A driver that can show an implementation's own objects, for whoever reads what a trace does to it."""

    def exhibit(self, blocks: Sequence[int], requests: Sequence[int]) -> list[tuple[str, str]]:
        """What the implementation's own objects say of these blocks and requests of the spec, as (where, what stands there).

        Everything that holds, may write or may read one of the blocks belongs to it, in the implementation's own numbers and
        names, such as ("block_pool.blocks[3]", "block_id=3, ref_cnt=1").
        """
        ...


class Handing:
    """A driver that hands everything on to another one; what is to be otherwise is overridden."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    @property
    def title(self) -> str:
        """That of the driver."""
        return self.driver.title

    @property
    def quiet(self) -> frozenset[str]:
        """Those of the driver."""
        return self.driver.quiet

    def reset(self) -> None:
        """Begin again."""
        self.driver.reset()

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        """Let an event happen."""
        self.driver.take(action, arguments)

    def observe(self) -> Observation:
        """What the implementation shows now."""
        return self.driver.observe()

    def digest(self, names: Names | None = None) -> Hashable:
        """What it does not show."""
        return self.driver.digest(names)
