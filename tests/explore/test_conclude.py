"""What is concluded of a search that went on after violations, and of one in which there was nothing to check."""

from pathlib import Path

import pytest
from fencepost.checker.explore import explore
from fencepost.checker.explore.native.engine import NativeEngine
from fencepost.checker.model import Model, Options
from fencepost.checker.result import Result, Status, Verdict
from fencepost.spec.lang import BoundsError, load_file

TEXT = """
from fencepost.spec.lang import *

STEPS = Bound("steps", default=2)


@state
class Counter:
    n: Int(0, 5)


@action(when=lambda: STEPS > 1)
def count(s):
    require(s.n < 5)
    s.n += 1


@always(when=lambda: STEPS > 0)
def small(s):
    return s.n < 3


@always(when=lambda: STEPS > 0)
def within(s):
    return s.n <= 5


@always(when=lambda: STEPS > 0)
def empty(s):
    return implies(s.n > 5, s.n == 6)


@reachable(when=lambda: STEPS > 0)
def nine(s):
    return s.n + 4 == 10
"""


def check(folder: Path, steps: int, *, keep_going: bool, deadlock: bool) -> Result:
    path = folder / "counter.py"
    path.write_text(TEXT)
    options = Options(keep_going=keep_going, deadlock=deadlock)
    return explore(Model.of(load_file(path), {"steps": steps}), options, "reference")


def statuses(result: Result) -> dict[str, Status]:
    return {p.name: p.status for p in result.properties}


def test_a_search_that_went_on_says_what_holds(tmp_path: Path) -> None:
    result = check(tmp_path, 2, keep_going=True, deadlock=False)
    assert result.verdict is Verdict.VIOLATED
    found = {"small": Status.VIOLATED, "within": Status.HOLDS, "empty": Status.VACUOUS, "nine": Status.NOT_REACHED}
    assert statuses(result) == found


def test_a_search_that_stopped_does_not(tmp_path: Path) -> None:
    result = check(tmp_path, 2, keep_going=False, deadlock=False)
    others = {name: status for name, status in statuses(result).items() if name != "small"}
    assert set(others.values()) == {Status.UNDETERMINED}


@pytest.mark.parametrize(("steps", "reason"), [(1, "no action applies"), (0, "no property applies")])
def test_nothing_to_check_is_no_pass(tmp_path: Path, steps: int, reason: str) -> None:
    result = check(tmp_path, steps, keep_going=True, deadlock=False)
    assert result.verdict is Verdict.UNDETERMINED
    assert reason in str(result.reason)


def test_more_properties_than_the_native_engine_takes(tmp_path: Path) -> None:
    path = tmp_path / "counter.py"
    more = "".join(f"\n\n@always\ndef p{k}(s):\n    return s.n != {k + 9}\n" for k in range(64))
    path.write_text(TEXT + more)
    with pytest.raises(BoundsError, match="64 properties, the native engine takes 63"):
        explore(Model.of(load_file(path), {"steps": 0}), Options(), "native")
    assert explore(Model.of(load_file(path), {"steps": 0}), Options(), "reference").properties


def test_a_number_that_leaves_64_bits_on_the_way_is_refused_by_compiled_code_only() -> None:
    path = Path(__file__).parent / "specs" / "doubled.py"
    model, options = Model.of(load_file(path)), Options(deadlock=False)
    assert explore(model, options, "reference").verdict == Verdict.HOLDS
    with pytest.raises(BoundsError, match=r"doubled\.py:23: a number leaves the range of 64 bits, .*--engine reference$"):
        NativeEngine(model).run(options)
