"""Odd text never crashes the front end: a spec is accepted, or refused with one of the language's own errors."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest
from fencepost.spec.lang import BoundSpec, FencepostSpecError, LanguageError, LoadError, SpecError, load_file
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

HOLE = re.compile(r"(Attribute|Name|UnboundLocal|Index|Key|Value)Error|TypeError(?!.*None)")
"""A failure of Python's that the front end should have refused; None where a number is needed is the one it cannot."""

HEAD = """
from fencepost.spec.lang import *
from enum import IntEnum

REQUESTS, BLOCKS, STEPS = Index("requests", default=2), Index("blocks", default=2), Bound("steps", default=2)
MODE = Switch("mode", "one", "two")

class Kind(IntEnum):
    A = 0
    B = 1

@record
class Entry:
    n: Int(0, 3)
    block: BLOCKS

@state
class Pool:
    n: Int(0, 3)
    on: Bool
    kind: Kind
    free: Seq[BLOCKS, BLOCKS]
    entries: Seq[Entry, 2]
    owner: Array[BLOCKS, Maybe[REQUESTS]]
    busy: SetOf[BLOCKS]

def helper(s, x):
    return x

"""

WORDS = """
s.n s.on s.kind s.free s.entries s.owner s.busy s.free[0] s.entries[0] s.entries[0].n s.owner[b] s r b x y k helper MODE
Kind Kind.A BLOCKS STEPS REQUESTS 0 1 -1 2.5 10**30 "one" b"x" None True False ... [] {} ()
set() {b} {b,r} [b] (b,r) {b:r} len range range(3) range(BLOCKS) all any sum(1) min max abs int helper(s,1) helper(s) fresh
fresh(Seq[BLOCKS,2]) fresh(1) fresh(BLOCKS) implies require require(True) require() s.free.pop_front() s.free.append
s.free.append(b) 99999999999999999999 s.entries.grow() s.entries.pop_back() s.free.insert(0,b) s.nothing nothing
nothing.at.all s.free.x.y s[0] s() b() s.free[0:1] s.free[-1] lambda:0
(yield) print f"{b}" *s.free not s.on -s.n ~s.n +s.n not b __import__ s.__class__ s._cells s.free.clear()
"""
OPERATORS = """+ - * / // % ** | & ^ << >> @ == != < <= > >= in is and or not_in is_not if_True_else :="""
LINES = [
    "{a} = {b}",
    "x = {a}",
    "x = y = {a}",
    "x, y = {a}, {b}",
    "x: int = {a}",
    "x += {a}",
    "s.n += {a}",
    "s.busy |= {a}",
    "{a} //= {b}",
    "{a}",
    "return {a}",
    "return",
    "require({a})",
    "if {a}: x = {b}",
    "for x in {a}: s.n = {b}",
    "for _ in {a}: break",
    "for x, y in {a}: pass",
    "for x in {a}: pass\n    else: pass",
    "while {a}: pass",
    "with {a} as x: pass",
    "try: x = {a}\n    except: pass",
    "assert {a}",
    "del {a}",
    "global x",
    "nonlocal x",
    "import os",
    "raise {a}",
    "def inner(): return {a}",
    "class Inner: x = {a}",
    "x = all({a} for k in {b})",
    "x = {{{a} for k in {b} if {a}}}",
    "x = [{a} for k in {b}]",
    "x = sum({a} for k in {b} for y in {a})",
    "x = min({a}, {b})",
    "x = {a} if {b} else {a}",
    "x = helper({a}, {b})",
    "match {a}:\n        case {b}: pass",
    "s.free.append({a}); s.free.remove({b})",
    "break",
    "continue",
    "break; x = {a}",
    "x = s.entries[0]; s.entries.drop_front(); x.n = {a}",
    "pass; {a}; {b}",
]


def expressions() -> st.SearchStrategy[str]:
    """Returns text that may be an expression."""
    words = st.sampled_from(WORDS.split())
    operators = st.sampled_from(OPERATORS.split()).map(lambda sign: sign.replace("_", " "))
    pairs = st.tuples(words, operators, words).map(lambda p: f"({p[0]} {p[1]} {p[2]})")
    return st.one_of(words, pairs, st.tuples(pairs, operators, pairs).map(lambda p: f"{p[0]} {p[1]} {p[2]}"))


def lines() -> st.SearchStrategy[str]:
    """Returns text that may be a statement."""
    return st.tuples(st.sampled_from(LINES), expressions(), expressions()).map(lambda p: p[0].format(a=p[1], b=p[2]))


def load(text: str, folder: Path) -> FencepostSpecError | None:
    """Loads a spec, binds it and takes a step; returns the language's own error, if there was one, and raises others."""
    path = folder / "odd.py"
    path.write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            bound = BoundSpec(load_file(path), {})
            for _, _, state in bound.initial():
                list(bound.transitions(state))
        except FencepostSpecError as error:
            return error
    return None


def check(text: str, folder: Path) -> None:
    """Demands that an error names a place, and is none of Python's own that the front end should have foreseen."""
    error = load(text, folder)
    if isinstance(error, LanguageError):
        assert error.place.line >= 1
    if isinstance(error, SpecError):
        assert HOLE.match(error.rule) is None, f"accepted, but is no Python of ours: {error}"


KINDS = ["action", "init", "always", "step", "reachable", "eventually", "quiescent(idle)", "leads_to(idle)"]


