"""`fencepost replay TRACE --target NAME`: an implementation is driven through a trace, and what it does is said."""

from __future__ import annotations

import sys
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import kvdata
from .drivers import Implementation, find
from .errors import UsageError
from .target import Values, implied_by, load_shipped, parse_bounds

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from ...spec.lang.reasons import Members
    from ...traces.driver import Driver
    from ..conform.replay import Replayed
    from ..conform.replay_report import Side
    from ..conform.replay_why import Why
    from ..model import Model
    from .load import Loaded

SHOWN, NOT_SHOWN = 0, 1


@dataclass(frozen=True)
class On:
    """What a trace is to be replayed on: a target, and how its mechanisms are, where that is not as in the trace."""

    name: str
    profile: str | None = None
    bounds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Own:
    """The implementation's side: `values` that it is made with, and whether its mechanism switches are `known` to be these."""

    values: Values
    profile: str | None
    known: bool


class OnTarget:
    """A trace of a spec and the implementation that it is replayed on."""

    def __init__(self, loaded: Loaded, on: On) -> None:
        self.loaded = loaded
        self.model: Model = loaded.target.model
        self.implementation: Implementation = find(on.name, self.model.spec.name)
        self.own = _own(self.model, self.implementation, on)

    def run(self, *, full: bool, quiet: bool) -> int:
        """Replay the trace, print what came of it, and return the exit code."""
        from ..conform.replay import concerned, replay
        from ..conform.replay_report import Shown, print_report
        from ..report.terminal import console

        out, bound, trace = console(), self.model.bound, self.loaded.revived.trace
        with self._blamed():
            driver = self.implementation.make(self.own.values)
            found = replay(bound, trace, driver)
        members = concerned(bound, trace)
        why = self._why(found)
        for note in self.loaded.revived.notes:
            out.print(f"note: {note}")
        if not quiet:
            out.print(
                f"spec {self.loaded.target.source or bound.spec.name}, replayed on {self.implementation.name}", style="bold"
            )
            out.print(driver.title)
            objects = self._objects(driver, members) if found.to_the_end else None
            own = self.own
            sides = (
                _side("the trace", self.model.profile, self.model.fault, self.model.bound.values),
                _side("implementation", own.profile, None, own.values),
            )
            print_report(out, Shown(self.model, found, members, objects, why, sides, full))
        shown, told = self._outcome(found, members, why)
        out.print("REPLAYED", style="bold green" if shown else "bold yellow", end="")
        out.print(f" {_how_far(found)} on {self.implementation.name}: {told}", soft_wrap=True)
        return SHOWN if shown else NOT_SHOWN

    @contextmanager
    def _blamed(self) -> Generator[None]:
        """What an implementation prints is no part of the report, and an error in a user's driver is theirs."""
        try:
            with redirect_stdout(sys.stderr):
                yield
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:
            blamed = self.implementation.blame(error)
            raise error if blamed is None else blamed from error

    def _objects(self, driver: Driver, members: Members) -> list[tuple[str, str]] | None:
        """What the implementation's own objects say of these members; None from a driver that cannot show them."""
        from ...traces.driver import Exhibits

        if not isinstance(driver, Exhibits):
            return None
        blocks, requests = (sorted(m for name, m in members if name == wanted) for wanted in ("blocks", "requests"))
        with self._blamed():
            return driver.exhibit(blocks, requests)

    def _why(self, found: Replayed) -> Why | None:
        """Which mechanisms explain that the implementation differs, or that what it does violates nothing of it."""
        from ...traces.claims import LOCKSTEP
        from ..conform.replay_why import acquit, explain

        bound, own = self.model.bound, self.own.values if self.own.known else None
        if found.discord is not None:
            return explain(bound, found, own, _mechanisms(self.model)) if found.answered else None
        claim = found.trace.property
        return acquit(bound, found.trace, own) if own is not None and claim not in ("", LOCKSTEP) else None

    def _outcome(self, found: Replayed, members: Members, why: Why | None) -> tuple[bool, str]:
        """Whether the implementation shows what the trace claims, and the verdict in words."""
        from ...traces.claims import LOCKSTEP
        from ..conform.replay_report import in_words, named, where
        from ..conform.replay_state import violates

        bound, trace = self.model.bound, found.trace
        if found.discord is not None:
            because = f"; the spec does the same with {in_words(why)}" if why is not None and why.sets else ""
            reproduced = trace.property == LOCKSTEP and len(found.events) >= len(trace)
            return reproduced, f"{where(bound, found)}{because}"
        if trace.property == LOCKSTEP:
            return False, "it does all that the spec says; the difference to which the trace leads is not there"
        if not trace.property:
            return False, "it does all of it; the end of the trace violates no property"
        if not violates(bound, found):
            return False, f"it does all of it, which does not show {trace.property} here"
        if why is not None and why.sets:
            if not self._applies(trace.property):
                return False, f"it does all of it; with {in_words(why)} {trace.property} does not apply, and is not promised"
            return False, f"it does all of it, which with {in_words(why)} does not violate {trace.property}"
        who = named(bound, members)
        return True, f"it shows {trace.property}{f': {who}' if who else ''}"

    def _applies(self, name: str) -> bool:
        """Whether a property of the spec is one of the implementation's, with its mechanisms."""
        from ...spec.lang import BoundSpec

        bound = self.model.bound
        return name not in BoundSpec(bound.spec, self.own.values, enumerable=bound.enumerable).not_applicable


