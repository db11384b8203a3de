"""Reports as text: what changed, sentences, numbers, progress."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import pytest
from fencepost.checker.report import progress, words
from fencepost.checker.report.show import Change, Shower, grouped
from fencepost.checker.report.steps import sentences
from fencepost.spec.lang import BoundSpec, load_file

TESTS = Path(__file__).parents[1]


@pytest.fixture
def kinds() -> BoundSpec:
    """A spec with every kind of value."""
    return BoundSpec(load_file(TESTS / "traces" / "specs" / "kinds.py"), {})


def after(bound: BoundSpec, state: tuple[int, ...], action: str, *args: int) -> tuple[int, ...]:
    """The state that an action leads to."""
    made = bound.after(state, next(r for r in bound.actions if r.name == action), args)
    assert made is not None
    return made


def test_only_what_changed_is_shown(kinds: BoundSpec) -> None:
    shower = Shower(kinds)
    start = kinds.initial()[0][2]
    one = after(kinds, start, "begin", 1, 0b101, 1)
    assert list(map(str, shower.changes(start, one))) == [
        "mood: CALM -> BUSY",
        "last: none -> CALM",
        "on: no -> yes",
        "jobs[0]: + (who: B, blocks: {0, 2})",
    ]
    two = after(kinds, one, "begin", 0, 0b010, 1)
    assert list(map(str, shower.changes(one, two))) == ["last: CALM -> BUSY", "jobs[1]: + (who: A, blocks: {1})"]
    three = after(kinds, two, "end")
    assert list(map(str, shower.changes(two, three))) == [
        "mood: BUSY -> CALM",
        "jobs[0]: - (who: B, blocks: {0, 2})",
    ]
    assert shower.changes(three, three) == []


def test_a_whole_state_leaves_out_blanks(kinds: BoundSpec) -> None:
    start = kinds.initial()[1][2]
    shown = dict(Shower(kinds).state(after(kinds, start, "begin", 0, 0b110, 0)))
    assert shown == {
        "mood": "BUSY",
        "last": "CALM",
        "on": "no",
        "low": "1",
        "owner": "()",
        "queue": "[]",
        "jobs": "[(who: A, blocks: {1, 2})]",
    }


def test_neighbours_that_change_alike_share_a_line() -> None:
    def change(path: str, before: str = "0") -> Change:
        return Change(path, before, "1")

    found = grouped([change("a[0]"), change("a[1]"), change("a[2]", "5"), change("b[2]", "5"), change("n"), change("m")])
    assert found == ["a[0, 1]: 0 -> 1", "a[2]: 5 -> 1", "b[2]: 5 -> 1", "n: 0 -> 1", "m: 0 -> 1"]
    assert grouped([change("x[0].a"), change("x[1].a")]) == ["x[0].a: 0 -> 1", "x[1].a: 0 -> 1"]


def test_a_docstring_tells_what_an_action_does(kinds: BoundSpec) -> None:
    start = kinds.initial()[0][2]
    begin = kinds.actions[0]
    told = sentences(kinds, begin, (1, 0b110, 1), start, after(kinds, start, "begin", 1, 0b110, 1))
    assert told == ["Request B begins on {1, 2} (yes loud)."]


LENDING = TESTS / "cli" / "specs" / "lending.py"


def test_a_narrator_that_fails_does_not_take_the_report_with_it(tmp_path: Path) -> None:
    text = LENDING.read_text().replace('if action != "finish":', "if arguments['nothing']:")
    (tmp_path / "lending.py").write_text(text)
    bound = BoundSpec(load_file(tmp_path / "lending.py"), {})
    start = bound.initial()[0][2]
    told = sentences(bound, bound.actions[0], (0,), start, after(bound, start, "borrow", 0))
    assert told == ["(the narrator of lending failed: KeyError: 'nothing')"]


@pytest.mark.parametrize(
    ("amount", "shown"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (300 * 2**20, "300 MiB"), (5 * 2**40, "5.0 TiB")]
)
def test_sizes(amount: int, shown: str) -> None:
    assert words.size(amount) == shown


@pytest.mark.parametrize(("amount", "shown"), [(0.034, "0.03 s"), (31.44, "31.4 s"), (125.0, "2 min 5 s")])
def test_seconds(amount: float, shown: str) -> None:
    assert words.seconds(amount) == shown


def test_counts() -> None:
    assert words.count(1, "property") == "1 property"
    assert words.count(2, "property") == "2 properties"
    assert words.count(1234, "witness") == "1,234 witnesses"


@dataclass(frozen=True)
class Seen:
    """Progress as an engine reports it."""

    depth: int = 3
    distinct: int = 12345
    generated: int = 23456
    queue: int = 100
    rate: float = 4567.8
    memory_bytes: int = 2**20
    note: str = ""


LINE = "depth 3, 12,345 distinct, 23,456 generated, 100 queued, 4,568 states/s, 1.0 MiB"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_is_plain_lines_off_a_terminal() -> None:
    stream = io.StringIO()
    shown = progress.ProgressLine(stream)
    for _ in range(5):
        shown(Seen())
    shown.close()
    assert stream.getvalue() == f"{LINE}\n"


def test_progress_is_one_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "90")
    stream = Terminal()
    shown = progress.ProgressLine(stream)
    shown(Seen(note="this is longer than the terminal is wide"))
    shown(Seen(distinct=5))
    shown.close()
    lines = stream.getvalue().split("\r")
    assert max(map(len, lines)) < 90
    assert lines[1].startswith(f"{LINE}; this")
    assert lines[2].strip() == LINE.replace("12,345", "5")
    assert lines[3].strip() == ""
