"""Searches by several processes: none is left behind, none vanishes unsaid, and what they hold is counted."""

from __future__ import annotations

import json
import os
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.cli.interrupt import Interrupts
from fencepost.checker.conform import parallel
from fencepost.checker.conform.errors import WorkerLost, frames
from fencepost.checker.conform.expand import Node
from fencepost.checker.conform.product import conform
from fencepost.checker.conform.search import search
from fencepost.checker.conform.transitions import Transitions
from fencepost.checker.explore.memory import resident_memory
from fencepost.checker.explore.native.stepper import Stepper
from fencepost.checker.model import Limits, Options
from fencepost.checker.result import Result, Verdict

from .kiosks import PLAIN, Copying, Crashing, Kiosk, kiosk

SIZES = {"guests": 3, "umbrellas": 3}


@pytest.fixture(autouse=True)
def from_the_second_level_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "LEAST", 2)
    monkeypatch.setattr(parallel, "CHUNK", 1)


class Vanishing(Kiosk):
    """Ends the process that it is in, unless that is the first one."""

    first = os.getpid()

    def settle(self) -> None:
        super().settle()
        if os.getpid() != self.first:
            os._exit(9)


class Misprogrammed(Kiosk):
    """Cannot be saved where all loans are made, unless it is in the first process."""

    first = os.getpid()

    def save(self) -> Any:
        if os.getpid() != self.first and self.loans == self.most:
            raise KeyError("not in the first process")
        return super().save()


def test_a_process_that_vanishes_is_said() -> None:
    model = kiosk(**SIZES)
    with pytest.raises(WorkerLost, match=r"a worker process has ended \(exit code 9\); if memory ran out, try --workers 1"):
        search(model, Vanishing(model.bound.values), PLAIN, workers=2)
    assert active_children() == []


def test_errors_bring_along_where_they_were_raised() -> None:
    model = kiosk(**SIZES)
    with pytest.raises(KeyError, match="not in the first process") as raised:
        search(model, Misprogrammed(model.bound.values), PLAIN, workers=2)
    assert "in save" in raised.value.__notes__[0]
    assert Path(__file__).name in [Path(file).name for file, _ in frames(raised.value)]
    assert active_children() == []


@pytest.mark.parametrize("kind", [Kiosk, Copying, Crashing])
@pytest.mark.parametrize("limits", [Limits(), Limits(max_states=10)])
def test_no_process_is_left_behind(kind: type[Kiosk], limits: Limits) -> None:
    model = kiosk(**SIZES)
    search(model, kind(model.bound.values), Options(limits=limits), workers=3)
    assert active_children() == []


class Large(Kiosk):
    """Saves four megabytes with each state."""

    def save(self) -> Any:
        return super().save(), bytearray(b"x") * (4 << 20)

    def restore(self, saved: Any) -> None:
        super().restore(saved[0])


def test_what_the_processes_hold_counts_as_memory() -> None:
    model = kiosk(**SIZES)
    found: dict[type[Kiosk], Result] = {}
    for kind in (Kiosk, Large):
        options = Options(symmetry=False, limits=Limits(max_bytes=resident_memory() + (40 << 20)))
        found[kind] = search(model, kind(model.bound.values), options, workers=2).result
    assert found[Kiosk].verdict is Verdict.HOLDS
    assert found[Large].verdict is Verdict.UNDETERMINED
    assert str(found[Large].reason).startswith("memory limit of ")
    assert found[Large].figures.distinct > 10


class Unsendable(Exception):
    """Cannot be pickled: it is made of two values, and keeps one."""

    def __init__(self, said: str, more: object) -> None:
        super().__init__(said)


class Odd(Kiosk):
    """Raises what cannot be sent."""

    def save(self) -> Any:
        if self.loans == self.most:
            raise Unsendable("full", self)
        return super().save()


class Lossy(Kiosk):
    """Raises what comes back without what it was given later."""

    def save(self) -> Any:
        return json.loads("full") if self.loans == self.most else super().save()


@pytest.mark.parametrize(("kind", "said"), [(Odd, "Unsendable: full"), (Lossy, "JSONDecodeError: Expecting value")])
def test_an_error_that_cannot_be_sent_is_said_in_words(kind: type[Kiosk], said: str) -> None:
    model = kiosk(**SIZES)
    with pytest.raises(RuntimeError, match=said) as raised:
        search(model, kind(model.bound.values), PLAIN, workers=2)
    assert Path(__file__).name in [Path(file).name for file, _ in frames(raised.value)]


class Showing(Kiosk):
    """Shows, where all loans are made, something that no other process could have."""

    own = object()

    def observe(self) -> dict[str, Any]:
        return super().observe() | ({"left": self.own} if self.loans == self.most else {})


@pytest.mark.parametrize("workers", [1, 2])
def test_a_difference_is_looked_at_where_it_is_reported(workers: int) -> None:
    model = kiosk(**SIZES)
    found = conform(model, Showing(model.bound.values), Limits(), workers=workers)
    assert found.mismatch is not None
    assert [(d.path, d.implementation) for d in found.mismatch.differences] == [("left", Showing.own)]


def nothing_known(canonical: bytes, digest: bytes) -> bool:
    """Before a search."""
    return False


def test_a_process_that_is_no_longer_there_when_a_level_begins_is_said() -> None:
    model = kiosk(**SIZES)
    driver = Kiosk(model.bound.values)
    transitions = Transitions(model.bound, Stepper(model.bound), driver)
    with parallel.Expansion(transitions, nothing_known, 2) as expansion:
        state = model.bound.initial()[0][2]
        level = [Node(n, state, transitions.identify(state)[1], driver.save()) for n in range(4)]
        first = [visit for _, visit in expansion.visits(level)]
        expansion.workers[0].process.kill()
        expansion.workers[0].process.join()
        following = [Node(n, one.state, one.digest, one.saved) for n, one in enumerate(o for v in first for o in v.fresh)]
        with pytest.raises(WorkerLost, match="exit code -9"):
            list(expansion.visits(following))
    assert active_children() == []


def test_a_process_that_was_just_started_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while it still has the handlers of the first one, which end nothing."""
    real, calls = os.fork, iter(range(1, 9))

    def fork() -> int:
        if next(calls) % 2 == 0:
            raise BlockingIOError("no more processes")
        return real()

    monkeypatch.setattr(os, "fork", fork)
    model = kiosk(**SIZES)
    for _ in range(4):
        with Interrupts(), pytest.raises(BlockingIOError, match="no more processes"):
            conform(model, Kiosk(model.bound.values), Limits(), workers=2)
    assert active_children() == []
