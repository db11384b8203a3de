"""Saving and restoring objects of any kind in place, also by way of another process."""

from __future__ import annotations

import itertools
import queue
from array import array
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from types import MappingProxyType, SimpleNamespace
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


class Box:
    """Holds one value of a kind, and how it is changed and shown."""

    def __init__(self, value: Any, change: Callable[[Any], Any], show: Callable[[Any], Any]) -> None:
        self.value, self.show = value, show
        self.change = partial(change, value)


class Private:
    """A slot whose name is private, and one that is deleted."""

    __slots__ = ("__hidden", "left")

    def __init__(self) -> None:
        self.__hidden = 0
        self.left = 1

    def change(self) -> None:
        """Count, and forget."""
        self.__hidden += 1
        del self.left

    def show(self) -> Any:
        """Both."""
        return self.__hidden, getattr(self, "left", None)


@dataclass(frozen=True, slots=True)
class Frozen:
    """Slots that cannot be assigned."""

    inside: list[int]


@dataclass
class Mutable:
    """A member of sets whose hash depends on a field."""

    key: int

    def __hash__(self) -> int:
        return hash(self.key)


def counter() -> Any:
    """A function with a variable of its own, an attribute, and a default that changes."""
    count = 0

    def more(seen: list[int] = []) -> Any:  # noqa: B006
        nonlocal count
        count += 1
        seen.append(count)
        more.calls = count  # pyright: ignore[reportFunctionMemberAccess]

    more.show = lambda: (count, [list(one) for one in more.__defaults__ or ()], vars(more).get("calls"))  # pyright: ignore[reportFunctionMemberAccess]
    return more


def grown(key: Mutable) -> set[Mutable]:
    """A set with that member."""
    return {key}


def read_only() -> Any:
    """An array that nobody may write to."""
    made = np.zeros(2)
    made.setflags(write=False)
    return made


KEY = Mutable(1)
BOXES: dict[str, Callable[[], Box]] = {
    "a number of numpy": lambda: Box([np.int64(3)], lambda v: v.append(np.int64(4)), list),
    "a read-only array": lambda: Box([read_only()], lambda v: v.append(1), len),
    "objects in an array": lambda: Box(np.array([[1], None], dtype=object), lambda v: v[0].append(2), lambda v: list(v[0])),
    "a private slot": lambda: Box(Private(), Private.change, Private.show),
    "frozen slots": lambda: Box(Frozen([1]), lambda v: v.inside.append(2), lambda v: list(v.inside)),
    "random numbers": lambda: Box(Random(1), lambda v: v.random(), lambda v: v.getstate()),
    "a function": lambda: Box(counter(), lambda v: v(), lambda v: v.show()),
    "a method of a list": lambda: Box(list[int]().append, lambda v: v(1), lambda v: list(v.__self__)),
    "a proxy": lambda: Box(MappingProxyType({"a": [1]}), lambda v: v["a"].append(2), lambda v: list(v["a"])),
    "a view": lambda: Box({"a": [1]}.values(), lambda v: next(iter(v)).append(2), lambda v: list(next(iter(v)))),
    "a member of a set": lambda: Box([KEY, grown(KEY)], lambda v: setattr(v[0], "key", 2), lambda v: v[0] in v[1]),
}


@pytest.mark.parametrize("kind", BOXES)
def test_rarer_kinds_are_put_back(kind: str) -> None:
    KEY.key = 1
    box = BOXES[kind]()
    memory = Memory([box])
    before, saved = box.show(box.value), memory.save()
    box.change()
    after, later = box.show(box.value), memory.save()
    assert before != after
    saved.restore()
    assert box.show(box.value) == before
    if kind != "a member of a set":
        later.restore()
        assert box.show(box.value) == after


def test_tensors_and_structs_are_put_back() -> None:
    torch, msgspec = pytest.importorskip("torch"), pytest.importorskip("msgspec")
    struct = msgspec.defstruct("Told", [("inside", list[int])], frozen=True)
    held = [torch.zeros(2), struct([1])]
    saved = Memory([held]).save()
    held[0].add_(1)
    held[1].inside.append(2)
    saved.restore()
    assert (held[0].tolist(), held[1].inside) == ([0, 0], [1])


UNSEEN: queue.SimpleQueue[int] = queue.SimpleQueue()
OPAQUE: tuple[Any, ...] = (UNSEEN, np.random.default_rng(1))


@pytest.mark.parametrize("opaque", OPAQUE)
def test_what_changes_unseen_is_refused(opaque: Any) -> None:
    with pytest.raises(
        ReleaseError, match=r"SimpleNamespace.held: the scheduler holds a .*, which changes and cannot be put back"
    ):
        Memory([SimpleNamespace(held=opaque)]).save()
