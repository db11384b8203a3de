"""Reading recordings of KV events: both encodings, gaps, and every kind of bad input with its place."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.conform import kv_events
from fencepost.checker.conform.kv_events import is_recording, read
from fencepost.checker.conform.log import LogError

from .publishing import ARRAYS, Event, frame, plain, record

STORED: Event = {
    "type": "BlockStored",
    "block_hashes": [11, 12],
    "parent_block_hash": None,
    "token_ids": [1, 2, 3, 4],
    "block_size": 2,
    "lora_id": None,
    "medium": "GPU",
    "lora_name": None,
    "extra_keys": [None, ["image", [1, 2]]],
    "group_idx": 0,
}
REMOVED: Event = {"type": "BlockRemoved", "block_hashes": [11, 12], "medium": "GPU", "group_idx": 0}
CLEARED: Event = {"type": "AllBlocksCleared"}
BATCHES = [[STORED], [REMOVED, CLEARED]]


def lines(*batches: Any) -> str:
    """Batches as JSON lines."""
    return "".join(json.dumps({"seq": number, "batch": batch}) + "\n" for number, batch in enumerate(batches))


def msgpack(value: Any) -> bytes:
    msgspec = pytest.importorskip("msgspec")
    return msgspec.msgpack.encode(value)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.bin"


@pytest.mark.parametrize("release", ["0.23.0", "0.33.0", "lines"])
def test_all_forms_say_the_same(path: Path, release: str) -> None:
    if release == "lines":
        path.write_text(lines(*map(plain, BATCHES)))
    else:
        pytest.importorskip("msgspec")
        record(path, BATCHES, ARRAYS if release == ARRAYS else "")
    assert is_recording(path)
    made = read(path)
    assert made.gap is None
    assert [batch.number for batch in made.batches] == [0, 1]
    assert made.events[0] == {
        **STORED,
        "block_hashes": (11, 12),
        "token_ids": (1, 2, 3, 4),
        "extra_keys": (None, ("image", (1, 2))),
    }
    removed = [{**REMOVED, "block_hashes": (one,)} for one in (11, 12)]
    assert made.events[1:] == [*removed, CLEARED]


def test_hashes_as_bytes(path: Path) -> None:
    whole = bytes(range(32))
    path.write_bytes(frame(0, msgpack([1.5, [{**REMOVED, "block_hashes": [whole]}], 0])))
    assert read(path).events[0]["block_hashes"] == (whole,)


def test_events_of_connectors_are_counted_apart(path: Path) -> None:
    there = {**STORED, "locality": "REMOTE"}
    path.write_text(lines([1, [{**STORED, "medium": "CPU"}, STORED, there]], [2, [{**REMOVED, "medium": "CPU"}, CLEARED]]))
    made = read(path)
    assert [event["type"] for event in made.events] == ["BlockStored", "AllBlocksCleared"]
    assert made.elsewhere == {"CPU": 3, "REMOTE": 1}


@pytest.mark.parametrize(
    ("numbers", "gap", "batches"),
    [
        ((0, 1), None, 2),
        ((0, 2), "batch 1 is missing", 1),
        ((0, 4), "batches 1 to 3 are missing", 1),
        ((3, 4), "batches 0 to 2 are missing", 0),
    ],
)
def test_missing_numbers_are_gaps(path: Path, numbers: tuple[int, ...], gap: str | None, batches: int) -> None:
    path.write_text("".join(json.dumps({"seq": number, "batch": plain([STORED])}) + "\n" for number in numbers))
    made = read(path)
    assert (made.gap, len(made.batches)) == (gap and f"{path}: {gap}", batches)


@pytest.mark.parametrize("rest", [1, 15, 16, 20])
def test_a_last_batch_that_is_cut_off_is_a_gap(path: Path, rest: int) -> None:
    whole = [frame(number, msgpack(plain([STORED]))) for number in range(2)]
    path.write_bytes(whole[0] + whole[1][:rest])
    made = read(path)
    assert (made.gap, len(made.batches)) == (f"{path}: the last batch is cut off (byte {len(whole[0])})", 1)
    path.write_text(lines(plain([STORED]), plain([STORED]))[:-20])
    assert read(path).gap == f"{path}: the last batch is cut off (line 2)"


EVENTS: list[tuple[Any, str]] = [
    ({"block_hashes": [1]}, "is no KV event of vLLM 0.23 to 0.33; unknown type null: known are BlockStored, "),
    ({"type": "BlockStore"}, "unknown type \"BlockStore\": did you mean 'BlockStored'?"),
    (["BlockSwapped", [1]], 'unknown type "BlockSwapped"'),
    ([], "[] is no KV event"),
    (7, "7 is no KV event"),
    ({"type": "BlockRemoved"}, "BlockRemoved without block_hashes"),
    ({**REMOVED, "block_hash": 3}, "BlockRemoved has no field 'block_hash' in vLLM 0.23 to 0.33; did you mean 'block_hashes'?"),
    (["AllBlocksCleared", 1], "AllBlocksCleared with 1 fields, it has at most 0"),
    ({**REMOVED, "block_hashes": []}, "BlockRemoved: block_hashes is [], which is not a list of one or more hashes"),
    ({**REMOVED, "block_hashes": [1.5]}, "block_hashes is [1.5], which is not a list of one or more hashes"),
    ({**STORED, "parent_block_hash": [1]}, "parent_block_hash is [1], which is neither a hash nor None"),
    ({**STORED, "token_ids": "ab"}, 'token_ids is "ab", which is not a list of numbers'),
    ({**STORED, "block_size": 0}, "block_size is 0, which is not a number of tokens"),
    ({**STORED, "medium": 3}, "medium is 3, which is neither text nor None"),
    ({**STORED, "group_idx": -1}, "group_idx is -1, which is neither a number nor None"),
    ({**STORED, "extra_keys": 3}, "extra_keys is 3, which is neither a list nor None"),
    ({**STORED, "token_ids": [1, 2]}, "BlockStored with 2 tokens for 2 blocks of 2; holes are of windowed attention"),
]


@pytest.mark.parametrize(("given", "told"), EVENTS)
def test_what_is_no_event_is_named_with_its_place(path: Path, given: Any, told: str) -> None:
    path.write_text(lines([1, [CLEARED]], [1, [CLEARED, given]]))
    with pytest.raises(LogError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}: batch 1, event 2: ")
    assert told in str(error.value)


BATCH: list[tuple[Any, str]] = [
    (3, "3 is not a batch, [time, events] or [time, events, data-parallel rank]"),
    ([1.0], "[1.0] is not a batch"),
    ([1.0, {}], "is not a batch"),
    (["now", []], 'the time "now" is not a number'),
    ([1.0, [], "a"], 'the data-parallel rank "a" is not a number'),
    ([1.0, [], 1], "of data-parallel rank 1, the first is of None; each rank is an engine of its own; record them apart"),
]


@pytest.mark.parametrize(("given", "told"), BATCH)
def test_what_is_no_batch_is_named_with_its_place(path: Path, given: Any, told: str) -> None:
    path.write_bytes(frame(0, msgpack(plain([STORED]))) + frame(1, msgpack(given)))
    with pytest.raises(LogError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}: batch 1: ")
    assert told in str(error.value)


FILES: list[tuple[Any, str]] = [
    (
        lambda: frame(0, msgpack(plain([STORED]))[:-3]),
        "batch 0 (byte 0): not one whole MessagePack value (Input data was truncated)",
    ),
    (lambda: frame(0, b"\x81\x90\x01"), "batch 0: {(): 1} is not a batch"),
    (lambda: frame(0, b"\x81\x81\x90\x01\x01"), "batch 0 (byte 0): not one whole MessagePack value ("),
    (lambda: frame(0, msgpack([1, [{**CLEARED, 3: 4}]])), "batch 0, event 1: AllBlocksCleared has no field 3 in vLLM"),
    (lambda: frame(0, b"\x91" * 100_000), "batch 0 (byte 0): not one whole MessagePack value ("),
    (lambda: frame(0, msgpack([1, []]) * 2), "batch 0 (byte 0): not one whole MessagePack value ("),
    (lambda: msgpack(plain([STORED])) * 3, "byte 0: not the beginning of a batch of at most 67,108,864 bytes; each batch is "),
    (lambda: b"\0" * 8 + b"\xff" * 8 + b"...", "byte 0: not the beginning of a batch"),
    (lambda: frame(0, b"12345")[:-1], "byte 0: cut off within the first batch"),
    (lambda: frame(0, msgpack([1, []])) * 2, "batch 0: comes after batch 0; write each batch once, in order"),
    (lambda: b'{"seq": 0, "batch": [1, []], "more": 1}', 'line 1: {"seq": 0, "batch": [1, []], "more": 1} is not {"seq": '),
    (lambda: b'{"seq": -1, "batch": [1, []]}', "line 1: "),
    (lambda: b'{"seq": 0, "batch": [1, []]}\n\n[]\n', 'line 3: [] is not {"seq": NUMBER, "batch": [TIME, EVENTS]}'),
    (lambda: b'{"seq": 0, "batch": [1, []]}\n}\n', "line 2: not JSON; a line is "),
]


@pytest.mark.parametrize(("made", "told"), FILES)
def test_what_is_no_recording_is_named_with_its_place(path: Path, made: Any, told: str) -> None:
    path.write_bytes(made())
    assert is_recording(path)
    with pytest.raises(LogError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}: {told}")


def test_too_much_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text(lines([1, [CLEARED] * 3], [2, [CLEARED] * 3]))
    monkeypatch.setattr(kv_events, "MOST_EVENTS", 5)
    with pytest.raises(LogError, match="batch 1: more than 5 events up to here; record a shorter run"):
        read(path)
    monkeypatch.setattr(kv_events, "LARGEST", 50)
    with pytest.raises(LogError, match="line 1: longer than 50 bytes; a line has one batch"):
        read(path)


def test_without_msgspec_the_extra_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(frame(0, b"\x92\x01\x90"))
    monkeypatch.setitem(sys.modules, "msgspec", None)
    with pytest.raises(LogError, match=r"reading MessagePack needs msgspec: pip install 'fencepost\[vllm\]'"):
        read(path)
    path.write_text(lines([1, [CLEARED]]))
    assert read(path).events == [CLEARED]


@pytest.mark.parametrize("given", ["", "\0\0", "{", '{"event": "submit"}\n', "[1, 2]\n", "batch", '"batch"\n'])
def test_logs_are_no_recordings(path: Path, given: str) -> None:
    path.write_text(given)
    assert not is_recording(path)


def test_what_cannot_be_looked_into_is_no_recording(tmp_path: Path, path: Path) -> None:
    assert not is_recording(tmp_path)
    assert not is_recording(path)
    with pytest.raises(LogError, match="cannot be read: No such file or directory"):
        read(path)
