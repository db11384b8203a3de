"""Facts that follow from others in the same state: the solver finds those that trying all states finds."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from fencepost.checker.prove.derived import derived
from fencepost.checker.prove.tracked import tracked_by
from fencepost.spec.lang import BoundSpec, Property, load_file, load_module

FACTS = {
    "ordered": "s.x <= s.y",
    "low": "s.y <= 2",
    "low_too": "s.x <= 2",
    "both_low": "s.x + s.y <= 4",
    "free": "s.x != 1 or s.f",
    "free_too": "not (s.x == 1 and not s.f)",
    "never": "s.x != 2 or s.y == 2",
    "split": "s.f or s.x != 2",
    "whole": "s.x * s.y <= 5",
}
SPEC = '''"""Two numbers."""

from fencepost.spec.lang import Bool, Int, action, always, state


@state
class Pair:
    x: Int(0, 3)
    y: Int(0, 3)
    f: Bool


@action
def wait(s):
    """Nothing happens."""
    s.f = s.f
'''


def spec(folder: Path) -> BoundSpec:
    path = folder / "pair.py"
    text = "".join(f'\n\n@always\ndef {name}(s):\n    """Holds."""\n    return {said}\n' for name, said in FACTS.items())
    path.write_text(SPEC + text)
    return BoundSpec(load_file(path), {})


def test_what_follows_is_what_holds_in_all_states_in_which_the_rest_does(tmp_path: Path) -> None:
    bound = spec(tmp_path)
    states = list(product(range(4), range(4), range(2)))
    left: list[Property] = list(bound.every)
    for fact in reversed(bound.every):
        rest = [other for other in left if other is not fact]
        if all(bound.holds(fact, s) for s in states if all(bound.holds(other, s) for other in rest)):
            left = rest
    found = derived(bound, bound.every, bound.every, lambda: 60.0)
    assert found == {fact.name for fact in bound.every} - {fact.name for fact in left}
    assert {"whole", "never", "free-too", "both-low"} <= found
    assert not found & {"ordered", "low"}


def test_only_candidates_follow(tmp_path: Path) -> None:
    bound = spec(tmp_path)
    some = [fact for fact in bound.every if fact.name in ("low-too", "split")]
    assert derived(bound, bound.every, some, lambda: 60.0) == {"low-too"}


def test_a_number_of_blocks_follows_from_what_is_said_of_each() -> None:
    bounds: dict[str, int | str] = {"blocks": 3, "prompt-tokens": 1, "kv-role": "kv_consumer", "remote-tokens": 1}
    bound = BoundSpec(load_module("fencepost.spec.kv.kv", "kv"), bounds)
    facts = [p for p in bound.every if p.kind in ("always", "quiescent")]
    some = [fact for fact in facts if tracked_by(bound, fact, "blocks") == 0]
    assert "pool-conservation" in derived(bound, facts, some, lambda: 60.0)
    without = [fact for fact in facts if fact.name != "free-once"]
    assert "pool-conservation" not in derived(bound, without, [f for f in some if f in without], lambda: 60.0)
