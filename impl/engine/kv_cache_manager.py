"""The scheduler's view of KV memory: prefix hits, slots for tokens, frees; all groups draw from one pool."""

from __future__ import annotations

from collections.abc import Sequence

from .block_pool import BlockPool
from .config import EngineConfig
from .kv_cache_utils import KVCacheBlock, KVCacheBlocks, get_block_ids
from .request import Request
from .single_type_kv_cache_manager import FullAttentionManager, SingleTypeKVCacheManager


class KVCacheManager:
    """The block tables of all requests, one a group, over one block pool."""

    __slots__ = ("_no_blocks", "_pins_before_test", "block_pool", "enable_caching", "managers")

    def __init__(self, config: EngineConfig, num_groups: int = 1) -> None:
        self.block_pool = BlockPool(config)
        self.enable_caching = config.enable_prefix_caching
        self.managers: tuple[SingleTypeKVCacheManager, ...] = tuple(
            FullAttentionManager(config, self.block_pool, group_id) for group_id in range(num_groups)
        )
        self._pins_before_test = config.mechanisms.pin_before_test == "yes"
        self._no_blocks: KVCacheBlocks = ((),) * num_groups

    @property
    def num_free_blocks(self) -> int:
        """Blocks in the free queue."""
        return self.block_pool.get_num_free_blocks()

    def get_computed_blocks(self, request: Request) -> tuple[KVCacheBlocks, int]:
        """The request's prefix hits in each group, not pinned yet, and how many tokens they hold.

        The last known token is always computed, for there must be something to sample from. Groups that find less than
        others limit them, until all agree.
        """
        if not self.enable_caching:
            return self._no_blocks, 0
        length = request.num_tokens - 1
        while True:
            hits = tuple(manager.find_longest_cache_hit(request.block_hashes, length) for manager in self.managers)
            found = [len(blocks) * manager.block_size for manager, blocks in zip(self.managers, hits, strict=True)]
            length = min(found)
            if length == max(found):  # beyond the spec: where there are several groups
                return hits, length

    def allocate_slots(
        self,
        request: Request,
        num_new_tokens: int,
        *,
        num_new_computed_tokens: int = 0,
        new_computed_blocks: KVCacheBlocks | None = None,
        num_external_computed_tokens: int = 0,
        delay_cache_blocks: bool = False,
        full_sequence_must_fit: bool = False,
        reserved_blocks: int = 0,
        watermark: int = 0,
    ) -> KVCacheBlocks | None:
        """Give a request slots for `num_new_tokens` to be computed, and for those that need not be computed.

        The latter are its prefix hits (`new_computed_blocks`, of `num_new_computed_tokens`) and what a transfer brings.
        Returns the newly allocated blocks, or None, with no effect, if they do not fit beside `reserved_blocks` and
        `watermark`, or all known tokens do not fit beside the watermark although they must. Full blocks are hashed at
        once, unless that is to be delayed: others may hit them before they are written, in a later step of the stream.
        `PoolExhausted` only under the mechanism `capacity_counts_hits`.
        """
        hits = new_computed_blocks or self._no_blocks
        if self._pins_before_test:
            self._pin(hits)
        room = self.num_free_blocks - watermark
        if full_sequence_must_fit and self._num_blocks_to_allocate(request, request.num_tokens, hits) > room:
            return None
        num_computed = request.num_computed_tokens + num_new_computed_tokens + num_external_computed_tokens
        num_tokens = num_computed + num_new_tokens
        needed = self._num_blocks_to_allocate(request, num_tokens, hits)
        if needed > room - reserved_blocks:
            return None
        if new_computed_blocks is not None:
            self._adopt(request, hits)
        new_blocks = self._allocate(request, num_tokens) if needed > 0 else self._no_blocks
        if not delay_cache_blocks:
            self.cache_blocks(request, num_tokens)
        return new_blocks

    def num_missing_blocks(self, request: Request) -> int:
        """Blocks that the request lacks for its known tokens: what a reservation keeps for it."""
        return sum(manager.num_missing_blocks(request.request_id, request.num_tokens) for manager in self.managers)

    def cache_blocks(self, request: Request, num_tokens: int) -> None:
        """Hash all full blocks of the first `num_tokens` known tokens; nothing with caching off."""
        if self.enable_caching:
            for manager in self.managers:
                manager.cache_blocks(request, num_tokens)

    def free(self, request: Request) -> None:
        """Give a request's blocks back, last block first, one group after the other; nothing if it has none."""
        for manager in self.managers:
            manager.free(request.request_id)

    def pop_blocks_for_free(self, request: Request) -> list[KVCacheBlock]:
        """Forget a request's tables; returns their blocks, still referenced, in the order of their allocation."""
        return [block for manager in self.managers for block in manager.pop_blocks_for_free(request.request_id)]

    def free_popped(self, blocks: Sequence[KVCacheBlock]) -> None:
        """Give blocks back that were popped, last block first, in one call for all groups (0.25 on; see #48489)."""
        self.block_pool.free_blocks(reversed(blocks))

    def get_blocks(self, request_id: str) -> KVCacheBlocks:
        """The request's table in each group; empty where it has none."""
        return tuple(manager.req_to_blocks.get(request_id, ()) for manager in self.managers)

    def get_block_ids(self, request_id: str) -> tuple[list[int], ...]:
        """The ids of the blocks of the request's table in each group."""
        return get_block_ids(self.get_blocks(request_id))

    def reset_prefix_cache(self) -> bool:
        """Take every hash away; False, with no effect, while any block is held."""
        return self.block_pool.reset_prefix_cache()

    def _num_blocks_to_allocate(self, request: Request, num_tokens: int, hits: KVCacheBlocks) -> int:
        needed = 0
        for manager in self.managers:
            needed += manager.get_num_blocks_to_allocate(request.request_id, num_tokens, hits[manager.group_id])
        return needed

    def _allocate(self, request: Request, num_tokens: int) -> KVCacheBlocks:
        return tuple(manager.allocate_new_blocks(request.request_id, num_tokens) for manager in self.managers)

    def _adopt(self, request: Request, hits: KVCacheBlocks) -> None:
        """Pin all groups' hits before anything is allocated, which could evict them, and put them into the tables."""
        if not self._pins_before_test:
            self._pin(hits)
        for manager in self.managers:
            manager.add_computed_blocks(request.request_id, hits[manager.group_id])

    def _pin(self, hits: KVCacheBlocks) -> None:
        for blocks in hits:
            self.block_pool.touch(blocks)
