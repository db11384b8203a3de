"""The reference implementation as a `Driver` of the KV spec.

Real are the scheduler, the block pool, the connector's scheduler side and the engine around them; the worker is simulated:
it executes nothing, and remembers for each slot of KV memory what its content depends on.

Blocks are numbered from 0 without the null block; a request is a member of the spec's index, and each life of it has an
id of its own in the engine, so that nothing of an ended one can be mistaken for the next.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, cast

from ...traces.driver import ANYTHING, Names, Observation, Refused, Stopped, UpTo
from ..engine.config import CHOICES, EngineConfig, KVRole, Mechanisms
from ..engine.engine import Engine
from ..engine.errors import EngineError
from ..engine.kv_cache_utils import BlockHash
from ..engine.kv_connector import RemotePrefillConnector
from ..engine.request import Request, RequestStatus
from ..engine.simulated_worker import DeviceStep, Row, SimulatedWorker, Tag, prefix_tags
from . import reference_state
from .reference_contents import Contents
from .reference_names import STOP_TOKEN, Life, Prefix, by_position

_STATUS = {
    RequestStatus.WAITING: "WAITING",
    RequestStatus.WAITING_FOR_REMOTE_KVS: "LOADING",
    RequestStatus.RUNNING: "RUNNING",
    RequestStatus.PREEMPTED: "PREEMPTED",
    RequestStatus.FINISHED_ABORTED: "HELD",
}


def engine_config(values: Mapping[str, int | str]) -> EngineConfig:
    """The sizes, policies and mechanisms of an engine, from values of the KV spec's bounds and switches."""

    def number(name: str) -> int:
        return int(values[name])

    return EngineConfig(
        num_gpu_blocks=number("blocks") + 1,
        block_size=number("block-size"),
        max_num_seqs=number("max-num-seqs"),
        max_num_batched_tokens=number("max-num-batched-tokens"),
        enable_prefix_caching=bool(number("enable-prefix-caching")),
        scheduler_reserve_full_isl=bool(number("scheduler-reserve-full-isl")),
        watermark=number("watermark"),
        async_scheduling=bool(number("async-scheduling")),
        max_concurrent_batches=number("steps-in-flight"),
        max_empty_batches=number("empty-steps"),
        kv_role=cast("KVRole", values["kv-role"]),
        mechanisms=Mechanisms.of({name: str(values[name]) for name in CHOICES}),
    )


