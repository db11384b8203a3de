"""Every profile and every fault agrees with the engine that has the same switches, on every transition at small bounds.

Steps and representatives are the interpreter's here, and every relabelling is tried; larger bounds, with compiled steps,
are those of the manifest of `fencepost conform`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from fencepost.checker.conform.product import Lockstep, conform
from fencepost.checker.conform.result import Agreement
from fencepost.checker.explore.native.engine import NativeEngine
from fencepost.checker.explore.reference import ReferenceEngine
from fencepost.checker.model import Limits, Model, Options
from fencepost.checker.result import Verdict
from fencepost.spec.lang import Arguments, BoundSpec, Rule, State

from .runs import FAULTS, PROFILES, Relabellings, Values, bound_at, driver_of

SMALL: Mapping[str, Values] = {
    "loads": {"kv-role": "kv_consumer", "blocks": 1, "prompt-tokens": 1, "max-tokens": 1, "remote-tokens": 1},
    "cache": {"blocks": 2, "prompt-tokens": 2, "prompt-tokens-least": 2, "max-tokens": 1, "enable-prefix-caching": 1},
    "both": {
        "kv-role": "kv_both",
        "blocks": 1,
        "block-size": 2,
        "prompt-tokens": 2,
        "prompt-tokens-least": 2,
        "max-tokens": 1,
        "enable-prefix-caching": 1,
        "remote-tokens": 2,
        "aborts": 0,
    },
    "one at a time": {"async-scheduling": 0, "steps-in-flight": 1, "blocks": 3, "prompt-tokens": 2},
}
LARGER: Mapping[str, Values] = {
    "loads": {"kv-role": "kv_consumer", "blocks": 2, "prompt-tokens": 1, "remote-tokens": 1, "reset-running": 1},
    "cache": {"blocks": 2, "prompt-tokens": 1, "enable-prefix-caching": 1, "reset-running": 1},
    "both": {
        "kv-role": "kv_both",
        "blocks": 2,
        "block-size": 2,
        "prompt-tokens": 2,
        "prompt-tokens-least": 2,
        "max-tokens": 1,
        "enable-prefix-caching": 1,
        "remote-tokens": 2,
    },
}
HIDDEN = {("vllm-0.23", "both")}
"""Where spec states hide something of the engine: slots that are right behind a wrong one, after late writes."""
DEPTHS = {"B17-pin": 5}
"""Faults under which the spec leaves its own bounds, here after repeated pins, with the depth up to which it does not."""
LARGE = ("B01", "B03-finish", "B03-preemption", "B13", "B17-pin", "B17-count", "B47")
"""Faults with more states than are looked at in no time."""


class Interpreted:
    """Transitions by the interpreter, and the least of all relabellings of a state."""

    def __init__(self, bound: BoundSpec) -> None:
        self.bound, self.least = bound, Relabellings(bound).least

    def successors(self, state: State) -> Sequence[tuple[Rule, Arguments, State]]:
        """Every enabled action instance with the state it leads to."""
        return list(self.bound.transitions(state))

    def canonical(self, state: State) -> tuple[State, Mapping[str, Sequence[int]]]:
        """The representative, and the names that make it."""
        return self.least(state)


def agree(found: Agreement, model: Model, depth: int | None = None, *, hidden: bool = False) -> None:
    """Whether everything was compared and agrees, and the figures are those of a search that knows no implementation."""
    assert found.mismatch is None
    assert found.vacuous == ()
    assert (found.cut is None) == (depth is None)
    assert found.verdict is (Verdict.HOLDS if depth is None else Verdict.UNDETERMINED)
    figures = found.figures
    options = Options(keep_going=True, deadlock=False, limits=Limits(max_depth=depth))
    searched = ReferenceEngine(model).run(options, None) if figures.spec_states < 700 else NativeEngine(model).run(options)
    assert (figures.spec_states, figures.depth) == (searched.distinct, searched.depth)
    assert (found.hidden is not None) == hidden == (figures.product_states > figures.spec_states)
    if not hidden:
        assert figures.product_states == figures.spec_states
        assert figures.transitions + figures.after_stop == searched.generated


def interpreted(model: Model) -> Agreement:
    """Everything compared, without anything compiled."""
    return Lockstep(model, driver_of(model.bound), Limits(), Interpreted(model.bound)).run()


@pytest.mark.parametrize("size", SMALL)
@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_agrees(profile: str, size: str) -> None:
    model = Model(bound_at(profile, SMALL[size]), "kv")
    agree(interpreted(model), model)


@pytest.mark.slow
@pytest.mark.parametrize("size", LARGER)
@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_agrees_at_larger_bounds(profile: str, size: str) -> None:
    model = Model(bound_at(profile, LARGER[size]), "kv")
    agree(conform(model, driver_of(model.bound), Limits()), model, hidden=(profile, size) in HIDDEN)


@pytest.mark.parametrize("fault", [pytest.param(name, marks=pytest.mark.slow) if name in LARGE else name for name in FAULTS])
def test_a_fault_agrees(fault: str) -> None:
    row = FAULTS[fault]
    model = Model(bound_at(row["base"], row["bounds"], row["switch"]), "kv")
    if fault in LARGE:
        limits = Limits(max_depth=DEPTHS.get(fault))
        agree(conform(model, driver_of(model.bound), limits), model, limits.max_depth)
    else:
        agree(interpreted(model), model)
