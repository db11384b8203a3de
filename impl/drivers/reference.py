"""The reference implementation as a `Driver` of the KV spec.

Real are the scheduler, the block pool, the connector's scheduler side and the engine around them; the worker is simulated.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, cast

from ...traces.driver import Names, Observation, Refused, Stopped
from ..engine.config import CHOICES, EngineConfig, KVRole, Mechanisms
from ..engine.engine import Engine
from ..engine.errors import EngineError
from ..engine.kv_cache_utils import get_block_hash
from ..engine.kv_connector import RemotePrefillConnector
from ..engine.request import Request, RequestStatus
from . import reference_state
from .kv import KVDriver, sizes
from .kv_names import STOP_TOKEN, Hash, Life

_STATUS = {
    RequestStatus.WAITING: "WAITING",
    RequestStatus.WAITING_FOR_REMOTE_KVS: "LOADING",
    RequestStatus.RUNNING: "RUNNING",
    RequestStatus.PREEMPTED: "PREEMPTED",
    RequestStatus.FINISHED_ABORTED: "HELD",
}


def engine_config(values: Mapping[str, int | str]) -> EngineConfig:
    """The sizes, policies and mechanisms of an engine, from values of the KV spec's bounds and switches."""
    return EngineConfig(
        **sizes(values),
        kv_role=cast("KVRole", values["kv-role"]),
        mechanisms=Mechanisms.of({name: str(values[name]) for name in CHOICES}),
    )