@given(st.sampled_from(KINDS), st.lists(lines(), min_size=1, max_size=4))
@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_odd_functions(tmp_path: Path, kind: str, body: list[str]) -> None:
    head = {"action": "s, r: REQUESTS, b: BLOCKS", "step": "s, b"}.get(kind, "s")
    text = f"{HEAD}def idle(s):\n    return s.on\n\n@{kind}\ndef odd(s{head[1:]}):\n    " + "\n    ".join(body) + "\n"
    check(text + "\n@action\ndef act(s, b: BLOCKS):\n    s.n = 1\n", tmp_path)


IMPORT = "from fencepost.spec.lang import *\n"
MODULES = [
    "",
    "\0",
    "\ufeff",
    "x = 1",
    "import nowhere_at_all",
    "raise SystemExit(0)",
    "raise KeyError",
    "exit()",
    "def f(:",
    "x = " + "(" * 500,
    "x = " + "-" * 20_000 + "1",
    IMPORT + "@state\nclass S: pass",
    IMPORT + "@state\nclass S:\n  n: int",
    IMPORT + "@state\nclass S:\n  n: NOTHING",
    IMPORT + "@state\nclass S:\n  _n: Bool",
    IMPORT + "@state\nclass S:\n  clear: Bool",
    IMPORT + "@state\ndef s(): pass",
    IMPORT + "state(1)",
    IMPORT + "@state\nclass S:\n  n: Int(3, 1)\n@action\ndef a(s):\n  s.n = 1",
    IMPORT + "@state\nclass S:\n  n: Seq[Bool, -1]\n@action\ndef a(s):\n  s.n.clear()",
    IMPORT + "@state\nclass S:\n  n: Seq[Bool, 10**9]\n@action\ndef a(s):\n  s.n.clear()",
    IMPORT + "@state\nclass S:\n  n: Seq[Bool, True]\n@action\ndef a(s):\n  s.n.clear()",
    IMPORT + "@state\nclass S:\n  n: Maybe[Bool]",
    IMPORT + "@state\nclass S:\n  n: SetOf[3]",
    IMPORT + "@state\nclass S:\n  n: Bool\n@state\nclass T:\n  n: Bool",
    IMPORT + "@state\nclass S:\n  n: Bool\n@action\n@action\ndef a(s):\n  s.n = True",
    IMPORT + "@state\nclass S:\n  n: Bool\n@action(fair='often')\ndef a(s):\n  s.n = True",
    IMPORT + "@state\nclass S:\n  n: Bool\n@action(when=True)\ndef a(s):\n  s.n = True",
    IMPORT + "@state\nclass S:\n  n: Bool\n@action(when=lambda: 1 // 0)\ndef a(s):\n  s.n = True",
    IMPORT + "@state\nclass S:\n  n: Bool\n@action(name='a b')\ndef a(s):\n  s.n = True",
    IMPORT + "@state\nclass S:\n  n: Bool\n@action\nclass A: pass",
    IMPORT + "@state\nclass S:\n  n: Bool\na = action(lambda s: None)",
    IMPORT + "@state\nclass S:\n  n: Bool\n@quiescent(True)\ndef q(s): return True",
    IMPORT + "X, Y = Index('x', default=1), Index('x', default=2)\n@state\nclass S:\n  n: X",
    IMPORT + "X = Bound('x', default=1)\nif X > 0: pass",
    IMPORT + "X = Bound('x', default=1)\nY = X // 0\n@state\nclass S:\n  n: Int(0, Y)\n@action\ndef a(s):\n  s.n = 0",
    IMPORT + "S = Switch('s', 'one')",
    IMPORT + "S = Switch('s', 'one', 'two').choose({'one': 1})",
    IMPORT + "@state\nclass S:\n  n: Int(0, 1)\n@action\ndef a(s):\n  s.n = " + "-(" * 90 + "s.n" + ")" * 90,
    IMPORT + "@state\nclass S:\n  n: Int(0, 1)\n@action\ndef a(s):\n  s.n = " + "+ ".join(["s.n"] * 3000),
]


@pytest.mark.parametrize("text", MODULES, ids=range(len(MODULES)))
def test_odd_modules(tmp_path: Path, text: str) -> None:
    check(text, tmp_path)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"\x89PNG\r\n\x1a\n\0", b"# -*- coding: nothing -*-\nx = 1"])
def test_odd_bytes(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "odd.py"
    path.write_bytes(data)
    with pytest.raises(LoadError):
        load_file(path)


def test_a_large_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "odd.py"
    with path.open("wb") as stream:
        stream.truncate(100_000_000)
    with pytest.raises(LoadError, match="larger than"):
        load_file(path)


@pytest.mark.parametrize("name", ["", "nowhere.py", "."])
def test_no_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(LoadError, match="cannot be read"):
        load_file(tmp_path / name)


def test_a_file_that_has_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "odd.py"
    text = HEAD + "@action\ndef act(s):\n    s.n = 1\n"
    path.write_text(text)
    before = load_file(path)
    path.write_text(text.replace("s.n = 1", "s.n = 1 + 1"))
    after = load_file(path)
    assert before.source_hash() == after.source_hash()
    assert before.elaborated is not None
    assert after.elaborated is not None
    bodies = [spec.elaborated.of(spec.actions[0].function).body for spec in (before, after) if spec.elaborated]
    assert bodies[0] != bodies[1]
