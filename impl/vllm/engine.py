"""The engine's part around a release's scheduler: what vLLM's engine process does with it, one event at a time.

The order of events is the caller's. What the worker must know of a step is read off the release's own `SchedulerOutput`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, cast

from . import clock
from .build import Settings, build_scheduler, load_params

KINDS: tuple[tuple[str, str, type[Exception], str], ...] = (
    ("ALLOCATION", "v1/core/block_pool.py:get_new_blocks", ValueError, "Cannot get "),
    ("PLACEHOLDERS", "v1/core/sched/async_scheduler.py:_update_request_with_output", AssertionError, ""),
    ("COMPLETION", "v1/core/sched/scheduler.py:_update_from_kv_xfer_finished", AssertionError, ""),
    ("RESET", "v1/core/sched/scheduler.py:reset_prefix_cache", RuntimeError, "Failed to reset KV cache"),
)
"""What an exception of a release means: where it is raised, of which type, with which message; others are INTERNAL."""


class Stopped(Exception):
    """An exception of the release's own, which leaves an event half done."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind, self.message = kind, message

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Load:
    """A remote load that was started: the request's tokens `start` to `end` - 1 go into `block_ids`."""

    request_id: str
    block_ids: tuple[list[int], ...]
    start: int
    end: int


class Watch:
    """What happens inside the scheduler during a step, seen at two of its interfaces: blocks handed out, loads started.

    Block pools hand out blocks by `get_new_blocks`; connectors are told of an admission by `update_state_after_alloc`.
    """

    def __init__(self, scheduler: Any) -> None:
        self.handed_out: list[int] = []
        self.admitted: list[tuple[str, int]] = []
        pool = scheduler.kv_cache_manager.block_pool
        pool.get_new_blocks = self._seen_blocks(pool.get_new_blocks)
        if scheduler.connector is not None:
            told = self._seen_load(scheduler.connector.update_state_after_alloc)
            scheduler.connector.update_state_after_alloc = told

    def _seen_blocks(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def get_new_blocks(*args: Any, **kwargs: Any) -> Any:
            blocks = inner(*args, **kwargs)
            self.handed_out += [block.block_id for block in blocks]
            return blocks

        return get_new_blocks

    def _seen_load(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def update_state_after_alloc(request: Any, blocks: Any, num_external_tokens: int, *args: Any, **kwargs: Any) -> Any:
            if num_external_tokens > 0:
                self.admitted.append((request.request_id, num_external_tokens))
            return inner(request, blocks, num_external_tokens, *args, **kwargs)

        return update_state_after_alloc

    def take(self) -> tuple[list[int], list[tuple[str, int]]]:
        """Blocks handed out, and requests with their external tokens, since the last call."""
        seen = self.handed_out, self.admitted
        self.handed_out, self.admitted = [], []
        return seen


@dataclass(frozen=True)
class Scheduled:
    """What one call of `schedule` did: its output, whether it stays in flight, blocks handed out, loads started."""

    output: Any
    kept: bool
    handed_out: Sequence[int]
    loads: Sequence[Load]


class ReleaseEngine:
    """A scheduler with its steps in flight. `Stopped` is raised where the release raises, by that event and all later ones."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.scheduler = build_scheduler(settings)
        self.watch = Watch(self.scheduler)
        self.in_flight: deque[Any] = deque()
        self.error: Stopped | None = None
        self.manager = self.scheduler.kv_cache_manager
        self.pool = self.manager.block_pool
        self._names = Names()
        self._hasher = self._names.hasher(settings.block_size) if settings.enable_prefix_caching else None
        self._params = self._names.SamplingParams(
            max_tokens=settings.max_tokens, stop_token_ids=[settings.stop_token], ignore_eos=True
        )

    def _do(self, event: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.error is not None:
            raise self.error
        try:
            with clock.standing():
                return event(*args, **kwargs)
        except MemoryError:
            raise
        except (Exception, SystemExit) as error:
            said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            self.error = Stopped(_kind(error), said)
            raise self.error from error

    def new_request(self, request_id: str, prompt: Sequence[int]) -> Any:
        """A request that nobody has submitted yet."""
        return self._names.Request(
            request_id=request_id,
            prompt_token_ids=list(prompt),
            sampling_params=self._params,
            pooling_params=None,
            block_hasher=self._hasher,
        )

    def would_load(self, tokens: int) -> int | None:
        """How many tokens of a prompt of so many the connector would load: it is asked as at an admission.

        None where it does not say, or fails; the engine is of no use after that.
        """
        request = self.new_request("0#0", [1] * tokens)
        request.kv_transfer_params = load_params("0#0")
        try:
            found: Any = self._do(self.scheduler.connector.get_num_new_matched_tokens, request, 0)
        except Stopped:  # it will be said where it is driven
            return None
        return next((one for one in found[:1] if isinstance(one, int)), None) if found.__class__ is tuple else None

    def submit(self, request_id: str, prompt: Sequence[int], *, remote: bool) -> None:
        """A client's request."""
        request = self.new_request(request_id, prompt)
        if remote:
            request.kv_transfer_params = load_params(request_id)
        self._do(self.scheduler.add_request, request)

    def schedule(self) -> Scheduled:
        """Build a step. One without tokens comes back at once, unless it is kept in flight."""
        self.watch.take()
        output = self._do(self.scheduler.schedule)
        handed_out, admitted = self.watch.take()
        loads = [self._load(request_id, tokens) for request_id, tokens in admitted if self._loads(request_id)]
        kept = output.total_num_scheduled_tokens > 0 or self._keeps_empty_step()
        if kept:
            self.in_flight.append(output)
        else:
            self._do(self.scheduler.update_from_output, output, self._names.output([], {}))
        return Scheduled(output, kept, handed_out, loads)

    def _loads(self, request_id: str) -> bool:
        """Whether the external tokens arrive in their own time; others are there before the step runs."""
        return self.scheduler.requests[request_id].status.name == "WAITING_FOR_REMOTE_KVS"

    def _load(self, request_id: str, tokens: int) -> Load:
        end = self.scheduler.requests[request_id].num_computed_tokens
        start = end - tokens
        first = start // self.settings.block_size
        return Load(request_id, tuple(ids[first:] for ids in self.manager.get_block_ids(request_id)), start, end)

    def _keeps_empty_step(self) -> bool:
        empty = sum(step.total_num_scheduled_tokens == 0 for step in self.in_flight)
        return empty < self.settings.max_empty_batches and self.scheduler.get_num_unfinished_requests() > 0

    def process(self, sampled: Mapping[str, list[int]]) -> None:
        """The output of the oldest step: the tokens sampled, by request; none for a request that is not named."""
        step = self.in_flight.popleft()
        self._do(self.scheduler.update_from_output, step, self._names.output(list(step.num_scheduled_tokens), sampled))

    def report(self, request_id: str) -> None:
        """A load's completion comes with the output of a step without tokens."""
        self._do(
            self.scheduler.update_from_output, self.empty_step(), self._names.output([], {}, finished_recving={request_id})
        )

    def abort(self, request_id: str) -> bool:
        """A client is gone; False where there is no such request, or it has ended."""
        request = self.scheduler.requests.get(request_id)
        if request is None or request.is_finished():
            return False
        self._do(self.scheduler.finish_requests, request_id, self._names.RequestStatus.FINISHED_ABORTED)
        return True

    def statistics(self) -> list[Any]:
        """What a request only counts with."""
        request = self.new_request("text", [1])
        return [getattr(request, name, None) for name in ("prefill_stats", "spec_decode_metrics")]

    def empty_step(self) -> Any:
        """A step without tokens."""
        return self._names.SchedulerOutput.make_empty()

    def hashes(self, prompt: Sequence[int]) -> Sequence[bytes]:
        """The hashes of the full blocks of a prompt."""
        return self.new_request("text", prompt).block_hashes

    def block_hash(self, block: Any) -> bytes:
        """The hash of a block, without its group."""
        return self._names.get_block_hash(block.block_hash)

    def looked_at_first(self) -> Any:
        """The queue that is looked at before `waiting`: since 0.33 of those that hold blocks, before of those skipped."""
        held = getattr(self.scheduler, "kv_holding_waiting", None)
        return self.scheduler.skipped_waiting if held is None else held

    def cached_block_ids(self) -> list[list[int]]:
        """The blocks that can be hit, by hash, first the one that is; the map has a block, or several by id."""
        entries = self.pool.cached_block_hash_to_block._cache.values()
        return [list(cast("dict[int, Any]", one)) if isinstance(one, dict) else [one.block_id] for one in entries]

    def check_references(self) -> None:
        """A reference given back twice stops nothing in the releases: here it counts as an error, so that it is seen."""
        for block in self.pool.blocks:
            if block.ref_cnt < 0 and not block.is_null and self.error is None:
                self.error = Stopped("DOUBLE_FREE", f"block {block.block_id} has the reference count {block.ref_cnt}")
                raise self.error

    def reset_prefix_cache(self, *, reset_running_requests: bool = False) -> bool:
        """Whether the prefix cache was reset."""
        return bool(self._do(self.scheduler.reset_prefix_cache, reset_running_requests=reset_running_requests))


class Names:
    """The release's classes that the engine's part needs."""

    def __init__(self) -> None:
        self.Request = import_module("vllm.v1.request").Request
        self.RequestStatus = import_module("vllm.v1.request").RequestStatus
        self.SamplingParams = import_module("vllm.sampling_params").SamplingParams
        self.SchedulerOutput = import_module("vllm.v1.core.sched.output").SchedulerOutput
        self.get_block_hash = import_module("vllm.v1.core.kv_cache_utils").get_block_hash
        outputs = import_module("vllm.v1.outputs")
        self.ModelRunnerOutput = outputs.ModelRunnerOutput
        self.KVConnectorOutput = outputs.KVConnectorOutput

    @staticmethod
    def hasher(block_size: int) -> Any:
        """The release's hash of full blocks, with its default algorithm."""
        sha256 = _seeded_sha256()
        return import_module("vllm.v1.core.kv_cache_utils").get_request_block_hasher(block_size, sha256)

    def output(self, request_ids: list[str], sampled: Mapping[str, list[int]], finished_recving: set[str] | None = None) -> Any:
        """What a worker returns for a step."""
        return self.ModelRunnerOutput(
            req_ids=request_ids,
            req_id_to_index={request_id: index for index, request_id in enumerate(request_ids)},
            sampled_token_ids=[sampled.get(request_id, []) for request_id in request_ids],
            logprobs=None,
            prompt_logprobs_dict={},
            pooler_output=[],
            kv_connector_output=self.KVConnectorOutput(finished_recving=finished_recving) if finished_recving else None,
        )


@cache
def _seeded_sha256() -> Any:
    """The default algorithm, once its first parent hash is set: that is one a process, and up to 0.25 a random one."""
    sha256 = import_module("vllm.utils.hashing").sha256
    import_module("vllm.v1.core.kv_cache_utils").init_none_hash(sha256)
    return sha256


def _kind(error: BaseException) -> str:
    """What an exception means, by where it was raised and what it says."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "INTERNAL"
    code = trace.tb_frame.f_code
    place = f"/{code.co_filename}:{code.co_name}"
    for kind, where, made, message in KINDS:
        if place.endswith(f"/{where}") and isinstance(error, made) and str(error).startswith(message):
            return kind
    return "INTERNAL"
