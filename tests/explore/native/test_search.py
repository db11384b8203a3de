"""The native search: figures, verdicts and their levels, limits, marks; on toy models with counts known beforehand."""

import time

import pytest
from fencepost.checker.explore.native.kernel import build_program
from fencepost.checker.explore.native.memory import process_memory
from fencepost.checker.explore.native.program import Program
from fencepost.checker.explore.native.search import NativeSearch
from fencepost.checker.explore.native.stats import Failure, NativeProgress, SpecErrorAt, Target
from fencepost.checker.explore.native.store import Store
from fencepost.checker.model import Limits

from .toys import levels, search_of, toy

COUNTER = "if x < 99:\n    go(ctx, 0, x + 1)"
RING = "go(ctx, 0, (x + 1) % 1000)\ngo(ctx, 1, (x + 999) % 1000)"
CUBE = "for i in range(14):\n    go(ctx, i % 2, x ^ 1 << i)"
"""A hypercube: 2**14 states, 14 transitions each."""
TREE = "if x < 1 << 40:\n    go(ctx, 0, 2 * x + 1)\n    go(ctx, 1, 2 * x + 2)"


def cube(failed: str = "0", reached: str = "0", error: str = "0", canon: str | None = None) -> Program:
    return toy(CUBE, failed, reached, error, canon, max_out=14)


def cube_levels() -> list[set[int]]:
    return levels(lambda x: [x ^ 1 << i for i in range(14)])


def test_a_counter() -> None:
    stats = search_of(toy(COUNTER)).run()
    assert (stats.distinct, stats.generated, stats.depth, stats.stopped) == (100, 99, 99, None)
    assert stats.per_depth == [1] * 100
    assert (stats.degree_min, stats.degree_max, stats.expanded) == (0, 1, 100)
    assert (stats.deadlocks, stats.deadlock_level) == (1, 99)
    assert (stats.enabled, stats.taken) == ([99, 0], [99, 0])
    assert stats.covered == b"\1\0"
    assert stats.failed == {}
    assert stats.witnesses == {}
    assert stats.errors == []


def test_a_ring_from_two_states() -> None:
    stats = search_of(toy(RING), initial=[0, 500, 500]).run()
    assert (stats.distinct, stats.generated, stats.depth) == (1000, 2000, 250)
    assert stats.per_depth == [2, *[4] * 249, 2]
    assert stats.deadlocks == 0


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_cube_with_any_number_of_threads(threads: int) -> None:
    search = search_of(cube(reached="(popcount(x) == 5) | (x == 16383) << 1"), threads=threads)
    stats = search.run()
    assert (stats.distinct, stats.generated, stats.depth) == (1 << 14, 14 << 14, 14)
    assert stats.per_depth == [len(level) for level in cube_levels()]
    assert stats.taken == [7 << 14, 7 << 14]
    assert stats.witnesses == {0: 5, 1: 14}
    search.close()


def test_enabled_counts_states_and_taken_counts_transitions() -> None:
    body = "for i in range(7):\n    go(ctx, 0, x ^ 1 << i)\nif x & 1:\n    go(ctx, 1, x)"
    stats = search_of(toy(body, max_out=8)).run()
    assert (stats.enabled, stats.taken) == ([128, 64], [7 * 128, 64])


@pytest.mark.parametrize("threads", [1, 2])
def test_a_violating_state_ends_the_search_at_the_start_of_its_level(threads: int) -> None:
    search = search_of(cube(failed="(popcount(x) == 6) << 1", reached="(x == 63) | (popcount(x) == 7) << 1"), threads=threads)
    stats = search.run()
    sizes = [len(level) for level in cube_levels()]
    assert stats.stopped == "violation"
    assert stats.failed == {1: Failure(6, on_step=False)}
    assert (stats.distinct, stats.generated, stats.depth) == (sum(sizes[:7]), 14 * sum(sizes[:6]), 6)
    assert stats.expanded == sum(sizes[:6])
    assert sum(stats.taken) == stats.generated
    assert stats.per_depth == sizes[:7]
    assert stats.witnesses == {0: 6}
    assert search.mark(Target("property", 1, 6)) == sizes[6]
    search.close()


def test_keep_going_finds_the_first_level_of_every_property() -> None:
    program = cube(failed="(popcount(x) == 6) << 1 | (x == 7) << 2", error="9 if popcount(x) == 8 else 0")
    stats = search_of(program).run(keep_going=True)
    assert (stats.distinct, stats.generated, stats.stopped) == (1 << 14, 14 << 14, None)
    assert stats.failed == {1: Failure(6, False), 2: Failure(3, False)}
    assert stats.errors == [SpecErrorAt("check", 8, None, 9)]


