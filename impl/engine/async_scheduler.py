"""Asynchronous scheduling: decode is scheduled ahead of its outputs, on placeholders."""

from __future__ import annotations

from .errors import PlaceholderUnderflow
from .output import SchedulerOutput
from .request import Request, RequestStatus
from .scheduler import Scheduler


class AsyncScheduler(Scheduler):
    """A scheduler whose running requests own a placeholder for each output token that steps in flight will yield."""

    __slots__ = ()

    def _update_after_schedule(self, output: SchedulerOutput) -> None:
        """Besides, a step that reaches a request's last token, known or placeholder, yields one more."""
        super()._update_after_schedule(output)
        for request_id in output.num_scheduled_tokens:
            request = self.requests[request_id]
            if request.num_computed_tokens >= request.num_tokens + request.num_output_placeholders:
                request.num_output_placeholders += 1

    def _update_counters(self, request: Request, num_tokens: int) -> None:
        """Sampled tokens take their placeholders, and the blocks that they fill are hashed.

        Up to 0.25 the output of a preempted request was counted, so that placeholders could be missing: an assertion
        stopped the engine (`PlaceholderUnderflow`; #48245).
        """
        if request.num_output_placeholders < num_tokens:
            raise PlaceholderUnderflow(f"request {request.request_id} has no placeholder for its token")
        request.num_output_placeholders -= num_tokens
        if request.status is RequestStatus.RUNNING:
            counted = self._mechanisms.stale_output == "counted"
            ahead = request.num_output_placeholders if counted else request.num_in_flight_tokens
            self.kv_cache_manager.cache_blocks(request, request.num_computed_tokens - ahead)
