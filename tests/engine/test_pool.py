"""The block pool: order of reuse, eviction at hand-out, references; against a plain model."""

from __future__ import annotations

import pytest
from fencepost.impl.engine.block_pool import BlockPool
from fencepost.impl.engine.config import EngineConfig, Mechanisms
from fencepost.impl.engine.errors import DoubleFree, PoolExhausted
from fencepost.impl.engine.kv_cache_utils import KVCacheBlock, hash_block_tokens
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

TEXTS = [hash_block_tokens(None, (text,)) for text in range(4)]


def pool(blocks: int = 8, *, caching: bool = True, uncached: str = "head", cached: str = "split") -> BlockPool:
    """A pool with so many usable blocks."""
    mechanisms = Mechanisms.of({"uncached-free-order": uncached, "cached-free-order": cached})
    return BlockPool(EngineConfig(blocks + 1, enable_prefix_caching=caching, mechanisms=mechanisms))


def ids(blocks: list[KVCacheBlock]) -> list[int]:
    """The ids of blocks."""
    return [block.block_id for block in blocks]


def queue(of: BlockPool) -> list[int]:
    """The ids in the free queue, in order of reuse."""
    return ids(of.free_block_queue.get_all_free_blocks())


def test_all_blocks_but_the_null_block_are_free_in_id_order() -> None:
    new = pool(4)
    assert new.null_block is new.blocks[0]
    assert queue(new) == [1, 2, 3, 4]
    assert new.get_num_free_blocks() == 4


@pytest.mark.parametrize(
    ("caching", "uncached", "cached", "hashed", "expected"),
    [
        (False, "head", "split", 0, [3, 2, 1, 4, 5, 6, 7, 8]),
        (False, "head", "tail", 0, [3, 2, 1, 4, 5, 6, 7, 8]),
        (False, "tail", "split", 0, [4, 5, 6, 7, 8, 3, 2, 1]),
        (True, "head", "split", 2, [3, 4, 5, 6, 7, 8, 2, 1]),
        (True, "tail", "split", 0, [3, 2, 1, 4, 5, 6, 7, 8]),
        (True, "head", "tail", 2, [4, 5, 6, 7, 8, 3, 2, 1]),
    ],
)
def test_order_of_reuse(caching: bool, uncached: str, cached: str, hashed: int, expected: list[int]) -> None:
    """The order that the releases show for a request that held blocks 1, 2, 3 of 8."""
    a_pool = pool(caching=caching, uncached=uncached, cached=cached)
    table = a_pool.get_new_blocks(3)
    a_pool.cache_full_blocks(table[:hashed], TEXTS[:hashed], 0)
    a_pool.free_blocks(reversed(table))
    assert queue(a_pool) == expected


def test_a_freed_block_keeps_its_hash_until_it_is_handed_out() -> None:
    a_pool = pool(2)
    table = a_pool.get_new_blocks(2)
    a_pool.cache_full_blocks(table, TEXTS[:2], 0)
    a_pool.free_blocks(reversed(table))
    assert queue(a_pool) == [2, 1]
    assert [a_pool.get_cached_block(text, 0) for text in TEXTS[:2]] == table
    assert ids(a_pool.get_new_blocks(1)) == [2]
    assert table[1].block_hash is None
    assert [a_pool.get_cached_block(text, 0) for text in TEXTS[:2]] == [table[0], None]


def test_the_block_that_was_hashed_first_is_hit() -> None:
    a_pool = pool(3)
    table = a_pool.get_new_blocks(3)
    for block in (table[2], table[0], table[1]):
        a_pool.cache_full_blocks([block], TEXTS[:1], 0)
    for hit in (table[2], table[0], table[1]):
        assert a_pool.get_cached_block(TEXTS[0], 0) is hit
        a_pool.free_blocks([hit])
        assert a_pool.get_new_blocks(1) == [hit]
    assert a_pool.cached_block_hash_to_block == {}


def test_a_hash_is_found_in_its_own_group_only() -> None:
    a_pool = pool(1)
    table = a_pool.get_new_blocks(1)
    a_pool.cache_full_blocks(table, TEXTS[:1], 1)
    assert a_pool.get_cached_block(TEXTS[0], 0) is None
    assert a_pool.get_cached_block(TEXTS[0], 1) is table[0]


