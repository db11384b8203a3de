"""Threads that run one job together, again and again; compiled code runs without Python's lock, so they run at once."""

import threading
from collections.abc import Callable

Job = Callable[[int], None]


class _Worker:
    def __init__(self, number: int) -> None:
        self.number = number
        self.job: Job | None = None
        self.error: BaseException | None = None
        self.start, self.done = threading.Semaphore(0), threading.Semaphore(0)
        self.busy = False
        self.thread = threading.Thread(target=self._serve, name=f"search-{number}", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while True:
            self.start.acquire()
            job = self.job
            if job is None:
                return
            try:
                job(self.number)
            except BaseException as error:
                self.error = error
            self.done.release()

    def begin(self, job: Job | None) -> None:
        self.job, self.busy = job, job is not None
        self.start.release()

    def wait(self) -> None:
        if self.busy:
            self.done.acquire()
            self.busy = False


class Pool:
    """The calling thread, number 0, and `threads - 1` others."""

    def __init__(self, threads: int) -> None:
        self._workers = [_Worker(number) for number in range(1, threads)]

    def run(self, job: Job) -> None:
        """Call `job(number)` in every thread, wait for all, and raise the first error."""
        for worker in self._workers:
            worker.begin(job)
        try:
            job(0)
        finally:
            for worker in self._workers:
                worker.wait()
        for worker in self._workers:
            error, worker.error = worker.error, None
            if error is not None:
                raise error

    def close(self) -> None:
        """Wait for what still runs and end the threads."""
        for worker in self._workers:
            worker.wait()
            worker.begin(None)
        self._workers = []
