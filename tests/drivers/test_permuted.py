"""The engine is symmetric: with requests and blocks under other names it does the same, under those names.

Lockstep compares one of all relabellings of a state, and takes this for granted of the implementation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pytest
from fencepost.checker.conform.draw import Dice
from fencepost.impl.drivers.reference import ReferenceDriver
from fencepost.impl.engine.async_scheduler import AsyncScheduler
from fencepost.impl.engine.block_pool import BlockPool
from fencepost.impl.engine.kv_cache_utils import BlockHash, KVCacheBlock, KVCacheBlocks
from fencepost.impl.engine.request import Request, RequestStatus
from fencepost.impl.engine.scheduler import Scheduler
from fencepost.spec.lang import Arguments, BoundSpec, Rule
from fencepost.spec.lang.symmetry import Symmetry

from .runs import PROFILES, Names, Values, bound_at, draw, driver_of, expected, number, renamed, renamed_event, take

SIZES: Mapping[str, Values] = {
    "caching off": {
        "kv-role": "kv_consumer",
        "requests": 4,
        "blocks": 7,
        "block-size": 2,
        "prompt-tokens": 4,
        "max-tokens": 5,
        "remote-tokens": 3,
        "steps-in-flight": 3,
        "empty-steps": 1,
        "reset-running": 1,
    },
    "caching on": {
        "kv-role": "kv_both",
        "requests": 4,
        "blocks": 7,
        "block-size": 2,
        "prompt-tokens": 5,
        "max-tokens": 5,
        "remote-tokens": 4,
        "enable-prefix-caching": 1,
        "prefix-groups": 2,
        "reset-running": 1,
    },
    "crowded, caching off": {"requests": 4, "blocks": 6, "prompt-tokens": 3, "max-tokens": 4, "max-num-batched-tokens": 4},
    "crowded, caching on": {"requests": 4, "blocks": 6, "prompt-tokens": 3, "max-tokens": 4, "enable-prefix-caching": 1},
}


def start(driver: ReferenceDriver, blocks: Sequence[int]) -> None:
    """Begin with the free queue in another order: block b where b-th was."""
    driver.reset()
    pool = driver.engine.scheduler.kv_cache_manager.block_pool
    queue = pool.free_block_queue
    first = queue.popleft_n(queue.num_free_blocks)
    queue.append_n([first[b] for b in blocks])


def after(driver: ReferenceDriver, bound: BoundSpec, rule: Rule, args: Arguments, names: Names) -> tuple[object, object]:
    """What an engine shows after an event, and its digest, both under these names; of one that fails, how it fails."""
    try:
        stopped = take(driver, bound, rule, args)
        shown = renamed(driver.observe(), names["requests"], names["blocks"])
        return shown, None if stopped else driver.digest(names)
    except Exception as error:
        return FAILS, type(error).__name__


FAILS = "fails"


def differs(bound: BoundSpec, make: type[ReferenceDriver], names: Names, seed: int, length: int) -> str | None:
    """Run an engine twice, once under other names: how the two runs differ.

    An engine that fails in the same way in both does not take the events that the spec allows; nothing follows then.
    """
    one, other = make(bound.values), make(bound.values)
    start(one, same(bound)["blocks"])
    start(other, names["blocks"])
    for place, (rule, args, _) in enumerate(draw(bound, seed, length)):
        shown, again = (
            after(one, bound, rule, args, names),
            after(other, bound, rule, renamed_event(rule, args, names), same(bound)),
        )
        if shown != again:
            return f"{rule.name}{args}, event {place}"
        if shown[0] is FAILS:
            break
    return None


def differs_from_spec(bound: BoundSpec, names: Names, seed: int, length: int) -> str | None:
    """Run the engine under other names: how it differs from the spec under those names."""
    driver = driver_of(bound)
    symmetry = Symmetry(bound.shape, bound.permutable())
    start(driver, names["blocks"])
    for place, (rule, args, state) in enumerate(draw(bound, seed, length)):
        stopped = take(driver, bound, rule, renamed_event(rule, args, names))
        if driver.observe() != expected(bound, symmetry.permute(state, names)):
            return f"{rule.name}{args}, event {place}"
        if stopped:
            break
    return None


def same(bound: BoundSpec) -> dict[str, list[int]]:
    """Names as they are."""
    return {index: list(range(number(bound, index))) for index in ("requests", "blocks")}


def drawn_names(bound: BoundSpec, dice: Dice) -> dict[str, list[int]]:
    """New names at random."""
    return {index: dice.shuffled(range(number(bound, index))) for index in ("requests", "blocks")}


def check(profile: str, size: str, seeds: Iterable[int], length: int) -> None:
    """Hold runs under other names against each other and against the spec."""
    bound, dice = bound_at(profile, SIZES[size]), Dice(3)
    for seed in seeds:
        other = drawn_names(bound, dice)
        for names in ({**same(bound), "requests": other["requests"]}, {**same(bound), "blocks": other["blocks"]}, other):
            assert differs(bound, ReferenceDriver, names, seed, length) is None
        assert differs_from_spec(bound, other, seed, length) is None


@pytest.mark.parametrize("size", SIZES)
def test_the_spec_takes_requests_and_blocks_for_interchangeable(size: str) -> None:
    assert set(bound_at("reference", SIZES[size]).permutable()) == {"requests", "blocks"}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("profile", PROFILES)
def test_a_run_under_other_names_is_the_same_run(profile: str, size: str) -> None:
    check(profile, size, range(1), 100)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("profile", PROFILES)
def test_long_runs_under_other_names_are_the_same_runs(profile: str, size: str) -> None:
    check(profile, size, range(10, 20), 300)


# -- engines that are not symmetric -----------------------------------------------------------------------------------


class SortingPool(BlockPool):
    """Frees blocks in the order of their ids."""

    __slots__ = ()

    def free_blocks(self, ordered_blocks: Iterable[KVCacheBlock]) -> None:
        super().free_blocks(sorted(ordered_blocks, key=lambda block: block.block_id))


class LowestHitPool(BlockPool):
    """Of the blocks with one hash, hits the one with the lowest id."""

    __slots__ = ()

    def get_cached_block(self, block_hash: BlockHash, group_id: int) -> KVCacheBlock | None:
        first = super().get_cached_block(block_hash, group_id)
        if first is None or first.block_hash is None:
            return None
        return self.blocks[min(self.cached_block_hash_to_block[first.block_hash])]


class ByIdScheduler(AsyncScheduler):
    """Preempts the running request with the smallest id instead of the last one."""

    __slots__ = ()

    def _allocate_or_preempt(self, request: Request, num_new_tokens: int) -> KVCacheBlocks | None:
        self.running.sort(key=lambda one: one.request_id, reverse=True)
        return super()._allocate_or_preempt(request, num_new_tokens)


class LowestFirstScheduler(AsyncScheduler):
    """Looks at waiting requests in the order of their ids."""

    __slots__ = ()

    def add_request(self, request: Request) -> None:
        super().add_request(request)
        waiting = sorted(self.waiting, key=lambda one: one.request_id)
        if all(one.status is RequestStatus.WAITING for one in waiting):
            for one in waiting:
                self.waiting.remove_request(one)
                self.waiting.add_request(one)


class SortingDriver(ReferenceDriver):
    """Has a `SortingPool`."""

    pool: type[BlockPool] = SortingPool
    scheduler: type[Scheduler] = AsyncScheduler

    def reset(self) -> None:
        super().reset()
        self.engine.scheduler.kv_cache_manager.block_pool.__class__ = self.pool
        self.engine.scheduler.__class__ = self.scheduler


class LowestHitDriver(SortingDriver):
    """Has a `LowestHitPool`."""

    pool = LowestHitPool


class ByIdDriver(SortingDriver):
    """Has a `ByIdScheduler`."""

    pool = BlockPool
    scheduler = ByIdScheduler


class LowestFirstDriver(SortingDriver):
    """Has a `LowestFirstScheduler`."""

    pool = BlockPool
    scheduler = LowestFirstScheduler


@pytest.mark.parametrize(
    ("make", "size", "index"),
    [
        (SortingDriver, "crowded, caching off", "blocks"),
        (SortingDriver, "crowded, caching on", "blocks"),
        (LowestHitDriver, "crowded, caching on", "blocks"),
        (ByIdDriver, "crowded, caching off", "requests"),
        (LowestFirstDriver, "crowded, caching off", "requests"),
    ],
)
def test_an_engine_that_is_not_symmetric_is_caught(make: type[ReferenceDriver], size: str, index: str) -> None:
    bound = bound_at("reference", SIZES[size])
    names = same(bound)
    assert not any(differs(bound, make, names, seed, 60) for seed in range(2))
    names[index].reverse()
    assert any(differs(bound, make, names, seed, 60) for seed in range(10))


def test_reverse_names_of_a_symmetric_engine_are_not_caught() -> None:
    for size in SIZES:
        bound = bound_at("reference", SIZES[size])
        names = {index: members[::-1] for index, members in same(bound).items()}
        assert not any(differs(bound, ReferenceDriver, names, seed, 60) for seed in range(2))


def test_runs_that_are_compared_preempt_share_and_load() -> None:
    """What is compared is not only the easy part."""
    seen: set[str] = set()
    for size in SIZES:
        bound = bound_at("reference", SIZES[size])
        driver = driver_of(bound)
        for rule, args, _ in draw(bound, 0, 100):
            take(driver, bound, rule, args)
            shown = driver.observe()
            seen |= {request["status"] for request in shown["requests"].values()} | set(shown["loads"].values())
            seen |= {"shared"} if any(refs > 1 for refs in shown["refs"]) else set()
            seen |= {"parked"} if shown["parked"] else set()
            seen |= {"equals"} if any(len(blocks) > 1 for _, blocks in shown["hits"]) else set()
    assert {"PREEMPTED", "LOADING", "RUNNING", "WAITING", "LANDED", "shared", "parked", "equals"} <= seen
