"""The levels of a search, expanded by several processes: visit for visit the same as by one.

Saved states of an implementation stay in the process that found them, which is also the one that expands them: they are
never sent. What is sent is what a visit found, and what others found.
"""

from __future__ import annotations

import gc
import pickle
import signal
import traceback
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from itertools import count
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from ..explore.memory import private_memory, resident_memory
from .errors import WorkerLost, frames, sent
from .expand import Known, Node, Visit
from .transitions import Seen

Found = TypeVar("Found", Visit, Seen)
Out = TypeVar("Out", Visit, Seen, covariant=True)


class Visitor(Protocol[Out]):
    """What expands the states of a level; what it finds in one depends on nothing done before."""

    def visit(self, node: Node, known: Known) -> Out:
        """What comes of one state."""
        ...


LEAST = 64
"""Product states in a level from which on other processes are worth their start."""
CHUNK = 16
"""Product states whose visits are sent at once."""


class Held(NamedTuple):
    """Stands for a saved state that another process has: which one, and its number there."""

    worker: int
    number: int


class Expansion(Generic[Found]):
    """Expands level after level; from the first large one on by so many processes, until it is closed.

    `known` is what the search has met, and knows all that a level found when the next one begins.
    """

    def __init__(self, visitor: Visitor[Found], known: Known, workers: int) -> None:
        self.visitor, self.known = visitor, known
        self.wanted = workers if "fork" in get_all_start_methods() else 1
        self.workers: list[_Worker] = []

    def __enter__(self) -> Expansion[Found]:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.close()
        self.workers = []

    def memory(self) -> int:
        """Bytes that the other processes took since they were started."""
        return sum(worker.taken for worker in self.workers)

    def visits(self, level: Sequence[Node]) -> Iterator[tuple[Node, Found]]:
        """Each state of a level with what came of it, in order, up to the first that ends the search.

        Other processes see what was known when the level began, and what they found in it themselves: they report some
        states as new that are not.
        """
        if not self.workers and (self.wanted < 2 or len(level) < LEAST):
            for node in level:
                yield node, self.visitor.visit(node, self.known)
            return
        if not self.workers:
            level = self._start(level)
        for number, worker in enumerate(self.workers):
            worker.begin([node for node in level if node.saved.worker == number])
        for node in level:
            yield node, self._next(node.saved.worker)

    def _start(self, level: Sequence[Node]) -> list[Node]:
        """Start the processes, each of which inherits the states of this level; the states, dealt out in turn."""
        for number in range(self.wanted):
            self.workers.append(_Worker(number, self.visitor, self.known, [node.saved for node in level], self.workers))
        return [node._replace(saved=Held(at // CHUNK % self.wanted, at)) for at, node in enumerate(level)]

    def _next(self, number: int) -> Found:
        """What a process found next; whatever any of them has sent is taken meanwhile, so that none has to wait."""
        asked = self.workers[number]
        while not asked.found:
            for pipe in wait([worker.pipe for worker in self.workers]):
                next(worker for worker in self.workers if worker.pipe is pipe).receive()
        found = asked.found.popleft()
        if isinstance(found, BaseException):
            raise found
        for worker in self.workers:
            if worker is not asked:
                worker.news += [_key(one.canonical, one.digest) for one in found.fresh]
        return found


class _Worker:
    """A process that expands states, seen from the one that counts: `found` is what it sent, in order, and an error last."""

    def __init__(self, number: int, visitor: Visitor[Any], known: Known, saved: list[Any], others: list[_Worker]) -> None:
        context = get_context("fork")
        self.pipe, there = cast("tuple[Connection, Connection]", context.Pipe())
        inherited = [self.pipe, *(worker.pipe for worker in others)]
        self.process: BaseProcess = context.Process(
            target=lambda: _Working(number, visitor, known, saved, there).run(inherited), daemon=True
        )
        self.process.start()
        there.close()
        self.found: deque[Any] = deque()
        self.news: list[bytes] = []
        self.taken = 0

    def begin(self, level: list[Node]) -> None:
        """Send its part of a level, and what others have found since the last one."""
        with self._told():
            self.pipe.send(([node._replace(saved=node.saved.number) for node in level], self.news))
        self.news = []

    def receive(self) -> None:
        """Take what it has sent."""
        with self._told():
            found, self.taken = self.pipe.recv()
            self.found += found

    @contextmanager
    def _told(self) -> Generator[None]:
        """`WorkerLost` where it is not there any more."""
        try:
            yield
        except (EOFError, OSError):
            self.process.join(10)
            raise WorkerLost(self.process.exitcode) from None

    def close(self) -> None:
        """End it, whatever it is doing."""
        self.process.kill()
        self.pipe.close()
        self.process.join()


class _Working:
    """What such a process does: it keeps the states that it found until it is told which of them are to be expanded."""

    def __init__(self, number: int, visitor: Visitor[Any], known: Known, saved: list[Any], pipe: Connection) -> None:
        self.number, self.visitor, self.pipe = number, visitor, pipe
        self.held: dict[int, Any] = dict(enumerate(saved))
        self.numbers = count(len(saved))
        self.met: set[bytes] = set()
        self.known: Known = lambda canonical, digest: known(canonical, digest) or _key(canonical, digest) in self.met

    def run(self, inherited: list[Connection]) -> None:
        """Expand levels until the pipe is closed. To be interrupted is for the process that counts."""
        gc.freeze()  # looking for garbage would copy all the memory that is shared
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        for pipe in inherited:
            pipe.close()
        with suppress(EOFError, OSError):
            while True:
                level, news = self.pipe.recv()
                self.met.update(news)
                self.held = {node.saved: self.held[node.saved] for node in level}
                self._expand_all(level)

    def _expand_all(self, level: Sequence[Node]) -> None:
        before = private_memory() - resident_memory()
        for at in range(0, len(level), CHUNK):
            found = self._expand(level[at : at + CHUNK])
            self.pipe.send((found, max(0, before + resident_memory())))
            if isinstance(found[-1], BaseException) or found[-1].ends:
                break

    def _expand(self, nodes: Sequence[Node]) -> list[Any]:
        """What came of some states, up to the first that ends the search or fails."""
        found: list[Any] = []
        try:
            for node in nodes:
                visit = self.visitor.visit(node._replace(saved=self.held.pop(node.saved)), self.known)
                found.append(visit._replace(fresh=[one._replace(saved=self._hold(one)) for one in visit.fresh]))
                if visit.ends:
                    break
        except BaseException as error:
            found.append(_sendable(error))
        return found

    def _hold(self, arrival: Any) -> Held:
        number = next(self.numbers)
        self.held[number] = arrival.saved
        self.met.add(_key(arrival.canonical, arrival.digest))
        return Held(self.number, number)


def _key(canonical: bytes, digest: bytes) -> bytes:
    """16 bytes that stand for a product state."""
    return blake2b(canonical + digest, digest_size=16).digest()


def _sendable(error: BaseException) -> BaseException:
    """An error with the places where it was raised, or its text where the error itself cannot be sent."""
    error = sent(error)
    try:
        whole = frames(pickle.loads(pickle.dumps(error))) == frames(error.with_traceback(None))
    except Exception:
        whole = False
    if not whole:
        instead = RuntimeError("".join(traceback.format_exception_only(error)[:1]).strip())
        instead.__notes__ = error.__notes__
        instead.__dict__["frames"] = frames(error)
        return instead
    return error
