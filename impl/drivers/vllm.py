"""The scheduler of an unmodified vLLM release as a `Driver` of the KV spec.

Real are the scheduler, the block pool and its free queue, the cache managers, requests and their hashes, and the connector's
interface and factory. Stand-ins are the model runner (a simulated worker, told what each step's `SchedulerOutput` says), the
transport (loads land when they are told to), the sampled tokens, the model's configuration and the engine process around.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from ...traces.driver import Names, Observation, Refused, Stopped
from ..engine.output import CachedRequestData, LoadSpec, NewRequestData, SchedulerOutput
from ..vllm.build import Settings
from ..vllm.engine import Load, ReleaseEngine, Scheduled
from ..vllm.engine import Stopped as ReleaseStopped
from ..vllm.errors import ReleaseError
from ..vllm.loading import load
from ..vllm.release import Release
from . import vllm_state
from .kv import KVDriver, sizes
from .kv_names import STOP_TOKEN, Hash, Life

_STATUS = {
    "WAITING": "WAITING",
    "WAITING_FOR_REMOTE_KVS": "LOADING",
    "RUNNING": "RUNNING",
    "PREEMPTED": "PREEMPTED",
    "FINISHED_ABORTED": "HELD",
}
FENCE = ("defer_block_free", "deferred_frees", "sched_step_seq", "processed_step_seq")
"""The scheduler's fields of the fence: whether freed blocks wait, which do, and for which step; in 0.23 there are none."""


def _has_fence(scheduler: Any) -> bool:
    there = [name for name in FENCE if hasattr(scheduler, name)]
    if there and len(there) < len(FENCE):
        missing = ", ".join(name for name in FENCE if name not in there)
        raise ReleaseError(f"the scheduler has {', '.join(there)}, but not {missing}: this driver does not know its fence")
    return bool(there and scheduler.defer_block_free)


def settings(values: Mapping[str, int | str], scheduler_cls: str | None, connector: str | None) -> Settings:
    """The sizes and policies of an engine, from values of the KV spec's bounds."""
    return Settings(
        **sizes(values),
        kv_role=str(values["kv-role"]),
        remote_tokens=int(values["remote-tokens"]),
        max_tokens=int(values["max-tokens"]),
        stop_token=STOP_TOKEN,
        scheduler_cls=scheduler_cls,
        connector=connector,
    )