def test_a_failing_step_lets_its_level_be_finished_and_the_next_be_checked() -> None:
    body = "if x & 15 == 15:\n    step_failed(ctx, 1)\n" + CUBE
    search = search_of(toy(body, failed="(x & 31 == 31) << 1", reached="popcount(x) == 6", max_out=14))
    stats, sizes = search.run(), [len(level) for level in cube_levels()]
    assert stats.stopped == "violation"
    assert stats.failed == {0: Failure(5, on_step=True), 1: Failure(5, on_step=False)}
    assert (stats.distinct, stats.generated, stats.depth) == (sum(sizes[:6]), 14 * sum(sizes[:5]), 5)
    assert stats.witnesses == {}
    assert search.mark(Target("step", 0, 4)) == 1
    assert search.is_marked([15], 4)
    assert not search.is_marked([23], 4)
    assert search.is_marked([7], 3)
    assert not search.is_marked([19], 3)


def test_a_violating_state_outranks_a_failing_step_of_its_level() -> None:
    body = "step_failed(ctx, 1 if popcount(x) == 4 else 0)\n" + CUBE
    stats = search_of(toy(body, failed="(x == 15) << 1", max_out=14)).run()
    assert stats.failed == {1: Failure(4, False)}
    assert stats.depth == 4


def test_a_spec_error_in_an_action_is_no_transition() -> None:
    body = "if x == 5:\n    spec_error(ctx, 1, 77)\n    spec_error(ctx, 0, 9)\n"
    body += "else:\n    go(ctx, 0, x + 1)\n    go(ctx, 0, x)"
    search = search_of(toy(body))
    stats = search.run(stop_on_deadlock=True)
    assert stats.stopped == "violation"
    assert stats.errors == [SpecErrorAt("action", 6, 0, 9)]
    assert (stats.distinct, stats.generated, stats.deadlocks, stats.depth) == (6, 10, 0, 5)
    assert search.mark(Target("action-error", 0, 5)) == 1
    assert search.is_marked([2], 2)


def test_a_spec_error_in_a_check_ends_the_search() -> None:
    search = search_of(toy(COUNTER, error="12 if x == 50 else 0"))
    stats = search.run()
    assert stats.stopped == "violation"
    assert stats.errors == [SpecErrorAt("check", 50, None, 12)]
    assert (stats.distinct, stats.generated) == (51, 50)
    assert search.mark(Target("check-error", 0, 50)) == 1


def test_deadlocks() -> None:
    search = search_of(toy(COUNTER))
    stats = search.run(stop_on_deadlock=True)
    assert (stats.stopped, stats.deadlock_level, stats.distinct, stats.generated) == ("deadlock", 99, 100, 99)
    assert search.mark(Target("deadlock", 0, 99)) == 1
    assert search.is_marked([98], 98)
    both = search_of(toy(COUNTER, failed="x == 99")).run(stop_on_deadlock=True)
    assert (both.stopped, both.deadlock_level) == ("violation", None)


def test_a_violation_in_the_initial_state() -> None:
    search = search_of(toy(COUNTER, failed="x == 0"))
    stats = search.run()
    assert (stats.distinct, stats.generated, stats.depth, stats.failed) == (1, 0, 0, {0: Failure(0, False)})
    assert search.mark(Target("property", 0, 0)) == 1
    assert search.is_marked([0], 0)


def test_marks_are_exactly_the_states_on_shortest_paths() -> None:
    search = search_of(cube(reached="(x == 0b10110101) | (x == 0b1111) << 1"), threads=2)
    stats = search.run()
    assert stats.witnesses == {0: 5, 1: 4}
    assert search.mark(Target("witness", 0, 5)) == 1
    for depth, level in enumerate(cube_levels()):
        marked = {x for x in level if search.is_marked([x], depth)}
        wanted = {x for x in level if x & 0b10110101 == x and depth <= 5}
        assert marked == wanted
    assert not search.is_marked([0], 3)
    assert not search.is_marked([0], 99)
    assert search.mark(Target("witness", 1, 4)) == 1
    assert search.is_marked([15], 4)
    assert not search.is_marked([0b10110101], 5)
    with pytest.raises(ValueError, match="no complete level 77"):
        search.mark(Target("witness", 0, 77))


def test_nothing_is_marked_before_marking() -> None:
    search = search_of(toy(COUNTER))
    search.run()
    assert not search.is_marked([0], 0)


