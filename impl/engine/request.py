"""A request as the scheduler sees it: its tokens, how many of them are computed, and which steps still name it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

from .kv_cache_utils import BlockHash, hash_block_tokens


class RequestStatus(IntEnum):
    """Where a request stands; everything after PREEMPTED is final."""

    WAITING = 0
    WAITING_FOR_REMOTE_KVS = 1
    RUNNING = 2
    PREEMPTED = 3
    FINISHED_STOPPED = 4
    FINISHED_LENGTH_CAPPED = 5
    FINISHED_ABORTED = 6

    @property
    def is_finished(self) -> bool:
        """Whether the request has ended, for whatever reason."""
        return self > RequestStatus.PREEMPTED


class Request:
    """One request: `prompt_token_ids` are given, at most `max_tokens` output tokens follow.

    It ends early at a token of `stop_token_ids`. `do_remote_prefill` says that a remote side can send KV of the prompt.
    `ValueError` for an empty prompt or no output token to come.
    """

    __slots__ = (
        "block_hashes",
        "do_remote_prefill",
        "drops_stale_outputs",
        "hash_block_size",
        "last_sched_seq",
        "max_tokens",
        "num_computed_tokens",
        "num_in_flight",
        "num_in_flight_tokens",
        "num_output_placeholders",
        "num_prompt_tokens",
        "num_stale_outputs",
        "num_tokens",
        "output_token_ids",
        "prompt_token_ids",
        "request_id",
        "status",
        "stop_token_ids",
    )

    def __init__(
        self,
        request_id: str,
        prompt_token_ids: Sequence[int],
        max_tokens: int,
        *,
        stop_token_ids: Iterable[int] = (),
        do_remote_prefill: bool = False,
    ) -> None:
        if not prompt_token_ids or max_tokens < 1:
            # beyond the spec: a client's mistake
            raise ValueError(f"request {request_id}: a prompt and at least one output token are needed")
        self.request_id = request_id
        self.prompt_token_ids = tuple(prompt_token_ids)
        self.max_tokens = max_tokens
        self.stop_token_ids = frozenset(stop_token_ids)
        self.do_remote_prefill = do_remote_prefill
        self.status = RequestStatus.WAITING
        self.num_prompt_tokens = len(self.prompt_token_ids)
        # Known tokens: the prompt's and the output's.
        self.num_tokens = self.num_prompt_tokens
        self.output_token_ids: list[int] = []
        # Tokens whose KV is computed once all steps scheduled so far have run; those of loads count from their start.
        self.num_computed_tokens = 0
        # Output tokens that steps in flight will yield (asynchronous scheduling).
        self.num_output_placeholders = 0
        # Steps in flight from before a preemption, whose output is late; and whether that output is dropped.
        self.num_stale_outputs = 0
        self.drops_stale_outputs = False
        # Steps in flight that name the request, and the tokens of it that they compute.
        self.num_in_flight = 0
        self.num_in_flight_tokens = 0
        # Sequence number of the last step that named it; 0: none did.
        self.last_sched_seq = 0
        # One hash a full block of known tokens, each chained to the one before; None tokens a block: nothing is hashed.
        self.hash_block_size: int | None = None
        self.block_hashes: list[BlockHash] = []

    def hash_blocks(self, hash_block_size: int | None) -> None:
        """Hash blocks of so many tokens from now on, those that are full already at once; None: no hash work."""
        self.hash_block_size = hash_block_size
        self.block_hashes = []
        self.update_block_hashes()

    def append_output_token_ids(self, token_ids: Sequence[int]) -> None:
        """Add sampled tokens, and the hashes of the blocks that they fill."""
        self.output_token_ids.extend(token_ids)
        self.num_tokens += len(token_ids)
        self.update_block_hashes()

    def update_block_hashes(self) -> None:
        """Hash the blocks that became full since the last call."""
        size = self.hash_block_size
        if size is None:
            return
        hashes = self.block_hashes
        start = len(hashes) * size
        while start + size <= self.num_tokens:
            hashes.append(hash_block_tokens(hashes[-1] if hashes else None, self.token_ids(start, start + size)))
            start += size

    def token_ids(self, start: int, end: int) -> Sequence[int]:
        """The known tokens at positions start to end - 1."""
        prompt = self.num_prompt_tokens
        if end <= prompt:
            return self.prompt_token_ids[start:end]
        return (*self.prompt_token_ids[start:prompt], *self.output_token_ids[max(0, start - prompt) : end - prompt])
