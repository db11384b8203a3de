"""Block tables of one group of layers: what a request holds there, lacks there, and finds in the prefix cache."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from .block_pool import BlockPool
from .config import EngineConfig
from .kv_cache_utils import BlockHash, KVCacheBlock
from .request import Request


class SingleTypeKVCacheManager(ABC):
    """What all kinds of attention have in common: a table a request, in the order of its tokens."""

    __slots__ = ("_counts_hits", "block_pool", "block_size", "group_id", "req_to_blocks")

    def __init__(self, config: EngineConfig, block_pool: BlockPool, group_id: int) -> None:
        self.block_pool = block_pool
        self.block_size = config.block_size
        self.group_id = group_id
        self.req_to_blocks: dict[str, list[KVCacheBlock]] = {}
        self._counts_hits = config.mechanisms.capacity_counts_hits == "yes"

    def get_num_blocks_to_allocate(self, request_id: str, num_tokens: int, hits: Sequence[KVCacheBlock] = ()) -> int:
        """How many blocks shorter the free queue must get for the request to have so many tokens, given its hits.

        Blocks to be handed out, and hits that wait in the free queue, which they leave when they are pinned (#11565).
        """
        needed = self.num_missing_blocks(request_id, num_tokens, len(hits))
        if hits and not self._counts_hits:
            needed += sum(block.ref_cnt == 0 and not block.is_null for block in hits)
        return needed

    def num_missing_blocks(self, request_id: str, num_tokens: int, num_hits: int = 0) -> int:
        """Blocks that so many tokens need beyond those in the table and the hits."""
        missing = -(-num_tokens // self.block_size) - len(self.req_to_blocks.get(request_id, ())) - num_hits
        return missing if missing > 0 else 0

    def add_computed_blocks(self, request_id: str, hits: Sequence[KVCacheBlock]) -> None:
        """Put pinned hits at the front of a table that is empty so far."""
        if hits:
            self.req_to_blocks[request_id] = list(hits)

    def allocate_new_blocks(self, request_id: str, num_tokens: int) -> Sequence[KVCacheBlock]:
        """Hand out what the table lacks for so many tokens; returns the new blocks."""
        missing = self.num_missing_blocks(request_id, num_tokens)
        if missing == 0:
            return ()  # beyond the spec: where another group lacks blocks
        blocks = self.block_pool.get_new_blocks(missing)
        self.req_to_blocks.setdefault(request_id, []).extend(blocks)
        return blocks

    def cache_blocks(self, request: Request, num_tokens: int) -> None:
        """Hash all full blocks of the first `num_tokens` known tokens, before or after they are written.

        A table's hashed blocks are its first ones: a block that is held keeps its hash.
        """
        full = min(num_tokens, request.num_tokens) // self.block_size
        if full <= 0:
            return
        table = self.req_to_blocks[request.request_id]
        first = full
        while first > 0 and table[first - 1].block_hash is None:
            first -= 1
        if first < full:
            self.block_pool.cache_full_blocks(table[first:full], request.block_hashes[first:full], self.group_id)

    def pop_blocks_for_free(self, request_id: str) -> list[KVCacheBlock]:
        """Forget a request's table; returns its blocks, still referenced, in the order of their allocation."""
        return self.req_to_blocks.pop(request_id, [])

    def free(self, request_id: str) -> None:
        """Give a request's blocks back, so that its last block is reused first."""
        self.block_pool.free_blocks(reversed(self.pop_blocks_for_free(request_id)))

    @abstractmethod
    def find_longest_cache_hit(self, block_hashes: Sequence[BlockHash], max_length: int) -> list[KVCacheBlock]:
        """The cached blocks that a request with these hashes can begin with, of at most `max_length` tokens."""


class FullAttentionManager(SingleTypeKVCacheManager):
    """Every token attends to all before it: every block is needed to the end, and a hit is a run from the left."""

    __slots__ = ()

    def find_longest_cache_hit(self, block_hashes: Sequence[BlockHash], max_length: int) -> list[KVCacheBlock]:
        hits: list[KVCacheBlock] = []
        for block_hash in block_hashes[: max_length // self.block_size]:
            block = self.block_pool.get_cached_block(block_hash, self.group_id)
            if block is None:
                break
            hits.append(block)
        return hits