def test_too_many_blocks_are_refused_without_effect() -> None:
    a_pool = pool(2)
    with pytest.raises(PoolExhausted) as caught:
        a_pool.get_new_blocks(3)
    assert caught.value.kind == "ALLOCATION"
    assert queue(a_pool) == [1, 2]
    assert a_pool.take_new_block_ids() == []


def test_handed_out_ids_are_told_once() -> None:
    a_pool = pool(4)
    a_pool.get_new_blocks(1)
    a_pool.get_new_blocks(2)
    assert a_pool.take_new_block_ids() == [1, 2, 3]
    assert a_pool.take_new_block_ids() == []


def test_a_double_free_is_an_error() -> None:
    a_pool = pool(2)
    table = a_pool.get_new_blocks(1)
    a_pool.free_blocks(table)
    with pytest.raises(DoubleFree) as caught:
        a_pool.free_blocks(table)
    assert caught.value.kind == "DOUBLE_FREE"
    assert queue(a_pool) == [1, 2]


def test_the_null_block_is_neither_counted_nor_freed() -> None:
    a_pool = pool(2)
    a_pool.touch([a_pool.null_block])
    a_pool.free_blocks([a_pool.null_block, a_pool.null_block])
    assert a_pool.null_block.ref_cnt == 0
    assert queue(a_pool) == [1, 2]


class PoolMachine(RuleBasedStateMachine):
    """Random use of a pool by holders of tables, beside lists that say what must come out."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = pool(6)
        self.free = [1, 2, 3, 4, 5, 6]
        self.tables: list[list[KVCacheBlock]] = []
        self.hashed: list[tuple[int, int]] = []  # block id and text, in the order of hashing

    def refs(self, block_id: int) -> int:
        """How many tables name the block."""
        return sum(ids(table).count(block_id) for table in self.tables)

    @rule(n=st.integers(0, 7))
    def take(self, n: int) -> None:
        if n > len(self.free):
            with pytest.raises(PoolExhausted):
                self.pool.get_new_blocks(n)
            return
        table = self.pool.get_new_blocks(n)
        assert ids(table) == self.free[:n]
        self.hashed = [entry for entry in self.hashed if entry[0] not in self.free[:n]]
        self.free = self.free[n:]
        self.tables.append(table)

    @rule(texts=st.lists(st.integers(0, 3), unique=True))
    def hit(self, texts: list[int]) -> None:
        """A new table of cached blocks, as many as there are for the texts."""
        found = [self.pool.get_cached_block(TEXTS[text], 0) for text in texts]
        oldest = [next((block for block, other in self.hashed if other == text), None) for text in texts]
        table = [block for block in found if block is not None]
        assert ids(table) == [block for block in oldest if block is not None]
        self.pool.touch(table)
        self.free = [block_id for block_id in self.free if block_id not in ids(table)]
        self.tables.append(table)

    @precondition(lambda self: any(self.tables))
    @rule(data=st.data(), text=st.integers(0, 3))
    def hash_block(self, data: st.DataObject, text: int) -> None:
        block = data.draw(st.sampled_from([block for table in self.tables for block in table]))
        if block.block_hash is None:
            self.pool.cache_full_blocks([block], [TEXTS[text]], 0)
            self.hashed.append((block.block_id, text))

    @precondition(lambda self: self.tables)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        table = self.tables.pop(data.draw(st.integers(0, len(self.tables) - 1)))
        self.pool.free_blocks(reversed(table))
        freed = [block_id for block_id in reversed(ids(table)) if self.refs(block_id) == 0]
        kept = {block_id for block_id, _ in self.hashed}
        head = [block_id for block_id in freed if block_id not in kept]
        self.free = head + self.free + [block_id for block_id in freed if block_id in kept]

    @rule()
    def reset(self) -> None:
        done = self.pool.reset_prefix_cache()
        assert done == (len(self.free) == 6)
        if done:
            self.hashed = []

    @invariant()
    def agrees(self) -> None:
        assert queue(self.pool) == self.free
        assert self.pool.get_num_free_blocks() == len(self.free)
        assert [block.ref_cnt for block in self.pool.blocks[1:]] == [self.refs(block_id) for block_id in range(1, 7)]
        assert {block.block_id for block in self.pool.blocks if block.block_hash} == {block_id for block_id, _ in self.hashed}
        cached = [block_id for blocks in self.pool.cached_block_hash_to_block.values() for block_id in blocks]
        assert sorted(cached) == sorted(block_id for block_id, _ in self.hashed)


TestPoolMachine = PoolMachine.TestCase
TestPoolMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
