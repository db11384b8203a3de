"""The scheduler's side of a KV connector: what can be loaded from elsewhere, and the loads of a step."""

from __future__ import annotations

from typing import Protocol

from .output import BlockIds, KVConnectorMetadata, LoadSpec
from .request import Request


class KVConnector(Protocol):
    """What the scheduler asks of a connector (vLLM: KVConnectorBase_V1, scheduler side); all loads are asynchronous."""

    def get_num_new_matched_tokens(self, request: Request, num_computed_tokens: int) -> int:
        """Tokens that can be loaded beyond those computed already; has no effect, and may be asked again."""
        ...

    def update_state_after_alloc(self, request: Request, new_block_ids: BlockIds, num_external_tokens: int) -> None:
        """The request was admitted; into the new blocks go so many of its tokens (0: nothing is loaded).

        The request's computed tokens count those of the load already.
        """
        ...

    def build_connector_meta(self) -> KVConnectorMetadata:
        """The loads that begin with the step being built."""
        ...


class RemotePrefillConnector:
    """Loads the prompt of a request that says so, up to its first `remote_tokens` tokens, once: at its first admission."""

    __slots__ = ("_loads", "remote_tokens")

    def __init__(self, remote_tokens: int) -> None:
        self.remote_tokens = remote_tokens
        self._loads: list[LoadSpec] = []

    def get_num_new_matched_tokens(self, request: Request, num_computed_tokens: int) -> int:
        """Tokens of the prompt that the remote side has and this one has not."""
        if not request.do_remote_prefill:
            return 0
        return max(0, min(request.num_prompt_tokens, self.remote_tokens) - num_computed_tokens)

    def update_state_after_alloc(self, request: Request, new_block_ids: BlockIds, num_external_tokens: int) -> None:
        """Remember the load, and that the request does not ask again."""
        request.do_remote_prefill = False
        if num_external_tokens > 0:
            end = request.num_computed_tokens
            tokens = request.prompt_token_ids[:end]
            start = end - num_external_tokens
            self._loads.append(LoadSpec(request.request_id, tokens, new_block_ids, start, num_external_tokens))

    def build_connector_meta(self) -> KVConnectorMetadata:
        """Hand out the loads remembered since the last call."""
        loads = self._loads
        self._loads = []
        return KVConnectorMetadata(loads)
