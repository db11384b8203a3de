"""What a log may say, what is refused with its place, and that written lines read back."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.conform.log import LONGEST, Event, Gap, Log, LogError, Start, log_line
from fencepost.checker.conform.validate import validate
from fencepost.checker.result import Verdict
from fencepost.spec.lang import BoundSpec, SpecError, load_file, load_module
from fencepost.spec.lang.layout import decode
from fencepost.traces.driver import ANYTHING, UpTo
from hypothesis import given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
KINDS = BoundSpec(load_file(ROOT / "tests/traces/specs/kinds.py"), {})
LENDING = BoundSpec(load_file(ROOT / "tests/cli/specs/lending.py"), {"requests": 3})
LAMPS = BoundSpec(load_file(ROOT / "tests/models/specs/switches.py"), {"lamps": 3})


def read(tmp_path: Path, text: str | bytes, bound: BoundSpec = LENDING) -> list[Event | Start | Gap]:
    """Read a log that is given as text."""
    path = tmp_path / "some log.jsonl"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return list(Log(path, bound))


def refused(tmp_path: Path, text: str | bytes, bound: BoundSpec = LENDING) -> str:
    """The message with which a log is refused, without its path."""
    with pytest.raises(LogError) as error:
        read(tmp_path, text, bound)
    message = str(error.value)
    assert message.startswith(f"{tmp_path}/some log.jsonl:")
    assert "\n" not in message
    return message.removeprefix(f"{tmp_path}/some log.jsonl:")


def test_lines_are_read_with_their_numbers(tmp_path: Path) -> None:
    text = (
        '\ufeff{"start": {"free": [0, 1]}}\n\n'
        '{"note": "only a remark", "time": 1.5}\r\n'
        '{"event": "borrow", "arguments": {"r": "B"}, "time": "now"}\n'
        '  {"event": "borrow"}\n'
        '{"gap": "the disk was full"}\n'
        '{"event": "land", "arguments": {"b": "1"}, "after": {"writing": [0]}}'
    )
    start, first, second, gap, last = read(tmp_path, text)
    assert isinstance(start, Start)
    assert start == Start(1, {"free": [0, 1]})
    assert isinstance(first, Event)
    assert (first.line, first.rule.name, first.choices, first.after) == (4, "borrow", ((1,),), {})
    assert isinstance(second, Event)
    assert (second.line, second.choices) == (5, (range(3),))
    assert gap == Gap(6, "the disk was full")
    assert isinstance(last, Event)
    assert (last.line, last.choices, last.after) == (7, ((1,),), {"writing": [0]})


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("borrow A", "2: not JSON (Expecting value at column 1); a line is one object"),
        ('["borrow"]', '2: ["borrow"] is not an object'),
        ("3", "2: 3 is not an object"),
        ('{"event": "borrow"} {"event": "land"}', "2: not JSON (Extra data"),
        ('{"event": NaN}', "2: not JSON (NaN is no number)"),
        ('{"event": "borrow", "event": "land"}', "2: the key 'event' is there twice"),
        ('{"event": "borrow", "after": {"free": [], "free": []}}', "2: the key 'free' is there twice"),
        ('{"event": "borow"}', "2: unknown event \"borow\"; did you mean 'borrow'?"),
        ('{"event": 7}', "2: unknown event 7; known are borrow, launch, finish, land"),
        ('{"event": null}', "2: unknown event null"),
        ('{"event": ["borrow"]}', '2: unknown event ["borrow"]'),
        ('{"evnt": "borrow"}', "2: unknown key 'evnt'; did you mean 'event'?"),
        ('{"event": "borrow", "args": {}}', "2: unknown key 'args'; did you mean 'arguments'?"),
        ('{"event": "borrow", "gap": "x"}', "2: both 'event' and 'gap'"),
        ('{"start": {}, "after": {}}', "2: unknown key 'after'"),
        ("{}", "2: says nothing; a line has 'event', 'start' or 'gap'"),
        ('{"event": "borrow", "arguments": ["A"]}', '2: arguments: ["A"] is not an object'),
        ('{"event": "borrow", "arguments": {"req": "A"}}', "2: borrow has no argument 'req'; known are r"),
        ('{"event": "borrow", "arguments": {"r": "D"}}', '2: borrow, argument r: "D" is no member of requests (A to C)'),
        ('{"event": "borrow", "arguments": {"r": 3}}', "2: borrow, argument r: 3 is no member of requests (A to C)"),
        ('{"event": "borrow", "arguments": {"r": true}}', "2: borrow, argument r: true is no member of requests"),
        ('{"event": "borrow", "arguments": {"r": 1.0}}', "2: borrow, argument r: 1.0 is no member of requests"),
        ('{"event": "borrow", "after": []}', "2: after: [] is not an object"),
        ('{"event": "borrow", "after": {"fre": []}}', "2: after: Pool has no 'fre'; did you mean 'free'?"),
        ('{"event": "borrow", "after": {"free": 1}}', "2: after.free: 1 is neither a list nor an object"),
        ('{"event": "borrow", "after": {"free": [9]}}', "2: after.free[0]: 9 is no member of blocks (0 to 1)"),
        ('{"event": "borrow", "after": {"status": ["IDLE"]}}', "2: after.status: a list of 1, where there are 3"),
        ('{"event": "borrow", "after": {"status": {"A": "BUSY"}}}', '2: after.status[A]: "BUSY" is not in {IDLE, BORROWING}'),
        ('{"event": "borrow", "after": {"status": {"Z": "IDLE"}}}', '2: after.status: "Z" is no member of requests'),
        ('{"event": "borrow", "after": {"status": "IDLE"}}', '2: after.status: "IDLE" is neither a list nor an object'),
        ('{"event": "borrow", "after": {"writing": 0}}', "2: after.writing: 0 is not a list"),
        ('{"event": "borrow", "after": {"writing": [0, "0"]}}', '2: after.writing: [0, "0"] names a member twice'),
        ('{"event": "borrow", "after": {"writing": [0.5]}}', "2: after.writing: 0.5 is no member of blocks"),
        ('{"event": "borrow", "after": {"free": ["A"]}}', '2: after.free[0]: "A" is no member of blocks (0 to 1)'),
        ('{"event": "borrow", "after": {"free": {"B": 0}}}', '2: after.free: "B" is no position (0 to 1)'),
        ('{"event": "land", "arguments": {"b": "A"}}', '2: land, argument b: "A" is no member of blocks (0 to 1)'),
        ('{"start": 1}', "2: start: 1 is not an object"),
        ("[" * 100_000, "2: nested too deeply"),
        ('{"a": ' * 100_000, "2: nested too deeply"),
        ('{"event": ' + "9" * 5000 + "}", "2: not JSON ("),
    ],
)
def test_what_is_refused(tmp_path: Path, line: str, told: str) -> None:
    assert told in refused(tmp_path, f'{{"event": "borrow"}}\n{line}\n{{"event": "borrow"}}\n')


def test_arguments_of_every_kind(tmp_path: Path) -> None:
    rule = next(rule for rule in KINDS.actions if len(rule.domains) > 1)
    for args in rule.choices():
        (event,) = read(tmp_path, log_line(KINDS, rule, args), KINDS)
        assert isinstance(event, Event)
        assert event.choices == tuple((value,) for value in args)


@pytest.mark.parametrize("data", [b"\x00\x01\x02", b"\xff\xfe{", b"\x7fELF\x02\x01\x01\n\n", b'{"event": "borrow\xff"}\n'])
def test_binary_files(tmp_path: Path, data: bytes) -> None:
    assert refused(tmp_path, data).startswith("1: not JSON")


@pytest.mark.parametrize("text", ["", "\n\n", "   \n", "\ufeff"])
def test_empty_files(tmp_path: Path, text: str) -> None:
    with pytest.raises(LogError, match=r"some log.jsonl: is empty; a log has one JSON object a line"):
        read(tmp_path, text)


def test_a_huge_line(tmp_path: Path) -> None:
    assert refused(tmp_path, '{"note": "' + "x" * LONGEST + '"}\n').startswith("1: longer than 4,194,304 bytes")
    assert read(tmp_path, '{"note": "' + "x" * (LONGEST - 13) + '"}\n') == []


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"nothing\.jsonl: cannot be read: No such file or directory"):
        list(Log(tmp_path / "nothing.jsonl", LENDING))
    with pytest.raises(LogError, match="cannot be read: Is a directory"):
        list(Log(tmp_path, LENDING))


LAST = '{"event": "borrow", "arguments": {"r": "A"}, "after": {"status": {"A": "BORROWING"}, "free": [1]}, "time": -1.5e3}'


@pytest.mark.parametrize("kept", range(1, len(LAST)))
def test_a_last_line_that_is_cut_off_is_reported_wherever_it_ends(tmp_path: Path, kept: int) -> None:
    entries = read(tmp_path, f'{{"event": "borrow"}}\n{LAST[:kept]}')
    assert entries[1:] == [Gap(2, "the last line is cut off", cut_off=True)]


def test_a_last_line_that_is_cut_off_inside_a_letter(tmp_path: Path) -> None:
    whole = '{"event": "borrow"}\n{"note": "Prüfung"}'.encode()
    assert read(tmp_path, whole[: whole.index(b"\xbc")])[1:] == [Gap(2, "the last line is cut off", cut_off=True)]


def test_a_whole_last_line_needs_no_newline(tmp_path: Path) -> None:
    assert len(read(tmp_path, LAST)) == 1


def test_a_cut_line_within_the_log_is_an_error(tmp_path: Path) -> None:
    assert refused(tmp_path, f"{LAST[:40]}\n{LAST}\n").startswith("1: not JSON")


def test_actions_that_do_not_apply_are_told_apart(tmp_path: Path) -> None:
    bound = BoundSpec(load_module("fencepost.spec.kv.kv", "kv"), {"requests": 2, "blocks": 2})
    name = next(name for name in bound.not_applicable if any(a.name == name for a in bound.spec.actions))
    assert "does not apply at these bounds" in refused(tmp_path, json.dumps({"event": name}), bound)


def test_observed_names_are_checked_at_the_top(tmp_path: Path) -> None:
    bound = BoundSpec(load_module("fencepost.spec.kv.kv", "kv"), {"requests": 2, "blocks": 2})
    told = refused(tmp_path, '{"event": "schedule", "after": {"statuses": {}}}', bound)
    assert told.startswith("1: after: kv shows nothing named 'statuses'")
    assert len(read(tmp_path, '{"event": "schedule", "after": {"requests": {}, "free": []}}', bound)) == 1


@pytest.mark.parametrize("bound", [KINDS, LENDING, LAMPS], ids=lambda bound: bound.spec.name)
@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32))
def test_written_lines_are_allowed(tmp_path_factory: pytest.TempPathFactory, bound: BoundSpec, seed: int) -> None:
    chosen = random.Random(seed)
    state = chosen.choice(bound.initial())[2]
    lines: list[str] = []
    for _ in range(10):
        try:
            steps = list(bound.transitions(state))
        except SpecError:  # this spec has an action that leaves its bounds
            break
        rule, args, state = chosen.choice(steps)
        shown = {name: _some(value, chosen) for name, value in decode(bound.shape, state).items()}
        lines.append(log_line(bound, rule, args, shown))
    path = tmp_path_factory.getbasetemp() / "written.jsonl"
    path.write_text("\n".join(lines))
    assert validate(Log(path, bound)).verdict is (Verdict.HOLDS if lines else Verdict.UNDETERMINED)


def _some(value: Any, chosen: random.Random) -> Any:
    """A value of which parts at random are not said."""
    if chosen.random() < 0.1:
        return ANYTHING
    if isinstance(value, list):
        return [_some(part, chosen) for part in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {name: _some(part, chosen) for name, part in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value


def test_members_are_written_as_labels_and_what_is_not_said_is_left_out() -> None:
    borrow = LENDING.actions[0]
    shown = {"status": ["IDLE", ANYTHING, "IDLE"], "held": ANYTHING, "free": [1], "writing": frozenset({1, 0})}
    assert json.loads(log_line(LENDING, borrow, (2,), shown)) == {
        "event": "borrow",
        "arguments": {"r": "C"},
        "after": {"status": {"A": "IDLE", "C": "IDLE"}, "free": [1], "writing": [0, 1]},
    }
    assert json.loads(log_line(LENDING, borrow, (0,), {"held": UpTo(1), "free": [UpTo(2), 1]}))["after"] == {"free": {"1": 1}}
    assert json.loads(log_line(LENDING, borrow, (0,))) == {"event": "borrow", "arguments": {"r": "A"}}
