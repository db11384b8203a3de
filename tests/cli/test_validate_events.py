"""`fencepost validate` of recordings of KV events: verdicts, exit codes, output and errors, through the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.cli.main import main

BOUNDS = "requests=2,blocks=3,prompt-tokens=4,block-size=2,enable-prefix-caching=1"
FIRST: dict[str, Any] = {
    "type": "BlockStored",
    "block_hashes": [7, 8],
    "parent_block_hash": None,
    "token_ids": [1, 2, 3, 4],
    "block_size": 2,
}
OTHER: dict[str, Any] = {
    "type": "BlockStored",
    "block_hashes": [9],
    "parent_block_hash": None,
    "token_ids": [5, 6],
    "block_size": 2,
}


def removed(one: int) -> dict[str, Any]:
    return {"type": "BlockRemoved", "block_hashes": [one]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some events.jsonl"


def validate(path: Path, batches: list[list[Any]], *options: str, bounds: str = BOUNDS) -> int:
    """Validate batches that are written as JSON lines; one of None is left out."""
    numbered = [{"seq": number, "batch": [1.5, batch]} for number, batch in enumerate(batches) if batch]
    path.write_text("".join(json.dumps(line) + "\n" for line in numbered))
    return main(["validate", str(path), "--spec", "kv", "--profile", "vllm-0.33", "--bounds", bounds, *options])


def flat(text: str) -> str:
    """A report without its line breaks."""
    return " ".join(text.split())


def test_holds(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(path, [[FIRST], [removed(8), OTHER]]) == 0
    printed = flat(capsys.readouterr().out)
    assert printed.startswith(
        f"{path}, a recording of KV events, against spec kv HOLDS: a run of the spec publishes exactly these events: "
        "3 events in 2 whole batches; at profile vllm-0.33, blocks=3, requests=2,"
    )
    unseen = "Not checked: block ids, requests, times and tokens within a block; hashes only as equal or different."
    assert printed.endswith(f"states looked at. {unseen}")
    assert validate(path, [[FIRST]], "--quiet") == 0
    assert "1 event in 1 whole batch;" in flat(capsys.readouterr().out)


def test_violated_by_an_event(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(path, [[FIRST], [removed(7), OTHER]]) == 1
    printed = flat(capsys.readouterr().out)
    told = f"VIOLATED: {path}: batch 1, event 1: BlockRemoved of 7: no run of the spec that publishes all before it publishes"
    assert told in printed
    assert "states are possible; what runs of the spec publish there: AllBlocksCleared " in printed
    assert "BlockRemoved of 8" in printed


def test_violated_by_the_end_of_a_batch(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A block is handed out and hashed in one step: what comes of it is in one batch."""
    first, other = ({**one, "block_size": 1, "token_ids": one["block_hashes"]} for one in (FIRST, OTHER))
    bounds = "requests=2,blocks=2,prompt-tokens=2,max-tokens=1,enable-prefix-caching=1"
    assert validate(path, [[first], [removed(8), other]], "--quiet", bounds=bounds) == 0
    assert validate(path, [[first], [removed(8)], [other]], "--quiet", bounds=bounds) == 1
    told = f"VIOLATED: {path}: batch 1 ends after event 1: no run of the spec that publishes all of it so far ends it there"
    assert told in flat(capsys.readouterr().out)


def test_undetermined_after_a_gap(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(path, [[FIRST], [], [OTHER]], "-q") == 3
    printed = flat(capsys.readouterr().out)
    assert printed.startswith(
        f"UNDETERMINED: {path}: batch 1 is missing; 1 event in 1 whole batch before it explained; at profile"
    )
    assert validate(path, [[removed(7)], [], [OTHER]], "-q") == 1
    assert validate(path, [[], [FIRST]], "-q") == 3
    assert "batch 0 is missing; 0 events in 0 whole batches before it explained" in flat(capsys.readouterr().out)


def test_undetermined_at_a_limit(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(path, [[FIRST], [removed(8), OTHER]], "--max-states", "30", "-q") == 3
    assert "UNDETERMINED: more than 30 states (--max-states); " in flat(capsys.readouterr().out)


def test_json_and_a_trace(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "why.itf.json"
    elsewhere = {**FIRST, "medium": "CPU"}
    assert validate(path, [[FIRST], [elsewhere, removed(7)]], "--json", "--trace-out", str(trace)) == 1
    made = json.loads(capsys.readouterr().out)
    assert (made["format"], made["verdict"], made["reason"], made["recording"]) == (1, "VIOLATED", None, str(path))
    assert (made["events"], made["batches"], made["left_out"]) == (1, 1, {"CPU": 1})
    assert made["states"] >= made["violation"].pop("states") > 1
    assert "BlockRemoved of 8" in made["violation"].pop("allowed")
    assert made["violation"] == {"batch": 1, "event": 1, "what": "BlockRemoved of 7"}
    assert main(["explain", str(trace)]) == 0
    assert "schedule()" in capsys.readouterr().out
    assert validate(path, [[FIRST]], "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["verdict"], made["violation"], made["reason"]) == ("HOLDS", None, None)


def test_what_is_left_out_is_told(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(path, [[FIRST, {**FIRST, "medium": "CPU"}]]) == 0
    assert "note: 1 event of medium CPU left out; the spec has the cache of the device only" in flat(capsys.readouterr().out)
    assert validate(path, [[{**FIRST, "medium": "CPU"}]], "-q") == 3
    assert "UNDETERMINED: the recording has no event of the prefix cache; at" in flat(capsys.readouterr().out)


def test_errors_name_file_batch_and_fix(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(path, [[{"type": "BlockStore"}]]) == 2
    assert capsys.readouterr().err.startswith(f'error: {path}: batch 0, event 1: {{"type": "BlockStore"}} is no KV event')
    assert validate(path, [[FIRST]], bounds="enable-prefix-caching=1") == 2
    told = f"error: {path}: batch 0, event 1: BlockStored has blocks of 2 tokens, and the bounds say 1; "
    assert capsys.readouterr().err == f"{told}add --bounds block-size=2\n"
    assert validate(path, [[FIRST]], bounds="block-size=2") == 2
    told = "these bounds have no prefix cache; add --bounds enable-prefix-caching=1"
    assert capsys.readouterr().err == f"error: {path}: {told}\n"
    assert validate(path, [[FIRST]], "--unlogged", "run_step") == 2
    assert "--unlogged: no action is in " in capsys.readouterr().err
    lending = str(Path(__file__).parent / "specs/lending.py")
    assert main(["validate", str(path), "--spec", lending]) == 2
    assert "lending does not say what its runs publish; KV events are read with --spec kv" in capsys.readouterr().err
