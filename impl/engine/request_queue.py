"""A queue of waiting requests, first come first served, from which any request can be taken out at once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from .request import Request


class FCFSRequestQueue:
    """Requests in the order in which they are looked at; every operation costs the requests it moves."""

    __slots__ = ("_requests",)

    def __init__(self) -> None:
        self._requests: OrderedDict[str, Request] = OrderedDict()

    def add_request(self, request: Request) -> None:
        """Put a request behind all others."""
        self._requests[request.request_id] = request

    def prepend_request(self, request: Request) -> None:
        """Put a request in front of all others."""
        self._requests[request.request_id] = request
        self._requests.move_to_end(request.request_id, last=False)

    def prepend_requests(self, requests: Sequence[Request]) -> None:
        """Put requests in front of all others, in the given order."""
        for request in reversed(requests):
            self.prepend_request(request)

    def peek_request(self) -> Request:
        """The first request; `StopIteration` if there is none."""
        return next(iter(self._requests.values()))

    def pop_request(self) -> Request:
        """Take the first request out; `KeyError` if there is none."""
        return self._requests.popitem(last=False)[1]

    def remove_request(self, request: Request) -> None:
        """Take a request out, wherever it stands; `KeyError` if it is not in the queue."""
        del self._requests[request.request_id]

    def __contains__(self, request: Request) -> bool:
        return request.request_id in self._requests

    def __iter__(self) -> Iterator[Request]:
        return iter(self._requests.values())  # beyond the spec: for who looks on

    def __len__(self) -> int:
        return len(self._requests)
