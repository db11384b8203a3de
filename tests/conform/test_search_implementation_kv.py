"""The search of the reference implementation, by a second road: the search of the spec, lockstep, and brute force."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pytest
from fencepost.checker.cli import kvdata
from fencepost.checker.conform.product import conform
from fencepost.checker.conform.search import Searched, search
from fencepost.checker.explore import explore
from fencepost.checker.model import Limits, Model, Options
from fencepost.checker.result import Figures, Result, Verdict
from fencepost.impl.drivers.reference import ReferenceDriver
from fencepost.spec.lang import load_module
from fencepost.spec.lang.declare import WITNESS_KINDS
from fencepost.traces.driver import Refused, Stopped
from fencepost.traces.trace import follow

from tests.drivers.runs import exact

KV = load_module("fencepost.spec.kv.kv", "kv")
Values = Mapping[str, int | str]
PROFILES = [
    name if name in ("reference", "vllm-0.23", "vllm-0.33") else pytest.param(name, marks=pytest.mark.slow)
    for name in kvdata.profiles()
]
LOADS: Values = {"kv-role": "kv_consumer", "blocks": 3, "prompt-tokens": 2, "prompt-tokens-least": 2, "remote-tokens": 2}
RESETS: Values = {**LOADS, "reset-running": 1, "blocks": 2, "prompt-tokens": 1, "prompt-tokens-least": 1}
PLAIN: Values = {"blocks": 3, "prompt-tokens": 1, "max-tokens": 3}
CACHE: Values = {"enable-prefix-caching": 1, "blocks": 2, "block-size": 2, "prompt-tokens": 2, "prefix-groups": 0}
SHARED: Values = {"enable-prefix-caching": 1, "blocks": 2, "prompt-tokens": 2, "max-tokens": 1, "prefix-groups": 1}


def model_of(profile: str | None, *more: Values) -> Model:
    given: dict[str, int | str] = {} if profile is None else dict(kvdata.profile(profile).switches)
    for values in more:
        given |= values
    return Model.of(KV, given, profile=profile)


def searched(model: Model, options: Options | None = None, planted: Values | None = None) -> Searched:
    """What comes of searching the reference implementation, some of its switches set otherwise than the spec's."""
    return search(model, ReferenceDriver({**model.bound.values, **(planted or {})}), options or Options())


def known(result: Result) -> dict[str, Any]:
    return {prop.name: (prop.status, prop.depth) for prop in result.properties}


def size(figures: Figures) -> tuple[int, int, int]:
    return figures.distinct, figures.generated, figures.depth


# -- the same verdict as the spec -------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("bounds", [PLAIN, CACHE], ids=["caching off", "caching on"])
def test_the_implementation_has_the_properties_and_the_states_of_the_spec(profile: str, bounds: Values) -> None:
    model = model_of(profile, bounds)
    found, own = searched(model), explore(model, Options(), "native")
    assert found.result.verdict == own.verdict
    assert known(found.result) == known(own)
    assert size(found.result.figures) == size(own.figures)
    assert [a.taken for a in found.result.figures.actions] == [a.taken for a in own.figures.actions]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("bounds", [LOADS, RESETS], ids=["loads", "resets"])
def test_with_loads_and_resets_the_verdict_is_that_of_the_spec(profile: str, bounds: Values) -> None:
    """There are fewer states: the spec tells apart what landed in blocks that are only held, and goes on after an error.

    Nor does an engine that has stopped show witnesses any more.
    """
    model = model_of(profile, bounds)
    found, own = searched(model), explore(model, Options(), "native")
    witnesses = {prop.name for prop in own.properties if prop.kind in WITNESS_KINDS}
    ours, theirs = known(found.result), known(own)
    assert found.result.verdict == own.verdict
    assert {name for name in ours if ours[name] != theirs[name]} <= (witnesses if bounds is RESETS else set())
    assert 0.8 < found.result.figures.distinct / own.figures.distinct <= 1
    assert found.result.figures.depth == own.figures.depth


@pytest.mark.parametrize("bounds", [PLAIN, CACHE, SHARED], ids=["caching off", "caching on", "shared texts"])
def test_there_are_as_many_states_as_product_states_in_lockstep(bounds: Values) -> None:
    model = model_of("reference", bounds)
    compared = conform(model, ReferenceDriver(model.bound.values), Limits())
    figures = searched(model, Options(keep_going=True)).result.figures
    assert compared.verdict is Verdict.HOLDS
    assert (figures.distinct, figures.generated) == (compared.figures.product_states, compared.figures.transitions)


@pytest.mark.parametrize("fault", kvdata.faults().values(), ids=lambda fault: fault.id)
@pytest.mark.parametrize(
    "alone", [pytest.param(False, id="", marks=pytest.mark.slow), pytest.param(True, id="its own property")]
)
def test_every_fault_is_found_in_the_implementation_as_in_the_spec(fault: kvdata.Fault, alone: bool) -> None:
    model = Model.of(KV, fault.values, fault=fault.id)
    if alone:
        model.bound.properties = tuple(prop for prop in model.bound.properties if prop.name == fault.breaks)
    options = Options(deadlock=not alone)
    found, own = searched(model, options).result, explore(model, options, "native")
    assert found.verdict is own.verdict is Verdict.VIOLATED
    assert {p.name: p.depth for p in found.violations} == {p.name: p.depth for p in own.violations}
    if alone:
        assert [(p.name, p.depth) for p in found.violations] == [(fault.breaks, fault.depth)]


