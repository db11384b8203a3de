"""kvfence once more, in plain Python without the spec language: the oracle of benchmarks/kvfence.yaml."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import NamedTuple

WAITING, RUNNING, REMOTE, FINISHED = range(4)


class Size(NamedTuple):
    """The bounds of a run, by the names of the spec."""

    requests: int
    blocks: int
    steps: int
    per_request: int
    fence: int


class Pool(NamedTuple):
    """A state; masks in flight are frozen sets, deferred blocks are pairs (fence, block)."""

    status: tuple[int, ...]
    blocks: tuple[tuple[int, ...], ...]
    free: tuple[int, ...]
    flight: tuple[frozenset[int], ...]
    deferred: tuple[tuple[int, int], ...]


class Counts(NamedTuple):
    """Up to the first violation (`trace`: its length), or of the whole graph (`trace` None)."""

    distinct: int
    generated: int
    depth: int
    trace: int | None


Canon = Callable[[Pool], Pool]


def with_item(items: tuple[int, ...], at: int, value: int) -> tuple[int, ...]:
    """The tuple with one item replaced."""
    return (*items[:at], value, *items[at + 1 :])


def taken(s: Pool, r: int, status: int) -> Pool:
    """Request r gets the head of the free queue and this status."""
    blocks = tuple((*held, s.free[0]) if q == r else held for q, held in enumerate(s.blocks))
    return s._replace(status=with_item(s.status, r, status), blocks=blocks, free=s.free[1:])


def released(s: Pool, r: int, status: int, size: Size) -> Pool:
    """Request r gives its blocks up and gets this status."""
    held, n = s.blocks[r], len(s.flight)
    after = s._replace(status=with_item(s.status, r, status), blocks=tuple(() if q == r else b for q, b in enumerate(s.blocks)))
    hole = size.fence == 2 and n == size.steps and len(held) == size.per_request
    if size.fence == 0 or n == 0 or hole:
        return after._replace(free=held + s.free)
    return after._replace(deferred=s.deferred + tuple((n, b) for b in held))


def of_request(s: Pool, r: int, size: Size) -> Iterator[Pool]:
    """Every transition of one request."""
    status = s.status[r]
    if status == WAITING and s.free:
        yield taken(s, r, RUNNING)
        yield taken(s, r, REMOTE)
    if status == REMOTE:
        yield s._replace(status=with_item(s.status, r, RUNNING))
    if status == RUNNING:
        if s.free and len(s.blocks[r]) < size.per_request:
            yield taken(s, r, RUNNING)
        yield released(s, r, FINISHED, size)
    if status in (RUNNING, REMOTE):
        yield released(s, r, FINISHED, size)
        yield released(s, r, WAITING, size)
    if status == FINISHED:
        yield s._replace(status=with_item(s.status, r, WAITING))


def transitions(s: Pool, size: Size) -> Iterator[Pool]:
    """Every transition, one for each action instance that is enabled."""
    for r in range(size.requests):
        yield from of_request(s, r, size)
    running = [r for r in range(size.requests) if s.status[r] == RUNNING]
    if len(s.flight) < size.steps and running:
        yield s._replace(flight=(*s.flight, frozenset(b for r in running for b in s.blocks[r])))
    if s.flight:
        due = tuple(b for fence, b in s.deferred if fence == 1)
        rest = tuple((fence - 1, b) for fence, b in s.deferred if fence > 1)
        yield s._replace(flight=s.flight[1:], deferred=rest, free=due + s.free)


def safe(s: Pool) -> bool:
    """Whether no block of a remote request is in flight."""
    remote = {b for r, status in enumerate(s.status) if status == REMOTE for b in s.blocks[r]}
    return not any(remote & touched for touched in s.flight)


def ordered(s: Pool, order: tuple[int, ...]) -> Pool:
    """The state with its requests renumbered."""
    return s._replace(status=tuple(s.status[r] for r in order), blocks=tuple(s.blocks[r] for r in order))


def relabelled(s: Pool) -> Pool:
    """The state with its blocks renumbered as they appear: every block is in exactly one of the lists."""
    listed = [b for held in s.blocks for b in held] + list(s.free) + [b for _, b in s.deferred]
    new = {b: at for at, b in enumerate(listed)}
    return Pool(
        s.status,
        tuple(tuple(new[b] for b in held) for held in s.blocks),
        tuple(new[b] for b in s.free),
        tuple(frozenset(new[b] for b in touched) for touched in s.flight),
        tuple((fence, new[b]) for fence, b in s.deferred),
    )


def key(s: Pool) -> tuple[object, ...]:
    """Something to compare states by; sets are not ordered by themselves."""
    return (s.status, s.blocks, s.free, tuple(tuple(sorted(touched)) for touched in s.flight), s.deferred)


def up_to_requests(s: Pool) -> Pool:
    """The least of the states that differ by the numbers of the requests."""
    return min((ordered(s, order) for order in permutations(range(len(s.status)))), key=key)


def up_to_both(s: Pool) -> Pool:
    """The least of the states that differ by the numbers of requests and blocks."""
    return min((relabelled(ordered(s, order)) for order in permutations(range(len(s.status)))), key=key)


def search(size: Size, canon: Canon = lambda s: s) -> Counts:
    """Breadth-first to the end, or to the end of the level with the first violation."""
    waiting = (WAITING,) * size.requests
    level = [canon(Pool(waiting, ((),) * size.requests, tuple(range(size.blocks)), (), ()))]
    seen, generated, depth = set(level), 0, 0
    while all(safe(s) for s in level):
        following: list[Pool] = []
        for s in level:
            for after in map(canon, transitions(s, size)):
                generated += 1
                if after not in seen:
                    seen.add(after)
                    following.append(after)
        if not following:
            return Counts(len(seen), generated, depth, None)
        level, depth = following, depth + 1
    return Counts(len(seen), generated, depth, depth)
