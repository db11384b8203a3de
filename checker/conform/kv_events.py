"""Recordings of vLLM's KV events (docs/logs.md): batches of what a release published of its prefix cache, in order.

Facts are those of vLLM 0.23.0, 0.25.0, 0.27.0 and 0.33.0. A batch is `[ts, events, data_parallel_rank]`, the rank left out
where it is None (distributed/kv_events.py: EventBatch, array_like, omit_defaults). An event is an array that begins with its
tag in 0.23.0, and a map with the key `type` from 0.25.0 on (KVCacheEvent lost array_like); fields with their defaults are
left out. A hash is an integer, or bytes with VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES=0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

from ...traces.untyped import is_list, is_object
from .log import LogError
from .partial import brief, nearest

HEADER = 16
"""Bytes before a payload: its sequence number and its length, 8 bytes each, big endian."""
LARGEST = 64 * 1024 * 1024
"""The largest batch that is read, in bytes."""
MOST_EVENTS = 1_000_000
"""The most events that are read of one file."""
FIELDS = {
    "BlockStored": (
        "block_hashes",
        "parent_block_hash",
        "token_ids",
        "block_size",
        "lora_id",
        "medium",
        "lora_name",
        "extra_keys",
        "group_idx",
        "kv_cache_spec_kind",
        "kv_cache_spec_sliding_window",
        "locality",
        "ownership",
        "session_id",
        "lookahead_token_ids",
    ),
    "BlockRemoved": ("block_hashes", "medium", "group_idx", "locality", "ownership"),
    "AllBlocksCleared": (),
}
"""The fields of each event, in the order of 0.23.0 (where they are written without names), later ones behind."""
REQUIRED = {
    "BlockStored": ("block_hashes", "token_ids", "block_size"),
    "BlockRemoved": ("block_hashes",),
    "AllBlocksCleared": (),
}
DEVICE = (None, "GPU")
"""The media of the prefix cache; events of others (CPU, STORAGE, …) come from connectors."""
FORM = (
    "each batch is written as its sequence number (8 bytes, big endian), the length of its payload (8 bytes) and the payload; "
    "examples/record_kv_events.py does it"
)

KVEvent = Mapping[str, Any]
"""One event: `type` and the fields that it has, hashes and lists frozen; of BlockRemoved one for each hash."""


@dataclass(frozen=True)
class Batch:
    """What one message published: its sequence number, its events, and how many of each medium were left out."""

    number: int
    events: tuple[KVEvent, ...]
    elsewhere: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass
class Recording:
    """The batches of a file up to its end or its first gap; `gap` says where something is missing."""

    path: Path
    batches: list[Batch]
    gap: str | None = None

    @property
    def events(self) -> list[KVEvent]:
        """All events, in order."""
        return [event for batch in self.batches for event in batch.events]

    @property
    def elsewhere(self) -> dict[str, int]:
        """How many events of other media were left out."""
        made: dict[str, int] = {}
        for batch in self.batches:
            for medium, count in batch.elsewhere.items():
                made[medium] = made.get(medium, 0) + count
        return made


def is_recording(path: Path) -> bool:
    """Whether a file is a recording of KV events rather than a log; anything that cannot be looked into is not."""
    try:
        if not path.is_file() or path.stat().st_size < HEADER:
            return False
        with path.open("rb") as stream:
            first = stream.readline(LARGEST)
    except OSError:
        return False
    if first[:1] in (b"\0", b"\x92", b"\x93"):  # a frame, or a payload without one
        return True
    try:
        made = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return is_object(made) and "batch" in made


def read(path: Path) -> Recording:
    """Read a recording; `LogError` names the batch and what is wrong with it."""
    return _Reader(path).recording()


class _Reader:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.rank: Any = None
        self.made = Recording(path, [])
        self.count = 0

    def fail(self, where: str, what: str) -> NoReturn:
        raise LogError(f"{self.path}: {where}: {what}")

    def recording(self) -> Recording:
        try:
            with self.path.open("rb") as stream:
                binary = stream.read(1) != b"{"
                stream.seek(0)
                for number, batch in self._frames(stream) if binary else self._lines(stream):
                    if not self._follows(number):
                        break
                    self._add(number, batch)
        except OSError as error:
            raise LogError(f"{self.path}: cannot be read: {error.strerror or error}") from None
        return self.made

    def _follows(self, number: int) -> bool:
        """Whether a batch is the next one; else something is missing before it."""
        expected = len(self.made.batches)
        if number < expected:
            self.fail(
                f"batch {number}",
                f"comes after batch {expected - 1}; write each batch once, in order, and a file for each engine and start",
            )
        if number > expected:
            missing = f"batch {expected} is" if number == expected + 1 else f"batches {expected} to {number - 1} are"
            self.made.gap = f"{self.path}: {missing} missing"
        return number == expected

    def _frames(self, stream: BinaryIO) -> Iterator[tuple[int, Any]]:
        decode, wrong = _decoder(self.path)
        while header := stream.read(HEADER):
            at = stream.tell() - len(header)
            if len(header) < HEADER:
                return self._cut_off(at)
            number, length = int.from_bytes(header[:8], "big"), int.from_bytes(header[8:], "big")
            if number >= 1 << 56 or length > LARGEST:
                self.fail(f"byte {at}", f"not the beginning of a batch of at most {LARGEST:,} bytes; {FORM}")
            payload = stream.read(length)
            if len(payload) < length:
                return self._cut_off(at)
            try:
                yield number, decode(payload)
            except wrong as error:
                self.fail(f"batch {number} (byte {at})", f"not one whole MessagePack value ({error}); {FORM}")
        return None

    def _cut_off(self, at: int) -> None:
        if not at:
            self.fail("byte 0", f"cut off within the first batch; {FORM}")
        self.made.gap = f"{self.path}: the last batch is cut off (byte {at})"

    def _lines(self, stream: BinaryIO) -> Iterator[tuple[int, Any]]:
        line = 0
        while text := stream.readline(LARGEST + 1):
            line += 1
            if len(text) > LARGEST:
                self.fail(f"line {line}", f"longer than {LARGEST:,} bytes; a line has one batch")
            if not text.strip():
                continue
            try:
                made = json.loads(text)
            except (ValueError, RecursionError):
                if not text.endswith(b"\n") and line > 1:
                    self.made.gap = f"{self.path}: the last batch is cut off (line {line})"
                    return
                self.fail(f"line {line}", 'not JSON; a line is {"seq": NUMBER, "batch": [TIME, EVENTS]}')
            if not is_object(made) or set(made) != {"seq", "batch"} or not _natural(made["seq"]):
                self.fail(f"line {line}", f'{brief(made)} is not {{"seq": NUMBER, "batch": [TIME, EVENTS]}}')
            yield made["seq"], made["batch"]

    def _add(self, number: int, batch: Any) -> None:
        where = f"batch {number}"
        if not is_list(batch) or not 2 <= len(batch) <= 3 or not is_list(batch[1]):
            self.fail(where, f"{brief(batch)} is not a batch, [time, events] or [time, events, data-parallel rank]")
        if type(batch[0]) not in (int, float):
            self.fail(where, f"the time {brief(batch[0])} is not a number")
        rank = batch[2] if len(batch) == 3 else None
        if rank is not None and type(rank) is not int:
            self.fail(where, f"the data-parallel rank {brief(rank)} is not a number")
        if number == 0:
            self.rank = rank
        elif rank != self.rank:
            fix = "each rank is an engine of its own; record them apart"
            self.fail(where, f"of data-parallel rank {rank}, the first is of {self.rank}; {fix}")
        events: list[KVEvent] = []
        elsewhere: dict[str, int] = {}
        for position, given in enumerate(batch[1], 1):
            for event in self._event(f"{where}, event {position}", given):
                medium = "REMOTE" if event.get("locality") == "REMOTE" else event.get("medium")
                if medium in DEVICE:
                    events.append(event)
                else:
                    elsewhere[medium] = elsewhere.get(medium, 0) + 1
        self.count += len(events)
        if self.count > MOST_EVENTS:
            self.fail(where, f"more than {MOST_EVENTS:,} events up to here; record a shorter run")
        self.made.batches.append(Batch(number, tuple(events), elsewhere))

    def _event(self, where: str, given: Any) -> Iterator[KVEvent]:
        made = self._named(where, given)
        kind = made["type"]
        for name in REQUIRED[kind]:
            if name not in made:
                self.fail(where, f"{kind} without {name}")
        for name, value in made.items():
            if not _CHECKS.get(name, _anything)(value):
                self.fail(where, f"{kind}: {name} is {brief(value)}, which {_RULES[name]}")
        frozen = {name: _frozen(value) for name, value in made.items()}
        if kind == "BlockStored" and len(made["token_ids"]) != made["block_size"] * len(made["block_hashes"]):
            rule = "holes are of windowed attention, which is not read"
            blocks = f"{len(made['block_hashes'])} blocks of {made['block_size']}"
            self.fail(where, f"BlockStored with {len(made['token_ids'])} tokens for {blocks}; {rule}")
        if kind == "BlockRemoved":
            yield from ({**frozen, "block_hashes": (one,)} for one in frozen["block_hashes"])
        else:
            yield frozen

    def _named(self, where: str, given: Any) -> dict[str, Any]:
        """An event with its fields by name: as a map, or as an array that begins with its tag."""
        tag = given.get("type") if is_object(given) else given[0] if is_list(given) and given else None
        if not isinstance(tag, str) or tag not in FIELDS:
            known = nearest(str(tag), FIELDS)
            self.fail(where, f"{brief(given)} is no KV event of vLLM 0.23 to 0.33; unknown type {brief(tag)}: {known}")
        if is_list(given):
            if len(given) - 1 > len(FIELDS[tag]):
                self.fail(where, f"{tag} with {len(given) - 1} fields, it has at most {len(FIELDS[tag])}")
            return {"type": tag, **dict(zip(FIELDS[tag], given[1:], strict=False))}
        for name in (made := cast("dict[str, Any]", given)):
            if name != "type" and name not in FIELDS[tag]:
                self.fail(where, f"{tag} has no field {name!r} in vLLM 0.23 to 0.33; {nearest(str(name), FIELDS[tag])}")
        return made


def _decoder(path: Path) -> tuple[Any, tuple[type[Exception], ...]]:
    try:
        msgspec: Any = import_module("msgspec")
    except ImportError:
        fix = "pip install 'fencepost[vllm]' (or msgspec alone), or write the batches as JSON lines"
        raise LogError(f"{path}: reading MessagePack needs msgspec: {fix}") from None
    return msgspec.msgpack.decode, (msgspec.MsgspecError, TypeError, RecursionError)  # TypeError: a list as a key


def _natural(value: Any) -> bool:
    return type(value) is int and value >= 0


def _anything(_: Any) -> bool:
    return True


def _is_hash(value: Any) -> bool:
    return type(value) is int or (isinstance(value, bytes | str) and len(value) > 0)


def _are_hashes(value: Any) -> bool:
    return is_list(value) and len(value) > 0 and all(map(_is_hash, value))


def _are_numbers(value: Any) -> bool:
    return is_list(value) and all(type(one) is int for one in value)


def _or_none(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


_text = _or_none(lambda value: isinstance(value, str))
_CHECKS: dict[str, Callable[[Any], bool]] = {
    "block_hashes": _are_hashes,
    "parent_block_hash": _or_none(_is_hash),
    "token_ids": _are_numbers,
    "block_size": lambda value: _natural(value) and value > 0,
    "medium": _text,
    "lora_name": _text,
    "locality": _text,
    "extra_keys": _or_none(is_list),
    "group_idx": _or_none(_natural),
}
_RULES = {
    "block_hashes": "is not a list of one or more hashes",
    "parent_block_hash": "is neither a hash nor None",
    "token_ids": "is not a list of numbers",
    "block_size": "is not a number of tokens",
    "medium": "is neither text nor None",
    "lora_name": "is neither text nor None",
    "locality": "is neither text nor None",
    "extra_keys": "is neither a list nor None",
    "group_idx": "is neither a number nor None",
}


def _frozen(value: Any) -> Any:
    if is_list(value):
        return tuple(map(_frozen, value))
    if is_object(value):
        return tuple(sorted(((name, _frozen(part)) for name, part in value.items()), key=repr))
    return value
