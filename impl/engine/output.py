"""What passes between scheduler, worker and client: a step to execute, its result, and what became of requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .request import Request

BlockIds = tuple[list[int], ...]
"""Ids of one request's blocks, in the order of its tokens, group by group."""


@dataclass(slots=True)
class NewRequestData:
    """A request that the worker does not know yet: `block_ids` is its whole table."""

    req_id: str
    prompt_token_ids: tuple[int, ...]
    block_ids: BlockIds
    num_computed_tokens: int


@dataclass(slots=True)
class CachedRequestData:
    """Requests that the worker knows, by columns.

    `new_block_ids` are to be appended to the table (None: none); of a request in `resumed_req_ids`, which comes back
    after a preemption, they are the whole table, and `all_token_ids` has its known tokens. `num_output_tokens` are the
    output tokens known to the scheduler: a step that reaches the last known token yields a new one.
    """

    req_ids: list[str] = field(default_factory=list[str])
    resumed_req_ids: set[str] = field(default_factory=set[str])
    all_token_ids: dict[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])
    new_block_ids: list[BlockIds | None] = field(default_factory=list[BlockIds | None])
    num_computed_tokens: list[int] = field(default_factory=list[int])
    num_output_tokens: list[int] = field(default_factory=list[int])

    def add(self, request: Request, new_block_ids: BlockIds | None) -> None:
        """Add a row, before the step's own tokens are counted as computed."""
        self.req_ids.append(request.request_id)
        self.new_block_ids.append(new_block_ids)
        self.num_computed_tokens.append(request.num_computed_tokens)
        self.num_output_tokens.append(len(request.output_token_ids))


@dataclass(slots=True)
class LoadSpec:
    """A remote load: the KV of the tokens at positions `start` to `start + num_tokens` - 1 goes into `block_ids`.

    `token_ids` are the tokens from position 0 to the last one loaded; `start` is a multiple of the block size.
    """

    request_id: str
    token_ids: tuple[int, ...]
    block_ids: BlockIds
    start: int
    num_tokens: int


@dataclass(slots=True)
class KVConnectorMetadata:
    """What the connector's scheduler side tells its worker side with a step."""

    loads: list[LoadSpec]


@dataclass(slots=True)
class SchedulerOutput:
    """One step: which tokens of which requests to compute, and what else the worker must know.

    `num_scheduled_tokens` is in scheduling order. `new_block_ids_to_zero` are the blocks handed out for this step, save
    the targets of loads, which a late zeroing would wipe (vLLM #48481). Requests in `finished_req_ids` and
    `preempted_req_ids` ended or were preempted since the step before.
    """

    scheduled_new_reqs: list[NewRequestData] = field(default_factory=list[NewRequestData])
    scheduled_cached_reqs: CachedRequestData = field(default_factory=CachedRequestData)
    num_scheduled_tokens: dict[str, int] = field(default_factory=dict[str, int])
    total_num_scheduled_tokens: int = 0
    new_block_ids_to_zero: list[int] = field(default_factory=list[int])
    finished_req_ids: list[str] = field(default_factory=list[str])
    preempted_req_ids: list[str] = field(default_factory=list[str])
    kv_connector_metadata: KVConnectorMetadata | None = None


@dataclass(slots=True)
class ModelRunnerOutput:
    """The result of a step: the sampled tokens of each request whose tokens it computed to the last known one."""

    sampled_token_ids: dict[str, list[int]]


@dataclass(slots=True)
class EngineCoreOutput:
    """What a client gets of a processed step: new tokens, and why its request ended if it did (`stop`, `length`)."""

    request_id: str
    new_token_ids: list[int]
    finish_reason: str | None
