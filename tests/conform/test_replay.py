"""A trace on an implementation: how far it goes along, what it says, and which switches explain that it does not."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.conform.follow import run
from fencepost.checker.conform.observer import Observer
from fencepost.checker.conform.replay import Replayed, concerned, replay
from fencepost.checker.conform.replay_state import as_states, own_states, violates
from fencepost.checker.conform.replay_why import explain
from fencepost.checker.conform.result import Kind
from fencepost.spec.lang import Arguments, BoundSpec, Rule, Switch, load_file
from fencepost.traces.claims import LOCKSTEP
from fencepost.traces.driver import Refused, Stopped
from fencepost.traces.trace import Trace

from .specdriver import SpecDriver

HERE = Path(__file__).parent
DESK = load_file(HERE / "specs" / "desk.py")
RETRY = load_file(HERE.parent / "explore" / "specs" / "retry.py")
LENDING = load_file(HERE.parent / "cli" / "specs" / "lending.py")
BOUNDS: Mapping[str, int | str] = {"readers": 3, "copies": 2}
SWITCHES = [name for name, bound in DESK.bounds.items() if isinstance(bound, Switch)]


def desk(**bounds: int | str) -> BoundSpec:
    return BoundSpec(DESK, {**BOUNDS, **bounds})


def trace(bound: BoundSpec, *events: tuple[Any, ...], shows: str = "") -> Trace:
    """The trace of these events: the name of an action with its arguments."""
    rules = {rule.name: rule for rule in bound.actions}
    return replace(run(bound, [(rules[name], tuple(args)) for name, *args in events]), property=shows)


def drawn(bound: BoundSpec, seed: int, length: int = 30) -> Trace:
    """A random trace."""
    draw, state, events = random.Random(seed), bound.initial()[0][2], list[tuple[Rule, Arguments]]()
    while len(events) < length and (choices := list(bound.transitions(state))):
        rule, args, state = draw.choice(choices)
        events.append((rule, args))
    return replace(run(bound, events), property="")


LENT = (("ask", 0), ("lend",), ("ask", 1), ("lend",), ("give_back", 0), ("give_back", 1), ("ask", 2), ("lend",))


# -- how far ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_same_spec_goes_along_to_the_end(seed: int) -> None:
    bound = desk()
    made = drawn(bound, seed)
    found = replay(bound, made, SpecDriver(bound))
    assert found.to_the_end
    assert found.events == made.steps
    assert list(found.shown) == [Observer(bound).expected(state) for state in made.states]


def test_another_order_shows_at_the_first_lending_from_a_full_shelf() -> None:
    bound = desk()
    found = replay(bound, trace(bound, *LENT), SpecDriver(desk(order="newest")))
    assert found.discord is not None
    assert (found.discord.kind, len(found.events), found.answered, found.unchanged) == (Kind.OBSERVATION, 2, True, False)
    assert [one.path for one in found.discord.differences] == ["readers[A].copy", "shelf"]
    assert len(found.shown) == 3


def test_a_refusal_is_quoted_and_shows_nothing() -> None:
    bound = desk()
    found = replay(bound, trace(bound, *LENT), SpecDriver(BoundSpec(DESK, {**BOUNDS, "return": "not-when-all-lent"})))
    assert found.discord is not None
    assert (found.discord.kind, len(found.events), found.message) == (Kind.REFUSED, 5, "give_back is disabled")
    assert (found.answered, len(found.shown)) == (True, 5)


class Crashing(SpecDriver):
    """Its third event ends in an error that is nobody's."""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        super().take(action, arguments)
        self.hidden += 1
        if self.hidden == 3:
            raise ZeroDivisionError("no readers")


def test_a_crash_is_quoted_and_not_explained() -> None:
    bound = desk()
    found = replay(bound, trace(bound, *LENT), Crashing(bound))
    assert found.discord is not None
    assert (found.discord.kind, len(found.events), found.answered) == (Kind.STOPPED, 3, False)
    assert found.message.startswith("ZeroDivisionError: no readers (test_replay.py:")


class Elsewhere(SpecDriver):
    """Begins with the desk shut."""

    def reset(self) -> None:
        super().reset()
        self.take("shut", (False,))


def test_another_initial_state() -> None:
    bound = desk()
    found = replay(bound, trace(bound, *LENT), Elsewhere(bound))
    assert found.discord is not None
    assert (found.events, found.event, len(found.shown)) == ((), None, 1)
    assert [one.path for one in found.discord.differences] == ["open"]


class Drowning(SpecDriver):
    """Stops when water comes in; takes nothing any more then."""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        super().take(action, arguments)
        if action == "flood":
            raise Stopped("WET", "the books float")


def test_one_that_stops_as_the_spec_says_goes_along_to_the_end() -> None:
    bound = desk(storm="on", loans=2)
    made = trace(bound, *LENT[:4], ("flood",), ("rain",), ("rain",))
    found = replay(bound, made, Drowning(bound))
    assert (found.to_the_end, found.message) == (True, "the books float")
    assert [len(found.events), len(found.shown)] == [7, 6]


class Eager(SpecDriver):
    """Asks again for a reader who reads, where the spec allows nothing."""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        try:
            super().take(action, arguments)
        except Refused:
            if action == "ask" and self.observe()["readers"]["A"]["at"] == "READING":
                super().take("give_back", (0,))
                return
            raise


