"""All streams of KV events that the reference implementation can publish at tiny bounds, by trying every run of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fencepost.impl.drivers.reference import ReferenceDriver
from fencepost.spec.lang import BoundSpec, State

from .publishing import Event, Publishing, external

Told = tuple[Any, ...]
"""An event with its hashes numbered in the order in which the stream names them first."""
Batches = tuple[tuple[Told, ...], ...]


@dataclass(frozen=True)
class Run:
    """Where a run stands: the spec's state, the engine's as saved, what was published and what is still to be."""

    state: State
    saved: Any
    names: tuple[int, ...] = ()
    batches: Batches = ()
    pending: tuple[Told, ...] = ()


class Language:
    """The streams of at most `most` events, with all ways to end a batch early that a step without tokens may cause."""

    def __init__(self, bound: BoundSpec, most: int) -> None:
        self.bound, self.most = bound, most
        self.driver, self.publishing = ReferenceDriver(bound.values), Publishing()
        self.streams: set[Batches] = set()
        self.seen: set[Any] = set()
        self.runs: list[Run] = []
        with self.publishing.noting():
            self._add(Run(bound.initial()[0][2], self.driver.save()))
            while self.runs:
                self._go_on(self.runs.pop())

    def _add(self, run: Run) -> None:
        key = (run.state, run.batches, run.pending, *self._identities(run.names))
        if key in self.seen or sum(map(len, run.batches)) + len(run.pending) > self.most:
            return
        self.seen.add(key)
        self.runs.append(run)
        if not run.pending:
            self.streams.add(run.batches)

    def _identities(self, names: tuple[int, ...]) -> tuple[Any, ...]:
        """What the engine's hashes are called in the stream: of its blocks, and of each request's tokens."""
        engine = self.driver.engine
        blocks = engine.scheduler.kv_cache_manager.block_pool.blocks
        known = {name: number for number, name in enumerate(names)}
        requests = {
            life.r: tuple(known.get(external(one)) for one in engine.scheduler.requests[request_id].block_hashes)
            for request_id, life in self.driver.lives.items()
            if request_id in engine.scheduler.requests
        }
        hashed = [None if block.block_hash is None else known.get(external(block.block_hash)) for block in blocks]
        return tuple(hashed), tuple(sorted(requests.items()))

    def _go_on(self, run: Run) -> None:
        steps = list(self.bound.transitions(run.state))
        for rule, args, after in steps:
            self.driver.restore(run.saved)
            self.driver.take(rule.name, self.bound.arguments(rule, args))
            self._told(run, after, flushed=rule.name == "process")
        self.driver.restore(run.saved)
        pool = self.driver.engine.scheduler.kv_cache_manager.block_pool
        resets = any(rule.name == "reset_prefix_cache" for rule, _, _ in steps)
        if not resets and pool.get_num_free_blocks() == len(pool.blocks) - 1 and self.driver.engine.error is None:
            self.driver.engine.reset_prefix_cache()
            self._told(run, run.state, flushed=False)

    def _told(self, run: Run, after: State, *, flushed: bool) -> None:
        """Keep the run that goes on so: as it is, and with what was noted sent out."""
        noted = [event for batch in [*self.publishing.batches, self.publishing.events] for event in batch]
        self.publishing.batches.clear()
        self.publishing.events.clear()
        names = list(run.names)
        pending = (*run.pending, *(told(event, names) for event in noted))
        saved = self.driver.save()
        if pending:
            self._add(Run(after, saved, tuple(names), (*run.batches, pending)))
        if not flushed or not pending:
            self._add(Run(after, saved, tuple(names), run.batches, pending))


def told(event: Event, names: list[int]) -> Told:
    """An event by the numbers of its hashes, which are given to new ones."""
    hashes = [*event.get("block_hashes", ())]
    parent = event.get("parent_block_hash")
    for one in [*([parent] if parent is not None else []), *hashes]:
        if one not in names:
            names.append(one)
    before = None if parent is None else names.index(parent)
    return (event["type"], tuple(names.index(one) for one in hashes), before)


def renumbered(batches: Batches) -> Batches:
    """The same stream with its hashes numbered in order."""
    names: list[int] = []
    return tuple(tuple(told(event(one, 1), names) for one in batch) for batch in batches)


def event(one: Told, block_size: int) -> Event:
    """An event as it is recorded; the tokens of a block are named after its hash."""
    kind, hashes, parent = one
    if kind == "AllBlocksCleared":
        return {"type": kind}
    if kind == "BlockRemoved":
        return {"type": kind, "block_hashes": list(hashes)}
    return {
        "type": kind,
        "block_hashes": list(hashes),
        "parent_block_hash": parent,
        "token_ids": [number for number in hashes for _ in range(block_size)],
        "block_size": block_size,
    }