class ReferenceDriver:
    """Drives an `Engine` with a `SimulatedWorker`; `values` are those of all bounds and switches of the KV spec."""

    title = "the reference implementation (scheduler, block pool, connector and engine; the worker is simulated)"
    quiet = frozenset({"schedule", "abort", "reset_prefix_cache", "reset_running"})

    def __init__(self, values: Mapping[str, int | str]) -> None:
        self.config = engine_config(values)
        self.max_tokens = int(values["max-tokens"])
        self.remote_tokens = int(values["remote-tokens"])
        self.own = int(values["prefix-groups"]) + 1
        mechanisms = self.config.mechanisms
        frees = (mechanisms.finish_free, mechanisms.abort_free, mechanisms.preemption_free)
        self.has_fence = self.config.fence and "fenced" in frees
        self._longest = int(values["prompt-tokens"])
        self._shared_hashes, self._shared_tags = self._shared_texts()
        self.reset()

    def _shared_texts(self) -> tuple[dict[BlockHash, Prefix], list[list[Tag]]]:
        """What the prompts that several requests can have in common hash to, and the tags of their tokens."""
        hashes: dict[BlockHash, Prefix] = {}
        tags: list[list[Tag]] = [[]]
        for group in range(1, self.own):
            life = Life(0, 0, self._longest, group)
            size = self.config.block_size if self.config.enable_prefix_caching else None
            request = Request("text", life.tokens(), 1)
            request.hash_blocks(size)
            hashes |= {block_hash: (group, None, k) for k, block_hash in enumerate(request.block_hashes)}
            tags.append(prefix_tags(life.tokens()))
        return hashes, tags

    def shared_tags(self, text: int) -> list[Tag]:
        """The tags of the tokens of a shared text."""
        return self._shared_tags[text]

    def shared_hashes(self) -> dict[BlockHash, Prefix]:
        """What the blocks of shared texts hash to, with what that stands for."""
        return self._shared_hashes

    # Events.

    def reset(self) -> None:
        """Begin with a new engine."""
        self.worker = SimulatedWorker(self._sample)
        connector = RemotePrefillConnector(self.remote_tokens) if self.remote_tokens else None
        self.engine = Engine(self.config, self.worker, connector)
        self.connector = connector
        self.lives: dict[str, Life] = {}
        self.current: dict[int, str] = {}
        self.born = 0
        self.foreign = self.misread = False
        self._stops: frozenset[int] = frozenset()
        self._contents: Contents | None = None

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        """Let an event happen."""
        try:
            getattr(self, action)(*arguments)
        except EngineError as error:
            raise Stopped(error.kind, str(error)) from error
        finally:
            self._contents = None

    def submit(self, r: int, prompt: int, group: int, remote: bool) -> None:
        """A request with a prompt of so many tokens, of a shared text or its own."""
        self.born += 1
        life = Life(r, self.born, prompt, group)
        self.lives[life.id] = life
        self.current[r] = life.id
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

    def run_step(self) -> None:
        """The device runs a step; what it overwrites and what it reads is looked at."""
        step = next(step for step in self.worker.steps if not step.ran)
        self.foreign |= self.has_fence and self._writes_foreign_blocks(step)
        self._contents = None
        self.engine.run_step()
        self.misread |= any(self._reads_junk(step, row) for row in step.rows)

    def process(self, stops: frozenset[int]) -> None:
        """The oldest output is processed; requests in `stops` have sampled a stop token."""
        self._stops = stops
        self.engine.process()

    def land(self, r: int) -> None:
        """A load's bytes arrive."""
        life = self._life_of_load(r)
        spec = self.worker.loads[life.id].spec
        if life.id not in self.engine.scheduler.requests:
            self.foreign |= any(self.owned(block_id) for group in spec.block_ids for block_id in group)
        self.engine.land(life.id)

    def report(self, r: int) -> None:
        """A load's completion is reported."""
        self.engine.report(self._life_of_load(r).id)

    def abort(self, r: int) -> None:
        """A client disconnects."""
        if r not in self.current or not self.engine.abort(self.current[r]):
            raise Refused("no such request, or it has ended")

    def reset_prefix_cache(self) -> None:
        """The cache is reset; not tried where only hashes that nobody can ask for are left: the spec has no such event."""
        if all(None is prefix[1] and prefix[0] == self.own for prefix in self.contents.prefixes.values()):
            raise Refused("nothing is cached that a request could hit")
        if not self.engine.reset_prefix_cache():
            raise Refused("blocks are held")

    def reset_running(self) -> None:
        """The cache is reset at the cost of the running requests; without any it is the plain reset."""
        if not self.engine.scheduler.running:
            raise Refused("nothing is running")
        if not self.engine.reset_prefix_cache(reset_running_requests=True):
            raise Refused("blocks would still be held")

    def _sample(self, request_id: str, /) -> int:
        life = self.lives[request_id]
        request = self.engine.scheduler.requests.get(request_id)
        return STOP_TOKEN if request is None or life.r in self._stops else life.output_token(len(request.output_token_ids))

    def _life_of_load(self, r: int) -> Life:
        return next(self.lives[request_id] for request_id in self.worker.loads if self.lives[request_id].r == r)

    # What blocks and slots stand for.

    @property
    def contents(self) -> Contents:
        """What blocks stand for and hold in the state at hand."""
        if self._contents is None:
            self._contents = Contents(self)
        return self._contents

    def prefix_of(self, life: Life, k: int) -> Prefix:
        """What a request's k-th block stands for: a shared text as far as the prompt fills the block, else its own."""
        if life.group and (k + 1) * self.config.block_size <= life.prompt:
            return life.group, None, k
        return self.own, life.r, k

    def owned(self, block_id: int) -> bool:
        """Whether a block is in somebody's table."""
        managers = self.engine.scheduler.kv_cache_manager.managers
        return any(block.block_id == block_id for m in managers for table in m.req_to_blocks.values() for block in table)

    def _writes_foreign_blocks(self, step: DeviceStep) -> bool:
        size = self.config.block_size
        for row in step.rows:
            if not row.dropped:
                for k in range(row.start // size, -(-row.end // size)):
                    block_id = row.tables[0][k]
                    if not self.contents.expected_of(row.request_id, k, block_id) and self.owned(block_id):
                        return True
        return False

    def _reads_junk(self, step: DeviceStep, row: Row) -> bool:
        """Whether a request whose result is kept reads a slot that should be its own and holds something else."""
        request = self.engine.scheduler.requests.get(row.request_id)
        if request is None or request.status is not RequestStatus.RUNNING or self._superseded(step, row):
            return False
        size = self.config.block_size
        contents = self.contents
        for k, block_id in enumerate(row.block_ids(size)[0]):
            needed = min(size, row.end - k * size)
            if contents.expected_of(row.request_id, k, block_id) and contents.good_slots(block_id) < needed:
                return True
        return False

    def _superseded(self, step: DeviceStep, row: Row) -> bool:
        """Whether a later step computes some of a row's tokens again: its request was preempted and resumed since."""
        steps = list(self.worker.steps)
        later = steps[steps.index(step) + 1 :]
        return any(other.request_id == row.request_id and other.start < row.end for s in later for other in s.rows)

    # What is shown.

    def observe(self) -> Observation:
        """The engine's and the worker's state in the words of the KV spec."""
        if self.engine.error is not None:
            return {"error": self.engine.error.kind}
        scheduler, manager = self.engine.scheduler, self.engine.scheduler.kv_cache_manager
        pool = manager.block_pool
        prefixes = self.contents.prefixes
        usable = pool.blocks[1:]
        return {
            "error": "NONE",
            "requests": dict(sorted(self._requests())),
            "waiting": [self._r(request) for request in scheduler.waiting],
            "holding": [self._r(request) for request in scheduler.kv_holding_waiting],
            "running": [self._r(request) for request in scheduler.running],
            "free": [block.block_id - 1 for block in pool.free_block_queue.get_all_free_blocks()],
            "refs": [block.ref_cnt for block in usable],
            "hashes": [prefixes.get(block.block_id) for block in usable],
            "hits": self._hits(prefixes) if prefixes else [],
            "parked": [
                (fence - scheduler.processed_step_seq, [block.block_id - 1 for block in blocks])
                for fence, blocks in scheduler.deferred_frees
            ],
            "flight": [{"ran": step.ran, "rows": [self._row(row) for row in step.rows]} for step in self.worker.steps],
            "loads": self._loads(),
            "orphans": {
                self.lives[request_id].r: [block_id - 1 for group in load.spec.block_ids for block_id in group]
                for request_id, load in self.worker.loads.items()
                if request_id not in scheduler.requests and not load.landed
            },
            "content": self._content(),
            "foreign": self.foreign,
            "misread": self.misread,
        }

    def _r(self, request: Request) -> int:
        return self.lives[request.request_id].r

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

    def _hits(self, prefixes: Mapping[int, Prefix]) -> list[tuple[Prefix, list[int]]]:
        cached = self.engine.scheduler.kv_cache_manager.block_pool.cached_block_hash_to_block
        found = [(prefixes[next(iter(blocks))], [block_id - 1 for block_id in blocks]) for blocks in cached.values()]
        return sorted(((p, b) for p, b in found if p[0] < self.own or p[1] is not None), key=lambda hit: by_position(hit[0]))

    def _row(self, row: Row) -> tuple[int, int, int, bool, list[int]]:
        blocks = [block_id - 1 for group in row.block_ids(self.config.block_size) for block_id in group]
        return self.lives[row.request_id].r, row.start, row.num_tokens, row.samples, blocks

    def _content(self) -> list[Any]:
        """How far each block holds what it should, where anybody expects anything of it.

        The spec does not count what another request wrote, and of a shared text that may be what should be there.
        """
        contents = self.contents
        shown: list[Any] = [ANYTHING] * (self.config.num_gpu_blocks - 1)
        for block_id in {*contents.holders, *contents.prefixes}:
            right = contents.right_slots(block_id)
            if right:
                good = right.index(False) if False in right else len(right)
                shown[block_id - 1] = UpTo(good) if contents.shares_text(block_id) else good
        return shown

    def _loads(self) -> dict[int, str]:
        found = {self.lives[i].r: "LANDED" if load.landed else "MOVING" for i, load in self.worker.loads.items()}
        found |= {self.lives[i].r: "REPORTED" for i in self.engine.scheduler.finished_recving_kv_req_ids}
        return dict(sorted(found.items()))

    # The whole state.

    def save(self) -> reference_state.Saved:
        """The whole state."""
        return reference_state.save(self)

    def restore(self, saved: reference_state.Saved) -> None:
        """Go back to a saved state."""
        self._contents = None
        reference_state.restore(self, saved)

    def digest(self, names: Names | None = None) -> Hashable:
        """The whole state as far as it can make a difference; see `reference_state`."""
        return reference_state.digest(self, names)