class ReferenceDriver(KVDriver):
    """Drives an `Engine` with a `SimulatedWorker`; `values` are those of all bounds and switches of the KV spec."""

    engine: Engine
    title = "the reference implementation (scheduler, block pool, connector and engine; the worker is simulated)"

    def __init__(self, values: Mapping[str, int | str]) -> None:
        self.config = engine_config(values)
        mechanisms = self.config.mechanisms
        frees = (mechanisms.finish_free, mechanisms.abort_free, mechanisms.preemption_free)
        super().__init__(values, fence=self.config.fence and "fenced" in frees)
        self.reset()

    # Events.

    def reset(self) -> None:
        """Begin with a new engine."""
        self.begin()
        connector = RemotePrefillConnector(self.remote_tokens) if self.remote_tokens else None
        self.engine = Engine(self.config, self.worker, connector)
        self.connector = connector

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        """Let an event happen."""
        try:
            getattr(self, action)(*arguments)
        except EngineError as error:
            raise Stopped(error.kind, str(error)) from error
        finally:
            self.changed()

    def submit(self, r: int, prompt: int, group: int, remote: bool) -> None:
        """A request with a prompt of so many tokens, of a shared text or its own."""
        life = self.new_life(r, prompt, group)
        self.engine.submit(
            Request(
                life.id,
                life.tokens(),
                self.max_tokens,
                stop_token_ids=(STOP_TOKEN,),
                do_remote_prefill=remote,
            )
        )

    def schedule(self) -> None:
        """The engine builds a step, unless its queue is full."""
        try:
            self.engine.schedule()
        except RuntimeError as error:
            raise Refused(str(error)) from error

    def process(self, stops: frozenset[int]) -> None:
        """The oldest output is processed; requests in `stops` have sampled a stop token."""
        self.stops = stops
        self.engine.process()

    def report(self, r: int) -> None:
        """A load's completion is reported."""
        self.engine.report(self.life_of_load(r).id)

    # What the engine says.

    def hashes(self, life: Life) -> Sequence[Hash]:
        """The hashes of the full blocks of a prompt."""
        request = Request("text", life.tokens(), 1)
        request.hash_blocks(self.block_size)
        return request.block_hashes

    def live(self) -> Mapping[str, Request]:
        """The requests that have not ended."""
        return {i: request for i, request in self.engine.scheduler.requests.items() if not request.status.is_finished}

    def outputs(self, request_id: str) -> int | None:
        """Output tokens known of a request."""
        request = self.engine.scheduler.requests.get(request_id)
        return None if request is None else len(request.output_token_ids)

    def is_running(self, request_id: str) -> bool:
        """Whether a request is running."""
        request = self.engine.scheduler.requests.get(request_id)
        return request is not None and request.status is RequestStatus.RUNNING

    def tables(self) -> Iterator[tuple[str, list[int]]]:
        """The tables of all groups."""
        for manager in self.engine.scheduler.kv_cache_manager.managers:
            for request_id, table in manager.req_to_blocks.items():
                yield request_id, [block.block_id for block in table]

    def hashed_blocks(self) -> Iterator[tuple[int, Hash]]:
        """The blocks that have a hash."""
        blocks = self.engine.scheduler.kv_cache_manager.block_pool.blocks
        return ((b.block_id, get_block_hash(b.block_hash)) for b in blocks if b.block_hash is not None)

    # What is shown.

    def observe(self) -> Observation:
        """The engine's and the worker's state in the words of the KV spec."""
        if self.engine.error is not None:
            return {"error": self.engine.error.kind}
        scheduler, manager = self.engine.scheduler, self.engine.scheduler.kv_cache_manager
        pool = manager.block_pool
        return {
            "error": "NONE",
            "requests": dict(sorted(self._requests())),
            "texts": self.texts(),
            "waiting": [self._r(request) for request in scheduler.waiting],
            "holding": [self._r(request) for request in scheduler.kv_holding_waiting],
            "running": [self._r(request) for request in scheduler.running],
            "free": [block.block_id - 1 for block in pool.free_block_queue.get_all_free_blocks()],
            "refs": [block.ref_cnt for block in pool.blocks[1:]],
            "hashes": self.prefixes(),
            "hits": self.hits([list(blocks) for blocks in pool.cached_block_hash_to_block.values()]),
            "parked": [
                (fence - scheduler.processed_step_seq, [block.block_id - 1 for block in blocks])
                for fence, blocks in scheduler.deferred_frees
            ],
            "flight": self.flight(),
            "loads": self.loads(scheduler.finished_recving_kv_req_ids),
            "orphans": self.orphans(),
            "content": self.content(),
            "foreign": self.foreign,
            "misread": self.misread,
        }

    def table(self, request_id: str) -> list[int]:
        """A request's blocks in all groups."""
        return [i - 1 for group in self.engine.scheduler.kv_cache_manager.get_block_ids(request_id) for i in group]

    def _requests(self) -> Iterator[tuple[int, dict[str, Any]]]:
        scheduler = self.engine.scheduler
        for request in scheduler.requests.values():
            table = self.table(request.request_id)
            status = _STATUS[request.status]
            if status == "HELD":
                yield self._r(request), {"status": status, "table": table}
                continue
            yield (
                self._r(request),
                {
                    "status": status,
                    "prompt": request.num_prompt_tokens,
                    "remote": request.do_remote_prefill,
                    "outputs": len(request.output_token_ids),
                    "computed": request.num_computed_tokens,
                    "reserving": request.request_id in scheduler.inflight_prefills,
                    "placeholders": request.num_output_placeholders,
                    "late": request.num_stale_outputs,
                    "dropping": request.drops_stale_outputs,
                    "table": table,
                },
            )
        for request in scheduler.running:
            if request.request_id not in scheduler.requests:
                yield self._r(request), {"status": "STOPPED"}

    # The whole state.

    def save(self) -> reference_state.Saved:
        """The whole state."""
        return reference_state.save(self)

    def restore(self, saved: reference_state.Saved) -> None:
        """Go back to a saved state."""
        self.changed()
        reference_state.restore(self, saved)

    def digest(self, names: Names | None = None) -> Hashable:
        """The whole state as far as it can make a difference; see `reference_state`."""
        return reference_state.digest(self, names)
