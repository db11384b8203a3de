"""The block pool: who holds which block, the order of reuse, and the blocks that a hash can be found on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .config import EngineConfig
from .errors import DoubleFree
from .kv_cache_utils import (
    BlockHash,
    BlockHashWithGroupId,
    FreeKVCacheBlockQueue,
    KVCacheBlock,
    make_block_hash_with_group_id,
)


class BlockPool:
    """All blocks of the KV memory; every group of a model draws from it.

    Block 0 is the null block: it stands where a table has no block, is never free, and its references are not counted.
    A block keeps its hash when it is freed, and loses it when it is handed out again.
    """

    __slots__ = (
        "_new_block_ids",
        "_unhashed_to_head",
        "blocks",
        "cached_block_hash_to_block",
        "enable_caching",
        "free_block_queue",
        "null_block",
    )

    def __init__(self, config: EngineConfig) -> None:
        mechanisms = config.mechanisms
        self.enable_caching = config.enable_prefix_caching
        # With caching off no block has a hash, so that one rule serves for both settings (#42656, #48017, #51482).
        self._unhashed_to_head = (
            mechanisms.cached_free_order == "split" if self.enable_caching else mechanisms.uncached_free_order == "head"
        )
        self.blocks = [KVCacheBlock(block_id) for block_id in range(config.num_gpu_blocks)]
        self.free_block_queue = FreeKVCacheBlockQueue(self.blocks)
        self.null_block = self.free_block_queue.popleft()
        self.null_block.is_null = True
        # Blocks of one hash are not merged; the one that was hashed first is the one that is hit.
        self.cached_block_hash_to_block: dict[BlockHashWithGroupId, dict[int, KVCacheBlock]] = {}
        self._new_block_ids: list[int] = []

    def get_num_free_blocks(self) -> int:
        """Blocks in the free queue."""
        return self.free_block_queue.num_free_blocks

    def get_new_blocks(self, num_blocks: int) -> list[KVCacheBlock]:
        """Hand out the blocks next in order of reuse; `PoolExhausted`, with no effect, if there are too few."""
        blocks = self.free_block_queue.popleft_n(num_blocks)
        for block in blocks:
            if block.block_hash is not None:
                self._evict_hash(block)
            block.ref_cnt = 1
            self._new_block_ids.append(block.block_id)
        return blocks

    def take_new_block_ids(self) -> list[int]:
        """The ids of the blocks handed out since the last call, in order (what a worker may have to zero)."""
        ids = self._new_block_ids
        self._new_block_ids = []
        return ids

    def touch(self, blocks: Iterable[KVCacheBlock]) -> None:
        """Take a reference to each block, out of the free queue where it is in it."""
        for block in blocks:
            if block.is_null:
                continue  # beyond the spec: windows of attention; no other table has the null block
            if block.ref_cnt == 0:
                self.free_block_queue.remove(block)
            block.ref_cnt += 1

    def free_blocks(self, ordered_blocks: Iterable[KVCacheBlock]) -> None:
        """Give one reference to each block back; what nobody refers to any more is free, in this order of reuse.

        `DoubleFree` at a block that has no reference.
        """
        head: list[KVCacheBlock] = []
        tail: list[KVCacheBlock] = []
        for block in ordered_blocks:
            if block.is_null:
                continue  # beyond the spec: windows of attention; no other table has the null block
            if block.ref_cnt == 0:  # beyond the spec: no mechanism frees a block twice
                raise DoubleFree(f"block {block.block_id} is free already")
            block.ref_cnt -= 1
            if block.ref_cnt == 0:
                (head if self._unhashed_to_head and block.block_hash is None else tail).append(block)
        self.free_block_queue.prepend_n(head)
        self.free_block_queue.append_n(tail)

    def get_cached_block(self, block_hash: BlockHash, group_id: int) -> KVCacheBlock | None:
        """The block of the group that has had this hash longest; None if there is none."""
        blocks = self.cached_block_hash_to_block.get(make_block_hash_with_group_id(block_hash, group_id))
        return None if blocks is None else next(iter(blocks.values()))

    def cache_full_blocks(self, blocks: Sequence[KVCacheBlock], block_hashes: Sequence[BlockHash], group_id: int) -> None:
        """Give full blocks that have no hash theirs, so that they can be hit."""
        for block, block_hash in zip(blocks, block_hashes, strict=True):
            key = make_block_hash_with_group_id(block_hash, group_id)
            block.block_hash = key
            self.cached_block_hash_to_block.setdefault(key, {})[block.block_id] = block

    def reset_prefix_cache(self) -> bool:
        """Take every hash away; False, with no effect, while any block but the null block is held."""
        if self.get_num_free_blocks() < len(self.blocks) - 1:
            return False
        for blocks in self.cached_block_hash_to_block.values():
            for block in blocks.values():
                block.block_hash = None
        self.cached_block_hash_to_block.clear()
        return True

    def _evict_hash(self, block: KVCacheBlock) -> None:
        key = block.block_hash
        assert key is not None
        block.block_hash = None
        blocks = self.cached_block_hash_to_block[key]
        del blocks[block.block_id]
        if not blocks:
            del self.cached_block_hash_to_block[key]
