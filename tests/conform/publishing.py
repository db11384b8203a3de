"""KV events of the reference implementation: what vLLM would publish at the same places, as a recording in its encoding."""

from __future__ import annotations

import struct
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from fencepost.checker.conform.draw import Dice, Drawer
from fencepost.impl.drivers.reference import ReferenceDriver
from fencepost.impl.engine.block_pool import BlockPool
from fencepost.impl.engine.engine import Engine
from fencepost.impl.engine.request import Request
from fencepost.impl.engine.single_type_kv_cache_manager import SingleTypeKVCacheManager
from fencepost.spec.lang import BoundSpec

Event = dict[str, Any]


class Publishing:
    """Takes note of what changes in the prefix cache of engines, and of when it is published."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.batches: list[list[Event]] = []

    @contextmanager
    def noting(self) -> Generator[None]:
        """Take note while this lasts."""
        note = self.events.append
        cache_blocks, process = SingleTypeKVCacheManager.cache_blocks, Engine.process
        evict, reset = BlockPool._evict_hash, BlockPool.reset_prefix_cache  # pyright: ignore[reportPrivateUsage]

        def caching(manager: SingleTypeKVCacheManager, request: Request, num_tokens: int) -> None:
            table = manager.req_to_blocks.get(request.request_id, [])
            first = sum(block.block_hash is not None for block in table)
            cache_blocks(manager, request, num_tokens)
            last = sum(block.block_hash is not None for block in table)
            if last > first:
                note(stored(request, first, last, manager.block_size))

        def evicting(pool: BlockPool, block: Any) -> None:
            note({"type": "BlockRemoved", "block_hashes": [external(block.block_hash)], "medium": "GPU", "group_idx": 0})
            evict(pool, block)

        def resetting(pool: BlockPool) -> bool:
            done = reset(pool)
            if done:
                note({"type": "AllBlocksCleared"})
            return done

        def processing(engine: Engine) -> Any:
            outputs = process(engine)
            self.publish()
            return outputs

        with ExitStack() as stack:
            stack.enter_context(patch.object(SingleTypeKVCacheManager, "cache_blocks", caching))
            stack.enter_context(patch.object(BlockPool, "_evict_hash", evicting))
            stack.enter_context(patch.object(BlockPool, "reset_prefix_cache", resetting))
            stack.enter_context(patch.object(Engine, "process", processing))
            yield

    def publish(self) -> None:
        """What was noted goes out as one batch, as at the end of update_from_output."""
        if self.events:
            self.batches.append(list(self.events))
            self.events.clear()


def external(key: bytes) -> int:
    """A hash as it is published: the last 64 bits (v1/core/kv_cache_utils.py: maybe_convert_block_hash)."""
    return int.from_bytes(key[24:32], "big")


def stored(request: Request, first: int, last: int, block_size: int) -> Event:
    """BlockStored of a request's blocks from `first` to before `last`."""
    tokens = [*request.prompt_token_ids, *request.output_token_ids]
    hashes = [external(one) for one in request.block_hashes]
    return {
        "type": "BlockStored",
        "block_hashes": hashes[first:last],
        "parent_block_hash": hashes[first - 1] if first else None,
        "token_ids": tokens[first * block_size : last * block_size],
        "block_size": block_size,
        "lora_id": None,
        "medium": "GPU",
        "lora_name": None,
        "extra_keys": [None] * (last - first),
        "group_idx": 0,
    }


def reference_run(bound: BoundSpec, seed: int, transitions: int) -> list[list[Event]]:
    """The batches that the reference implementation publishes in a random run of the spec."""
    driver, publishing = ReferenceDriver(bound.values), Publishing()
    drawer = Drawer(bound, bound.after, Dice(seed))
    state = bound.initial()[0][2]
    with publishing.noting():
        for _ in range(transitions):
            drawn = drawer.draw(state)
            if drawn is None:
                break
            rule, args, state = drawn
            driver.take(rule.name, bound.arguments(rule, args))
    publishing.publish()
    return publishing.batches


ARRAYS = "0.23.0"
"""The release that writes events as arrays; later ones write maps."""


def plain(batch: list[Event], release: str = "") -> list[Any]:
    """A batch as it is encoded: events as arrays in 0.23.0, as maps later."""
    events = [list(event.values()) for event in batch] if release == ARRAYS else batch
    return [1700000000.25, events]


def frame(number: int, payload: bytes) -> bytes:
    """A batch as it is recorded."""
    return struct.pack(">QQ", number, len(payload)) + payload


def record(path: Path, batches: list[list[Event]], release: str = "") -> Path:
    """Write a recording."""
    import msgspec

    encode = msgspec.msgpack.encode
    path.write_bytes(b"".join(frame(number, encode(plain(batch, release))) for number, batch in enumerate(batches)))
    return path
