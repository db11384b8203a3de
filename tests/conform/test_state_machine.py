"""Hypothesis drives the KV spec and the reference implementation side by side, and shrinks and saves what differs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.cli.kvdata import profiles
from fencepost.checker.conform.follow import LOCKSTEP, Discord, Instance, Walk, run
from fencepost.checker.conform.observer import Observer
from fencepost.checker.model import Model
from fencepost.impl.drivers.reference import ReferenceDriver
from fencepost.spec.lang import Arguments, Int, Rule, SetOf, load_module
from fencepost.spec.lang.types import Bool, Member
from fencepost.traces.driver import Driver
from fencepost.traces.itf import document, write
from fencepost.traces.origin import Origin
from fencepost.traces.recorded import read
from fencepost.traces.revive import revive
from fencepost.traces.trace import Trace, follow
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

KV = load_module("fencepost.spec.kv.kv", "kv")
Bounds = Mapping[str, int | str]
LARGER: Bounds = {
    "requests": 6,
    "blocks": 14,
    "block-size": 2,
    "prompt-tokens": 7,
    "max-tokens": 4,
    "steps-in-flight": 3,
    "max-num-batched-tokens": 12,
}
SIZES: Mapping[str, Bounds] = {
    "loads": {**LARGER, "kv-role": "kv_consumer", "remote-tokens": 5},
    "caching": {**LARGER, "enable-prefix-caching": 1, "prefix-groups": 2, "reset-running": 1},
    "both": {**LARGER, "kv-role": "kv_both", "remote-tokens": 7, "enable-prefix-caching": 1, "empty-steps": 1},
}


class Lockstep(RuleBasedStateMachine):
    """Takes events that the spec allows on both sides; a difference is saved as a trace, the last one that was met."""

    model: Model
    driver: Driver
    folder: Path
    taken: Counter[str]

    def __init__(self) -> None:
        super().__init__()
        self.bound, self.observer = self.model.bound, Observer(self.model.bound)
        self.begin()

    def begin(self) -> None:
        """Go to the initial state on both sides."""
        self.state = self.bound.initial()[0][2]
        self.known: dict[str, list[Arguments]] = {}
        self.walk = Walk(self.driver)
        self.path: list[Instance] = []

    def enabled(self, action: Rule) -> bool:
        """Whether an action can be taken now; one that need not happen comes seldom, as an abort does."""
        seldom = sum(taken.declared.declaration.fair is None for taken, _ in self.path)
        if action.declared.declaration.fair is None and seldom > 1 + len(self.path) // 8:
            return False
        return bool(self.openings(action))

    @precondition(lambda self: not any(map(self.enabled, self.bound.actions)))
    @rule()
    def reset(self) -> None:
        """Begin again where nothing can happen, as after an error of the engine."""
        self.begin()

    def openings(self, action: Rule) -> list[Arguments]:
        """The members for which an action is enabled, with the least of everything else."""
        if action.name not in self.known:
            self.known[action.name] = self.find_openings(action)
        return self.known[action.name]

    def find_openings(self, action: Rule) -> list[Arguments]:
        """The same, looked for."""
        kinds = [parameter.type for parameter in action.declared.parameters]
        found: list[Arguments] = [()]
        for kind, domain in zip(kinds, action.domains, strict=True):
            found = [(*args, value) for args in found for value in (domain if isinstance(kind, Member) else domain[:1])]
        return [args for args in found if self.bound.after(self.state, action, args) is not None]

    def take(self, action: Rule, data: st.DataObject) -> None:
        """An event of an action, with any arguments that the spec allows."""
        args = data.draw(st.sampled_from(self.openings(action)))
        for at, parameter in enumerate(action.declared.parameters):
            for value in drawn(data, parameter.type, action.domains[at], args[at]):
                other = (*args[:at], value, *args[at + 1 :])
                if self.bound.after(self.state, action, other) is not None:
                    args = other
        after = self.bound.after(self.state, action, args)
        assert after is not None
        self.taken[action.name] += 1
        self.path.append((action, args))
        self.state, self.known = after, {}
        discord = self.walk.take(action.name, self.bound.arguments(action, args), self.observer.expected(after))
        if discord is not None:
            self.fail(discord)

    def fail(self, discord: Discord) -> None:
        """Save the run, and say what differs."""
        file = self.folder / "lockstep.itf.json"
        origin = Origin.of(self.bound, LOCKSTEP, profile=self.model.profile)
        write(file, document(self.bound, run(self.bound, self.path), origin))
        first = discord.differences[0] if discord.differences else discord.message
        raise AssertionError(f"{discord.kind.value} ({first}); the trace is in {file}")


def drawn(data: st.DataObject, kind: Any, domain: range, value: int) -> list[int]:
    """Other values to try for a parameter, one after another: for a set, more and more members."""
    match kind:
        case Int() | Bool():
            return [data.draw(st.sampled_from(domain))]
        case SetOf():
            wanted = data.draw(st.sets(st.integers(0, (len(domain) - 1).bit_length() - 1)))
            return [sum(1 << member for member in sorted(wanted)[: size + 1]) for size in range(len(wanted))]
        case _:
            return []


def machine(model: Model, driver: Driver, folder: Path) -> type[Lockstep]:
    """The machine of a spec: a rule for each of its actions, where it is enabled."""
    rules = {action.name: _rule(action) for action in model.bound.actions}
    parts = {"model": model, "driver": driver, "folder": folder, "taken": Counter[str]()}
    return type("KVLockstep", (Lockstep,), {**parts, **rules})


def _rule(action: Rule) -> Callable[[Lockstep, st.DataObject], None]:
    def step(self: Lockstep, data: st.DataObject) -> None:
        self.take(action, data)

    step.__name__ = action.name
    return precondition(lambda self: self.enabled(action))(rule(data=st.data())(step))


def play(model: Model, driver: Driver, folder: Path, examples: int, steps: int) -> Counter[str]:
    """How often each action was taken, where nothing differs."""
    made = machine(model, driver, folder)
    run_state_machine_as_test(
        made,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            derandomize=True,
            print_blob=False,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
            phases=[Phase.generate, Phase.shrink],
        ),
    )
    return made.taken


def kv(profile: str, bounds: Bounds) -> Model:
    return Model.of(KV, {**profiles()[profile].switches, **bounds}, profile=profile)


@pytest.mark.parametrize(
    ("profile", "size"), [(name, size) for name in profiles() for size in SIZES if name == "reference" or size == "both"]
)
def test_the_reference_implementation_agrees(profile: str, size: str, tmp_path: Path) -> None:
    agree(kv(profile, SIZES[size]), tmp_path, examples=12, steps=40)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("profile", profiles())
def test_the_reference_implementation_agrees_for_long(profile: str, size: str, tmp_path: Path) -> None:
    agree(kv(profile, SIZES[size]), tmp_path, examples=200, steps=150)


def agree(model: Model, folder: Path, examples: int, steps: int) -> None:
    taken = play(model, ReferenceDriver(model.bound.values), folder, examples, steps)
    assert not list(folder.iterdir())
    rare = {"reset_prefix_cache"}
    assert set(taken) | rare == {action.name for action in model.bound.actions} | rare


@pytest.mark.parametrize(
    ("size", "different", "shortest"),
    [
        pytest.param("loads", {"finish-free": "at-once"}, 5, marks=pytest.mark.slow),
        ("loads", {"uncached-free-order": "tail"}, 4),
        pytest.param("loads", {"abort-of-load": "at-once"}, 3, marks=pytest.mark.slow),
        ("caching", {"cached-free-order": "tail"}, 3),
    ],
)
def test_a_planted_difference_is_found_shrunk_and_saved(size: str, different: Bounds, shortest: int, tmp_path: Path) -> None:
    model = kv("reference", SIZES[size])
    with pytest.raises(AssertionError, match="the implementation shows something else") as caught:
        play(model, ReferenceDriver({**model.bound.values, **different}), tmp_path, examples=100, steps=40)
    named = re.search(r"the trace is in (\S+)", str(caught.value))
    assert named is not None
    trace = saved(model, Path(named[1]))
    assert trace.property == LOCKSTEP
    assert shortest <= len(trace) <= shortest + 2


def saved(model: Model, file: Path) -> Trace:
    """A saved trace, replayed in the spec."""
    revived = revive(model.bound, read(file))
    assert not revived.notes
    return follow(model.bound, revived.trace)
