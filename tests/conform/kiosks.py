"""A kiosk in Python as an implementation of specs/kiosk.py, and kiosks that get something wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fencepost.checker.conform.search import Searched, search
from fencepost.checker.model import Model, Options
from fencepost.spec.lang import load_file
from fencepost.traces.driver import Refused

KIOSK = load_file(Path(__file__).parent / "specs" / "kiosk.py")
PLAIN = Options()
LETTERS = "ABC"


def kiosk(**bounds: int | str) -> Model:
    return Model.of(KIOSK, bounds)


def of(kind: type[Kiosk], options: Options = PLAIN, **bounds: int | str) -> Searched:
    model = kiosk(**bounds)
    return search(model, kind(model.bound.values), options)


def timeless(found: Searched) -> Searched:
    figures = replace(found.result.figures, seconds={}, peak_memory_bytes=0, start_memory_bytes=0)
    return replace(found, result=replace(found.result, figures=figures))


class Kiosk:
    """A kiosk that is no spec; every method can be got wrong. `hidden` is what it does not show."""

    title = "a kiosk in Python; all of it is real"
    quiet = frozenset({"lend", "settle"})

    def __init__(self, values: Mapping[str, int | str]) -> None:
        self.guests, self.umbrellas, self.most = (int(values[name]) for name in ("guests", "umbrellas", "loans"))
        self.reset()

    def reset(self) -> None:
        self.has: dict[int, int] = {}
        self.rack = list(range(self.umbrellas))
        self.loans = self.hidden = 0
        self.trouble = ""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        getattr(self, action)(*arguments)

    def lend(self, g: int) -> None:
        if g in self.has or not self.rack or self.loans == self.most:
            raise Refused("none for you")
        self.has[g] = self.rack.pop(0)
        self.loans += 1

    def bring(self, g: int) -> None:
        self.rack.append(self.has.pop(g))

    def settle(self) -> None:
        if self.has or not self.loans:
            raise Refused("not now")
        self.loans = 0

    def observe(self) -> dict[str, Any]:
        if self.trouble:
            return {"trouble": self.trouble}
        guests = {LETTERS[g]: u for g, u in self.has.items()}
        return {"guests": guests, "rack": list(self.rack), "left": self.most - self.loans}

    def digest(self, names: Mapping[str, Any] | None = None) -> tuple[Any, ...]:
        return self.hidden, self.trouble

    def save(self) -> Any:
        return dict(self.has), list(self.rack), self.loans, self.hidden, self.trouble

    def restore(self, saved: Any) -> None:
        has, rack, self.loans, self.hidden, self.trouble = saved
        self.has, self.rack = dict(has), list(rack)


class Copying(Kiosk):
    """Puts back another umbrella than was brought, once loans run out."""

    def bring(self, g: int) -> None:
        umbrella = self.has.pop(g)
        self.rack.append(0 if self.loans == self.most else umbrella)


class Settling(Kiosk):
    """Settles while an umbrella is out: the spec never has that event there."""

    def settle(self) -> None:
        if not self.loans:
            raise Refused("nothing to settle")
        self.loans = 0


class Hoarding(Kiosk):
    """Remembers, unseen, how often it was settled, and lends nothing any more after the second time."""

    def lend(self, g: int) -> None:
        if self.hidden == 2:
            raise Refused("closed for good")
        super().lend(g)

    def settle(self) -> None:
        super().settle()
        self.hidden = min(2, self.hidden + 1)


class Crashing(Kiosk):
    """The same with an exception that it did not mean."""

    def bring(self, g: int) -> None:
        if len(self.rack) == self.umbrellas - 1 and self.loans > 1:
            raise ZeroDivisionError("loans")
        super().bring(g)


class Counting(Kiosk):
    """Shows a loan too many after the second one."""

    def observe(self) -> dict[str, Any]:
        shown = super().observe()
        return {**shown, "left": -1} if self.loans == 2 and len(self.has) == 1 else shown
