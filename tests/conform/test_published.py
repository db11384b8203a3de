"""Recordings of KV events against every run of the reference implementation at tiny bounds, and against longer runs of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import pytest
from fencepost.checker.cli.kvdata import profile
from fencepost.checker.conform.errors import ConformError
from fencepost.checker.conform.kv_events import Batch, Recording, read
from fencepost.checker.conform.log import LogError
from fencepost.checker.conform.published import Explanation, explain
from fencepost.checker.model import Limits
from fencepost.checker.result import Verdict
from fencepost.spec.kv.events import CacheEvents
from fencepost.spec.lang import BoundSpec, load_file, load_module
from fencepost.traces.trace import follow

from .languages import Batches, Language, Told, event, renumbered
from .publishing import ARRAYS, Event, record, reference_run

KV = load_module("fencepost.spec.kv.kv", "kv")
LENDING = Path(__file__).resolve().parents[1] / "cli/specs/lending.py"
ONE = {"requests": 1, "blocks": 2, "block-size": 1, "prompt-tokens": 2, "max-tokens": 1}
TWO = {"requests": 2, "blocks": 2, "block-size": 1, "prompt-tokens": 1, "max-tokens": 1, "steps-in-flight": 1}
PAIRS = {"requests": 2, "blocks": 4, "block-size": 2, "prompt-tokens": 4}


@lru_cache
def bound(**values: int | str) -> BoundSpec:
    """The KV spec with its prefix cache on."""
    return BoundSpec(KV, {"enable-prefix-caching": 1, **{name.replace("_", "-"): value for name, value in values.items()}})


def bound_at(values: dict[str, int]) -> BoundSpec:
    return bound(**{name.replace("-", "_"): value for name, value in values.items()})


@lru_cache
def language(values: tuple[tuple[str, int], ...], most: int) -> Language:
    return Language(bound_at(dict(values)), most)


def recording(batches: list[list[Event]]) -> Recording:
    """What is read of batches that were published."""
    made = [Batch(number, tuple(frozen(one) for one in batch)) for number, batch in enumerate(batches)]
    return Recording(Path("events"), made)


def frozen(one: Event) -> Event:
    return {name: tuple(cast("list[Any]", value)) if isinstance(value, list) else value for name, value in one.items()}


def verdict_of(stream: Batches, at: BoundSpec) -> Explanation:
    size = int(at.values["block-size"])
    return explain(recording([[event(one, size) for one in batch] for batch in stream]), at)


def drop(stream: list[list[Told]], rng: random.Random) -> None:
    batch = rng.choice(stream)
    del batch[rng.randrange(len(batch))]


def swap(stream: list[list[Told]], rng: random.Random) -> None:
    flat = [(i, j) for i, batch in enumerate(stream) for j in range(len(batch))]
    if len(flat) > 1:
        k = rng.randrange(len(flat) - 1)
        (i, j), (m, n) = flat[k], flat[k + 1]
        stream[i][j], stream[m][n] = stream[m][n], stream[i][j]


def rehash(stream: list[list[Told]], rng: random.Random) -> None:
    batch = rng.choice(stream)
    j = rng.randrange(len(batch))
    kind, hashes, parent = batch[j]
    batch[j] = (kind, tuple(rng.randrange(3) for _ in hashes), parent)


def adopt(stream: list[list[Told]], rng: random.Random) -> None:
    batch = rng.choice(stream)
    j = rng.randrange(len(batch))
    kind, hashes, _ = batch[j]
    batch[j] = (kind, hashes, rng.choice([None, 0, 1]) if kind == "BlockStored" else None)


def repeat(stream: list[list[Told]], rng: random.Random) -> None:
    batch = rng.choice(stream)
    batch.append(rng.choice(batch))


def clear(stream: list[list[Told]], rng: random.Random) -> None:
    rng.choice(stream).append(("AllBlocksCleared", (), None))


def merge(stream: list[list[Told]], rng: random.Random) -> None:
    if len(stream) > 1:
        i = rng.randrange(len(stream) - 1)
        stream[i : i + 2] = [stream[i] + stream[i + 1]]


def split(stream: list[list[Told]], rng: random.Random) -> None:
    i = rng.randrange(len(stream))
    if len(stream[i]) > 1:
        j = rng.randrange(1, len(stream[i]))
        stream[i : i + 1] = [stream[i][:j], stream[i][j:]]


CHANGES: list[Callable[[list[list[Told]], random.Random], None]] = [drop, swap, rehash, adopt, repeat, clear, merge, split]


def sensible(stream: Batches) -> bool:
    """Whether one hash always stands for one prefix, and one prefix has one hash, as the tokens made for it say."""
    return all(len(set(hashes)) == len(hashes) and parent not in hashes for batch in stream for _, hashes, parent in batch)


@pytest.mark.parametrize(
    ("values", "most"),
    [pytest.param(ONE, 3, id="one request"), pytest.param(TWO, 3, id="two requests", marks=pytest.mark.slow)],
)
def test_exactly_the_streams_of_the_reference_implementation_hold(values: dict[str, int], most: int) -> None:
    known, at, rng = language(tuple(values.items()), most).streams, bound_at(values), random.Random(5)
    published = [stream for stream in sorted(known, key=repr) if stream]
    others: dict[Batches, None] = {}
    while len(others) < 16:
        stream = [list(batch) for batch in rng.choice([*published, *others])]
        rng.choice(CHANGES)(stream, rng)
        made = renumbered(tuple(tuple(batch) for batch in stream if batch))
        if made not in known and sum(map(len, made)) <= most and sensible(made):
            others[made] = None
    for stream in rng.sample(published, 16):
        assert verdict_of(stream, at).verdict is Verdict.HOLDS, stream
    for stream in others:
        assert verdict_of(stream, at).verdict is Verdict.VIOLATED, stream


@pytest.mark.parametrize("release", ["0.23.0", "0.33.0"])
@pytest.mark.parametrize("seed", [0, pytest.param(4, marks=pytest.mark.slow)])
def test_longer_runs_of_the_reference_implementation_hold(seed: int, release: str, tmp_path: Path) -> None:
    at = bound_at_profile(release)
    made = read(record(tmp_path / "events.bin", reference_run(at, seed, 100), ARRAYS if release == "0.23.0" else ""))
    found = explain(made, at)
    assert found.verdict is Verdict.HOLDS
    assert found.events == len(made.events) > 15
    assert found.batches == len(made.batches)


def test_what_one_release_publishes_need_not_be_what_another_does() -> None:
    """With caching on 0.23 frees all blocks to the tail of the queue, later releases those without a hash to the head."""
    old, new = (bound_at_profile(release) for release in ("0.23.0", "0.33.0"))
    made = recording(reference_run(old, 1, 40))
    assert explain(made, old).verdict is Verdict.HOLDS
    assert explain(made, new).verdict is Verdict.VIOLATED


def bound_at_profile(release: str) -> BoundSpec:
    return BoundSpec(KV, {"enable-prefix-caching": 1, **PAIRS, **profile(f"vllm-{release[:4]}").switches})


class TestEvents:
    """What one event more or less changes, in a stream of two requests with one text of two blocks."""

    FIRST: Told = ("BlockStored", (0, 1), None)
    BOUND = bound(requests=2, blocks=3, block_size=1, prompt_tokens=2, max_tokens=1, aborts=0)

    def found(self, *batches: tuple[Told, ...]) -> Explanation:
        return verdict_of(batches, self.BOUND)

    def lost(self, *batches: tuple[Told, ...]) -> tuple[int, int, str | None]:
        found = self.found(*batches).unpublished
        assert found is not None
        return found.batch, found.event, found.words

    def test_it_holds(self) -> None:
        found = self.found((self.FIRST,), (("BlockStored", (1,), 0),))
        assert (found.verdict, found.events, found.batches) == (Verdict.HOLDS, 2, 2)

    def test_a_hash_goes_only_where_its_block_is_handed_out(self) -> None:
        assert self.lost((self.FIRST, ("BlockRemoved", (0,), None))) == (0, 2, "BlockRemoved of 0")

    def test_removed_before_stored(self) -> None:
        assert self.lost((("BlockRemoved", (7,), None),), (self.FIRST,)) == (0, 1, "BlockRemoved of 7 (it was never stored)")

    def test_the_order_of_eviction(self) -> None:
        others: Told = ("BlockStored", (2, 3), None)
        assert self.found((self.FIRST,), (("BlockRemoved", (1,), None), others)).verdict is Verdict.HOLDS
        assert self.lost((self.FIRST,), (("BlockRemoved", (0,), None), others))[:2] == (1, 1)

    def test_the_batch_ends_too_soon(self) -> None:
        others: Told = ("BlockStored", (2, 3), None)
        assert self.lost((self.FIRST,), (("BlockRemoved", (1,), None),), (others,)) == (1, 2, None)

    def test_a_parent_that_is_not_there(self) -> None:
        words = "BlockStored of 2, parent 9 (its parent 9 was never stored)"
        assert self.lost((self.FIRST,), (("BlockStored", (2,), 9),)) == (1, 1, words)

    def test_a_hash_with_two_parents(self) -> None:
        words = "BlockStored of 1, without parent (1 stood for other tokens or had another parent before)"
        assert self.lost((self.FIRST,), (("BlockStored", (1,), None),)) == (1, 1, words)

    def test_tokens_with_two_hashes(self) -> None:
        second = {**event(("BlockStored", (5,), None), 1), "token_ids": [0]}
        found = explain(recording([[event(self.FIRST, 1)], [second]]), self.BOUND).unpublished
        assert found is not None
        assert found.words == "BlockStored of 5, without parent (the same tokens after the same parent had the hash 0 before)"

    def test_what_may_come_instead(self) -> None:
        found = self.found((self.FIRST,), (("BlockRemoved", (0,), None),)).unpublished
        assert found is not None
        assert found.states > 1
        assert set(found.allowed) >= {"AllBlocksCleared", "BlockRemoved of 1", "BlockStored of 1 block, without parent"}
        assert "BlockStored of 1 block, the first 1, parent 0" in found.allowed
        assert "BlockRemoved of 0" not in found.allowed

    def test_the_trace_publishes_what_it_explains(self) -> None:
        batches = ((self.FIRST,), (("BlockStored", (1,), 0),))
        found = explain(recording([[event(one, 1) for one in batch] for batch in batches]), self.BOUND, trace=True)
        assert found.trace is not None
        assert follow(self.BOUND, found.trace) == found.trace
        assert [step.action for step in found.trace.steps].count("submit") == 2


def test_limits_leave_it_undetermined() -> None:
    made = recording(reference_run(bound_at(PAIRS), 0, 40))
    cut = explain(made, bound_at(PAIRS), Limits(max_states=50))
    assert cut.verdict is Verdict.UNDETERMINED
    assert cut.reason == "more than 50 states (--max-states)"
    assert explain(made, bound_at(PAIRS), Limits(cancelled=lambda: True, max_states=5000)).verdict is Verdict.UNDETERMINED
    assert explain(recording([]), bound_at(PAIRS)).verdict is Verdict.UNDETERMINED


def test_before_a_gap_it_can_be_violated_after_it_nothing_is_known() -> None:
    made = recording([[event(TestEvents.FIRST, 1)]])
    made.gap = "batch 1 is missing"
    assert explain(made, TestEvents.BOUND).reason == "batch 1 is missing"
    made.batches.append(Batch(1, (frozen(event(("BlockRemoved", (0,), None), 1)),)))
    assert explain(made, TestEvents.BOUND).verdict is Verdict.VIOLATED


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"group_idx": 1}, "BlockStored is of KV-cache group 1, and the spec has one group"),
        ({"block_size": 2, "token_ids": [0] * 4}, "has blocks of 2 tokens, and the bounds say 1; add --bounds block-size=2"),
        ({"lookahead_token_ids": [[1], [2]]}, "has hashes that look ahead"),
    ],
)
def test_events_that_the_spec_cannot_have(changed: Event, told: str) -> None:
    with pytest.raises(LogError, match=f"events: batch 0, event 1: .*{told}"):
        explain(recording([[{**event(TestEvents.FIRST, 1), **changed}]]), TestEvents.BOUND)


def test_specs_and_bounds_without_published_events() -> None:
    with pytest.raises(ConformError, match="lending does not say what its runs publish; KV events are read with --spec kv"):
        explain(recording([]), BoundSpec(load_file(LENDING), {}))
    with pytest.raises(LogError, match="these bounds have no prefix cache; add --bounds enable-prefix-caching=1"):
        explain(recording([]), BoundSpec(KV, {}))


@pytest.mark.parametrize("seed", range(4))
def test_what_is_left_out_of_the_search_changes_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eager and late actions and ghosts: without them the answer, and the place of a violation, are the same."""
    at = bound(
        requests=2, blocks=3, block_size=1, prompt_tokens=2, max_tokens=2, prefix_groups=seed % 2, remote_tokens=seed // 3
    )
    batches = reference_run(at, seed, 16)
    if seed % 3:
        batch = batches[len(batches) // 2]
        batch[0], batch[-1] = batch[-1], batch[0]
        del batch[1:2]
    made = recording([batch for batch in batches if batch])
    quick = explain(made, at)
    for name in ("ghosts", "eager", "changed"):
        monkeypatch.setattr(CacheEvents, name, ("status", "table", "free") if name == "changed" else ())
    monkeypatch.setattr(CacheEvents, "late", {})
    slow = explain(made, at)
    assert (slow.verdict, slow.events, slow.batches) == (quick.verdict, quick.events, quick.batches)
    if quick.unpublished is not None:
        assert slow.unpublished is not None
        assert (slow.unpublished.batch, slow.unpublished.event) == (quick.unpublished.batch, quick.unpublished.event)
        assert set(slow.unpublished.allowed) == set(quick.unpublished.allowed)