@pytest.mark.parametrize("fault", kvdata.faults().values(), ids=lambda fault: fault.id)
def test_the_spec_takes_the_same_steps_to_every_fault(fault: kvdata.Fault) -> None:
    model = Model.of(KV, fault.values, fault=fault.id)
    for path in searched(model).paths.values():
        assert path.otherwise is None
        assert path.by_spec
        assert follow(model.bound, path.trace) == path.trace


# -- planted where the spec is right ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("switch", "choice", "bounds", "wrong"),
    [
        ("abort-free", "at-once", LOADS, {"no-unordered-write-in-flight": 5, "no-reuse-in-flight": 5}),
        ("uncached-free-order", "tail", PLAIN, {"free-order": 3}),
        ("pin-before-test", "yes", {**SHARED, "blocks": 3, "max-tokens": 2, "prompt-tokens-least": 2}, {"refcount-exact": 4}),
        ("abort-of-load", "at-once", LOADS, {"completion-once": 4}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_planted_error_is_found_by_properties_though_the_spec_is_right(
    switch: str, choice: str, bounds: Values, wrong: Mapping[str, int]
) -> None:
    model = model_of("reference", bounds)
    assert explore(model, Options(), "native").verdict is not Verdict.VIOLATED
    found = searched(model, planted={switch: choice})
    assert {p.name: p.depth for p in found.result.violations} == wrong
    for path in found.paths.values():
        assert path.otherwise is not None
        assert path.otherwise.step <= len(path.trace)
    if switch == "abort-of-load":  # with the spec's switch no transfer goes on without its request: that is no state of it
        assert found.ended is not None
        assert found.ended.message == "orphan[0]: expected a list of at most 0 elements"
        assert len(found.ended.path.trace) == 3


class Dropping(ReferenceDriver):
    """Loses the block at the end of the free queue whenever a request is aborted while two steps are in flight."""

    def abort(self, r: int) -> None:
        super().abort(r)
        queue = self.engine.scheduler.kv_cache_manager.block_pool.free_block_queue
        if len(self.worker.steps) == 2 and queue.num_free_blocks:
            queue.popleft()


def test_an_error_that_is_no_switch_of_the_spec_is_found_too() -> None:
    model = model_of("vllm-0.33", PLAIN)
    found = search(model, Dropping(model.bound.values), Options())
    assert {p.name: p.depth for p in found.result.violations} == {"pool-conservation": 4}


# -- brute force ------------------------------------------------------------------------------------------------------


def everything(model: Model) -> tuple[int, int]:
    """Distinct states and transitions of the implementation: every event of every name, without symmetry, run from the start.

    A state is what is shown, exactly, with the digest; which events a client or the device may begin, the spec's guards say.
    """
    bound = model.bound
    events = [(rule, args) for rule in bound.actions for args in rule.choices()]
    driver = ReferenceDriver(bound.values)
    states = {whole(driver)}
    paths: list[tuple[Any, Any]] = [((), bound.initial()[0][2])]
    taken = 0
    for (path, state), (rule, args) in ((at, event) for at in paths for event in events):
        after = bound.after(state, rule, args)
        if after is None and rule.name not in driver.quiet:
            continue
        driver.reset()
        for earlier, arguments in path:
            driver.take(earlier.name, bound.arguments(earlier, arguments))
        before = whole(driver)
        try:
            driver.take(rule.name, bound.arguments(rule, args))
        except Refused:
            continue
        assert after is not None or whole(driver) == before
        if after is not None:
            taken += 1
            if whole(driver) not in states:
                states.add(whole(driver))
                paths.append(((*path, (rule, args)), after))
    return len(states), taken


def whole(driver: ReferenceDriver) -> str:
    return repr((exact(driver.observe()), driver.digest()))


@pytest.mark.parametrize(
    "bounds",
    [
        {"requests": 2, "blocks": 2, "prompt-tokens": 1, "max-tokens": 1},
        {"requests": 1, "blocks": 2, "prompt-tokens": 1, "max-tokens": 2, "enable-prefix-caching": 1},
        {"requests": 1, "blocks": 2, "kv-role": "kv_consumer", "prompt-tokens": 1, "max-tokens": 2, "remote-tokens": 1},
    ],
    ids=["two requests", "caching", "loads"],
)
def test_every_state_is_seen_that_brute_force_sees(bounds: Values) -> None:
    model = model_of("vllm-0.33", bounds)
    figures = searched(model, Options(symmetry=False, keep_going=True)).result.figures
    assert (figures.distinct, figures.generated) == everything(model)


@pytest.mark.slow
def test_symmetry_changes_no_property() -> None:
    for bounds, symmetry in itertools.product((PLAIN, LOADS), (True, False)):
        model = model_of("vllm-0.27", bounds)
        found = searched(model, Options(symmetry=symmetry, keep_going=True)).result
        assert {p.name: p.depth for p in found.violations} == {
            p.name: p.depth for p in explore(model, Options(keep_going=True), "native").violations
        }


def test_of_an_error_that_stops_the_engine_the_message_is_kept() -> None:
    model = Model.of(KV, kvdata.fault("B13").values, fault="B13")
    path = searched(model).paths["no-error"]
    assert "gave its blocks back" in path.message
    driver = ReferenceDriver(model.bound.values)
    rules = {rule.name: rule for rule in model.bound.actions}
    events = [(step.action, model.bound.arguments(rules[step.action], step.arguments)) for step in path.trace.steps]
    for event in events[:-1]:
        driver.take(*event)
    with pytest.raises(Stopped, match="gave its blocks back"):
        driver.take(*events[-1])