def test_symmetry_stores_canonical_states_only() -> None:
    search = search_of(cube(canon="(1 << popcount(x)) - 1", failed="x == 127"), initial=[0])
    stats = search.run()
    assert (stats.distinct, stats.generated, stats.depth) == (8, 14 * 7, 7)
    assert search.mark(Target("property", 0, 7)) == 1
    assert search.is_marked([0b10100000001], 3)
    assert search.canonical([0b10100000001]) == (7,)


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(max_states=5000), "max-states"),
        (Limits(max_seconds=0.05), "max-time"),
        (Limits(cancelled=lambda: True), "cancelled"),
        (Limits(max_depth=9), "max-depth"),
    ],
)
def test_limits_end_a_search_with_the_figures_so_far(limits: Limits, reason: str) -> None:
    search = search_of(toy(TREE), threads=2)
    stats = search.run(limits)
    assert stats.stopped == reason
    assert stats.distinct == sum(stats.per_depth) > 0
    assert stats.depth == len(stats.per_depth) - 1
    search.close()


def test_the_depth_limit_checks_its_level_and_does_not_expand_it() -> None:
    program = toy(TREE, reached="(x == 6) | (x == 14) << 1")
    stats = search_of(program).run(Limits(max_depth=2))
    assert (stats.stopped, stats.per_depth, stats.generated, stats.witnesses) == ("max-depth", [1, 2, 4], 6, {0: 2})
    found = search_of(toy(TREE, failed="x == 6")).run(Limits(max_depth=2))
    assert (found.stopped, found.failed) == ("violation", {0: Failure(2, False)})
    assert search_of(toy(COUNTER)).run(Limits(max_depth=100)).stopped is None


def test_the_memory_limit_is_kept() -> None:
    search = search_of(toy(TREE), threads=2)
    before = process_memory()
    stats = search.run(Limits(max_bytes=before + (60 << 20), max_seconds=60))
    assert stats.stopped == "max-memory"
    assert stats.distinct > 500_000
    assert process_memory() - before < 62 << 20
    search.close()


def test_memory_that_is_not_to_be_had_is_a_limit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(store: Store, incoming: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Store, "prepare", refuse)
    assert search_of(toy(TREE)).run().stopped == "max-memory"


def test_progress_is_reported_once_a_second() -> None:
    seen: list[NativeProgress] = []
    search = search_of(toy(TREE), threads=2)
    search.run(Limits(max_seconds=2.5, max_bytes=4 << 30), seen.append)
    assert 1 <= len(seen) <= 3
    first = seen[0]
    assert first.distinct > first.queue > 0
    assert first.rate > 0
    assert first.memory > 0
    assert first.generated > 0
    assert first.per_depth[:3] == (1, 2, 4)
    search.close()


def test_an_interrupt_leaves_the_search_in_order() -> None:
    search = search_of(toy(TREE), threads=2)

    def interrupt(progress: NativeProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search.run(Limits(max_seconds=20, max_bytes=4 << 30), interrupt)
    search.close()


def test_wide_states() -> None:
    """States of nine words that differ in the last one only."""
    text = """
def unpack(words, cells):
    copy(cells, words, 72)
def pack(cells, words):
    copy(words, cells, 72)
def check(cells, out, cover):
    clear(out, 16)
    return 0
def expand(cells, ctx):
    for i in range(12):
        store64(cells + 64, load64(cells + 64) ^ 1 << i)
        emit(ctx, 0, cells)
        store64(cells + 64, load64(cells + 64) ^ 1 << i)
"""
    program = Program(text=text, words=9, cell_bytes=72, max_out=12, actions=1, properties=0, witnesses=0, covers=0)
    initial = [(1 << 64) - 1 - i for i in range(8)] + [0]
    stats = NativeSearch(program, build_program(program), [initial], threads=2).run()
    assert (stats.distinct, stats.generated, stats.depth) == (1 << 12, 12 << 12, 12)


def test_actions_may_use_the_scratch_memory_and_covers() -> None:
    body = (
        """
scratch = load64(ctx + CTX_SCRATCH)
store64(scratch + 4088, load64(scratch + 4088) + 1)
if load64(scratch + 4088) == 100:
    store8(load64(ctx + CTX_COVER) + 1, 1)
"""
        + COUNTER
    )
    assert search_of(toy(body)).run().covered == b"\1\1"


def test_programs_outside_the_limits_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one word"):
        toy(COUNTER, max_out=0)
    with pytest.raises(ValueError, match="at most 63 properties"):
        toy(COUNTER, properties=64)


def test_an_initial_state_of_another_size_is_refused() -> None:
    program = toy(COUNTER)
    search = NativeSearch(program, build_program(program), [[1, 2]])
    with pytest.raises(ValueError, match="a state has 1 words, not 2"):
        search.run()


def test_slow_specs_are_interruptible() -> None:
    """A spec that takes long for every state does not delay a limit by much."""
    body = "i = 0\nwhile i < 20000:\n    i += 1 + (x == i)\n" + TREE + "\nif i == 1:\n    go(ctx, 1, x)"
    started = time.monotonic()
    assert search_of(toy(body), threads=2).run(Limits(max_seconds=0.5, max_bytes=4 << 30)).stopped == "max-time"
    assert time.monotonic() - started < 5
