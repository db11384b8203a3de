"""What makes an index ordered, so that symmetry leaves it alone; and what does not depend on the order of members at all."""

from pathlib import Path

import pytest
from fencepost.checker.explore.native.engine import NativeEngine
from fencepost.checker.explore.reference import ReferenceEngine
from fencepost.checker.model import SPEC_ERROR, Model, Options
from fencepost.spec.lang import Spec, load_file

HEAD = """
from fencepost.spec.lang import *

OWNERS = Index("owners", default=3)


@record
class Entry:
    first: OWNERS
    second: OWNERS


@state
class Pool:
    entries: Seq[Entry, 1]
    slots: Array[OWNERS, Seq[OWNERS, 1]]
    done: Array[OWNERS, Bool]
    count: Array[OWNERS, Int(0, 1)]


def newest(s):
    return s.entries[len(s.entries) - 1].second


@action
def put(s, r: OWNERS, q: OWNERS):
    s.slots[r].append(q)


@action
def finish(s, r: OWNERS):
    s.done[r] = True
"""


def spec_of(folder: Path, text: str) -> Spec:
    path = folder / "members.py"
    path.write_text(HEAD + text)
    return load_file(path)


def action(*lines: str) -> str:
    return "\n\n@action\ndef act(s, r: OWNERS, q: OWNERS):\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("lines", "ordered"),
    [
        (("entry = s.entries.grow()", "entry.first = r", "entry.second = q"), False),
        (("entry = s.entries.grow()", "entry.second = s.slots[r][0]", "entry.first = q"), False),
        (("entry = s.entries.grow()", "entry.first = r"), True),
        (("entry = s.entries.grow()", "entry.first = entry.second", "entry.second = q"), True),
        (("entry = s.entries.grow()", "entry.first = newest(s)", "entry.second = q"), True),
        (("every = s.entries", "entry = s.entries.grow()", "entry.first = every[0].second", "entry.second = q"), True),
        (("for x in range(OWNERS):", "    s.done[x] = s.count[x] == 1"), False),
        (("for x in range(OWNERS):", "    s.count[x] -= 1"), False),
        (("for x in range(OWNERS):", "    require(s.done[x])", "    s.count[x] -= 1"), True),
        (("require(s.done[r])", "for x in range(OWNERS):", "    s.count[x] -= 1"), False),
    ],
)
def test_use_of_members(tmp_path: Path, lines: tuple[str, ...], ordered: bool) -> None:
    assert ("owners" in spec_of(tmp_path, action(*lines)).ordered) is ordered


QUANTIFIERS = {
    "any": "any(s.done[x] or s.slots[x][0] == x for x in range(OWNERS))",
    "all": "all(not s.done[x] and s.slots[x][0] == s.slots[x][0] for x in range(OWNERS))",
    "nested": "any(s.done[x] or s.slots[x][0] == y for x in range(OWNERS) for y in range(OWNERS))",
    "condition": "any(s.done[x] for x in range(OWNERS) if s.done[x] or s.slots[x][0] == x)",
}


@pytest.mark.parametrize("name", QUANTIFIERS)
@pytest.mark.parametrize("decides", [0, 1])
@pytest.mark.parametrize("symmetry", [True, False])
def test_a_quantifier_looks_at_every_member(tmp_path: Path, name: str, decides: int, symmetry: bool) -> None:
    """One member decides, another cannot be evaluated: a spec error, whichever of them comes first."""
    text = f"""

@init
def start(s):
    s.done[{decides}] = True


@action
def evaluate(s):
    require({QUANTIFIERS[name]})
"""
    model = Model.of(spec_of(tmp_path, text), {"owners": 2})
    options = Options(symmetry=symmetry, deadlock=False, threads=1)
    native = NativeEngine(model)
    native.load(options)
    for engine in (native, ReferenceEngine(model)):
        found = engine.run(options)
        assert found.symmetry is symmetry
        assert found.failures[SPEC_ERROR].length == 1
