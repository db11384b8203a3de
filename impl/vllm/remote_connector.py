"""The connector that stands in for a transport: the first tokens of a prompt arrive by themselves, asynchronously.

A subclass of the release's own interface, made by its own factory: whatever the scheduler asks beyond this, the interface
answers. To be imported once a release is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

_base: Any = import_module("vllm.distributed.kv_transfer.kv_connector.v1.base")


class RemotePrefillConnector(_base.KVConnectorBase_V1, _base.SupportsHMA):  # pyright: ignore[reportUntypedBaseClass]
    """Loads a prompt up to its first `remote_tokens` tokens, once: at the request's first admission."""

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        super().__init__(vllm_config, role, kv_cache_config)  # pyright: ignore[reportUnknownMemberType]
        self.remote_tokens: int = vllm_config.kv_transfer_config.kv_connector_extra_config["remote_tokens"]

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> tuple[int, bool]:
        """Tokens that the remote side has beyond those computed, and that they arrive in their own time."""
        params: Mapping[str, Any] = request.kv_transfer_params or {}
        if not params.get("do_remote_prefill"):
            return 0, False
        tokens = max(0, min(request.num_prompt_tokens, self.remote_tokens) - num_computed_tokens)
        return tokens, tokens > 0

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        """The request was admitted, and does not ask again."""
        request.kv_transfer_params = None

    def build_connector_meta(self, scheduler_output: Any) -> Any:
        """Nothing: who drives the scheduler saw the loads start."""
        return None

    def request_finished(self, request: Any, block_ids: list[int]) -> tuple[bool, None]:
        """Blocks may be freed at once."""
        return False, None

    def request_finished_all_groups(self, request: Any, block_ids: tuple[list[int], ...]) -> tuple[bool, None]:
        """Blocks may be freed at once."""
        return False, None

    def start_load_kv(self, forward_context: Any, **_: Any) -> None:
        """The worker's side: there is none."""
        raise NotImplementedError

    def wait_for_layer_load(self, layer_name: str) -> None:
        """The worker's side: there is none."""
        raise NotImplementedError

    def save_kv_layer(self, layer_name: str, kv_layer: Any, attn_metadata: Any, **_: Any) -> None:
        """The worker's side: there is none."""
        raise NotImplementedError

    def wait_for_save(self) -> None:
        """The worker's side: there is none."""
        raise NotImplementedError
