"""A lockstep as text: what it claims of the number of events."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from typing import Any

from fencepost.checker.conform.product import conform
from fencepost.checker.conform.report import Shown, print_report
from fencepost.checker.conform.result import Agreement, Kind
from fencepost.checker.model import Limits, Model
from fencepost.spec.lang import load_file
from fencepost.traces.driver import Observation, Refused
from rich.console import Console

from .specdriver import SpecDriver

DESK = load_file(Path(__file__).parent / "specs" / "desk.py")


class Restless(SpecDriver):
    """Counts what it refuses once a reader is in the line."""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        try:
            super().take(action, arguments)
        except Refused:
            self.hidden = min(1, self.hidden + (self.state != self.bound.initial()[0][2]))
            raise


def report(model: Model, agreement: Agreement) -> str:
    out = Console(record=True, width=120, file=StringIO())
    print_report(out, Shown(model, agreement, "these bounds", "again"))
    return out.export_text()


def test_events_are_counted_alike_for_every_kind() -> None:
    """A difference after an event and one at an event that the spec does not allow are as far from the start."""
    model = Model.of(DESK)
    stack = conform(model, SpecDriver(Model.of(DESK, {"order": "newest"}).bound), Limits())
    restless = conform(model, Restless(model.bound, quiet=["lend", "ask", "give_back"]), Limits())
    assert stack.mismatch is not None
    assert restless.mismatch is not None
    assert (stack.mismatch.kind, restless.mismatch.kind) == (Kind.OBSERVATION, Kind.NOT_QUIET)
    assert (len(stack.mismatch.trace), len(restless.mismatch.trace)) == (2, 1)
    assert "They differ after 2 events; no run of fewer events shows a difference." in report(model, stack)
    assert "has an effect as event 2; no run of fewer events shows a difference." in report(model, restless)


class Text(SpecDriver):
    """Shows texts where the spec shows numbers."""

    def observe(self) -> Observation:
        return {name: [str(x) for x in shown] if name == "shelf" else shown for name, shown in super().observe().items()}


def test_values_that_look_the_same_are_told_apart() -> None:
    model = Model.of(DESK)
    told = report(model, conform(model, Text(model.bound), Limits()))
    assert re.search(r"shelf\s+\[0, 1\]\s+\['0', '1'\]", told), told
