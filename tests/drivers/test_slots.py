"""Every slot of every engine class is known: what becomes of it in saved states, in observations and in digests.

The table is held against the classes, and each of its words against what happens when the slot is changed by hand.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Protocol, cast

import pytest
from fencepost.impl import engine as package
from fencepost.impl.drivers import reference_state
from fencepost.impl.drivers.reference import ReferenceDriver
from fencepost.impl.engine.async_scheduler import AsyncScheduler
from fencepost.impl.engine.block_pool import BlockPool
from fencepost.impl.engine.config import EngineConfig, Mechanisms
from fencepost.impl.engine.engine import Engine
from fencepost.impl.engine.kv_cache_manager import KVCacheManager
from fencepost.impl.engine.kv_cache_utils import FreeKVCacheBlockQueue, KVCacheBlock
from fencepost.impl.engine.kv_connector import RemotePrefillConnector
from fencepost.impl.engine.output import (
    CachedRequestData,
    EngineCoreOutput,
    KVConnectorMetadata,
    LoadSpec,
    ModelRunnerOutput,
    NewRequestData,
    SchedulerOutput,
)
from fencepost.impl.engine.request import Request
from fencepost.impl.engine.request_queue import FCFSRequestQueue
from fencepost.impl.engine.scheduler import Scheduler
from fencepost.impl.engine.simulated_worker import DeviceStep, Load, RequestState, Row, SimulatedWorker, prefix_tags
from fencepost.impl.engine.single_type_kv_cache_manager import FullAttentionManager, SingleTypeKVCacheManager
from fencepost.spec.lang import BoundSpec

from .graph import kind_of, slots, things
from .runs import Values, bound_at, draw, driver_of, exact, take


class How(Enum):
    """What becomes of a slot."""

    FIXED = "never changes while its object lives"
    LINK = "leads to objects that have rows of their own"
    EMPTY = "empty between two events"
    TWIN = "follows from other slots"
    SHOWN = "saved, and an observation tells when it changes"
    DIGESTED = "saved, and the digest tells when it changes"
    LEFT_OUT = "saved, and neither tells: it makes no difference any more"


F, K, E, T, S, D, L = How

TABLE: Mapping[type, Mapping[str, How]] = {
    Engine: {"config": F, "scheduler": K, "worker": K, "batch_queue": T, "error": S},
    Scheduler: {
        "_mechanisms": F,
        "config": F,
        "connector": K,
        "fence": F,
        "kv_cache_manager": K,
        "waiting": K,
        "kv_holding_waiting": K,
        "requests": S,
        "running": S,
        "deferred_frees": S,
        "inflight_prefills": S,
        "finished_recving_kv_req_ids": S,
        "finished_req_ids": L,
        "preempted_req_ids": L,
        "processed_step_seq": D,
        "sched_step_seq": D,
    },
    KVCacheManager: {"_no_blocks": F, "_pins_before_test": F, "block_pool": K, "enable_caching": F, "managers": K},
    SingleTypeKVCacheManager: {"_counts_hits": F, "block_pool": K, "block_size": F, "group_id": F, "req_to_blocks": S},
    BlockPool: {
        "_new_block_ids": E,
        "_unhashed_to_head": F,
        "blocks": K,
        "cached_block_hash_to_block": S,
        "enable_caching": F,
        "free_block_queue": K,
        "null_block": K,
    },
    FreeKVCacheBlockQueue: {"_end": K, "num_free_blocks": T},
    KVCacheBlock: {
        "block_hash": S,
        "block_id": F,
        "is_null": F,
        "next_free_block": T,
        "prev_free_block": T,
        "ref_cnt": S,
    },
    Request: {
        "request_id": F,
        "prompt_token_ids": F,
        "num_prompt_tokens": F,
        "max_tokens": F,
        "stop_token_ids": F,
        "hash_block_size": F,
        "do_remote_prefill": S,
        "status": S,
        "output_token_ids": S,
        "num_computed_tokens": S,
        "num_output_placeholders": S,
        "num_stale_outputs": S,
        "drops_stale_outputs": S,
        "num_tokens": D,
        "num_in_flight": D,
        "num_in_flight_tokens": D,
        "last_sched_seq": D,
        "block_hashes": D,
    },
    FCFSRequestQueue: {"_requests": S},
    RemotePrefillConnector: {"_loads": E, "remote_tokens": F},
    SchedulerOutput: {
        "num_scheduled_tokens": T,
        "total_num_scheduled_tokens": T,
        "scheduled_new_reqs": L,
        "scheduled_cached_reqs": L,
        "new_block_ids_to_zero": L,
        "finished_req_ids": L,
        "preempted_req_ids": L,
        "kv_connector_metadata": L,
    },
    NewRequestData: dict.fromkeys(("req_id", "prompt_token_ids", "block_ids", "num_computed_tokens"), L),
    CachedRequestData: dict.fromkeys(
        ("req_ids", "resumed_req_ids", "all_token_ids", "new_block_ids", "num_computed_tokens", "num_output_tokens"), L
    ),
    KVConnectorMetadata: {"loads": L},
    LoadSpec: {"request_id": D, "token_ids": T, "block_ids": D, "start": D, "num_tokens": D},
    SimulatedWorker: {"block_size": F, "sampler": K, "slots": S, "requests": D, "steps": S, "loads": S},
    RequestState: {"prompt_tags": T, "tables": D},
    Row: {"request_id": S, "state": K, "tables": S, "start": S, "num_tokens": S, "samples": S, "dropped": D},
    DeviceStep: {"ran": S, "rows": S},
    Load: {"spec": K, "landed": S},
}
"""What becomes of every slot of every class whose objects an engine keeps; subclasses have those of their bases."""

NO_SLOTS = (AsyncScheduler, FullAttentionManager)
"""Subclasses that add nothing."""
NOT_KEPT = (EngineCoreOutput, ModelRunnerOutput)
"""Classes whose objects are handed on, and none is kept from one event to the next."""
NEVER_CHANGE = (EngineConfig, Mechanisms)

SIZES: Mapping[str, Values] = {
    "loads": {
        "kv-role": "kv_both",
        "requests": 3,
        "blocks": 4,
        "block-size": 2,
        "prompt-tokens": 4,
        "remote-tokens": 3,
        "enable-prefix-caching": 1,
        "steps-in-flight": 3,
        "max-tokens": 4,
    },
    "resets": {
        "requests": 3,
        "blocks": 4,
        "enable-prefix-caching": 1,
        "max-tokens": 3,
        "reset-running": 1,
        "kv-role": "kv_consumer",
        "remote-tokens": 2,
        "reset-while-parked": "raise",
    },
    "drops": {
        "requests": 3,
        "blocks": 3,
        "enable-prefix-caching": 1,
        "max-tokens": 3,
        "ended-rows": "dropped",
        "reset-running": 1,
    },
}
"""Bounds at which every slot is used."""


def engine_classes() -> Iterator[type]:
    """Every class of the engine's package that is no protocol, enumeration or error."""
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for made in vars(module).values():
            if isinstance(made, type) and made.__module__ == module.__name__:
                protocol = Protocol in made.__bases__
                if not protocol and not issubclass(made, Enum | Exception):
                    yield made


