"""Helpers from a module that knows nothing of the language are read, bound and hashed like the spec's own."""

from pathlib import Path

import pytest
from fencepost.spec.lang import BoundSpec, SpecError, load_file

HELPER = """
def some(s, n):
    return any(s.a[k] == 1 or s.q[0] == 0 for k in range(n))
"""
SPEC = """
from fencepost.spec.lang import *
from plain_helper import some

N = Bound("n", default=2)


@state
class Pool:
    a: Array[N, Int(0, 1)]
    q: Seq[Int(0, 1), 1]


@init
def start(s):
    s.a[0] = 1


@action
def use(s):
    require(some(s, N))
"""


def test_a_helper_from_a_plain_module(tmp_path: Path) -> None:
    helper, path = tmp_path / "plain_helper.py", tmp_path / "uses_it.py"
    helper.write_text(HELPER)
    path.write_text(SPEC)
    spec = load_file(path)
    assert spec.sources == (path, helper)
    bound = BoundSpec(spec, {})
    ((_, _, state),) = bound.initial()
    with pytest.raises(SpecError, match=r"plain_helper\.py:3.* index 0 is outside a sequence"):
        list(bound.transitions(state))
    before = spec.source_hash()
    helper.write_text(HELPER + "\n")
    assert spec.source_hash() != before