def _how_far(found: Replayed) -> str:
    from ..report.words import count

    agreed = len(found.events) - (found.discord is not None and bool(found.events))
    if found.discord is None:
        return count(agreed, "event")
    return f"{agreed} of {count(len(found.trace), 'event')}"


def _own(model: Model, target: Implementation, on: On) -> Own:
    """How an implementation is made, and what is known of its mechanisms; the reference one has those of the trace."""
    reference = target.name == "reference"
    profile = on.profile or (None if reference else target.profile)
    switches: Values = {}
    if profile is not None:
        if model.spec.name != "kv":
            raise UsageError(
                "--target-profile: profiles are those of the spec kv; use --target-bounds for the switches of yours"
            )
        switches = _switches(model, profile)
    try:
        given = parse_bounds(on.bounds)
    except UsageError as error:
        raise UsageError(str(error).replace("--bounds", "--target-bounds")) from None
    values = model.spec.values({**model.bound.values, **switches, **given})
    return Own(values, profile, bool(profile or given) or reference)


def _switches(model: Model, profile: str) -> Values:
    """Every mechanism switch of a profile; the connector's role is no mechanism, and stays."""
    try:
        found = kvdata.profile(profile).switches
    except UsageError as error:
        raise UsageError(str(error).replace("--profile", "--target-profile")) from None
    return {name: value for name, value in implied_by(model.spec, found).items() if name in _mechanisms(model)}


def _mechanisms(model: Model) -> list[str]:
    """The switches that may be otherwise in an implementation: of kv those that some profile or fault changes."""
    from ...spec.lang import Switch

    names = [name for name, bound in model.spec.bounds.items() if isinstance(bound, Switch)]
    if model.spec.name != "kv":
        return names
    changed = {name for profile in kvdata.profiles().values() for name in profile.switches}
    changed = changed.union(*_switches_of_faults().values())
    return [name for name in names if name in changed]


def _switches_of_faults() -> dict[str, set[str]]:
    """For each fault the switches that put it back."""
    found: list[dict[str, Any]] = kvdata.load("faults")["faults"]
    return {str(fault["id"]): set(fault["switch"]) for fault in found}


def _side(name: str, profile: str | None, fault: str | None, values: Mapping[str, int | str]) -> Side:
    """One side of a difference: for its switches where their profile's facts were read, and what the fault of a trace is."""
    from ..conform.replay_report import Side

    profiles: dict[str, dict[str, Any]] = kvdata.load("profiles")["profiles"]
    found = profiles.get(profile or "", {})
    read: dict[str, str] = found.get("sources") or {}
    own = {} if profile is None else implied_by(load_shipped("kv"), kvdata.profile(profile).switches)
    as_said = {switch for switch, choice in own.items() if choice == values[switch]}
    sources = {switch: f"{profile}: {read[switch]}" if switch in read else str(profile) for switch in as_said}
    if fault is not None:
        known = kvdata.fault(fault)
        sources |= dict.fromkeys(_switches_of_faults()[known.id], f"fault {known.id} ({known.bug}): {known.title}")
    return Side(name, sources)
