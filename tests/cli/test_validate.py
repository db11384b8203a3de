"""`fencepost validate`: verdicts, exit codes, output and errors, through the command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.cli.main import main

LENDING = str(Path(__file__).parent / "specs/lending.py")
BORROW = '{"event": "borrow", "arguments": {"r": "A"}, "after": {"free": [1]}}\n'
LAND = '{"event": "land"}\n'


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "some log.jsonl"


def validate(log: Path, text: str, *options: str) -> int:
    """Validate a log that is given as text."""
    log.write_text(text)
    return main(["validate", str(log), "--spec", LENDING, *options])


def flat(text: str) -> str:
    """A report without its line breaks."""
    return " ".join(text.split())


def test_holds(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(log, BORROW) == 0
    printed = flat(capsys.readouterr().out)
    assert printed.startswith(
        f"{log} against spec {LENDING} HOLDS: the spec allows this log: 1 event up to line 1; 1 state possible"
    )
    assert "at requests=2, blocks=2, fence=off" in printed


def test_violated_by_an_event(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(log, BORROW + "\n" + LAND) == 1
    printed = flat(capsys.readouterr().out)
    assert f"VIOLATED: {log}:3: land(b=any): the spec does not allow it there" in printed
    assert printed.endswith("Since line 1, 1 state is possible; events allowed there: borrow(r=B) launch(r=A) finish(r=A)")


def test_violated_by_what_was_seen(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(log, '{"event": "borrow", "after": {"held": {"A": 0, "B": 0}, "writing": []}}') == 1
    printed = flat(capsys.readouterr().out)
    assert f"VIOLATED: {log}:1: borrow(r=any): the spec shows something else there" in printed
    assert "There are 2 possible states after it, and none shows what the log says; the nearest differs in 1 place:" in printed
    assert "where the log the spec held[B] 0 null" in printed
    assert "From the start, 1 state is possible" in printed


def test_undetermined_after_a_gap(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(log, BORROW + '{"gap": "restart"}\n' + LAND + LAND, "--quiet") == 3
    printed = flat(capsys.readouterr().out)
    reason = f"{log}:2: events may be missing here (restart); 1 event before it allowed, 2 events not checked"
    assert printed.startswith(f"UNDETERMINED: {reason}; at ")


def test_a_violation_before_a_gap_is_one(log: Path) -> None:
    assert validate(log, LAND + '{"gap": "restart"}\n') == 1


def test_undetermined_where_the_log_is_cut_off(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(log, BORROW + BORROW[:30], "--quiet") == 3
    assert flat(capsys.readouterr().out).startswith(
        f"UNDETERMINED: {log}:2: the last line is cut off; 1 event before it allowed; at requests=2"
    )


def test_too_many_states(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(log, '{"event": "borrow"}\n' * 2, "--max-states", "1", "-q") == 3
    assert ":1: more than 1 states (--max-states); 0 events before it allowed, 2 events not checked" in flat(
        capsys.readouterr().out
    )


def test_unlogged_actions(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        BORROW
        + '{"event": "launch"}\n{"event": "finish"}\n{"event": "finish"}\n{"event": "borrow", "after": {"writing": []}}\n'
    )
    assert validate(log, text) == 1
    text = BORROW + '{"event": "launch"}\n{"event": "finish"}\n{"event": "borrow", "after": {"writing": []}}\n'
    assert validate(log, text) == 1
    assert validate(log, text, "--unlogged", "land") == 0
    capsys.readouterr()
    assert validate(log, text, "--unlogged", "landed") == 2
    assert capsys.readouterr().err == "error: --unlogged: lending has no action 'landed'; did you mean 'land'?\n"


def test_a_trace_that_explains_the_log(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "why.itf.json"
    text = BORROW + '{"event": "launch"}\n{"event": "finish", "after": {"writing": []}}\n'
    assert validate(log, text, "--trace-out", str(trace)) == 1
    assert main(["explain", str(trace)]) == 0
    assert "2  launch(r=A)" in capsys.readouterr().out
    assert validate(log, text, "--unlogged", "land", "--trace-out", str(trace)) == 0
    capsys.readouterr()
    assert main(["explain", str(trace)]) == 0
    printed = capsys.readouterr().out
    assert "4 transitions; shows: nothing in particular" in printed
    assert "4  finish(r=A)" in printed


def test_json(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(log, BORROW + BORROW, "--json") == 1
    made = json.loads(capsys.readouterr().out)
    assert (made["format"], made["verdict"], made["reason"], made["log"]) == (1, "VIOLATED", None, str(log))
    assert (made["events"], made["line"], made["states"], made["most_states"], made["unchecked"]) == (1, 1, 1, 1, 0)
    assert made["violation"] == {
        "line": 2,
        "event": "borrow(r=A)",
        "since": 1,
        "states": 1,
        "allowed": ["borrow(r=B)", "launch(r=A)", "finish(r=A)"],
        "candidates": 0,
        "differences": [],
    }
    assert validate(log, '{"event": "borrow", "after": {"free": {"0": 1, "1": 0}, "writing": [1]}}', "--json") == 1
    made = json.loads(capsys.readouterr().out)
    assert made["violation"]["differences"] == [{"path": "free[1]", "log": 0}, {"path": "writing", "log": [1], "spec": []}]
    assert validate(log, '{"note": ""}', "--json") == 3
    assert json.loads(capsys.readouterr().out)["reason"] == "the log has no event"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", " is empty; a log has one JSON object a line"),
        ("borrow\n", "1: not JSON (Expecting value at column 1)"),
        (BORROW + "[]\n", "2: [] is not an object"),
        (BORROW + '{"event": "lend"}\n', "2: unknown event"),
        ('{"event": "borrow", "arguments": {"r": "Q"}}\n', '1: borrow, argument r: "Q" is no member of requests (A to B)'),
        ("\0\0", "1: not JSON"),
    ],
)
def test_errors_of_input_name_file_and_line(log: Path, capsys: pytest.CaptureFixture[str], text: str, told: str) -> None:
    assert validate(log, text) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(f"error: {log}:{told}")
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_what_cannot_be_validated(tmp_path: Path, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(tmp_path / "none.jsonl"), "--spec", LENDING]) == 2
    assert "none.jsonl: cannot be read: No such file or directory" in capsys.readouterr().err
    assert main(["validate", str(tmp_path), "--spec", LENDING]) == 2
    assert "cannot be read: Is a directory" in capsys.readouterr().err
    log.write_text(BORROW)
    assert main(["validate", str(log)]) == 2
    assert "name the spec with --spec" in capsys.readouterr().err
    assert main(["validate", str(log), "--spec", "kvv"]) == 2
    assert main(["validate", str(log), "--spec", LENDING, "--bounds", "request=2"]) == 2
    assert main(["validate", str(log), "--spec", LENDING, "--profile", "vllm-0.33"]) == 2
    assert main(["validate", str(log), "--spec", LENDING, "--max-states", "many"]) == 2
    assert main(["validate", str(log), "--spec", LENDING, "--json", "--quiet"]) == 2
    assert main(["validate", str(log), "--spec", LENDING, "--trace-out", str(tmp_path)]) == 2


def test_the_kv_spec_by_profile_and_by_fault(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log.write_text('{"event": "submit", "after": {"waiting": ["A"]}}\n{"event": "schedule", "after": {"running": [0]}}\n')
    assert main(["validate", str(log), "--spec", "kv", "--profile", "vllm-0.33", "--bounds", "requests=2,blocks=4"]) == 0
    assert "profile vllm-0.33, blocks=4" in flat(capsys.readouterr().out)
    from fencepost.checker.cli.kvdata import faults

    fault = next(iter(faults()))
    log.write_text('{"event": "schedule", "after": {"running": [0]}}\n')
    assert main(["validate", str(log), "--fault", fault]) == 1
    assert f"fault {fault}" in capsys.readouterr().out


def test_ctrl_c_ends_it_undetermined(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "fencepost.checker.cli.main", "validate", str(pipe), "--spec", LENDING]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with suppress(BrokenPipeError), pipe.open("w") as writer:
        writer.write(BORROW)
        writer.flush()
        running.send_signal(signal.SIGINT)
        lines = '{"event": "launch"}\n{"event": "land"}\n' * 5000
        writer.write(lines)
    printed, errors = running.communicate(timeout=60)
    assert running.returncode == 3, errors
    assert "interrupted" in printed + errors


def test_a_log_of_the_reference_implementation(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bounds = ("--bounds", "requests=4,blocks=8,block-size=2,kv-role=kv_consumer,remote-tokens=2")
    drawn = ("--target", "reference", "--random", "150", "--seed", "3", "--log", str(log), "--quiet")
    assert main(["conform", *drawn, "--profile", "vllm-0.33", *bounds]) == 0
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert len(events) == 150
    assert "land" in events
    against = ["validate", str(log), "--spec", "kv", "--quiet", *bounds, "--profile"]
    assert main([*against, "vllm-0.33"]) == 0
    assert main([*against, "vllm-0.23"]) == 1
    kept = [line for line in log.read_text().splitlines() if json.loads(line)["event"] not in ("land", "run_step")]
    log.write_text("\n".join(kept))
    assert main([*against, "vllm-0.33"]) == 1
    assert main([*against, "vllm-0.33", "--unlogged", "land", "--unlogged", "run_step"]) == 0


CACHING = "requests=4,blocks=6,block-size=2,prompt-tokens=4,enable-prefix-caching=1,prefix-groups=1"
DRAWN = ("conform", "--target", "reference", "--random", "3k", "--quiet", "--profile", "vllm-0.33", "--bounds", CACHING)


def test_a_log_with_shared_prompts(log: Path) -> None:
    assert main([*DRAWN, "--log", str(log)]) == 0
    content = [json.loads(line)["after"].get("content") for line in log.read_text().splitlines()]
    assert len(content) == 2000
    assert any(isinstance(blocks, dict) for blocks in content), "some count is only said to be enough, and left out"
    assert main(["validate", str(log), "--spec", "kv", "-q", "--profile", "vllm-0.33", "--bounds", CACHING]) == 0


def test_an_error_leaves_no_part_of_a_log(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fencepost.checker.conform import log as module

    whole, lines = module.log_line, iter(range(5))

    def fails(*given: Any) -> str:
        if next(lines, None) is None:
            raise RuntimeError("no more")
        return whole(*given)

    monkeypatch.setattr(module, "log_line", fails)
    log.write_text("from before")
    assert main([*DRAWN, "--log", str(log)]) == 4
    assert [path.name for path in log.parent.iterdir()] == [log.name]
    assert log.read_text() == "from before"


def test_a_log_goes_to_a_pipe_as_it_is_written(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with (tmp_path / "read").open("w+") as read:
        with subprocess.Popen(["cat", str(pipe)], stdout=read) as reader:
            assert main([*DRAWN, "--log", str(pipe)]) == 0
            assert reader.wait(timeout=60) == 0
        assert len((tmp_path / "read").read_text().splitlines()) == 2000
    assert pipe.is_fifo()


def test_a_misspelt_name_is_an_error_with_its_line(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    submit = '{"event": "submit", "arguments": {"r": "A"}, "after": {"requests": {"A": {"%s": null}}}}\n'
    log.write_text(submit % "statsu")
    assert main(["validate", str(log), "--spec", "kv", "--bounds", "requests=2,blocks=3"]) == 2
    told = "1: after.requests[A]: 'statsu' is in no state up to the end of the log, so it says nothing; did you mean 'status'?"
    assert capsys.readouterr().err == f"error: {log}:{told}\n"
    log.write_text(submit % "status")
    assert main(["validate", str(log), "--spec", "kv", "--bounds", "requests=2,blocks=3"]) == 1
