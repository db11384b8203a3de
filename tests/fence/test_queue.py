"""The queue of the protocol is a queue: it does what lists do, operation by operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, permutations, product

import pytest
from fencepost.spec.fence.declare import Protocol
from fencepost.spec.fence.finite import Finite, State
from fencepost.spec.fence.queue import Block, Moment, as_it_is, queue, tail
from fencepost.spec.fence.runs import shortest
from hypothesis import given, settings
from hypothesis import strategies as st

BLOCKS, MOMENTS = 4, 6
Put = Callable[[list[int], list[int]], list[int]]


def to_the_head(line: list[int], table: list[int]) -> list[int]:
    """As block pools do: a reversed table is prepended."""
    return [*reversed(table), *line]


def to_the_tail(line: list[int], table: list[int]) -> list[int]:
    """A reversed table is appended."""
    return [*line, *reversed(table)]


def not_reversed(line: list[int], table: list[int]) -> list[int]:
    """A table is prepended as it is."""
    return [*table, *line]


def line_of(finite: Finite, state: State) -> list[int]:
    """The free blocks, the next one first."""
    free, ahead = state[0], state[1]
    line = sorted((b for (b,) in free), key=lambda b: sum((c, b) in ahead for (c,) in free))
    assert finite.violated(finite.protocol.conjuncts.values(), state).count("in-one-line") == 0
    return line


def started(finite: Finite) -> State:
    """The initial state in which blocks are in the queue by number."""
    everything = frozenset((b,) for b in range(BLOCKS))
    ahead = frozenset((b, c) for b in range(BLOCKS) for c in range(b + 1, BLOCKS))
    state: State = (everything, ahead, frozenset(), frozenset())
    assert finite.violated(finite.protocol.initial_claims(), state) == []
    return state


@pytest.mark.parametrize(("whole", "put"), [(queue, to_the_head), (tail, to_the_tail), (as_it_is, not_reversed)])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_the_queue_does_what_lists_do(whole: Protocol, put: Put, data: st.DataObject) -> None:
    finite = Finite(whole, {Block: BLOCKS, Moment: MOMENTS})
    take, give_back = whole.actions["take"], whole.actions["give-back"]
    state, line, now = started(finite), list(range(BLOCKS)), 0
    for _ in range(data.draw(st.integers(1, 8))):
        held = [b for b in range(BLOCKS) if b not in line]
        if line and (not held or data.draw(st.booleans())):
            assert [b for b in range(BLOCKS) if not finite.refused(take, state, (b,))] == line[:1]
            state = finite.apply(take, state, (line[0],))
            line = line[1:]
        else:
            table = data.draw(st.permutations(held))[: data.draw(st.integers(1, len(held)))]
            if now + len(table) > MOMENTS:
                break
            arguments = (frozenset((b,) for b in table), moments(table, now))
            assert finite.refused(give_back, state, arguments) == []
            state = finite.apply(give_back, state, arguments)
            line, now = put(line, list(table)), now + len(table)
        assert line_of(finite, state) == line


def moments(table: Sequence[int], now: int) -> frozenset[tuple[int, int]]:
    """The blocks of a table, each with the moment at which it is freed."""
    return frozenset((b, now + i) for i, b in enumerate(table))


Told = tuple[tuple[int, ...], frozenset[tuple[int, int]], frozenset[int]]
"""The queue, when each block was last freed, and every moment at which one was."""


def after(told: Told, blocks: int, most: int) -> Iterator[Told]:
    """What a list of blocks can be next: without its head, or with a table of held blocks, freed one after the other."""
    line, freed, past = told
    if line:
        yield line[1:], freed, past
    held = [b for b in range(blocks) if b not in line]
    open_moments = [m for m in range(most) if m > max(past, default=-1)]
    for size in range(1, len(held) + 1):
        for table, times in product(permutations(held, size), combinations(open_moments, size)):
            kept = {(b, m) for b, m in freed if b not in table}
            yield (*reversed(table), *line), frozenset({*zip(table, times, strict=True), *kept}), past.union(times)


def test_every_state_is_one_of_a_list() -> None:
    finite = Finite(queue, {Block: 2, Moment: 3})
    found: set[Told] = set()
    for state, _ in finite.reachable():
        assert finite.violated(queue.conjuncts.values(), state) == []
        freed, past = state[2], frozenset(m for (m,) in state[3])
        found.add((tuple(line_of(finite, state)), frozenset((b, m) for b, m in freed), past))
    told: list[Told] = [(line, frozenset(), frozenset()) for line in permutations(range(2))]
    for each in told:
        told.extend(one for one in dict.fromkeys(after(each, 2, 3)) if one not in told)
    assert found == set(told)
    assert shortest(finite) is None
