"""What is read in the source of classes of the user's own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from fencepost.impl.vllm import own_sources
from fencepost.impl.vllm.own_sources import modules_behind, source_of

FILES = {
    "a_plugin/__init__.py": "from .entry import Scheduler\n",
    "a_plugin/entry.py": """\
import json
from . import base


class Scheduler(base.Base):
    def __init__(self):
        self.made = self.hand = self.count = 0
        self.rows = [0]

    def schedule(self):
        from a_plugin.late import more
        self.hand = (self.hand + 1) % 3
        self.count += 1
        self.rows[0] = self.made
        self.free.append(1)
        other.set_from_outside = 1
        del self.gone
        return [more(one) for one in self.requests.values()], list(self.waiting), self.read_only[1], self.waiting.get(1)
""",
    "a_plugin/base.py": "class Base:\n    def turn(self):\n        return getattr(self, 'quoted'), get('first.second')\n",
    "a_plugin/late.py": "def more(one):\n    match one:\n        case object(matched=1):\n            return one.deep\n",
    "another/__init__.py": "far = lambda one: one.not_read\n",
}


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type]:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    vars(own_sources)["_read"].cache_clear()
    import_module("a_plugin.late")
    import_module("another")
    yield import_module("a_plugin").Scheduler
    for name in [name for name in sys.modules if name.partition(".")[0] in ("a_plugin", "another")]:
        del sys.modules[name]


def test_modules_behind_a_class_are_of_its_packages(plugin: type) -> None:
    """Also those that are imported in a function, and none of Python's or of other packages."""
    assert sorted(modules_behind([plugin])) == ["a_plugin", "a_plugin.base", "a_plugin.entry", "a_plugin.late"]


def test_names_are_found_after_a_dot_and_in_quotes(plugin: type) -> None:
    found = source_of([plugin])
    assert {"requests", "read_only", "quoted", "first", "second", "matched", "deep"} <= found.named
    assert "not_read" not in found.named
    assert found.unread == ()


def test_what_changes_and_can_be_again_what_it_was(plugin: type) -> None:
    """Not what is set once, what only grows, what is only read, and what is another object's."""
    at = "a_plugin.entry.Scheduler."
    assert {name.removeprefix(at) for name in source_of([plugin]).changed if "self" not in name} == {
        "hand", "rows", "free", "gone", "requests", "waiting",
    }  # fmt: skip


def test_what_is_gone_through_in_its_order(plugin: type) -> None:
    found = source_of([plugin]).through
    assert {"requests", "waiting"} <= found
    assert "read_only" not in found


def test_a_module_without_source_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugin: type) -> None:
    module = sys.modules["a_plugin.late"]
    monkeypatch.setattr(module, "__file__", None)
    monkeypatch.setattr(module, "__spec__", None)
    monkeypatch.delattr(module, "__loader__")
    assert source_of([plugin]).unread == ("a_plugin.late",)
