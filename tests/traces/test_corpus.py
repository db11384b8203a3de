"""The corpus holds the shortest trace of every fault, and every one of them still runs and shows its bug.

After a change of the KV spec that alters traces, `CORPUS=write pytest tests/traces/test_corpus.py` writes them anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fencepost.checker.cli import kvdata
from fencepost.checker.cli.load import Loaded, On, load
from fencepost.checker.cli.main import main
from fencepost.traces.claims import shows
from fencepost.traces.origin import Origin
from fencepost.traces.recorded import read
from fencepost.traces.short import shorten

CORPUS = Path(__file__).parents[2] / "traces" / "corpus"
FAULTS = kvdata.faults()
WRITE = os.environ.get("CORPUS") == "write"


def path_of(fault: str) -> Path:
    """The file of a fault's trace."""
    return CORPUS / f"{fault}.itf.json"


def origin_of(fault: str) -> Origin:
    """What the trace of a fault says of itself."""
    origin = read(path_of(fault)).origin
    assert origin is not None
    return origin


@pytest.mark.skipif(not WRITE, reason="only with CORPUS=write")
@pytest.mark.parametrize("fault", FAULTS)
def test_write(fault: str) -> None:
    CORPUS.mkdir(exist_ok=True)
    assert main(["check", "--fault", fault, "--engine", "native", "-q", "--trace-out", str(path_of(fault))]) == 1


def test_there_is_a_trace_for_every_fault_and_for_nothing_else() -> None:
    found = {path.name.removesuffix(".itf.json") for path in CORPUS.glob("*.itf.json")}
    assert found, "the corpus is empty"
    assert found == set(FAULTS)


def loaded(fault: str) -> Loaded:
    """The trace of a fault, on the spec as it is now."""
    return load(str(path_of(fault)), On())


@pytest.mark.parametrize("fault", FAULTS)
def test_it_still_shows_the_bug(fault: str) -> None:
    made = loaded(fault)
    assert shows(made.target.model.bound, made.revived.trace)
    assert made.revived.notes == (), "recorded with another text of the spec; CORPUS=write records it again"
    origin = origin_of(fault)
    assert origin.fault == fault
    assert origin.property == FAULTS[fault].breaks
    assert origin.profile == FAULTS[fault].base
    if FAULTS[fault].depth:
        assert len(made.revived.trace) == FAULTS[fault].depth


@pytest.mark.parametrize("fault", FAULTS)
def test_its_bounds_are_those_of_the_fault(fault: str) -> None:
    bounds = origin_of(fault).bounds
    assert {name: bounds[name] for name in FAULTS[fault].values} == FAULTS[fault].values


@pytest.mark.parametrize("fault", FAULTS)
def test_it_has_a_short_form_that_shows_the_bug_too(fault: str) -> None:
    made = loaded(fault)
    short = shorten(made.target.model.bound, made.revived.trace)
    assert main(["replay", short, "--fault", fault, "-q"]) == 0
