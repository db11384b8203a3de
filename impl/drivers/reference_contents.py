"""What the blocks of a reference engine stand for, and how far they hold it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..engine.kv_cache_utils import get_block_hash
from ..engine.simulated_worker import Tag

if TYPE_CHECKING:
    from .reference import ReferenceDriver
    from .reference_names import Life, Prefix


class Contents:
    """One state's blocks: `prefixes` has what the hash of each hashed block stands for, by block id.

    `holders` has the live request that has a block in its table, with the block's place there (of blocks without a hash
    there is at most one). A slot is right if it holds what its block stands for: the text of its hash, else its holder's.
    """

    def __init__(self, driver: ReferenceDriver) -> None:
        self.driver = driver
        self.holders: dict[int, tuple[str, int]] = {}
        scheduler = driver.engine.scheduler
        for manager in scheduler.kv_cache_manager.managers:
            for request_id, table in manager.req_to_blocks.items():
                if not scheduler.requests[request_id].status.is_finished:
                    for k, block in enumerate(table):
                        self.holders[block.block_id] = request_id, k
        self.prefixes = self._prefixes() if driver.config.enable_prefix_caching else {}
        self._right: dict[int, tuple[bool, ...]] = {}

    def _prefixes(self) -> dict[int, Prefix]:
        driver = self.driver
        known = dict(driver.shared_hashes())
        for request in driver.engine.scheduler.requests.values():
            if not request.status.is_finished:
                life = driver.lives[request.request_id]
                for k, block_hash in enumerate(request.block_hashes):
                    known[block_hash] = driver.prefix_of(life, k)
        gone: Prefix = (driver.own, None, 0)
        blocks = driver.engine.scheduler.kv_cache_manager.block_pool.blocks
        return {b.block_id: known.get(get_block_hash(b.block_hash), gone) for b in blocks if b.block_hash is not None}

    def expected_of(self, request_id: str, k: int, block_id: int) -> bool:
        """Whether a block's content, as far as anybody wants it, is that of a request's k-th block."""
        prefix = self.prefixes.get(block_id)
        if prefix is not None:
            return prefix == self.driver.prefix_of(self.driver.lives[request_id], k)
        return self.holders.get(block_id) == (request_id, k)

    def right_slots(self, block_id: int) -> tuple[bool, ...]:
        """For each slot of a block whether it is right; empty where nobody expects anything of it."""
        found = self._right.get(block_id)
        if found is None:
            first = block_id * self.driver.config.block_size
            slots = self.driver.worker.slots
            found = tuple([slots[first + i] == tag for i, tag in enumerate(self._expected(block_id))])
            self._right[block_id] = found
        return found

    def good_slots(self, block_id: int) -> int:
        """How many leading slots of a block are right."""
        right = self.right_slots(block_id)
        return right.index(False) if False in right else len(right)

    def shares_text(self, block_id: int) -> bool:
        """Whether other requests may have written what a block stands for, or a part of it."""
        prefix = self.prefixes.get(block_id)
        if prefix is not None and prefix[0] < self.driver.own:
            return True
        holder = self.holders.get(block_id)
        return holder is not None and self.driver.lives[holder[0]].group > 0

    def _expected(self, block_id: int) -> list[Tag]:
        driver = self.driver
        size = driver.config.block_size
        prefix = self.prefixes.get(block_id)
        if prefix is not None:
            text, r, k = prefix
            if r is not None:
                return self._tags(driver.lives[driver.current[r]], k)
            return driver.shared_tags(text)[k * size : (k + 1) * size] if text < driver.own else []
        holder = self.holders.get(block_id)
        return [] if holder is None else self._tags(driver.lives[holder[0]], holder[1])

    def _tags(self, life: Life, k: int) -> list[Tag]:
        """The tags of the tokens of a request's k-th block, as the simulated worker writes them."""
        size = self.driver.config.block_size
        prompt = self.driver.shared_tags(life.group) if life.group else life.tags
        return [prompt[p] if p < life.prompt else (life.id, p) for p in range(k * size, (k + 1) * size)]
