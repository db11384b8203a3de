"""The free queue against a plain list, and block hashes."""

from __future__ import annotations

import pytest
from fencepost.impl.engine.errors import PoolExhausted
from fencepost.impl.engine.kv_cache_utils import (
    FreeKVCacheBlockQueue,
    KVCacheBlock,
    get_block_hash,
    hash_block_tokens,
    make_block_hash_with_group_id,
)
from fencepost.impl.engine.request import Request
from hypothesis import given, settings
from hypothesis import strategies as st

OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["popleft", "popleft_n", "remove", "append_n", "prepend_n"]), st.integers(0, 5)),
    max_size=40,
)


def backwards(queue: FreeKVCacheBlockQueue, blocks: list[KVCacheBlock]) -> list[int]:
    """The ids of the free blocks, walked from the end; the links back are checked by nothing else."""
    ids: list[int] = []
    block = blocks[-1] if blocks else None
    while block is not None and block.block_id >= 0:
        ids.append(block.block_id)
        block = block.prev_free_block
    assert len(ids) == queue.num_free_blocks
    return ids


@settings(max_examples=200, deadline=None)
@given(size=st.integers(0, 8), operations=OPERATIONS)
def test_the_queue_is_a_list(size: int, operations: list[tuple[str, int]]) -> None:
    out: list[KVCacheBlock] = []
    model = [KVCacheBlock(block_id) for block_id in range(size)]
    queue = FreeKVCacheBlockQueue(model)
    for name, n in operations:
        match name:
            case "popleft" if model:
                assert queue.popleft() is model[0]
                out.append(model.pop(0))
            case "popleft_n" if n <= len(model):
                assert queue.popleft_n(n) == model[:n]
                out, model = out + model[:n], model[n:]
            case "remove" if n < len(model):
                queue.remove(model[n])
                out.append(model.pop(n))
            case "append_n":
                queue.append_n(out[:n])
                out, model = out[n:], model + out[:n]
            case "prepend_n":
                queue.prepend_n(out[:n])
                out, model = out[n:], out[:n] + model
            case _:
                with pytest.raises((PoolExhausted, AssertionError)):
                    queue.remove(out[0]) if name == "remove" and out else queue.popleft_n(len(model) + 1)
        assert queue.get_all_free_blocks() == model
        assert queue.num_free_blocks == len(model)
        assert backwards(queue, model) == [block.block_id for block in reversed(model)]
        assert all(block.prev_free_block is None and block.next_free_block is None for block in out)


def test_a_hash_is_chained_to_everything_before_it() -> None:
    first = hash_block_tokens(None, (1, 2))
    assert len(first) == 32
    assert hash_block_tokens(first, (3, 4)) == hash_block_tokens(hash_block_tokens(None, [1, 2]), [3, 4])
    others = [hash_block_tokens(None, (3, 4)), hash_block_tokens(hash_block_tokens(None, (2, 1)), (3, 4))]
    assert len({first, hash_block_tokens(first, (3, 4)), *others}) == 4


def test_a_key_names_hash_and_group() -> None:
    block_hash = hash_block_tokens(None, (1,))
    keys = [make_block_hash_with_group_id(block_hash, group_id) for group_id in range(300)]
    assert len(set(keys)) == 300
    assert {get_block_hash(key) for key in keys} == {block_hash}


@given(prompt=st.lists(st.integers(0, 2**40), min_size=1, max_size=9), sizes=st.lists(st.integers(0, 4), max_size=5))
@settings(max_examples=50, deadline=None)
def test_hashes_grow_with_the_tokens(prompt: list[int], sizes: list[int]) -> None:
    """Tokens that come one by one, in pieces or all at once give the same hashes, across the prompt's end too."""
    request = Request("a", prompt, 99)
    request.hash_blocks(3)
    for size in sizes:
        request.append_output_token_ids(range(size))
    tokens = [*prompt, *request.output_token_ids]
    assert request.num_tokens == len(tokens)
    assert len(request.block_hashes) == len(tokens) // 3
    at_once = Request("b", tokens, 1)
    at_once.hash_blocks(3)
    assert request.block_hashes == at_once.block_hashes


def test_without_caching_nothing_is_hashed() -> None:
    request = Request("a", [1, 2, 3], 4)
    request.hash_blocks(None)
    request.append_output_token_ids([4])
    assert request.block_hashes == []


@pytest.mark.parametrize(("prompt", "max_tokens"), [([], 1), ([1], 0)])
def test_an_empty_request_is_refused(prompt: list[int], max_tokens: int) -> None:
    with pytest.raises(ValueError, match="request a: "):
        Request("a", prompt, max_tokens)
