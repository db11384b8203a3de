"""The whole state of a reference driver: saved, restored, and digested.

What is saved is everything that changes. Steps, loads' orders and prompts never change once they are made, so a saved
state shares them with the engine.

The digest has what an observation does not show, as far as it can make a difference, in terms that do not depend on how a
run came there: requests and blocks by the names given, sequence numbers relative to the processed step. `LEFT_OUT` lists
what is neither shown nor digested, and why.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ...traces.driver import Names
from ..engine.kv_cache_utils import KVCacheBlock
from ..engine.request import Request, RequestStatus
from ..engine.simulated_worker import DeviceStep, Load, RequestState, Row
from . import kv_digest
from .kv_digest import members, worker_part, worker_tables

if TYPE_CHECKING:
    from .reference import ReferenceDriver

Saved = tuple[Any, ...]

LEFT_OUT = {
    "scheduler.finished_req_ids": "tells the worker whom to forget; ids are never used twice",
    "scheduler.preempted_req_ids": "tells the worker what it also learns as the request is resumed",
    "all but the blocks of aborted requests": "they only wait for their load",
    "the order of requests and prefills in dictionaries": "nothing goes by it but sums and look-ups",
    **kv_digest.LEFT_OUT,
}
"""Parts of the state that make no difference to anything that can happen later, and why."""

_FIELDS = Request.__slots__
_GET = attrgetter(*_FIELDS)
_PUT = [getattr(Request, name).__set__ for name in _FIELDS]
_LISTS = [_FIELDS.index(name) for name in ("output_token_ids", "block_hashes")]


def save(driver: ReferenceDriver) -> Saved:
    """Everything that changes."""
    engine, worker = driver.engine, driver.worker
    scheduler = engine.scheduler
    manager = scheduler.kv_cache_manager
    pool = manager.block_pool
    return (
        [_save_request(request) for request in scheduler.requests.values()],
        [request.request_id for request in scheduler.waiting],
        [request.request_id for request in scheduler.kv_holding_waiting],
        [_save_request(r) if r.status.is_finished else r.request_id for r in scheduler.running],
        (scheduler.sched_step_seq, scheduler.processed_step_seq),
        [(fence, _ids(blocks)) for fence, blocks in scheduler.deferred_frees],
        tuple(scheduler.finished_recving_kv_req_ids),
        tuple(scheduler.inflight_prefills),
        (tuple(scheduler.finished_req_ids), tuple(scheduler.preempted_req_ids)),
        [[(i, _ids(table)) for i, table in group.req_to_blocks.items()] for group in manager.managers],
        [(block.ref_cnt, block.block_hash) for block in pool.blocks],
        _ids(pool.free_block_queue.get_all_free_blocks()),
        [(key, tuple(blocks)) for key, blocks in pool.cached_block_hash_to_block.items()],
        tuple(engine.batch_queue),
        engine.error,
        tuple(worker.slots),
        [(i, state.prompt_tags, _tables(state.tables)) for i, state in worker.requests.items()],
        [(step.ran, [_save_row(row) for row in step.rows]) for step in worker.steps],
        [(load.spec, load.landed) for load in worker.loads.values()],
        (driver.born, driver.foreign, driver.misread, dict(driver.current)),
        {i: driver.lives[i] for i in driver.current.values()},
    )


def _ids(blocks: Iterable[KVCacheBlock]) -> list[int]:
    return [block.block_id for block in blocks]


def _tables(tables: Iterable[list[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, tables))


def _save_request(request: Request) -> list[Any]:
    values = list(_GET(request))
    for place in _LISTS:
        values[place] = tuple(values[place])
    return values


def _save_row(row: Row) -> tuple[Any, ...]:
    return row.request_id, row.state, _tables(row.tables), row.start, row.num_tokens, row.samples, row.dropped


def restore(driver: ReferenceDriver, saved: Saved) -> None:
    """Put everything back as it was when it was saved."""
    engine, worker = driver.engine, driver.worker
    scheduler_part, pool_part, worker_part = saved[:9], saved[9:13], saved[15:19]
    engine.batch_queue = deque(saved[13])
    engine.error = saved[14]
    _restore_pool(driver, *pool_part)
    _restore_scheduler(driver, *scheduler_part)
    slots, requests, steps, loads = worker_part
    worker.slots = list(slots)
    worker.requests = {i: RequestState(tags, _own(tables)) for i, tags, tables in requests}
    worker.steps = deque(_restored_step(ran, rows) for ran, rows in steps)
    worker.loads = {spec.request_id: _restored_load(spec, landed) for spec, landed in loads}
    driver.born, driver.foreign, driver.misread, current = saved[19]
    driver.current = dict(current)
    driver.lives.update(saved[20])


def _restore_scheduler(
    driver: ReferenceDriver,
    requests: list[Any],
    waiting: list[str],
    holding: list[str],
    running: list[Any],
    sequence: tuple[int, int],
    deferred: list[tuple[int, list[int]]],
    received: tuple[str, ...],
    prefills: tuple[str, ...],
    told: tuple[tuple[str, ...], tuple[str, ...]],
) -> None:
    scheduler = driver.engine.scheduler
    blocks = scheduler.kv_cache_manager.block_pool.blocks
    alive = {request.request_id: request for request in map(_restored_request, requests)}
    scheduler.requests = alive
    scheduler.running = [alive[one] if isinstance(one, str) else _restored_request(one) for one in running]
    for queue, ids in ((scheduler.waiting, waiting), (scheduler.kv_holding_waiting, holding)):
        while queue:
            queue.pop_request()
        for i in ids:
            queue.add_request(alive[i])
    scheduler.sched_step_seq, scheduler.processed_step_seq = sequence
    scheduler.deferred_frees = deque((fence, [blocks[i] for i in ids]) for fence, ids in deferred)
    scheduler.finished_recving_kv_req_ids = set(received)
    scheduler.inflight_prefills = {i: alive[i] for i in prefills}
    scheduler.finished_req_ids, scheduler.preempted_req_ids = map(list, told)
    if driver.connector is not None:
        driver.connector.build_connector_meta()


def _restored_request(values: Sequence[Any]) -> Request:
    request = Request.__new__(Request)
    for put, value in zip(_PUT, values, strict=True):
        put(request, value)
    request.output_token_ids = list(request.output_token_ids)
    request.block_hashes = list(request.block_hashes)
    return request


def _restore_pool(driver: ReferenceDriver, tables: Any, blocks: Any, free: list[int], cached: Any) -> None:
    manager = driver.engine.scheduler.kv_cache_manager
    pool = manager.block_pool
    all_blocks = pool.blocks
    pool.take_new_block_ids()
    pool.free_block_queue.popleft_n(pool.free_block_queue.num_free_blocks)
    for block, (ref_cnt, block_hash) in zip(all_blocks, blocks, strict=True):
        block.ref_cnt, block.block_hash = ref_cnt, block_hash
    pool.free_block_queue.append_n([all_blocks[i] for i in free])
    pool.cached_block_hash_to_block = {key: {i: all_blocks[i] for i in ids} for key, ids in cached}
    for group, rows in zip(manager.managers, tables, strict=True):
        group.req_to_blocks = {i: [all_blocks[b] for b in table] for i, table in rows}


def _own(tables: Iterable[Sequence[int]]) -> tuple[list[int], ...]:
    return tuple(map(list, tables))


def _restored_step(ran: bool, rows: Iterable[Any]) -> DeviceStep:
    step = DeviceStep([_restored_row(*row) for row in rows])
    step.ran = ran
    return step


def _restored_row(request_id: str, state: Any, tables: Any, start: int, num_tokens: int, samples: bool, dropped: bool) -> Row:
    row = Row(request_id, state, start, num_tokens, samples)
    row.tables, row.dropped = _own(tables), dropped
    return row


def _restored_load(spec: Any, landed: bool) -> Load:
    load = Load(spec)
    load.landed = landed
    return load


def digest(driver: ReferenceDriver, names: Names | None) -> Hashable:
    """What of the state is neither shown nor `LEFT_OUT`, as nested tuples."""
    engine, scheduler = driver.engine, driver.engine.scheduler
    if engine.error is not None:
        return ()
    requests, blocks = members(driver, names)
    return (
        scheduler.sched_step_seq - scheduler.processed_step_seq,
        tuple(sorted([_request(driver, requests, blocks, request) for request in scheduler.requests.values()])),
        *worker_part(driver, requests, blocks),
    )


def _request(driver: ReferenceDriver, requests: Sequence[int], blocks: Sequence[int], request: Request) -> tuple[Any, ...]:
    """Steps in flight that name a request, and the worker's own table of it while it runs."""
    life = driver.lives[request.request_id]
    last_sched_seq = max(0, request.last_sched_seq - driver.engine.scheduler.processed_step_seq)
    if request.status.is_finished:
        return requests[life.r], last_sched_seq
    return (
        requests[life.r],
        last_sched_seq,
        request.num_tokens,
        request.num_in_flight,
        request.num_in_flight_tokens,
        len(request.block_hashes),
        worker_tables(driver, request.request_id, blocks) if request.status is RequestStatus.RUNNING else (),
    )
