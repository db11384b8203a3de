"""What a spec expects to be seen of its states."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.checker.conform import observer
from fencepost.checker.conform.observer import Observer
from fencepost.spec.lang import BoundSpec, SpecError, load_file
from fencepost.spec.lang.layout import decode

SPECS = Path(__file__).parent / "specs"
MUTEX = Path(__file__).parents[1] / "models" / "specs" / "mutex.py"


def test_the_observed_function_is_applied_to_the_decoded_state_and_the_bounds() -> None:
    bound = BoundSpec(load_file(SPECS / "desk.py"), {"loans": 5})
    ((_, _, start),) = bound.initial()
    readers = {"A": {"at": "AWAY", "copy": None}, "B": {"at": "AWAY", "copy": None}}
    assert Observer(bound).expected(start) == {"readers": readers, "line": [], "shelf": [0, 1], "left": 5, "open": True}


def test_without_one_the_decoded_state_is_expected() -> None:
    bound = BoundSpec(load_file(MUTEX), {})
    state = next(bound.transitions(bound.shape.blank))[2]
    assert Observer(bound).expected(state) == decode(bound.shape, state)


def test_observations_are_the_same_however_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = BoundSpec(load_file(MUTEX), {})
    states = [after for _, _, after in bound.transitions(bound.shape.blank)]
    monkeypatch.setattr(observer, "_KEPT_CELLS", 2 * len(bound.shape.blank))
    small = Observer(bound)
    assert [small.expected(s) for s in states * 3] == [decode(bound.shape, s) for s in states * 3]


def test_an_observed_function_that_fails_is_an_error_of_the_spec(tmp_path: Path) -> None:
    text = (SPECS / "desk.py").read_text().replace('s["wet"]', 's["gone"]')
    (tmp_path / "broken.py").write_text(text)
    bound = BoundSpec(load_file(tmp_path / "broken.py"), {})
    with pytest.raises(SpecError, match=r"@observed seen: KeyError: 'gone'"):
        Observer(bound).expected(bound.shape.blank)
