"""`fencepost replay --target`: traces of every fault on the reference implementation, with the bug and without; bad inputs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from fencepost.checker.cli import kvdata
from fencepost.checker.cli.main import main

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "traces" / "corpus"
FAULTS = kvdata.faults()
CLI = Path(__file__).parent
LENDING = str(CLI / "specs" / "lending.py")
ENGINE = CLI / "drivers" / "lending_engine.py"

AGREES = {"B47": "no-hit-on-unwritten"}
"""The faults whose trace an implementation without them does whole: what they break they break later."""


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports of one width, wherever the tests run."""
    monkeypatch.setenv("COLUMNS", "120")


def replay(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Exit code and the verdict, the last line."""
    code = main(["replay", *words])
    shown = capsys.readouterr()
    assert "internal error" not in shown.err
    return code, shown.out.strip().splitlines()[-1] if code < 2 else shown.err.strip()


def trace_of(fault: str) -> str:
    """The file of a fault's trace."""
    return str(CORPUS / f"{fault}.itf.json")


@pytest.mark.parametrize("fault", FAULTS)
def test_with_the_fault_it_shows_the_bug(fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, verdict = replay(capsys, trace_of(fault), "--target", "reference")
    shown = rf"REPLAYED {FAULTS[fault].depth} events on reference: it shows {FAULTS[fault].breaks}: (block|request)"
    assert code == 0
    assert re.match(shown, verdict), verdict


@pytest.mark.parametrize("fault", FAULTS)
def test_without_the_fault_the_switch_is_named(fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    made = FAULTS[fault]
    of_base = kvdata.load("faults")["faults"]
    (switch,) = next(one["switch"] for one in of_base if one["id"] == fault)
    right = kvdata.profile(made.base).switches.get(switch) or default_of(switch)
    code, verdict = replay(capsys, trace_of(fault), "--target", "reference", "--target-profile", made.base)
    assert code == 1
    if fault in AGREES:
        assert verdict.endswith(f"it does all of it, which with {switch}={right} does not violate {AGREES[fault]}")
    else:
        assert re.search(rf"event \d, [a-z_]+\(.*\), [a-z ]+; the spec does the same with {switch}={right}$", verdict), verdict


def test_a_property_that_does_not_apply_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Without any fence early reuse is by design; nobody is told that it is a bug, or that it is none."""
    code, verdict = replay(capsys, trace_of("B03-finish"), "--target", "reference", "--target-profile", "vllm-0.23")
    others = "abort-free=at-once and preemption-free=at-once"
    assert code == 1
    assert verdict.endswith(f"it does all of it; with {others} no-reuse-in-flight does not apply, and is not promised")


def default_of(switch: str) -> str:
    """What a switch of kv is where nothing says otherwise."""
    from fencepost.checker.cli.target import load_shipped
    from fencepost.spec.lang import Switch

    found = load_shipped("kv").bounds[switch]
    assert isinstance(found, Switch)
    return found.default


def test_the_report_shows_the_engines_objects(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", trace_of("B01"), "--target", "reference"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for part in (
        "In the implementation's own objects, of block 1 and requests A (0), B (1):",
        "block 1: block_pool.blocks[2] block_id=2, ref_cnt=1",
        "load of '1#2' still writes block_ids [2]",
        "num_scheduled_tokens['0#1']=1 writes token 1 into block_ids [2], reads block_ids",
    ):
        assert part in shown


def test_the_report_says_where_a_mechanism_was_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", trace_of("B01"), "--target", "reference", "--target-profile", "vllm-0.33"]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "the trace: at-once fault B01 (vLLM #45357): a finished request gives its blocks back" in shown
    assert "implementation: fenced vllm-0.33: v1/core/sched/scheduler.py: _free_request_blocks defers" in shown
    assert "parked [] [0, 1]" in shown


def test_full_shows_every_observation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", trace_of("B11"), "--target", "reference", "--full"]) == 0
    shown = capsys.readouterr().out
    assert [f"what the implementation shows after event {n}" in shown for n in (1, 2, 3, 4)] == [True, True, True, False]
    assert re.search(r"waiting +\[0\]", shown)


def test_one_mechanism_of_a_whole_profile_is_found(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """0.23 and 0.33 differ in ten switches; one of them explains what happens first."""
    path = str(tmp_path / "t.itf.json")
    bounds = "kv-role=kv_consumer,requests=2,blocks=2,prompt-tokens=1,max-tokens=2,remote-tokens=1"
    wanted = ("--property", "no-unordered-write-in-flight", "--engine", "reference", "-q", "--trace-out", path)
    assert main(["check", "kv", "--profile", "vllm-0.23", "--bounds", bounds, *wanted]) == 1
    code, verdict = replay(capsys, path, "--target", "reference", "--target-profile", "vllm-0.33")
    assert code == 1
    assert re.search(r"leads elsewhere; the spec does the same with (abort|finish)-free=fenced$", verdict), verdict


def test_a_trace_of_lockstep_reproduces_the_difference(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, different = str(tmp_path / "t.itf.json"), ("--target-bounds", "uncached-free-order=tail")
    bounds = ("--bounds", "requests=1,blocks=2,prompt-tokens=1")
    assert main(["conform", "--target", "reference", *bounds, *different, "-q", "--trace-out", path]) == 1
    code, verdict = replay(capsys, path, "--target", "reference", *different)
    assert code == 0
    assert verdict.endswith("leads elsewhere; the spec does the same with uncached-free-order=tail")
    code, verdict = replay(capsys, path, "--target", "reference")
    assert code == 1
    assert verdict.endswith("the difference to which the trace leads is not there")


@pytest.fixture
def lent(tmp_path: Path) -> str:
    """The trace of the lending spec's violation."""
    path = str(tmp_path / "lent.itf.json")
    assert main(["check", LENDING, "--engine", "reference", "-q", "--trace-out", path]) == 1
    return path


@pytest.mark.parametrize(
    ("engine", "code", "verdict"),
    [
        ("Engine", 0, "REPLAYED 3 events on {}: it shows no-free-block-is-written: block 0"),
        ("Cautious", 1, "REPLAYED 2 of 3 events on {}: event 3, finish(r=A), is refused; the spec does the same with fence=on"),
        ("Stack", 1, "REPLAYED 2 of 3 events on {}: event 3, finish(r=A), leads elsewhere"),
    ],
)
def test_a_driver_of_ones_own(engine: str, code: int, verdict: str, lent: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"{ENGINE}:{engine}"
    assert replay(capsys, lent, "--target", name) == (code, verdict.format(name))


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("raise IndexError('no block is left')", "event 1, borrow(r=A), stops the implementation"),
        ("raise Stopped('FULL', 'no block is left')", "event 1, borrow(r=A), stops the implementation"),
        ("raise Refused('no block is left')", "event 1, borrow(r=A), is refused"),
    ],
)
def test_an_engine_that_refuses_or_crashes_is_quoted(
    body: str, verdict: str, lent: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = own_driver(tmp_path, body)
    assert replay(capsys, lent, "--target", name) == (1, f"REPLAYED 0 of 3 events on {name}: {verdict}")
    assert main(["replay", lent, "--target", name]) == 1
    assert "the implementation says: " in (shown := capsys.readouterr().out)
    assert "no block is left" in shown


def own_driver(folder: Path, body: str) -> str:
    """A lending engine whose `borrow` does something else."""
    shutil.copy(ENGINE, folder / "lending_engine.py")
    text = f"""\
from lending_engine import Engine
from fencepost.traces.driver import Refused, Stopped


class Own(Engine):
    def borrow(self, r):
        {body}
"""
    path = folder / "own_driver.py"
    path.write_text(text)
    return f"{path}:Own"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--target", "referense"), "there is no target 'referense'"),
        (("--target", "reference", "--target-profile", "vllm-0.32"), "--target-profile: 'vllm-0.32' is no profile"),
        (("--target", "reference", "--target-bounds", "finish-free"), "--target-bounds: 'finish-free' is not of the form"),
        (("--target", "reference", "--target-bounds", "finish-free=now"), "'now' is not one of fenced, at-once"),
        (("--target", "reference", "--target-bounds", "finnish-free=fenced"), "kv has no bound 'finnish-free'"),
        (("--target-profile", "vllm-0.33"), "--target-profile is for an implementation; name it with --target"),
        (("--target-bounds", "blocks=3"), "--target-bounds is for an implementation; name it with --target"),
    ],
)
def test_wrong_words(words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = replay(capsys, trace_of("B11"), *words)
    assert code == 2
    assert message in said


def test_a_trace_of_another_spec(lent: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = replay(capsys, lent, "--target", "reference")
    assert (code, "reference implements the spec kv, not lending" in said) == (2, True)
    code, said = replay(capsys, lent, "--target", f"{ENGINE}:Engine", "--target-profile", "vllm-0.33")
    assert (code, "profiles are those of the spec kv" in said) == (2, True)


def test_an_error_of_the_driver_is_the_users(lent: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(own_driver(tmp_path, "pass").partition(":")[0])
    path.write_text(path.read_text() + "\n    def exhibit(self, blocks, requests):\n        return blocks[17]\n")
    good = path.read_text().replace("    def borrow(self, r):\n        pass\n", "")
    path.write_text(good)
    code, said = replay(capsys, lent, "--target", f"{path}:Own")
    assert code == 2
    assert "own_driver.py:" in said
    assert "IndexError" in said
