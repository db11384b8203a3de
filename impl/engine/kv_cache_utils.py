"""Blocks, the free queue that is threaded through them, and block hashes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from struct import pack
from typing import NewType

from .errors import PoolExhausted

BlockHash = NewType("BlockHash", bytes)
"""What the tokens up to the end of a full block hash to, 32 bytes."""

BlockHashWithGroupId = NewType("BlockHashWithGroupId", bytes)
"""A block hash and the group whose KV the block holds: the key of the prefix cache, 36 bytes."""

NONE_HASH = BlockHash(bytes(32))
"""What the first block of a sequence is chained to."""


class KVCacheBlock:
    """One block of KV memory: how many refer to it, its hash if it has one, its neighbours while it is in the free queue."""

    __slots__ = ("block_hash", "block_id", "is_null", "next_free_block", "prev_free_block", "ref_cnt")

    def __init__(self, block_id: int) -> None:
        self.block_id = block_id
        self.ref_cnt = 0
        self.block_hash: BlockHashWithGroupId | None = None
        self.is_null = False
        self.prev_free_block: KVCacheBlock | None = None
        self.next_free_block: KVCacheBlock | None = None


KVCacheBlocks = tuple[Sequence[KVCacheBlock], ...]
"""Blocks of one request, in the order of its tokens, group by group."""


def get_block_ids(blocks: KVCacheBlocks) -> tuple[list[int], ...]:
    """The ids of the blocks of each group."""
    return tuple([block.block_id for block in group] for group in blocks)


class FreeKVCacheBlockQueue:
    """The free blocks in the order of reuse: a doubly linked list through the blocks, closed by one that is no block.

    The blocks are given in their first order. Every operation costs the blocks it moves, wherever they are.
    """

    __slots__ = ("_end", "num_free_blocks")

    def __init__(self, blocks: Iterable[KVCacheBlock]) -> None:
        self._end = KVCacheBlock(-1)
        self._end.prev_free_block = self._end.next_free_block = self._end
        self.num_free_blocks = 0
        self.append_n(blocks)

    def popleft(self) -> KVCacheBlock:
        """Take the first block; `PoolExhausted` if there is none."""
        return self.popleft_n(1)[0]

    def popleft_n(self, n: int) -> list[KVCacheBlock]:
        """Take the first n blocks, in order; `PoolExhausted`, with no effect, if there are fewer."""
        if n > self.num_free_blocks:
            raise PoolExhausted(f"{n} blocks wanted, {self.num_free_blocks} free")
        taken: list[KVCacheBlock] = []
        block = self._end.next_free_block
        for _ in range(n):
            assert block is not None
            taken.append(block)
            following = block.next_free_block
            block.prev_free_block = block.next_free_block = None
            block = following
        assert block is not None
        self._end.next_free_block = block
        block.prev_free_block = self._end
        self.num_free_blocks -= n
        return taken

    def remove(self, block: KVCacheBlock) -> None:
        """Take a block out, wherever it is; it must be in the queue."""
        before, after = block.prev_free_block, block.next_free_block
        assert before is not None, f"block {block.block_id} is not in the free queue"
        assert after is not None
        before.next_free_block = after
        after.prev_free_block = before
        block.prev_free_block = block.next_free_block = None
        self.num_free_blocks -= 1

    def append_n(self, blocks: Iterable[KVCacheBlock]) -> None:
        """Put blocks behind all others, in the given order."""
        last = self._end.prev_free_block
        assert last is not None
        self._insert_after(last, blocks)

    def prepend_n(self, blocks: Iterable[KVCacheBlock]) -> None:
        """Put blocks in front of all others, in the given order: the first of them is the next to be reused."""
        self._insert_after(self._end, blocks)

    def get_all_free_blocks(self) -> list[KVCacheBlock]:  # beyond the spec: for who looks on
        """All blocks of the queue, in order of reuse."""
        blocks: list[KVCacheBlock] = []
        block = self._end.next_free_block
        while block is not None and block is not self._end:
            blocks.append(block)
            block = block.next_free_block
        return blocks

    def _insert_after(self, place: KVCacheBlock, blocks: Iterable[KVCacheBlock]) -> None:
        after = place.next_free_block
        assert after is not None
        for block in blocks:
            place.next_free_block = block
            block.prev_free_block = place
            place = block
            self.num_free_blocks += 1
        place.next_free_block = after
        after.prev_free_block = place


def hash_block_tokens(parent: BlockHash | None, token_ids: Sequence[int]) -> BlockHash:
    """The hash of a full block, chained to that of the block before it (None: it is the first)."""
    return BlockHash(sha256((parent or NONE_HASH) + pack(f"<{len(token_ids)}q", *token_ids)).digest())


def make_block_hash_with_group_id(block_hash: BlockHash, group_id: int) -> BlockHashWithGroupId:
    """The key under which a group's block with this hash is cached."""
    return BlockHashWithGroupId(block_hash + group_id.to_bytes(4, "big"))


def get_block_hash(key: BlockHashWithGroupId) -> BlockHash:
    """The hash without the group."""
    return BlockHash(key[:-4])