def test_every_class_of_the_engine_is_in_the_table() -> None:
    assert set(engine_classes()) == {*TABLE, *NO_SLOTS, *NOT_KEPT, *NEVER_CHANGE}


@pytest.mark.parametrize("kind", [*TABLE, *NO_SLOTS], ids=lambda kind: kind.__name__)
def test_every_slot_is_in_the_table(kind: type) -> None:
    assert set(slots(kind)) == set(row_of(kind))
    if is_dataclass(kind):
        assert {f.name for f in fields(kind)} == set(row_of(kind))


def test_config_cannot_change() -> None:
    for kind in NEVER_CHANGE:
        assert cast("Any", kind).__dataclass_params__.frozen


def row_of(kind: type) -> Mapping[str, How]:
    """The row of a class, or of the one that it is a subclass of."""
    return next(TABLE[base] for base in kind.__mro__ if base in TABLE)


def known(thing: object) -> bool:
    """Whether an object is one of those that the table is about."""
    return any(base in TABLE for base in type(thing).__mro__)


def states(sizes: str, seeds: int = 8, length: int = 80) -> Iterator[tuple[BoundSpec, ReferenceDriver]]:
    """A driver in state after state of random runs; it is brought back after each."""
    bound = bound_at("reference", SIZES[sizes])
    driver = driver_of(bound)
    for seed in range(seeds):
        driver.reset()
        for rule, args, _ in draw(bound, seed, length):
            stopped = take(driver, bound, rule, args)
            saved = driver.save()
            yield bound, driver
            driver.restore(saved)
            if stopped:
                break


@pytest.mark.parametrize("sizes", SIZES)
def test_objects_have_nothing_but_their_slots(sizes: str) -> None:
    for _, driver in states(sizes, seeds=2):
        for thing in things(driver):
            assert known(thing) or issubclass(kind_of(thing), (list, dict, set, deque, Exception, *NEVER_CHANGE)), thing
            assert not known(thing) or not hasattr(thing, "__dict__"), thing


def name_of(thing: Any) -> object:
    """Which of the objects of its class something is, for good."""
    return getattr(thing, "request_id", getattr(thing, "block_id", getattr(thing, "group_id", None)))


@pytest.mark.parametrize("sizes", SIZES)
def test_what_is_fixed_never_changes_and_what_is_empty_stays_so(sizes: str) -> None:
    seen: dict[tuple[str, object, str], object] = {}
    last: ReferenceDriver | None = None
    for _, driver in states(sizes, seeds=1, length=200):
        assert last is None or last is driver
        last = driver
        for thing in filter(known, things(driver)):
            for slot, how in row_of(kind_of(thing)).items():
                value = getattr(thing, slot)
                if how is How.EMPTY:
                    assert not value, slot
                if how is How.FIXED:
                    assert seen.setdefault((type(thing).__name__, name_of(thing), slot), value) == value, (thing, slot)
    assert len(seen) > 50


