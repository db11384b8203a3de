"""What the objects of an engine say of some blocks and requests: who holds, may write or may read them.

The reference implementation and vLLM's releases call these objects alike, so that one function reads both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..engine.simulated_worker import Row

if TYPE_CHECKING:
    from .kv import KVDriver

Line = tuple[str, str]
"""Where something stands in the engine, and what stands there."""


def exhibit(driver: KVDriver, scheduler: Any, blocks: Sequence[int], requests: Sequence[int]) -> list[Line]:
    """The lines of these blocks and requests of the spec, each once: blocks, requests, then who uses them."""
    ids = [block + 1 for block in blocks]
    lives = [i for i in _named(driver, scheduler) if driver.lives[i].r in requests]
    lines = [*_blocks(scheduler, ids), *_requests(driver, scheduler, lives), *_uses(driver, scheduler, set(ids), set(lives))]
    return list(dict.fromkeys(lines))


def _named(driver: KVDriver, scheduler: Any) -> list[str]:
    """The ids of all requests that something in the engine still names, or that came last."""
    steps = (row.request_id for step in driver.worker.steps for row in step.rows)
    return list(dict.fromkeys((*driver.current.values(), *scheduler.requests, *steps, *driver.worker.loads)))


def _blocks(scheduler: Any, ids: Sequence[int]) -> Iterator[Line]:
    pool = scheduler.kv_cache_manager.block_pool
    free = [block.block_id for block in pool.free_block_queue.get_all_free_blocks()]
    for block_id in ids:
        block = pool.blocks[block_id]
        queue = f", place {free.index(block_id) + 1} of {len(free)} in free_block_queue" if block_id in free else ""
        hashed = "" if block.block_hash is None else f", block_hash={block.block_hash.hex()[:12]}…"
        yield (
            f"block {block_id - 1}: block_pool.blocks[{block_id}]",
            f"block_id={block_id}, ref_cnt={block.ref_cnt}{hashed}{queue}",
        )


def _requests(driver: KVDriver, scheduler: Any, lives: Sequence[str]) -> Iterator[Line]:
    running = {request.request_id: request for request in scheduler.running}
    for request_id in lives:
        request = scheduler.requests.get(request_id) or running.get(request_id)
        where = f"request {driver.lives[request_id].r}: scheduler.requests['{request_id}']"
        if request is None:
            yield where, "not there: it has ended"
            continue
        counts = ("num_computed_tokens", "num_tokens", "num_output_placeholders")
        yield where, ", ".join((request.status.name, *(f"{name}={getattr(request, name)}" for name in counts)))


def _uses(driver: KVDriver, scheduler: Any, ids: set[int], lives: set[str]) -> Iterator[Line]:
    """Tables, steps in flight, deferred frees and loads that name one of the blocks or requests."""
    for request_id, table in driver.tables():
        if request_id in lives or ids & set(table):
            yield f"req_to_blocks['{request_id}']", f"block_ids {table}"
    steps = driver.worker.steps
    for number, step in enumerate(steps, 1):
        for row in step.rows:
            if row.request_id in lives or any(ids & set(group) for group in row.block_ids(driver.block_size)):
                where = f"step in flight {number} of {len(steps)}: num_scheduled_tokens['{row.request_id}']={row.num_tokens}"
                done = "the device has run it" if step.ran else "the device has not run it yet"
                yield where, f"{_row(row, driver.block_size)}; {done}"
    deferred: Any = getattr(scheduler, "deferred_frees", ())  # vLLM has them since 0.25
    for number, (fence, blocks) in enumerate(deferred):
        parked = [block.block_id for block in blocks]
        if ids & set(parked):
            until = f"until step {fence} is processed (processed_step_seq={scheduler.processed_step_seq})"
            yield f"scheduler.deferred_frees[{number}]", f"block_ids {parked} {until}"
    for request_id, load in driver.worker.loads.items():
        targets = [block_id for group in load.spec.block_ids for block_id in group]
        if request_id in lives or ids & set(targets):
            yield f"load of '{request_id}'", f"{'has written' if load.landed else 'still writes'} block_ids {targets}"


def _row(row: Row, size: int) -> str:
    """What a row of a step writes and reads."""
    if row.dropped:
        return "its tokens are dropped: it writes nothing"
    groups = row.block_ids(size)
    read = [block_id for group in groups for block_id in group]
    written = [block_id for group in groups for block_id in group[row.start // size :]]
    tokens = f"token {row.start}" if row.num_tokens == 1 else f"tokens {row.start} to {row.end - 1}"
    return f"writes {tokens} into block_ids {written}, reads block_ids {read}"
