"""The search of an implementation finds the states that brute force finds, in any number of processes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from fencepost.checker.conform import parallel
from fencepost.checker.conform.search import search
from fencepost.checker.model import Model, Options
from fencepost.traces.driver import Refused

from .kiosks import PLAIN, Copying, Counting, Crashing, Hoarding, Kiosk, Settling, kiosk, timeless

Whole = tuple[frozenset[tuple[int, int]], tuple[int, ...], int, int, str]


class Rolling(Kiosk):
    """Remembers who came last, unseen."""

    def lend(self, g: int) -> None:
        super().lend(g)
        self.hidden = 1 + g

    def digest(self, names: Mapping[str, Any] | None = None) -> tuple[Any, ...]:
        guests = (names or {}).get("guests", range(self.guests))
        return (guests[self.hidden - 1] if self.hidden else -1), self.trouble


def whole(driver: Kiosk) -> Whole:
    """All of its state."""
    return frozenset(driver.has.items()), tuple(driver.rack), driver.loans, driver.hidden, driver.trouble


def brute_force(model: Model, make: Callable[[], Kiosk]) -> tuple[set[Whole], int]:
    """The whole states of a driver and the number of transitions, each event tried on a driver that was run from the start."""
    events = [(rule.name, model.bound.arguments(rule, args)) for rule in model.bound.actions for args in rule.choices()]
    states = {whole(make())}
    paths: list[tuple[Any, ...]] = [()]
    taken = 0
    for path in paths:
        for event in events:
            driver = make()
            for before in path:
                driver.take(*before)
            if event[0] == "bring" and event[1][0] not in driver.has:
                continue
            try:
                driver.take(*event)
            except Refused:
                continue
            taken += 1
            if whole(driver) not in states:
                states.add(whole(driver))
                paths.append((*path, event))
    return states, taken


@pytest.mark.parametrize("kind", [Kiosk, Hoarding, Rolling, Settling])
def test_every_state_is_seen_that_brute_force_sees(kind: type[Kiosk]) -> None:
    model = kiosk(guests=3, umbrellas=2)
    model.bound.properties = ()
    found = search(model, kind(model.bound.values), Options(symmetry=False, deadlock=False))
    figures = found.result.figures
    states, taken = brute_force(model, lambda: kind(model.bound.values))
    assert (figures.distinct, figures.generated) == (len(states), taken)


@pytest.mark.parametrize("kind", [Hoarding, Rolling])
def test_symmetry_counts_classes_of_hidden_states_too(kind: type[Kiosk]) -> None:
    """A hidden name counts apart where the spec's state does not tell its member from others: a few more states, none lost."""
    model = kiosk(guests=3, umbrellas=3, loans=2)
    model.bound.properties = ()
    figures = search(model, kind(model.bound.values), Options(deadlock=False)).result.figures
    states, _ = brute_force(model, lambda: kind(model.bound.values))
    classes = {least(state, named=kind is Rolling) for state in states}
    assert figures.symmetry
    assert len(classes) <= figures.distinct < len(states)
    assert kind is Rolling or figures.distinct == len(classes)


def least(state: Whole, *, named: bool) -> Any:
    """The first of all states that a state becomes under other names; whether what is hidden is a name."""
    has, rack, loans, hidden, trouble = state
    return min(
        (
            tuple(sorted((g[one], u[two]) for one, two in has)),
            tuple(u[one] for one in rack),
            loans,
            g[hidden - 1] if named and hidden else -hidden,
            trouble,
        )
        for g in itertools.permutations(range(3))
        for u in itertools.permutations(range(3))
    )


@pytest.mark.parametrize("kind", [Kiosk, Copying, Hoarding, Crashing, Counting])
def test_the_result_does_not_depend_on_the_number_of_processes(kind: type[Kiosk], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "LEAST", 2)
    monkeypatch.setattr(parallel, "CHUNK", 3)
    model = kiosk(guests=3, umbrellas=3)
    one, two = (timeless(search(model, kind(model.bound.values), PLAIN, workers=n)) for n in (1, 2))
    assert one == two
