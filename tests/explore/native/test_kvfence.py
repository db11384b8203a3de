"""kvfence, written in the dialect by hand: the counts that six other programs agree on, and every shortest trace."""

from collections.abc import Iterator

import pytest
from fencepost.checker.explore.native.cache import Cache
from fencepost.checker.explore.native.kernel import build_program
from fencepost.checker.explore.native.search import NativeSearch
from fencepost.checker.explore.native.stats import Failure, NativeStats, Target

from . import kvfence_text as kv


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FENCEPOST_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def run(name: str, fence: int, threads: int) -> tuple[NativeSearch, NativeStats]:
    size = kv.SIZES[name]
    program = kv.program(*size, fence)
    search = NativeSearch(program, build_program(program, Cache()), [kv.initial(*size)], threads=threads)
    return search, search.run()


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", ["tiny", "small", "medium"])
def test_counts(name: str, threads: int) -> None:
    search, stats = run(name, 1, threads)
    assert (stats.distinct, stats.generated, stats.depth) == kv.COUNTS[name]
    assert sum(stats.per_depth) == stats.distinct == stats.expanded
    assert sum(stats.taken) == stats.generated
    assert stats.failed == {}
    assert stats.deadlocks == 0
    assert stats.stopped is None
    assert stats.covered == b"\1"
    search.close()


@pytest.mark.parametrize("fence", [0, 2])
@pytest.mark.parametrize("name", list(kv.SIZES))
def test_the_shortest_counterexamples_have_the_known_length(name: str, fence: int) -> None:
    _, _, d, k = kv.SIZES[name]
    length = 4 if fence == 0 else k + d + 2
    seen: list[tuple[object, ...]] = []
    for threads in (1, 2, 3):
        search, stats = run(name, fence, threads)
        assert stats.failed == {0: Failure(length, on_step=False)}
        assert stats.depth == length
        assert stats.stopped == "violation"
        marked = search.mark(Target("property", 0, length))
        assert search.is_marked(kv.initial(*kv.SIZES[name]), 0)
        seen.append((stats.distinct, stats.generated, stats.per_depth, stats.taken, stats.witnesses, marked))
        search.close()
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][-1] != 0


def test_marks_lead_to_a_violation_at_every_turn() -> None:
    size = kv.SIZES["small"]
    search, stats = run("small", 2, 2)
    search.mark(Target("property", 0, stats.depth))
    level = {tuple(kv.initial(*size))}
    for depth in range(stats.depth):
        assert level
        assert all(search.is_marked(state, depth) for state in level)
        found = {after for state in level for after in kv.successors(state, *size, fence=2)}
        level = {state for state in found if search.is_marked(state, depth + 1)}
    assert level
    assert all(kv.violates(state, *size) for state in level)
    search.close()
