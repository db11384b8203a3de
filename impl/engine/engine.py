"""The engine: clients' events, the scheduler's clock, the device's and the transfers', around a queue of steps in flight."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from contextlib import contextmanager

from .async_scheduler import AsyncScheduler
from .config import EngineConfig
from .errors import EngineError, InternalError
from .kv_connector import KVConnector
from .output import EngineCoreOutput, SchedulerOutput
from .request import Request, RequestStatus
from .scheduler import Scheduler
from .worker import Worker


class Engine:
    """An engine core with a batch queue (vLLM: v1/engine/core.py), one event at a time.

    `schedule` builds a step and hands it to the worker; `run_step` lets the device execute the oldest one; `process` takes
    its output; `land` and `report` are the end of a remote load, on the device and for the scheduler. A user's loop is
    `step_with_batch_queue`.

    `error` is what stopped the engine: anything that goes wrong once an event has begun to have effects. That event and
    all later ones raise it. A caller's mistake is found before, and stops nothing.
    """

    __slots__ = ("batch_queue", "config", "error", "scheduler", "worker")

    def __init__(self, config: EngineConfig, worker: Worker, connector: KVConnector | None = None) -> None:
        self.config = config
        self.worker = worker
        self.scheduler: Scheduler = (AsyncScheduler if config.async_scheduling else Scheduler)(config, connector)
        self.batch_queue: deque[SchedulerOutput] = deque()
        self.error: EngineError | None = None
        worker.allocate(config.num_gpu_blocks, config.block_size)

    def _begin(self) -> None:
        if self.error is not None:
            raise self.error  # beyond the spec: an engine that has stopped is left alone

    @contextmanager
    def _effects(self) -> Generator[None]:
        """What goes wrong inside leaves the engine half updated, and stops it."""
        try:
            yield
        except EngineError as error:
            self.error = error
            raise
        except Exception as error:  # beyond the spec: bugs, of the engine, its worker or its connector
            self.error = InternalError(f"{type(error).__name__}: {error}")
            raise self.error from error

    def submit(self, request: Request) -> None:
        """Take a new request in.

        `ValueError` if its id is still named by a request, a step or a load, or if it could not be completed even with
        all blocks of the pool.
        """
        self._begin()
        request_id = request.request_id
        if any(request_id in step.num_scheduled_tokens for step in self.batch_queue):
            raise ValueError(f"request id {request_id} is in use by a step in flight")  # beyond the spec: a client's mistake
        if self.worker.has_load(request_id):
            raise ValueError(f"request id {request_id} is in use by a load")  # beyond the spec: a client's mistake
        # The last output token is never an input, and needs no slot.
        num_blocks = -(-(request.num_prompt_tokens + request.max_tokens - 1) // self.config.block_size)
        if num_blocks > self.config.num_gpu_blocks - 1:
            # beyond the spec: a client's mistake
            raise ValueError(f"request {request_id} needs {num_blocks} blocks, more than there are")
        self.scheduler.add_request(request)  # what can go wrong in it comes before its effects

    def schedule(self) -> SchedulerOutput | None:
        """Build the next step and hand it to the worker; None if it has no tokens and is not kept in flight.

        Steps without tokens come back at once, save as many as may be in flight while something is unfinished. Loads are
        started after the step was launched (0.33, #53333). `RuntimeError` if the batch queue is full.
        """
        self._begin()
        if len(self.batch_queue) >= self.config.max_concurrent_batches:
            raise RuntimeError("the batch queue is full")
        with self._effects():
            step = self.scheduler.schedule()
            kept = step.total_num_scheduled_tokens > 0 or self._keeps_empty_step()
            if kept:
                self.worker.enqueue(step)
                self.batch_queue.append(step)
            else:
                self.worker.no_forward(step)
            if step.kv_connector_metadata is not None:
                for load in step.kv_connector_metadata.loads:
                    self.worker.start_load(load)
        return step if kept else None

    def _keeps_empty_step(self) -> bool:
        """Whether one more step without tokens may be in flight."""
        in_flight = sum(step.total_num_scheduled_tokens == 0 for step in self.batch_queue)
        return in_flight < self.config.max_empty_batches and self.scheduler.has_unfinished_requests()

    def run_step(self) -> None:
        """Let the device execute the oldest step that did not run yet; `IndexError` if there is none."""
        self._begin()
        if not self.worker.has_step():
            raise IndexError("no step is left to run")  # beyond the spec: a caller's mistake
        with self._effects():
            self.worker.run_step()

    def process(self) -> list[EngineCoreOutput]:
        """Process the output of the oldest step in flight; `RuntimeError` unless it has been executed."""
        self._begin()
        if not self.worker.is_ready():
            raise RuntimeError("the oldest step has not been executed")  # beyond the spec: a caller's mistake
        with self._effects():
            result = self.worker.read()
            outputs = self.scheduler.update_from_output(self.batch_queue.popleft(), result)
            if self.config.mechanisms.ended_rows == "dropped":
                for output in outputs:
                    if output.finish_reason is not None:
                        self.worker.drop_rows(output.request_id)
        return outputs

    def land(self, request_id: str) -> None:
        """Let the bytes of a request's load arrive; `KeyError` if none is in flight."""
        self._begin()
        if not self.worker.has_load(request_id) or self.worker.has_landed(request_id):
            raise KeyError(request_id)  # beyond the spec: a caller's mistake
        with self._effects():
            self.worker.land(request_id)

    def report(self, request_id: str) -> None:
        """Let the scheduler learn that a load is complete; `KeyError` if none has landed for this request.

        In the releases the news comes with the output of some step after the bytes have landed.
        """
        self._begin()
        if not self.worker.has_landed(request_id):
            raise KeyError(request_id)  # beyond the spec: a caller's mistake
        with self._effects():
            self.worker.acknowledge(request_id)
            self.scheduler.update_from_kv_xfer_finished(request_id)

    def abort(self, request_id: str) -> bool:
        """End a request because its client is gone, whatever it is doing; False if there is none, or it has ended."""
        self._begin()
        with self._effects():
            aborted = bool(self.scheduler.finish_requests(request_id, RequestStatus.FINISHED_ABORTED))
            if aborted and self.config.mechanisms.ended_rows == "dropped":
                self.worker.drop_rows(request_id)
        return aborted

    def reset_prefix_cache(self, reset_running_requests: bool = False) -> bool:
        """Forget all prefixes, if need be at the cost of preempting everybody; False, with no effect, if refused."""
        self._begin()
        with self._effects():
            return self.scheduler.reset_prefix_cache(reset_running_requests)

    def step_with_batch_queue(self) -> list[EngineCoreOutput]:  # beyond the spec: a loop's order; there any event can come next
        """One turn of the engine's loop: schedule while the queue has room, else process the oldest step.

        Returns no outputs where a step was scheduled and the queue is not full yet. Loads in flight land and are reported
        with every turn.
        """
        scheduled = False
        if len(self.batch_queue) < self.config.max_concurrent_batches and self.scheduler.has_unfinished_requests():
            scheduled = self.schedule() is not None
        for request_id in self.worker.loads_in_flight():
            self.land(request_id)
            self.report(request_id)
        if not self.batch_queue or (scheduled and len(self.batch_queue) < self.config.max_concurrent_batches):
            return []
        while not self.worker.is_ready():
            self.run_step()
        return self.process()

    def run_until_idle(self) -> list[EngineCoreOutput]:  # beyond the spec: a loop's order; there any event can come next
        """Take turns until no request, step or load is left; returns all outputs.

        `RuntimeError` if requests are left that nothing will move on any more.
        """
        outputs: list[EngineCoreOutput] = []
        fruitless = 0
        while self.batch_queue or self.scheduler.has_unfinished_requests() or self.worker.loads_in_flight():
            loading = bool(self.worker.loads_in_flight())
            got = self.step_with_batch_queue()
            outputs += got
            # A turn without a step may still have admitted a load's request or preempted; several in a row do not.
            fruitless = 0 if got or loading or self.batch_queue else fruitless + 1
            if fruitless > 3:
                raise RuntimeError("requests are waiting, and nothing in flight will move them on")
        return outputs
