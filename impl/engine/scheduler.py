"""The scheduler: which tokens of which requests are computed next, and what becomes of them once their step is processed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from .config import EngineConfig
from .errors import DoubleFree, ResetWhileHeld, UnknownCompletion
from .kv_cache_manager import KVCacheManager
from .kv_cache_utils import KVCacheBlock, KVCacheBlocks, get_block_ids
from .kv_connector import KVConnector
from .output import EngineCoreOutput, ModelRunnerOutput, NewRequestData, SchedulerOutput
from .request import Request, RequestStatus
from .request_queue import FCFSRequestQueue

FINISH_REASONS = {RequestStatus.FINISHED_STOPPED: "stop", RequestStatus.FINISHED_LENGTH_CAPPED: "length"}


class Scheduler:
    """Continuous batching, first come first served, with deferred frees (vLLM: v1/core/sched/scheduler.py).

    Several steps may be in flight: scheduled, and not yet processed; they are processed in the order they were scheduled
    in. `sched_step_seq` and `processed_step_seq` count both, steps without tokens left out, and only while the fence is
    on. `deferred_frees` are (fence, blocks in allocation order): the blocks are free once the step of that number is
    processed. A request that waits stands in `waiting` or in `kv_holding_waiting`, which is looked at first: there stand
    those that hold blocks (0.33), or those that were passed over before (`skipped_waiting` up to 0.27).
    """

    __slots__ = (
        "_mechanisms",
        "config",
        "connector",
        "deferred_frees",
        "fence",
        "finished_recving_kv_req_ids",
        "finished_req_ids",
        "inflight_prefills",
        "kv_cache_manager",
        "kv_holding_waiting",
        "preempted_req_ids",
        "processed_step_seq",
        "requests",
        "running",
        "sched_step_seq",
        "waiting",
    )

    def __init__(self, config: EngineConfig, connector: KVConnector | None = None) -> None:
        self.config = config
        self._mechanisms = config.mechanisms
        self.connector = connector
        self.kv_cache_manager = KVCacheManager(config)
        # All requests that have not ended, and aborted ones whose load still writes their blocks.
        self.requests: dict[str, Request] = {}
        self.waiting = FCFSRequestQueue()
        self.kv_holding_waiting = FCFSRequestQueue()
        self.running: list[Request] = []
        self.fence = config.fence
        self.sched_step_seq = 0
        self.processed_step_seq = 0
        self.deferred_frees: deque[tuple[int, list[KVCacheBlock]]] = deque()
        # Requests whose load is complete, and which do not know it yet.
        self.finished_recving_kv_req_ids: set[str] = set()
        # Admitted requests that still lack blocks for their known tokens: loading, or in the midst of a long prefill.
        self.inflight_prefills: dict[str, Request] = {}
        self.finished_req_ids: list[str] = []
        self.preempted_req_ids: list[str] = []

    def add_request(self, request: Request) -> None:
        """Take a new request in, and hash its full blocks where prefixes are cached; `ValueError` if its id is in use."""
        if request.request_id in self.requests:
            raise ValueError(f"request id {request.request_id} is in use")  # beyond the spec: a client's mistake
        request.hash_blocks(self.config.block_size if self.config.enable_prefix_caching else None)
        self.requests[request.request_id] = request
        self.waiting.add_request(request)

    def has_unfinished_requests(self) -> bool:
        """Whether some request is running or waiting; one that was aborted and only holds blocks is neither."""
        return bool(self.running or self.waiting or self.kv_holding_waiting)

    # Scheduling.

    def schedule(self) -> SchedulerOutput:
        """Build the next step: running requests first, then, unless one had to be preempted, waiting ones."""
        output = SchedulerOutput()
        num_running = len(self.running)
        budget = self._schedule_running(output)
        preempted = len(self.running) < num_running
        if self._mechanisms.preempt_skips_ended == "no":
            self._remove_ended_from_running()
        if not preempted and (self.waiting or self.kv_holding_waiting):
            budget = self._schedule_waiting(self.kv_holding_waiting, output, budget)
            self._schedule_waiting(self.waiting, output, budget)
        self._complete_output(output)
        self._update_after_schedule(output)
        return output

    def _schedule_running(self, output: SchedulerOutput) -> int:
        """Give running requests their tokens, in list order, while the budget lasts; returns what is left of it."""
        budget = self.config.max_num_batched_tokens
        at = 0
        while at < len(self.running) and budget > 0:
            request = self.running[at]
            num_new_tokens = self._num_new_tokens(request, budget)
            if num_new_tokens > 0:
                new_blocks = self._allocate_or_preempt(request, num_new_tokens)
                if new_blocks is None:
                    break
                output.scheduled_cached_reqs.add(request, get_block_ids(new_blocks) if any(new_blocks) else None)
                self._plan(request, num_new_tokens, output)
                budget -= num_new_tokens
            at += 1
        return budget

    def _num_new_tokens(self, request: Request, budget: int) -> int:
        """Tokens to compute next; none where the steps in flight surely reach the request's last token."""
        computed, placeholders = request.num_computed_tokens, request.num_output_placeholders
        if placeholders > 0 and computed + 2 - placeholders >= request.num_prompt_tokens + request.max_tokens:
            return 0
        if request.status is not RequestStatus.RUNNING:
            return 0
        return min(request.num_tokens + placeholders - computed, budget)

    def _allocate_or_preempt(self, request: Request, num_new_tokens: int) -> KVCacheBlocks | None:
        """Slots for a running request's next tokens, at the cost of requests that were admitted later.

        None where a victim may not be preempted, or the request itself was the last one left to preempt.
        """
        while True:
            new_blocks = self.kv_cache_manager.allocate_slots(request, num_new_tokens)
            if new_blocks is not None:
                return new_blocks
            victim = self.running[-1]
            if not self._can_preempt(victim):
                return None
            self.running.pop()
            self._preempt_request(victim, drops_output=self.config.requires_kv_delivery)
            if victim is request:
                return None

    def _can_preempt(self, victim: Request) -> bool:
        """Whether preempting pays: it does not where the victim's blocks would only be parked (#49675)."""
        if self._mechanisms.victim_rule == "any":
            return True
        return self._request_blocks_can_be_freed(victim, self._mechanisms.preemption_free)

    def _preempt_request(self, request: Request, *, drops_output: bool = False) -> None:
        """Take a request's blocks, and put it in front of the waiting ones; it was taken off the running list.

        Its steps in flight still return output, which is delivered late, or dropped (#48245). Up to 0.25 that output was
        counted like any other, against placeholders that were left as they were.
        """
        if request.status.is_finished:
            raise DoubleFree(f"request {request.request_id} gave its blocks back when it ended")
        self._free_request_blocks(request, self._mechanisms.preemption_free)
        request.status = RequestStatus.PREEMPTED
        request.num_computed_tokens = 0
        self.inflight_prefills.pop(request.request_id, None)
        if drops_output or request.num_stale_outputs == 0:
            request.drops_stale_outputs = drops_output
        if self._mechanisms.stale_output == "marked":
            request.num_stale_outputs = request.num_in_flight
            request.num_output_placeholders = 0
        elif drops_output:
            request.num_stale_outputs = request.num_output_placeholders
            request.num_output_placeholders = 0
        if request.num_stale_outputs == 0:
            request.drops_stale_outputs = False
        self.preempted_req_ids.append(request.request_id)
        self.waiting.prepend_request(request)

    def _schedule_waiting(self, queue: FCFSRequestQueue, output: SchedulerOutput, budget: int) -> int:
        """Admit requests of one queue while budget, seats and blocks last; returns what is left of the budget.

        Those that cannot go on yet keep their places, or are put with the skipped ones; a request that does not fit ends
        the scan, of later queues too (0 is returned). The reservation for admitted requests is summed once a scan.
        """
        passed: list[Request] = []
        reserved_blocks = self._inflight_prefill_reserved_blocks()
        keeps_place = queue is self.kv_holding_waiting or self._mechanisms.waiting_queues == "holding"
        while budget > 0 and len(self.running) < self.config.max_num_seqs and queue:
            request = queue.peek_request()
            if request.request_id in self.finished_recving_kv_req_ids:
                self._update_waiting_for_remote_kv(request)
            if self._is_blocked(request):
                queue.pop_request()
                if keeps_place:
                    passed.append(request)
                else:
                    self.kv_holding_waiting.add_request(request)
                continue
            reserved_before = self._reserved_blocks(request)
            num_new_tokens = self._try_to_admit(request, queue, output, budget, reserved_blocks)
            if num_new_tokens is None:
                budget = 0
            else:
                budget -= num_new_tokens
                reserved_blocks += self._reserved_blocks(request) - reserved_before
        queue.prepend_requests(passed)
        return budget

    def _is_blocked(self, request: Request) -> bool:
        """Whether a request cannot go on yet: its load is not complete, or its late output is still to be delivered."""
        if request.status is RequestStatus.WAITING_FOR_REMOTE_KVS:
            return True
        drains = request.num_stale_outputs > 0 and not request.drops_stale_outputs
        return drains and self._mechanisms.stale_output == "marked"

    def _try_to_admit(
        self, request: Request, queue: FCFSRequestQueue, output: SchedulerOutput, budget: int, reserved_blocks: int
    ) -> int | None:
        """Admit the first request of a queue, or start its load; returns the tokens it was given, None if it does not fit.

        A load does not get the last `reserved_blocks` free blocks.
        """
        hits: KVCacheBlocks | None = None
        num_hit_tokens = num_external_tokens = 0
        if request.num_computed_tokens == 0:
            hits, num_hit_tokens = self.kv_cache_manager.get_computed_blocks(request)
            if self.connector is not None:
                num_external_tokens = self.connector.get_num_new_matched_tokens(request, num_hit_tokens)
        loads = num_external_tokens > 0
        num_computed = request.num_computed_tokens + num_hit_tokens + num_external_tokens
        num_new_tokens = 0 if loads else min(budget, request.num_tokens - num_computed)
        new_blocks = self.kv_cache_manager.allocate_slots(
            request,
            num_new_tokens,
            num_new_computed_tokens=num_hit_tokens,
            new_computed_blocks=hits,
            num_external_computed_tokens=num_external_tokens,
            delay_cache_blocks=loads,
            full_sequence_must_fit=self.config.scheduler_reserve_full_isl,
            reserved_blocks=reserved_blocks if loads else 0,
            watermark=self.config.watermark if self.running else 0,
        )
        if new_blocks is None:
            return None
        queue.pop_request()
        request.num_computed_tokens = num_computed
        if self.connector is not None:
            self.connector.update_state_after_alloc(request, get_block_ids(new_blocks), num_external_tokens)
        if loads:
            self._wait_for_remote_kv(request)
        else:
            self._start_running(request, num_new_tokens, output)
        return num_new_tokens

    def _inflight_prefill_reserved_blocks(self) -> int:
        """Blocks that admitted requests still lack for their known tokens; a load must not take them (#44560)."""
        return sum(map(self._reserved_blocks, self.inflight_prefills.values()))

    def _reserved_blocks(self, request: Request) -> int:
        """What one request adds to that."""
        if self._mechanisms.admission_reservation == "off" or request.request_id not in self.inflight_prefills:
            return 0
        return self.kv_cache_manager.num_missing_blocks(request)

    def _wait_for_remote_kv(self, request: Request) -> None:
        """The request's blocks are the target of a load; it waits outside the running list, safe from preemption."""
        request.status = RequestStatus.WAITING_FOR_REMOTE_KVS
        self.inflight_prefills[request.request_id] = request
        self.kv_holding_waiting.add_request(request)

    def _update_waiting_for_remote_kv(self, request: Request) -> None:
        """A request's load is complete: its blocks are hashed, and at least its last token is still to be computed."""
        self.finished_recving_kv_req_ids.remove(request.request_id)
        self.kv_cache_manager.cache_blocks(request, request.num_computed_tokens)
        if request.num_computed_tokens == request.num_tokens:
            request.num_computed_tokens -= 1
        request.status = RequestStatus.WAITING

    def _start_running(self, request: Request, num_new_tokens: int, output: SchedulerOutput) -> None:
        """The request joins the running list and the step, with its whole table."""
        resumed = request.status is RequestStatus.PREEMPTED
        request.status = RequestStatus.RUNNING
        self.running.append(request)
        if request.num_computed_tokens + num_new_tokens < request.num_tokens:
            self.inflight_prefills[request.request_id] = request
        block_ids = self.kv_cache_manager.get_block_ids(request.request_id)
        if resumed:
            cached = output.scheduled_cached_reqs
            cached.resumed_req_ids.add(request.request_id)
            cached.all_token_ids[request.request_id] = request.token_ids(0, request.num_tokens)
            cached.add(request, block_ids)
        else:
            new = NewRequestData(request.request_id, request.prompt_token_ids, block_ids, request.num_computed_tokens)
            output.scheduled_new_reqs.append(new)
        self._plan(request, num_new_tokens, output)

    def _plan(self, request: Request, num_new_tokens: int, output: SchedulerOutput) -> None:
        output.num_scheduled_tokens[request.request_id] = num_new_tokens
        output.total_num_scheduled_tokens += num_new_tokens

    def _complete_output(self, output: SchedulerOutput) -> None:
        """Add what happened since the step before: blocks handed out, loads, requests that ended or were preempted."""
        new_block_ids = self.kv_cache_manager.block_pool.take_new_block_ids()
        if self.connector is not None:
            output.kv_connector_metadata = self.connector.build_connector_meta()
            loads = output.kv_connector_metadata.loads
            targets = {block_id for load in loads for group in load.block_ids for block_id in group}
            new_block_ids = [block_id for block_id in new_block_ids if block_id not in targets]
        output.new_block_ids_to_zero = new_block_ids
        output.finished_req_ids, self.finished_req_ids = self.finished_req_ids, []
        output.preempted_req_ids, self.preempted_req_ids = self.preempted_req_ids, []

    def _update_after_schedule(self, output: SchedulerOutput) -> None:
        """Count the step's tokens as computed; a step without tokens moves no counter."""
        if self.fence and output.total_num_scheduled_tokens > 0:
            self.sched_step_seq += 1
        for request_id, num_tokens in output.num_scheduled_tokens.items():
            request = self.requests[request_id]
            request.num_computed_tokens += num_tokens
            request.num_in_flight += 1
            request.num_in_flight_tokens += num_tokens
            request.last_sched_seq = self.sched_step_seq
            if request.num_computed_tokens >= request.num_tokens + request.num_output_placeholders:
                self.inflight_prefills.pop(request_id, None)

    # Output processing.

    def update_from_output(self, step: SchedulerOutput, result: ModelRunnerOutput) -> list[EngineCoreOutput]:
        """Process the oldest step in flight: frees that waited for it first, then its requests, in scheduling order."""
        if self.fence and step.total_num_scheduled_tokens > 0:
            self.processed_step_seq += 1
            self._drain_deferred_frees()
        outputs: list[EngineCoreOutput] = []
        running_ended = False
        for request_id, num_tokens in step.num_scheduled_tokens.items():
            request = self.requests.get(request_id)
            if request is None:
                continue  # It ended while the step was in flight.
            request.num_in_flight -= 1
            request.num_in_flight_tokens -= num_tokens
            token_ids = self._take_output(request, result.sampled_token_ids.get(request_id, ()))
            if token_ids:
                was_running = request.status is RequestStatus.RUNNING
                self._finish_if_done(request)
                running_ended |= was_running and request.status.is_finished
                outputs.append(EngineCoreOutput(request_id, token_ids, FINISH_REASONS.get(request.status)))
        if running_ended and self._mechanisms.preempt_skips_ended == "yes":
            self._remove_ended_from_running()
        return outputs

    def _remove_ended_from_running(self) -> None:
        """Take all that have ended off the running list, in one pass."""
        self.running = [request for request in self.running if not request.status.is_finished]

    def _take_output(self, request: Request, sampled: Sequence[int]) -> list[int]:
        """Settle what is late of a request's output, and add its tokens, unless they are dropped; returns those added."""
        late = request.num_stale_outputs > 0
        kept = not (late and request.drops_stale_outputs)
        if late and (sampled or self._mechanisms.stale_output == "marked"):
            request.num_stale_outputs -= 1
            if request.num_stale_outputs == 0:
                request.drops_stale_outputs = False
        if not kept or not sampled:
            return []
        token_ids = list(sampled)
        request.append_output_token_ids(token_ids)
        if not late:
            self._update_counters(request, len(token_ids))
        return token_ids

    def _update_counters(self, request: Request, num_tokens: int) -> None:
        """Settle output that came in time; without placeholders there is nothing to settle."""

    def _finish_if_done(self, request: Request) -> None:
        """End a request at a stop token, or where it has all its output tokens; it may be preempted at that moment."""
        if request.output_token_ids[-1] in request.stop_token_ids:
            status = RequestStatus.FINISHED_STOPPED
        elif len(request.output_token_ids) >= request.max_tokens:
            status = RequestStatus.FINISHED_LENGTH_CAPPED
        else:
            return
        if request.status is not RequestStatus.RUNNING:
            self._remove_from_waiting(request)
        request.status = status
        self._free_request_blocks(request, self._mechanisms.finish_free)
        self._forget(request)

    def _remove_from_waiting(self, request: Request) -> None:
        if request in self.waiting:
            self.waiting.remove_request(request)
        else:
            self.kv_holding_waiting.remove_request(request)

    def _forget(self, request: Request) -> None:
        self.inflight_prefills.pop(request.request_id, None)
        self.finished_req_ids.append(request.request_id)
        del self.requests[request.request_id]

    # Frees.

    def _request_blocks_can_be_freed(self, request: Request, when: str) -> bool:
        """Whether no step in flight names the request, or nothing waits for such steps (`when`: fenced, at-once)."""
        return not self.fence or when == "at-once" or request.last_sched_seq <= self.processed_step_seq

    def _free_request_blocks(self, request: Request, when: str) -> None:
        """Give up a request's blocks: at once, or once the newest step scheduled so far is processed (#45357)."""
        if self._request_blocks_can_be_freed(request, when):
            self.kv_cache_manager.free(request)
        elif blocks := self.kv_cache_manager.pop_blocks_for_free(request):
            self.deferred_frees.append((self.sched_step_seq, blocks))

    def _drain_deferred_frees(self) -> None:
        """Free what waited for steps that are processed by now, oldest first."""
        while self.deferred_frees and self.deferred_frees[0][0] <= self.processed_step_seq:
            self.kv_cache_manager.free_popped(self.deferred_frees.popleft()[1])

    # Aborts, transfers, the reset of the prefix cache.

    def finish_requests(self, request_ids: str | Iterable[str], finished_status: RequestStatus) -> list[str]:
        """End requests from outside, whatever they are doing; returns the ids of those that had not ended and are known.

        Output still in flight is ignored. Blocks that a load still writes are held until it is reported complete.
        """
        assert finished_status.is_finished
        ids = (request_ids,) if isinstance(request_ids, str) else request_ids
        known = {request_id: self.requests[request_id] for request_id in ids if request_id in self.requests}
        ending = [request for request in known.values() if not request.status.is_finished]
        running = {request.request_id for request in ending if request.status is RequestStatus.RUNNING}
        if running:
            self.running = [request for request in self.running if request.request_id not in running]
        for request in ending:
            if request.status is not RequestStatus.RUNNING:
                self._remove_from_waiting(request)
            self._finish(request, finished_status)
        return [request.request_id for request in ending]

    def _finish(self, request: Request, finished_status: RequestStatus) -> None:
        """End a request that is on no list any more."""
        held = request.status is RequestStatus.WAITING_FOR_REMOTE_KVS and self._holds_aborted_load(request.request_id)
        request.status = finished_status
        if held:
            self.inflight_prefills.pop(request.request_id, None)
        else:
            self._free_request_blocks(request, self._mechanisms.abort_free)
            self._forget(request)

    def _holds_aborted_load(self, request_id: str) -> bool:
        """Whether the blocks of an aborted load wait for its report; one that came already will not come again (#32255)."""
        if request_id not in self.finished_recving_kv_req_ids:
            return self._mechanisms.abort_of_load == "hold"
        if self._mechanisms.abort_after_report == "hold":
            return True
        self.finished_recving_kv_req_ids.remove(request_id)
        return False

    def update_from_kv_xfer_finished(self, request_id: str) -> None:
        """A load is complete, as a worker reports with some step's output; `UnknownCompletion` if nobody waits for it.

        Who waits is the request itself, or its blocks alone, if it ended before; they are freed.
        """
        request = self.requests.get(request_id)
        if request is None:
            raise UnknownCompletion(f"a load of the unknown request {request_id} is complete")
        if request.status is RequestStatus.WAITING_FOR_REMOTE_KVS:
            self.finished_recving_kv_req_ids.add(request_id)
        elif not request.status.is_finished:  # beyond the spec: no load is reported twice, and no id is used by two
            raise UnknownCompletion(f"a load is complete of request {request_id}, which does not wait for one")
        else:
            self._free_request_blocks(request, self._mechanisms.abort_free)
            self._forget(request)

    def reset_prefix_cache(self, reset_running_requests: bool = False) -> bool:
        """Take every hash away; False, with no effect, while blocks are held.

        With `reset_running_requests` everybody is preempted first, and output in flight is dropped. Where blocks would be
        held even then, behind the fence, by loads, the call is refused likewise; the releases (0.23 to 0.33) preempt
        everybody and stop with `ResetWhileHeld`.
        """
        if not reset_running_requests or not self.running:
            return self.kv_cache_manager.reset_prefix_cache()
        if self._mechanisms.reset_while_parked == "refuse" and not self._preempting_all_empties_pool():
            return False
        while self.running:
            self._preempt_request(self.running.pop(), drops_output=True)
        if not self.kv_cache_manager.reset_prefix_cache():
            raise ResetWhileHeld("blocks are still held after every running request was preempted")
        return True

    def _preempting_all_empties_pool(self) -> bool:
        """Whether running requests hold every reference there is, and would give them all back at once."""
        references: dict[int, int] = {}
        for request in self.running:
            if not self._request_blocks_can_be_freed(request, self._mechanisms.preemption_free):
                return False
            for group in self.kv_cache_manager.get_blocks(request.request_id):
                for block in group:
                    references[block.block_id] = references.get(block.block_id, 0) + 1
        pool = self.kv_cache_manager.block_pool
        used = len(pool.blocks) - 1 - pool.get_num_free_blocks()
        return len(references) == used and all(pool.blocks[i].ref_cnt == count for i, count in references.items())
