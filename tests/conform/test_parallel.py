"""Searches by several processes: none is left behind, none vanishes unsaid, and what they hold is counted."""

from __future__ import annotations

import os
from multiprocessing import active_children
from typing import Any

import pytest
from fencepost.checker.conform import parallel
from fencepost.checker.conform.search import search
from fencepost.checker.explore.memory import resident_memory
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
    with pytest.raises(RuntimeError, match=r"a worker process has ended \(exit code 9\); if memory ran out, try --workers 1"):
        search(model, Vanishing(model.bound.values), PLAIN, workers=2)
    assert active_children() == []


def test_errors_bring_along_where_they_were_raised() -> None:
    model = kiosk(**SIZES)
    with pytest.raises(KeyError, match="not in the first process") as raised:
        search(model, Misprogrammed(model.bound.values), PLAIN, workers=2)
    assert "in save" in raised.value.__notes__[0]
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