@pytest.mark.parametrize("sizes", SIZES)
def test_what_follows_from_other_slots_does(sizes: str) -> None:
    for _, driver in states(sizes, seeds=2):
        engine, worker = driver.engine, driver.worker
        pool = engine.scheduler.kv_cache_manager.block_pool
        assert [list(step.num_scheduled_tokens.items()) for step in engine.batch_queue] == [
            [(row.request_id, row.num_tokens) for row in step.rows] for step in worker.steps
        ]
        for step in engine.batch_queue:
            assert step.total_num_scheduled_tokens == sum(step.num_scheduled_tokens.values())
        free = pool.free_block_queue.get_all_free_blocks()
        assert pool.free_block_queue.num_free_blocks == len(free)
        assert [block.prev_free_block for block in free[1:]] == free[:-1]
        held = [block for block in pool.blocks if block not in free]
        assert all(block.next_free_block is None and block.prev_free_block is None for block in held)
        for request_id, known_state in worker.requests.items():
            assert known_state.prompt_tags == prefix_tags(driver.lives[request_id].tokens())
        for load in worker.loads.values():
            life = driver.lives[load.spec.request_id]
            assert load.spec.token_ids == tuple(life.tokens()[: load.spec.start + load.spec.num_tokens])


def changed(value: Any) -> Iterator[Any]:
    """Other values that a slot could have; none where there is nothing to change."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, Enum):
        yield from (other for other in type(value) if other is not value)
    elif isinstance(value, int):
        yield from (value + 1, value - 1)
    elif isinstance(value, str):
        yield value + "+"
    elif isinstance(value, bytes | Exception):
        yield None
    elif isinstance(value, list | deque | tuple) and value:
        parts = cast("list[Any]", value)
        make = cast("Callable[[list[Any]], Any]", type(parts))
        yield make(list(parts)[:-1])
        yield make(list(parts)[::-1])
        for other in changed(parts[0]):
            yield make([other, *list(parts)[1:]])
    elif isinstance(value, dict) and value:
        entries = list(cast("dict[Any, Any]", value).items())
        yield cast("Callable[[list[Any]], Any]", type(cast("object", value)))(entries[:-1])
    elif isinstance(value, set):
        yield cast("set[Any]", value) ^ {"0#1"}
    elif isinstance(value, CachedRequestData):
        yield CachedRequestData()
    elif isinstance(value, KVConnectorMetadata):
        yield KVConnectorMetadata([])


Told = tuple[Any, Any]


def told(driver: ReferenceDriver) -> Told:
    """What is shown and digested; what a broken state leads to is told, too."""
    try:
        shown: Any = exact(driver.observe())
    except Exception as error:
        shown = repr(error)
    try:
        digest: Any = driver.digest()
    except Exception as error:
        digest = repr(error)
    return shown, digest


def tries(driver: ReferenceDriver, *wanted: set[tuple[str, str]]) -> Iterator[tuple[str, str, Told, Told]]:
    """Changes one slot after another, by hand; what was told of the state before and after."""
    saved = driver.save()
    before = told(driver)
    for number, original in enumerate(things(driver)):
        if not known(original):
            continue
        kind = next(base.__name__ for base in type(original).__mro__ if base in TABLE)
        for slot in row_of(kind_of(original)):
            if not any((kind, slot) in names for names in wanted):
                continue
            for other in changed(getattr(original, slot)):
                driver.restore(saved)
                thing = things(driver)[number]
                assert type(thing) is type(original)
                kept = getattr(thing, slot)
                setattr(thing, slot, other)
                after = told(driver)
                setattr(thing, slot, kept)
                yield kind, slot, before, after


def rows_with(*hows: How) -> set[tuple[str, str]]:
    """Slots of the table of which this is said."""
    return {(kind.__name__, slot) for kind, row in TABLE.items() for slot, how in row.items() if how in hows}


def test_what_is_shown_or_digested_is_told_apart() -> None:
    """Changed by hand, in some state at least the change is seen: in the observation, or if not there in the digest."""
    shown, digested = rows_with(How.SHOWN), rows_with(How.DIGESTED)
    for sizes in SIZES:
        for _, driver in states(sizes):
            for kind, slot, before, after in tries(driver, shown, digested):
                if before[0] != after[0]:
                    shown.discard((kind, slot))
                elif before[1] != after[1]:
                    digested.discard((kind, slot))
            if not shown and not digested:
                return
    assert (shown, digested) == (set(), set())


def test_what_is_left_out_is_not_told() -> None:
    left_out = rows_with(How.LEFT_OUT)
    tried: set[tuple[str, str]] = set()
    for sizes in SIZES:
        for number, (_, driver) in enumerate(states(sizes, seeds=2)):
            if number % 5:
                continue
            for kind, slot, before, after in tries(driver, left_out):
                assert before == after, (kind, slot)
                tried.add((kind, slot))
    assert tried == left_out


def test_what_the_scheduler_leaves_out_has_its_reason() -> None:
    for slot, how in TABLE[Scheduler].items():
        assert (f"scheduler.{slot}" in reference_state.LEFT_OUT) == (how is How.LEFT_OUT)