def test_a_trace_of_lockstep_is_followed_by_quiet_events() -> None:
    bound = desk()
    made = trace(bound, *LENT[:2])
    assert replay(bound, made, Eager(bound, ("ask", "shut"))).to_the_end
    found = replay(bound, replace(made, property=LOCKSTEP), Eager(bound, ("ask", "shut")))
    assert found.discord is not None
    assert found.event is not None
    assert (found.discord.kind, len(found.events)) == (Kind.NOT_QUIET, 3)
    assert (found.event.action, found.event.arguments) == ("ask", (0,))
    assert replay(bound, replace(made, property=LOCKSTEP), Eager(bound)).to_the_end


class Tiring(SpecDriver):
    """Succeeds where it should fail, the second time."""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        self.hidden += action == "fail"
        super().take("succeed" if self.hidden == 2 else action, arguments)


def test_a_lasso_goes_round_once_more() -> None:
    bound = BoundSpec(RETRY, {})
    made = replace(trace(bound, ("try_it",), ("fail",), shows="done-in-the-end"), loop=0)
    found = replay(bound, made, SpecDriver(bound))
    assert (found.to_the_end, len(found.events)) == (True, 4)
    found = replay(bound, made, Tiring(bound))
    assert (found.to_the_end, len(found.events)) == (False, 4)
    assert explain(bound, found, None, []).sets == ()


# -- why --------------------------------------------------------------------------------------------------------------


def planted(draw: random.Random) -> dict[str, str]:
    """Other choices for one to three switches."""
    names = draw.sample(SWITCHES, draw.randrange(1, 4))
    switches = {name: bound for name, bound in DESK.bounds.items() if isinstance(bound, Switch)}
    return {name: next(c for c in switches[name].choices if c != switches[name].default) for name in names}


def goes_along(found: Replayed, chosen: Mapping[str, int | str]) -> bool:
    """Whether an interpreter of the spec with these switches shows all that was shown: not as replay_why finds out."""
    driver = SpecDriver(desk(**chosen))
    shown = [driver.observe()]
    for step in found.events:
        rule = next(rule for rule in driver.bound.actions if rule.name == step.action)
        try:
            driver.take(step.action, driver.bound.arguments(rule, step.arguments))
        except Refused:
            return found.refused and step is found.events[-1] and shown == list(found.shown)
        shown.append(driver.observe())
    return not found.refused and shown == list(found.shown)


@pytest.mark.parametrize("seed", range(40))
def test_the_switches_that_explain_are_the_smallest_ones(seed: int) -> None:
    draw = random.Random(seed)
    own, bound = planted(draw), desk()
    found = replay(bound, drawn(bound, seed), SpecDriver(desk(**own)))
    if found.to_the_end:
        assert goes_along(found, own)
        return
    why = explain(bound, found, desk(**own).values, SWITCHES)
    assert set(why.tried) == set(own.items())
    assert why.sets
    for chosen in why.sets:
        assert goes_along(found, dict(chosen))
        assert not any(goes_along(found, {name: c for name, c in chosen if name != left_out}) for left_out, _ in chosen)
    unknown = explain(bound, found, None, SWITCHES)
    assert set(why.sets) <= set(unknown.sets) or unknown.largest < why.largest


def test_most_of_the_seeds_differ() -> None:
    """The test above is about differences."""
    bound = desk()
    differing = 0
    for seed in range(40):
        own = planted(random.Random(seed))
        differing += not replay(bound, drawn(bound, seed), SpecDriver(desk(**own))).to_the_end
    assert differing > 20


class Hoarding(SpecDriver):
    """Gives nothing back, and says nothing."""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        if action != "give_back":
            super().take(action, arguments)


def test_what_no_switch_explains() -> None:
    bound = desk()
    found = replay(bound, trace(bound, *LENT), Hoarding(bound))
    assert found.unchanged
    why = explain(bound, found, None, SWITCHES)
    assert why.sets == ((("return", "not-when-all-lent"),),)  # there it is not allowed, and nothing happens
    with_copy = trace(bound, ("ask", 0), ("lend",), ("give_back", 0))
    found = replay(bound, with_copy, Hoarding(bound))
    why = explain(bound, found, None, SWITCHES)
    assert (why.sets, why.largest) == ((), 2)
    assert {name for name, _ in why.tried} == set(SWITCHES)


# -- states and properties --------------------------------------------------------------------------------------------

BORROWED = (("borrow", 0), ("launch", 0), ("finish", 0))


def test_the_property_is_judged_on_the_implementations_own_states() -> None:
    bound = BoundSpec(LENDING, {})
    made = trace(bound, *BORROWED, shows="no-free-block-is-written")
    found = replay(bound, made, SpecDriver(bound))
    assert own_states(bound, found) == made.states
    assert violates(bound, found)
    assert concerned(bound, made) == {("blocks", 0)}
    assert not violates(bound, replay(bound, trace(bound, *BORROWED[:2], shows=made.property), SpecDriver(bound)))


def test_without_an_abstraction_the_traces_states_are_judged() -> None:
    bound = desk()
    found = replay(bound, trace(bound, *LENT), SpecDriver(bound))
    assert own_states(bound, found) is None
    assert as_states(bound, replay(bound, trace(bound, *LENT), SpecDriver(desk(order="newest")))) is None


class Late(SpecDriver):
    """Takes back what is written, and puts it elsewhere."""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        super().take(action, arguments)
        if action == "finish":
            super().take("borrow", (1,))


def test_differences_are_named_as_in_traces() -> None:
    bound = BoundSpec(LENDING, {})
    found = replay(bound, trace(bound, *BORROWED), Late(bound))
    named = as_states(bound, found)
    assert named is not None
    assert [str(one.path) for one in named] == ["status[B]", "held[B]", "free"]
    assert (named[0].spec, named[0].implementation) == ("IDLE", "BORROWING")
