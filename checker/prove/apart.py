"""Work that several processes share: each takes one task after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_all_start_methods, get_context
from typing import Any, TypeVar

T = TypeVar("T")


class Ended(Exception):
    """A process was ended from outside, most often by a system without memory."""


_inherited: list[Callable[[int], Any]] = []


def in_order(count: int, work: Callable[[int], T], workers: int) -> Iterator[T]:
    """What `work` makes of 0, 1, … count-1, in this order; by so many processes, where this system can fork.

    They inherit whatever `work` needs, so that only its results are sent. What it raises is raised here; `Ended` where one of
    them was ended from outside.
    """
    if workers < 2 or count < 2 or "fork" not in get_all_start_methods():
        yield from (work(number) for number in range(count))
        return
    _inherited.append(work)
    try:
        with ProcessPoolExecutor(min(workers, count), get_context("fork")) as pool:
            futures = [pool.submit(_inherited_work, number) for number in range(count)]
            try:
                for future in futures:
                    yield future.result()
            except BrokenProcessPool as error:
                raise Ended from error
            finally:
                for future in futures:
                    future.cancel()
    finally:
        _inherited.pop()


def _inherited_work(number: int) -> Any:
    return _inherited[-1](number)
