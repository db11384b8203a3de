"""The hidden part of the simulated worker, as a value: what drivers of KV engines have in common in their digests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...traces.driver import Names
from ..engine.simulated_worker import DeviceStep, Load

if TYPE_CHECKING:
    from .kv import KVDriver

LEFT_OUT = {
    "what loads that have landed wrote where": "it is in the slots",
    "worker.requests of ended requests": "to be forgotten; rows of steps in flight keep what they need",
    "worker tables of requests that are not running": "replaced as a whole when they run again",
    "slots of blocks that nobody expects anything of": "they stand for nothing until written after the next hand-out",
    "the order of loads": "nothing goes by it",
    "tokens and request ids": "said by the prompt's length and text, and by the request's name",
}
"""Parts of the worker's state that make no difference to anything that can happen later, and why."""


def members(driver: KVDriver, names: Names | None) -> tuple[Sequence[int], Sequence[int]]:
    """The names of requests by member, and of blocks by block id; the null block is none of the spec's members."""
    given = names or {}
    requests = given.get("requests", range(len(driver.current) and max(driver.current) + 1))
    return requests, [-1, *given.get("blocks", range(driver.blocks))]


def worker_part(driver: KVDriver, requests: Sequence[int], blocks: Sequence[int]) -> tuple[Any, ...]:
    """What slots hold where the number shown does not say it, rows that will be left out, and what loads will write."""
    return (
        _slots(driver, blocks),
        tuple([_step(step) for step in driver.worker.steps]),
        tuple(sorted([_load(driver, requests, blocks, load) for load in driver.worker.loads.values()])),
    )


def worker_tables(driver: KVDriver, request_id: str, blocks: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The worker's own tables of a request that is running."""
    return tuple([tuple([blocks[i] for i in table]) for table in driver.worker.requests[request_id].tables])


def _slots(driver: KVDriver, blocks: Sequence[int]) -> tuple[Any, ...]:
    """The blocks of which the number shown does not say which slots are right.

    In some a right slot stands behind a wrong one; of shared texts the number is only said to be enough.
    """
    contents = driver.contents
    told: list[Any] = []
    for block_id in {*contents.holders, *contents.prefixes}:
        right = contents.right_slots(block_id)
        if contents.shares_text(block_id) or True in right[contents.good_slots(block_id) :]:
            told.append((blocks[block_id], right))
    return tuple(sorted(told))


def _step(step: DeviceStep) -> tuple[bool, ...]:
    return tuple([row.dropped and not step.ran for row in step.rows])


def _load(driver: KVDriver, requests: Sequence[int], blocks: Sequence[int], load: Load) -> tuple[Any, ...]:
    spec = load.spec
    r = requests[driver.lives[spec.request_id].r]
    if load.landed:
        return (r,)
    return r, spec.start, spec.num_tokens, tuple([tuple([blocks[i] for i in ids]) for ids in spec.block_ids])
