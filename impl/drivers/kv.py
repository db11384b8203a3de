"""What the drivers of KV engines share: lives of requests, the simulated worker, and what blocks and slots stand for.

The worker executes nothing; it remembers for each slot of KV memory what its content depends on. Blocks are numbered from
0 without the null block; a request is a member of the spec's index, and each life of it has an id of its own in the engine,
so that nothing of an ended one can be mistaken for the next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...traces.driver import ANYTHING, Refused, UpTo
from ..engine.simulated_worker import DeviceStep, Row, SimulatedWorker, Tag, prefix_tags
from . import kv_exhibit
from .contents import Contents
from .kv_names import STOP_TOKEN, Hash, Life, Prefix, by_position


def sizes(values: Mapping[str, int | str]) -> dict[str, Any]:
    """The sizes and policies that all engines have, under vLLM's names, from values of the KV spec's bounds."""

    def number(name: str) -> int:
        return int(values[name])

    return {
        "num_gpu_blocks": number("blocks") + 1,
        "block_size": number("block-size"),
        "max_num_seqs": number("max-num-seqs"),
        "max_num_batched_tokens": number("max-num-batched-tokens"),
        "enable_prefix_caching": bool(number("enable-prefix-caching")),
        "scheduler_reserve_full_isl": bool(number("scheduler-reserve-full-isl")),
        "watermark": number("watermark"),
        "async_scheduling": bool(number("async-scheduling")),
        "max_concurrent_batches": number("steps-in-flight"),
        "max_empty_batches": number("empty-steps"),
    }


class KVDriver(ABC):
    """A driver of an engine; `values` are those of all bounds and switches of the KV spec.

    An engine has a `scheduler` with the names that vLLM's has (`requests`, `running`), `abort` and `reset_prefix_cache`.
    """

    engine: Any

    def __init__(self, values: Mapping[str, int | str], *, fence: bool) -> None:
        self.block_size = int(values["block-size"])
        self.blocks = int(values["blocks"])
        self.caching = bool(int(values["enable-prefix-caching"]))
        self.max_tokens = int(values["max-tokens"])
        self.remote_tokens = int(values["remote-tokens"])
        self.own = int(values["prefix-groups"]) + 1
        self.has_fence = fence
        texts = [Life(0, 0, int(values["prompt-tokens"]), group) for group in range(1, self.own)]
        self.shared_tags: list[list[Tag]] = [[], *(prefix_tags(life.tokens()) for life in texts)]
        self.shared_hashes: dict[Hash, Prefix] = {}
        if self.caching:
            for life in texts:
                self.shared_hashes |= {found: (life.group, None, k) for k, found in enumerate(self.hashes(life))}

    def begin(self) -> None:
        """Forget everything, with a new worker."""
        self.worker = SimulatedWorker(self._sample)
        self.lives: dict[str, Life] = {}
        self.current: dict[int, str] = {}
        self.born = 0
        self.foreign = self.misread = False
        self.stops: frozenset[int] = frozenset()
        self._contents: Contents | None = None

    def new_life(self, r: int, prompt: int, group: int) -> Life:
        """A request of this length and text is submitted."""
        self.born += 1
        life = Life(r, self.born, prompt, group)
        self.lives[life.id] = life
        self.current[r] = life.id
        return life

    @property
    def quiet(self) -> frozenset[str]:
        """The actions that are refused, or change nothing, where the spec has them disabled."""
        return frozenset({"schedule", "abort", "reset_prefix_cache", "reset_running"})

    # What an engine says.

    @abstractmethod
    def hashes(self, life: Life) -> Sequence[Hash]:
        """The hashes that the engine gives to the full blocks of a prompt."""

    @abstractmethod
    def live(self) -> Mapping[str, Any]:
        """The requests that have not ended, by id."""

    @abstractmethod
    def outputs(self, request_id: str) -> int | None:
        """Output tokens known of a request; None if it is gone."""

    @abstractmethod
    def is_running(self, request_id: str) -> bool:
        """Whether a request is running."""

    def request_hashes(self) -> Iterator[tuple[str, Sequence[Hash]]]:
        """The hashes of the blocks of each request that has not ended."""
        return ((i, request.block_hashes) for i, request in self.live().items())

    @abstractmethod
    def tables(self) -> Iterator[tuple[str, list[int]]]:
        """The block ids of each request that holds any, in the order of its tokens."""

    @abstractmethod
    def hashed_blocks(self) -> Iterator[tuple[int, Hash]]:
        """The blocks that have a hash, by id."""

    def is_known(self, request_id: str) -> bool:
        """Whether the scheduler still has a request, ended or not."""
        return request_id in self.engine.scheduler.requests

    # Events that all engines take alike.

    def run_step(self) -> None:
        """The device runs a step; what it overwrites and what it reads is looked at."""
        step = next(step for step in self.worker.steps if not step.ran)
        self.foreign |= self.has_fence and self._writes_foreign_blocks(step)
        self.changed()
        self.worker.run_step()
        self.misread |= any(self._reads_junk(step, row) for row in step.rows)

    def land(self, r: int) -> None:
        """A load's bytes arrive, whoever has its blocks by now."""
        life = self.life_of_load(r)
        spec = self.worker.loads[life.id].spec
        if not self.is_known(life.id):
            self.foreign |= any(self.owned(block_id) for group in spec.block_ids for block_id in group)
        self.worker.land(life.id)

    def abort(self, r: int) -> None:
        """A client disconnects."""
        if r not in self.current or not self.engine.abort(self.current[r]):
            raise Refused("no such request, or it has ended")

    def reset_prefix_cache(self) -> None:
        """The cache is reset; not tried where only hashes that nobody can ask for are left: the spec has no such event."""
        if self.only_unaskable_hashes():
            raise Refused("nothing is cached that a request could hit")
        if not self.engine.reset_prefix_cache():
            raise Refused("blocks are held")

    def reset_running(self) -> None:
        """The cache is reset at the cost of the running requests; without any it is the plain reset."""
        if not self.engine.scheduler.running:
            raise Refused("nothing is running")
        if not self.engine.reset_prefix_cache(reset_running_requests=True):
            raise Refused("blocks would still be held")

    # What blocks and slots stand for.

    @property
    def contents(self) -> Contents:
        """What blocks stand for and hold in the state at hand."""
        if self._contents is None:
            self._contents = Contents(self)
        return self._contents

    def changed(self) -> None:
        """What blocks stand for has to be looked at again."""
        self._contents = None

    def prefix_of(self, life: Life, k: int) -> Prefix:
        """What a request's k-th block stands for: a shared text as far as the prompt fills the block, else its own."""
        if life.group and (k + 1) * self.block_size <= life.prompt:
            return life.group, None, k
        return self.own, life.r, k

    def owned(self, block_id: int) -> bool:
        """Whether a block is in somebody's table."""
        return any(block_id in table for _, table in self.tables())

    def life_of_load(self, r: int) -> Life:
        """The life of a request that has a load."""
        return next(self.lives[request_id] for request_id in self.worker.loads if self.lives[request_id].r == r)

    def _sample(self, request_id: str, /) -> int:
        life, known = self.lives[request_id], self.outputs(request_id)
        return STOP_TOKEN if known is None or life.r in self.stops else life.output_token(known)

    def _writes_foreign_blocks(self, step: DeviceStep) -> bool:
        size = self.block_size
        for row in step.rows:
            if not row.dropped:
                for k in range(row.start // size, -(-row.end // size)):
                    block_id = row.tables[0][k]
                    if not self.contents.expected_of(row.request_id, k, block_id) and self.owned(block_id):
                        return True
        return False

    def _reads_junk(self, step: DeviceStep, row: Row) -> bool:
        """Whether a request whose result is kept reads a slot that should be its own and holds something else."""
        if not self.is_running(row.request_id) or self._superseded(step, row):
            return False
        size = self.block_size
        contents = self.contents
        for k, block_id in enumerate(row.block_ids(size)[0]):
            needed = min(size, row.end - k * size)
            if contents.expected_of(row.request_id, k, block_id) and contents.good_slots(block_id) < needed:
                return True
        return False

    def _superseded(self, step: DeviceStep, row: Row) -> bool:
        """Whether a later step computes some of a row's tokens again: its request was preempted and resumed since."""
        steps = list(self.worker.steps)
        later = steps[steps.index(step) + 1 :]
        return any(other.request_id == row.request_id and other.start < row.end for s in later for other in s.rows)

    def only_unaskable_hashes(self) -> bool:
        """Whether no hash is left that a request could ask for: the spec has no reset of those."""
        return all(None is prefix[1] and prefix[0] == self.own for prefix in self.contents.prefixes.values())

    # What is shown.

    def _r(self, request: Any) -> int:
        return self.lives[request.request_id].r

    def exhibit(self, blocks: Sequence[int], requests: Sequence[int]) -> list[tuple[str, str]]:
        """What the engine's own objects say of these blocks and requests."""
        return kv_exhibit.exhibit(self, self.engine.scheduler, blocks, requests)

    def texts(self) -> dict[int, tuple[int, int]]:
        """Prompts of live requests, and of ended ones that something in flight may still write."""
        named = set(self.live())
        if self.caching:
            named |= {row.request_id for step in self.worker.steps for row in step.rows}
            named |= {i for i, load in self.worker.loads.items() if not load.landed and not self.is_known(i)}
        return dict(sorted((self.lives[i].r, (self.lives[i].prompt, self.lives[i].group)) for i in named))

    def prefixes(self) -> list[Prefix | None]:
        """For each usable block None, or what its hash stands for."""
        found = self.contents.prefixes
        return [found.get(block_id) for block_id in range(1, self.blocks + 1)]

    def hits(self, cached: Iterable[Sequence[int]]) -> list[tuple[Prefix, list[int]]]:
        """The prefixes that can be hit, each with its blocks; `cached` are the ids of blocks with equal hashes."""
        prefixes = self.contents.prefixes
        found = [(prefixes[ids[0]], [block_id - 1 for block_id in ids]) for ids in cached]
        return sorted(((p, b) for p, b in found if p[0] < self.own or p[1] is not None), key=lambda hit: by_position(hit[0]))

    def flight(self) -> list[dict[str, Any]]:
        """The steps not processed yet."""
        return [{"ran": step.ran, "rows": [self._row(row) for row in step.rows]} for step in self.worker.steps]

    def _row(self, row: Row) -> tuple[int, int, int, bool, list[int]]:
        blocks = [block_id - 1 for group in row.block_ids(self.block_size) for block_id in group]
        return self.lives[row.request_id].r, row.start, row.num_tokens, row.samples, blocks

    def content(self) -> list[Any]:
        """How far each block holds what it should, where anybody expects anything of it.

        The spec does not count what another request wrote, and of a shared text that may be what should be there.
        """
        contents = self.contents
        shown: list[Any] = [ANYTHING] * self.blocks
        for block_id in {*contents.holders, *contents.prefixes}:
            right = contents.right_slots(block_id)
            if right:
                good = right.index(False) if False in right else len(right)
                shown[block_id - 1] = UpTo(good) if contents.shares_text(block_id) else good
        return shown

    def loads(self, reported: Iterable[str]) -> dict[int, str]:
        """How far each load is; `reported` are the requests whose load is complete and not used yet."""
        found = {self.lives[i].r: "LANDED" if load.landed else "MOVING" for i, load in self.worker.loads.items()}
        return dict(sorted((found | {self.lives[i].r: "REPORTED" for i in reported}).items()))

    def orphans(self) -> dict[int, list[int]]:
        """Targets of loads, still to be written, that their requests gave back."""
        return {
            self.lives[request_id].r: [block_id - 1 for group in load.spec.block_ids for block_id in group]
            for request_id, load in self.worker.loads.items()
            if not load.landed and not self.is_known(request_id)
        }
