#!/usr/bin/env python3
"""Record the KV events that a vLLM engine publishes, for `fencepost validate` (docs/logs.md). Needs pyzmq.

    vllm serve MODEL --kv-events-config '{"enable_kv_cache_events": true, "publisher": "zmq",
        "endpoint": "tcp://*:5557", "replay_endpoint": "tcp://*:5558"}'
    python record_kv_events.py tcp://localhost:5557 events.bin tcp://localhost:5558

Batches that were published before the subscription was there, or were lost, are asked for at the replay endpoint, which has the
last 10,000. Each data-parallel rank is an engine of its own, at ports of its own: record it into a file of its own.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

zmq: Any = import_module("zmq")


def opened(kind: int) -> Any:
    """A socket that is not connected yet."""
    return zmq.Context.instance().socket(kind)


def replayed(endpoint: str, start: int) -> Iterator[tuple[int, bytes]]:
    """The batches from number `start` on that the engine still has."""
    socket = opened(zmq.DEALER)
    socket.connect(endpoint)
    try:
        socket.send_multipart([b"", start.to_bytes(8, "big")])
        while socket.poll(5000):
            *_, number, payload = socket.recv_multipart()  # up to 0.25 without the topic
            if number == b"\xff" * 8:
                return
            yield int.from_bytes(number, "big"), payload
    finally:
        socket.close(linger=0)


def received(endpoint: str, replay: str | None) -> Iterator[tuple[int, bytes]]:
    """Every batch once, in order; one that cannot be had any more is missing."""
    socket = opened(zmq.SUB)
    socket.connect(endpoint)
    socket.subscribe("")
    expected = 0
    while True:
        _, number, payload = socket.recv_multipart()
        live = int.from_bytes(number, "big")
        earlier = replayed(replay, expected) if replay and live > expected else ()
        for one, batch in (*earlier, (live, payload)):
            if one >= expected:
                yield one, batch
                expected = one + 1


def main(endpoint: str, path: str, replay: str | None = None) -> None:
    """Record until interrupted."""
    with open(path, "wb") as file:
        for number, payload in received(endpoint, replay):
            file.write(number.to_bytes(8, "big") + len(payload).to_bytes(8, "big") + payload)
            file.flush()


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 4:
        sys.exit("usage: record_kv_events.py ENDPOINT FILE [REPLAY_ENDPOINT]")
    with contextlib.suppress(KeyboardInterrupt):
        main(*sys.argv[1:])