class VllmDriver(KVDriver):
    """Drives the scheduler of one release; `values` are those of all bounds and switches of the KV spec.

    `scheduler_cls` and `connector` name classes of the user's own as `module:Class`. `ReleaseError` where the release cannot
    be loaded, or has not what the driver needs.
    """

    engine: ReleaseEngine

    def __init__(
        self,
        values: Mapping[str, int | str],
        release: Release,
        scheduler_cls: str | None = None,
        connector: str | None = None,
    ) -> None:
        load(release)
        self.release = release
        self.settings = settings(values, scheduler_cls, connector)
        self.engine = ReleaseEngine(self.settings)
        super().__init__(values, fence=_has_fence(self.engine.scheduler))
        self.begin()
        self.worker.allocate(self.settings.num_gpu_blocks, self.settings.block_size)
        self.state = vllm_state.State(self)
        self._start = self.state.save()

    @property
    def quiet(self) -> frozenset[str]:
        """What may be tried anywhere; not `schedule` where a connector of the user's own sends out what it was told."""
        return super().quiet - ({"schedule"} if self.settings.connector else set())

    @property
    def title(self) -> str:
        """Which release, what of it is real, and what stands in."""
        own = [f"scheduler {self.settings.scheduler_cls}"] if self.settings.scheduler_cls else []
        own += [f"connector {self.settings.connector}"] if self.settings.connector else []
        with_own = f" with {' and '.join(own)}" if own else ""
        return (
            f"vLLM {self.release.version}{with_own} (real: scheduler, block pool, cache managers, requests, connector "
            "interface; stand-ins: model runner, transport, sampled tokens, model configuration)"
        )

    # Events.

    def reset(self) -> None:
        """Begin again."""
        self.lives.clear()
        self.restore(self._start)

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        """Let an event happen."""
        try:
            getattr(self, action)(*arguments)
            self.engine.check_references()
        except ReleaseStopped as error:
            raise Stopped(error.kind, str(error)) from error
        finally:
            self.changed()

    def submit(self, r: int, prompt: int, group: int, remote: bool) -> None:
        """A request with a prompt of so many tokens, of a shared text or its own."""
        life = self.new_life(r, prompt, group)
        self.engine.submit(life.id, life.tokens(), remote=remote)

    def schedule(self) -> None:
        """The scheduler builds a step, unless as many as may be are in flight."""
        if len(self.engine.in_flight) >= self.settings.max_concurrent_batches:
            raise Refused("the batch queue is full")
        done = self.engine.schedule()
        step = self._told(done)
        if done.kept:
            self.worker.enqueue(step)
        else:
            self.worker.no_forward(step)
        for started in done.loads:
            self.worker.start_load(self._load(started))

    def process(self, stops: frozenset[int]) -> None:
        """The oldest output is processed; requests in `stops` have sampled a stop token."""
        self.stops = stops
        self.engine.process(self.worker.read().sampled_token_ids)

    def report(self, r: int) -> None:
        """A load's completion is reported."""
        life = self.life_of_load(r)
        self.worker.acknowledge(life.id)
        self.engine.report(life.id)

    # What a worker is told.

    def _told(self, done: Scheduled) -> SchedulerOutput:
        """A step as the simulated worker takes it, read off the release's `SchedulerOutput`."""
        output = done.output
        cached = output.scheduled_cached_reqs
        targets = {block_id for load in done.loads for group in load.block_ids for block_id in group}
        requests = self.engine.scheduler.requests
        return SchedulerOutput(
            scheduled_new_reqs=[
                NewRequestData(new.req_id, tuple(new.prompt_token_ids), new.block_ids, new.num_computed_tokens)
                for new in output.scheduled_new_reqs
            ],
            scheduled_cached_reqs=CachedRequestData(
                req_ids=cached.req_ids,
                resumed_req_ids=cached.resumed_req_ids,
                new_block_ids=cached.new_block_ids,
                num_computed_tokens=cached.num_computed_tokens,
                num_output_tokens=[requests[request_id].num_output_tokens for request_id in cached.req_ids],
            ),
            num_scheduled_tokens=output.num_scheduled_tokens,
            total_num_scheduled_tokens=output.total_num_scheduled_tokens,
            new_block_ids_to_zero=[block_id for block_id in done.handed_out if block_id not in targets],
            finished_req_ids=sorted(output.finished_req_ids),
            preempted_req_ids=sorted(getattr(output, "preempted_req_ids", None) or ()),
        )

    def _load(self, started: Load) -> LoadSpec:
        tokens = self.lives[started.request_id].tokens()
        return LoadSpec(
            started.request_id, tuple(tokens[: started.end]), started.block_ids, started.start, started.end - started.start
        )

    # What the release says.

    def hashes(self, life: Life) -> Sequence[Hash]:
        """The hashes of the full blocks of a prompt."""
        return self.engine.hashes(life.tokens())

    def live(self) -> Mapping[str, Any]:
        """The requests that have not ended."""
        return {i: request for i, request in self.engine.scheduler.requests.items() if not request.is_finished()}

    def outputs(self, request_id: str) -> int | None:
        """Output tokens known of a request."""
        request = self.engine.scheduler.requests.get(request_id)
        return None if request is None else request.num_output_tokens

    def is_running(self, request_id: str) -> bool:
        """Whether a request is running."""
        request = self.engine.scheduler.requests.get(request_id)
        return request is not None and request.status.name == "RUNNING"

    def tables(self) -> Iterator[tuple[str, list[int]]]:
        """The tables of all groups."""
        for manager in self.engine.manager.coordinator.single_type_managers:
            for request_id, table in manager.req_to_blocks.items():
                yield request_id, [block.block_id for block in table]

    def hashed_blocks(self) -> Iterator[tuple[int, Hash]]:
        """The blocks that have a hash; the release's key is the hash with the group behind it."""
        return ((b.block_id, self.engine.block_hash(b)) for b in self.engine.pool.blocks if b.block_hash is not None)

    # What is shown.

    def observe(self) -> Observation:
        """The release's and the worker's state in the words of the KV spec."""
        if self.engine.error is not None:
            return {"error": self.engine.error.kind}
        scheduler, pool = self.engine.scheduler, self.engine.pool
        return {
            "error": "NONE",
            "requests": dict(sorted(self._requests())),
            "texts": self.texts(),
            "waiting": [self._r(request) for request in scheduler.waiting],
            "holding": [self._r(request) for request in self.engine.looked_at_first()],
            "running": [self._r(request) for request in scheduler.running],
            "free": [block.block_id - 1 for block in pool.free_block_queue.get_all_free_blocks()],
            "refs": [block.ref_cnt for block in pool.blocks[1:]],
            "hashes": self.prefixes(),
            "hits": self.hits(self.engine.cached_block_ids()) if self.caching else [],
            "parked": [
                (fence - scheduler.processed_step_seq, [block.block_id - 1 for block in blocks])
                for fence, blocks in getattr(scheduler, "deferred_frees", ())
            ],
            "flight": self.flight(),
            "loads": self.loads(scheduler.finished_recving_kv_req_ids),
            "orphans": self.orphans(),
            "content": self.content(),
            "foreign": self.foreign,
            "misread": self.misread,
        }

    def _requests(self) -> Iterator[tuple[int, dict[str, Any]]]:
        scheduler = self.engine.scheduler
        tables = dict(self.tables())
        for request_id, request in scheduler.requests.items():
            status = _STATUS.get(request.status.name, request.status.name)
            table = [block_id - 1 for block_id in tables.get(request_id, ())]
            if status == "HELD":
                yield self._r(request), {"status": status, "table": table}
                continue
            late, dropping = self._late(request)
            params: Mapping[str, Any] = request.kv_transfer_params or {}
            yield (
                self._r(request),
                {
                    "status": status,
                    "prompt": request.num_prompt_tokens,
                    "remote": bool(params.get("do_remote_prefill")),
                    "outputs": request.num_output_tokens,
                    "computed": request.num_computed_tokens,
                    "reserving": request in scheduler._inflight_prefills,
                    "placeholders": request.num_output_placeholders,
                    "late": late,
                    "dropping": dropping,
                    "table": table,
                },
            )
        for request in scheduler.running:
            if request.request_id not in scheduler.requests:
                yield self._r(request), {"status": "STOPPED"}

    def _late(self, request: Any) -> tuple[int, bool]:
        """Steps in flight from before a preemption, and whether their output is dropped.

        Since 0.27 the release counts the tokens of those steps (#48245); before, the placeholders that a reset left.
        """
        tokens = getattr(request, "num_stale_output_tokens", None)
        if tokens is None:
            discarded = request.async_tokens_to_discard
            return discarded, discarded > 0
        steps = 0
        for step in self.worker.steps:
            if tokens <= 0:
                break
            own = sum(row.num_tokens for row in step.rows if row.request_id == request.request_id)
            tokens -= own
            steps += own > 0
        return (steps if tokens == 0 else -tokens), bool(steps and request.drop_stale_output)

    # The whole state.

    def save(self) -> Any:
        """The whole state."""
        return self.state.save()

    def restore(self, saved: Any) -> None:
        """Go back to a saved state."""
        self.state.restore(saved)
        self.changed()

    def digest(self, names: Names | None = None) -> Hashable:
        """What of the state is hidden; see `vllm_state`."""
        return self.state.digest(names)
