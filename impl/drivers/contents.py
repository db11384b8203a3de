"""What the blocks of an engine stand for, and how far they hold it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..engine.simulated_worker import Tag

if TYPE_CHECKING:
    from .kv import KVDriver
    from .kv_names import Life, Prefix


class Contents:
    """One state's blocks: `prefixes` has what the hash of each hashed block stands for, by block id.

    `holders` has the live request that has a block in its table, with the block's place there (of blocks without a hash
    there is at most one). A slot is right if it holds what its block stands for: the text of its hash, else its holder's.
    """

    def __init__(self, driver: KVDriver) -> None:
        self.driver = driver
        live = driver.live()
        self.holders = {
            block_id: (request_id, k)
            for request_id, table in driver.tables()
            if request_id in live
            for k, block_id in enumerate(table)
        }
        self.prefixes = self._prefixes() if driver.caching else {}
        self._right: dict[int, tuple[bool, ...]] = {}

    def _prefixes(self) -> dict[int, Prefix]:
        driver = self.driver
        known = dict(driver.shared_hashes)
        for request_id, hashes in driver.request_hashes():
            life = driver.lives[request_id]
            for k, block_hash in enumerate(hashes):
                known[block_hash] = driver.prefix_of(life, k)
        gone: Prefix = (driver.own, None, 0)
        return {block_id: known.get(block_hash, gone) for block_id, block_hash in driver.hashed_blocks()}

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
            first = block_id * self.driver.block_size
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
        size = driver.block_size
        prefix = self.prefixes.get(block_id)
        if prefix is not None:
            text, r, k = prefix
            if r is not None:
                return self._tags(driver.lives[driver.current[r]], k)
            return driver.shared_tags[text][k * size : (k + 1) * size] if text < driver.own else []
        holder = self.holders.get(block_id)
        return [] if holder is None else self._tags(driver.lives[holder[0]], holder[1])

    def _tags(self, life: Life, k: int) -> list[Tag]:
        """The tags of the tokens of a request's k-th block, as the simulated worker writes them."""
        size = self.driver.block_size
        prompt = self.driver.shared_tags[life.group] if life.group else life.tags
        return [prompt[p] if p < life.prompt else (life.id, p) for p in range(k * size, (k + 1) * size)]
