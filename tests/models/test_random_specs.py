"""Random specs, searched by both engines: whatever the language accepts, they read alike, with and without symmetry.

More of them: `pytest tests/models/test_random_specs.py -m slow`.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest
from fencepost.checker.model import Limits, Model, Options
from fencepost.checker.result import Result, Status
from fencepost.spec.lang import LanguageError, Spec, load_file
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from .engines import counts, findings, search
from .random_specs import Writer

QUIET = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture],
)


def accepted(text: str, folder: Path) -> Spec | None:
    """Returns the spec that a text is, or None if the language refuses it; nothing else may come of it."""
    path = folder / "random_spec.py"
    path.write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            return load_file(path)
        except LanguageError:
            return None


def failures(found: Result) -> Sequence[object]:
    """Returns what symmetry must not change, even where the search is cut at a depth: violations, witnesses, traces."""
    known = (Status.VIOLATED, Status.REACHED)
    return [(p.name, p.status, p.depth, p.reason, p.trace) for p in found.properties if p.status in known]


def compare(spec: Spec, blocks: int, *, keep_going: bool, depth: int) -> None:
    """Searches a spec in every way, and demands equal results."""
    model = Model.of(spec, {"reqs": 2, "blks": blocks, "mode": "one" if depth % 2 else "two"})
    results: list[Result] = []
    for symmetry in (False, True):
        options = Options(symmetry=symmetry, keep_going=keep_going, threads=2, limits=Limits(max_depth=depth))
        reference, native = (search(model, options, engine) for engine in ("reference", "native"))
        assert counts(native) == counts(reference)
        assert findings(native) == findings(reference)
        results.append(native)
    full, symmetric = results
    assert failures(symmetric) == failures(full)


def check(choices: random.Random, folder: Path, blocks: int, depth: int) -> None:
    """Writes one spec and compares the engines on it."""
    text = Writer(choices.choice).spec()
    note(text)
    spec = accepted(text, folder)
    if spec is not None:
        compare(spec, blocks, keep_going=depth != 2, depth=depth)


@given(st.randoms(use_true_random=False), st.integers(1, 3), st.integers(1, 3))
@settings(QUIET, max_examples=20, derandomize=True)
def test_engines_agree_on_random_specs(tmp_path: Path, choices: random.Random, blocks: int, depth: int) -> None:
    check(choices, tmp_path, blocks, depth)


@pytest.mark.slow
@given(st.randoms(use_true_random=False), st.integers(1, 3), st.integers(1, 4))
@settings(QUIET, max_examples=500)
def test_engines_agree_on_many_random_specs(tmp_path: Path, choices: random.Random, blocks: int, depth: int) -> None:
    check(choices, tmp_path, blocks, depth)


def test_most_random_specs_are_accepted(tmp_path: Path) -> None:
    specs = [accepted(Writer(random.Random(seed).choice).spec(), tmp_path) for seed in range(40)]
    assert sum(spec is not None for spec in specs) >= 30
