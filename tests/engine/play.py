"""Plays events on the reference engine one by one, and shows what it holds (blocks by id, the null block is 0)."""

from __future__ import annotations

from typing import Any

from fencepost.impl.engine.config import EngineConfig, Mechanisms
from fencepost.impl.engine.engine import Engine
from fencepost.impl.engine.kv_connector import RemotePrefillConnector
from fencepost.impl.engine.output import EngineCoreOutput, SchedulerOutput
from fencepost.impl.engine.request import Request, RequestStatus
from fencepost.impl.engine.simulated_worker import Row, SimulatedWorker

STOP = 999


def wrong_positions(worker: SimulatedWorker, row: Row) -> list[int]:
    """The positions up to a row's end whose slot, in any group, does not hold what the row's request needs there."""
    size = worker.block_size
    return [
        position
        for position in range(row.end)
        for tag in (row.state.tag(row.request_id, position),)
        if any(worker.slots[table[position // size] * size + position % size] != tag for table in row.tables)
    ]


class Play:
    """An engine of `blocks` usable blocks of one token; requests have prompts of their own unless told otherwise."""

    def __init__(self, blocks: int, *, remote_tokens: int = 0, mechanisms: dict[str, str] | None = None, **sizes: Any) -> None:
        defaults: dict[str, Any] = {
            "block_size": 1,
            "enable_prefix_caching": False,
            "kv_role": "kv_consumer" if remote_tokens else "none",
        }
        self.config = EngineConfig(
            num_gpu_blocks=blocks + 1, mechanisms=Mechanisms.of(mechanisms or {}), **{**defaults, **sizes}
        )
        self.stops: tuple[str, ...] = ()
        self.sampled = 500
        self.worker = SimulatedWorker(self.sample)
        self.engine = Engine(self.config, self.worker, RemotePrefillConnector(remote_tokens))
        self.scheduler = self.engine.scheduler
        self.pool = self.scheduler.kv_cache_manager.block_pool
        self.requests: dict[str, Request] = {}

    def sample(self, request_id: str) -> int:
        """A stop token for those that are to stop, else a new token."""
        self.sampled += 1
        return STOP if request_id in self.stops else self.sampled

    def submit(self, name: str, prompt: int | list[int], max_tokens: int = 2, *, remote: bool = False) -> Play:
        """A request arrives, with this prompt, or one of its own of so many tokens."""
        tokens = [ord(name[0]) * 1000 + i for i in range(prompt)] if isinstance(prompt, int) else prompt
        request = Request(name, tokens, max_tokens, stop_token_ids=[STOP], do_remote_prefill=remote)
        self.requests[name] = request
        self.engine.submit(request)
        return self

    def schedule(self) -> SchedulerOutput | None:
        """A step is built."""
        return self.engine.schedule()

    def run(self) -> list[Row]:
        """The device runs a step; returns its rows."""
        step = next(step for step in self.worker.steps if not step.ran)
        self.engine.run_step()
        return step.rows

    def process(self, *stops: str) -> list[EngineCoreOutput]:
        """The oldest output is processed; these requests sampled a stop token."""
        self.stops = stops
        return self.engine.process()

    def finish_step(self, *stops: str) -> list[EngineCoreOutput]:
        """The device runs a step, and the oldest output is processed."""
        self.run()
        return self.process(*stops)

    def load(self, name: str) -> Play:
        """A load lands and is reported."""
        self.engine.land(name)
        self.engine.report(name)
        return self

    def status(self, name: str) -> RequestStatus:
        """Where a request stands, also after its end."""
        return self.requests[name].status

    def table(self, name: str) -> list[int]:
        """The blocks of a request."""
        return self.scheduler.kv_cache_manager.get_block_ids(name)[0]

    @property
    def free(self) -> list[int]:
        """The free queue, next block first."""
        return [block.block_id for block in self.pool.free_block_queue.get_all_free_blocks()]

    @property
    def parked(self) -> list[tuple[int, list[int]]]:
        """Deferred frees: steps still to be processed, blocks in allocation order."""
        done = self.scheduler.processed_step_seq
        return [(fence - done, [block.block_id for block in blocks]) for fence, blocks in self.scheduler.deferred_frees]

    @property
    def running(self) -> list[str]:
        """The running list."""
        return [request.request_id for request in self.scheduler.running]

    @property
    def waiting(self) -> list[str]:
        """The ordinary waiting queue."""
        return [request.request_id for request in self.scheduler.waiting]

    @property
    def holding(self) -> list[str]:
        """The waiting queue that is looked at first."""
        return [request.request_id for request in self.scheduler.kv_holding_waiting]
