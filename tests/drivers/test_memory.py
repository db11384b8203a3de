"""Saving and restoring objects of any kind in place, also by way of another process."""

from __future__ import annotations

import itertools
from array import array
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from fencepost.impl.vllm.errors import ReleaseError
from fencepost.impl.vllm.memory import Memory


class Slotted:
    """An object with slots, one of them empty at first."""

    __slots__ = ("late", "left", "right")

    def __init__(self) -> None:
        self.left: Any = None
        self.right = 0


class Base:
    """Slots are also those of the classes below."""

    __slots__ = ("below",)


class Above(Base):
    """One more slot."""

    __slots__ = ("above",)


@dataclass
class Config:
    """Never changed."""

    size: int = 3


class Queue(deque[Any]):
    """A container of a class of its own."""


class World:
    """One field of every kind."""

    def __init__(self) -> None:
        self.number = 1
        self.list: list[Any] = [1, 2]
        self.view = self.list
        self.dict: dict[str, Any] = {"a": [1]}
        self.ordered: OrderedDict[str, int] = OrderedDict(a=1, b=2)
        self.by_default: defaultdict[str, list[int]] = defaultdict(list)
        self.set = {1, 2}
        self.queue = Queue([1, 2])
        self.slotted = Slotted()
        self.slotted.left = [5]
        self.above = Above()
        self.above.below, self.above.above = [1], [2]
        self.pair = ([1], 2)
        self.config = Config()
        self.function = len
        self.itself = self

    def shown(self) -> Any:
        """All of it, as plain values."""
        s = self.slotted
        return (
            self.number, list(self.list), self.view is self.list, {k: list(v) for k, v in self.dict.items()},
            list(self.ordered), dict(self.by_default), set(self.set), list(self.queue), type(self.queue),
            list(s.left), s.right, getattr(s, "late", None), list(self.above.below), list(self.above.above),
            list(self.pair[0]), self.itself is self, sorted(vars(self)),
        )  # fmt: skip


def change(world: World) -> None:
    """Change every field, mostly in place."""
    world.number += 1
    world.list.append(3)
    world.dict["a"].append(2)
    world.dict["b"] = []
    world.ordered.move_to_end("a")
    world.by_default["x"].append(1)
    world.set.discard(1)
    world.queue.popleft()
    world.slotted.left.append(6)
    world.slotted.right = 9
    world.above.below.append(3)
    world.above.above.clear()
    world.pair[0].append(7)
    world.new = [1]  # pyright: ignore[reportAttributeAccessIssue]


def test_everything_is_put_back_in_place() -> None:
    world = World()
    memory = Memory([world], {Config})
    before, start = world.shown(), memory.save()
    change(world)
    after, later = world.shown(), memory.save()
    assert before != after
    for saved, shown in ((start, before), (later, after), (start, before)):
        saved.restore()
        assert world.shown() == shown


def test_replaced_objects_come_back() -> None:
    world = World()
    memory = Memory([world])
    first, saved = world.list, memory.save()
    world.list = world.view = [9]
    world.slotted = Slotted()
    saved.restore()
    assert world.list is first
    assert world.slotted.left == [5]


def test_a_slot_filled_later_is_saved() -> None:
    world = World()
    memory = Memory([world])
    world.slotted.late = [1]
    saved = memory.save()
    world.slotted.late.append(2)
    saved.restore()
    assert world.slotted.late == [1]


def test_constants_are_kept_by_reference() -> None:
    world = World()
    saved = Memory([world], {Config}).save()
    world.config.size = 4
    saved.restore()
    assert world.config.size == 4
    saved = Memory([world]).save()
    world.config.size = 5
    saved.restore()
    assert world.config.size == 4


class Pair(NamedTuple):
    """A tuple of a class of its own."""

    left: list[int]
    right: int


class Named(dict[str, int]):
    """A dict with a field."""

    def __init__(self) -> None:
        super().__init__()
        self.label = "a"


class Both(Slotted):
    """Slots, and a dictionary of fields."""

    def __init__(self) -> None:
        super().__init__()
        self.more = [1]


class Odd:
    """What is easily forgotten."""

    def __init__(self) -> None:
        self.pair = Pair([1], 2)
        self.named = Named()
        self.both = Both()
        self.space = SimpleNamespace(size=[1])
        self.numbers = array("i", [1, 2])
        self.table = np.zeros(3)
        self.frozen = frozenset([Pair([5], 1).right])
        hidden = [1]

        def count() -> int:
            hidden.append(1)
            return len(hidden)

        self.count = count
        self.bound = Both().left
        self.call: Any = partial(list, [1])
        self.keyed: dict[Any, int] = {Key(): 1}

    def shown(self) -> Any:
        """All of it, as plain values; the closure shows itself by counting."""
        key = next(iter(self.keyed))
        return (
            list(self.pair.left), self.named.label, dict(self.named), self.both.right, list(self.both.more),
            getattr(self.both, "late", None), list(self.space.size), list(self.numbers), list(self.table),
            list(self.call.args[0]), list(key.inside), sorted(vars(self)),
        )  # fmt: skip


class Key:
    """A key that holds something."""

    def __init__(self) -> None:
        self.inside = [1]


def test_what_is_easily_forgotten_is_put_back() -> None:
    odd = Odd()
    memory = Memory([odd])
    before, counted, start = odd.shown(), odd.count(), memory.save()
    odd.pair.left.append(2)
    odd.named.label, odd.named["x"] = "b", 1
    odd.both.right, odd.both.late = 3, 4
    odd.both.more.append(2)
    odd.space.size.append(2)
    odd.numbers[0] = 9
    odd.table[1] = 9
    odd.call.args[0].append(2)
    next(iter(odd.keyed)).inside.append(2)
    del odd.bound
    odd.other = 1  # pyright: ignore[reportAttributeAccessIssue]
    assert odd.count() == counted + 1
    later, after = memory.save(), odd.shown()
    start.restore()
    assert odd.shown() == before
    assert odd.count() == counted + 1
    later.restore()
    assert odd.shown() == after
    start.restore()
    later.restore()
    assert odd.shown() == after


def test_a_container_stays_the_one_that_a_closure_has() -> None:
    odd = Odd()
    memory = Memory([odd])
    one = odd.count()
    saved = memory.save()
    two = odd.count()
    saved.restore()
    assert (one, two, odd.count()) == (2, 3, 3)


def test_an_iterator_is_refused() -> None:
    world = World()
    world.dict["next"] = itertools.count()  # pyright: ignore[reportArgumentType]
    with pytest.raises(ReleaseError, match=r"itertools.count, an iterator, which cannot be put back"):
        Memory([world]).save()


class Owner:
    """Not copied itself; what is copied has a method of it."""

    def __init__(self) -> None:
        self.told = Told(self.tell)

    def tell(self) -> str:
        """Which one it is."""
        return f"the owner of {id(self.told)}"


class Told:
    """Has a method of its owner, in a tuple besides."""

    def __init__(self, tell: Any) -> None:
        self.tell, self.more = tell, (tell, 1)


def test_methods_of_what_is_not_copied_stay_those_of_their_owner() -> None:
    owner = Owner()
    memory = Memory([owner.told], {Owner})
    saved = memory.save()
    vars(owner.told)["tell"] = None
    saved.restore()
    assert owner.told.tell.__self__ is owner
    assert owner.told.more[0].__self__ is owner
