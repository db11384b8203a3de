"""`fencepost conform` beyond its output: exit codes, rows, errors of drivers, interruption, files, the JSON form."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from fencepost.checker.cli import kvdata
from fencepost.checker.cli.conform_rows import Asked, Row, rows
from fencepost.checker.cli.errors import UsageError
from fencepost.checker.cli.main import main
from fencepost.checker.cli.target import load_shipped
from fencepost.checker.conform import parallel
from fencepost.checker.conform.report import value
from fencepost.checker.conform.schema import ConformDocument, plain
from fencepost.spec.lang import Switch
from fencepost.traces.driver import ANYTHING
from pydantic import BaseModel
from record_conform import recorded

ROOT = Path(__file__).parents[2]
SPECS = Path(__file__).parent / "specs"
LENDING, ENGINE = str(SPECS / "lending.py"), str(SPECS.parent / "drivers" / "lending_engine.py")


def conform(engine: str, *more: str) -> int:
    """Hold a driver of lending_engine.py against lending.py."""
    return main(["conform", LENDING, "--target", f"{ENGINE}:{engine}", *more])


@pytest.mark.parametrize(
    ("engine", "code"),
    [("Engine", 0), ("Remembering", 0), ("Stack", 1), ("Cautious", 1), ("Crashing", 1), ("Eager", 1), ("Forgetful", 2)],
)
def test_exit_codes(engine: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert conform(engine, "-q") == code
    assert "internal error" not in capsys.readouterr().err


def document(capsys: pytest.CaptureFixture[str], engine: str, *more: str) -> dict[str, Any]:
    """The result as JSON; it validates against the schema."""
    code = conform(engine, "--json", *more)
    made = json.loads(capsys.readouterr().out)
    assert ConformDocument.model_validate(made).exit_code == code
    return made


def test_json_of_a_difference(capsys: pytest.CaptureFixture[str]) -> None:
    made = document(capsys, "Stack")
    (row,) = made["rows"]
    assert (made["verdict"], row["verdict"], row["reason"]) == ("VIOLATED", "VIOLATED", None)
    found = row["mismatch"]
    assert (found["kind"], found["length"]) == ("OBSERVATION", 2)
    assert found["event"] == {"action": "finish", "arguments": {"r": "A"}}
    assert found["differences"] == [{"path": "free", "spec": [1, 0], "implementation": [0, 1]}]
    assert len(found["trace"]["states"]) == 3
    assert main(shlex.split(found["replay"])[1:]) == 0
    assert main(shlex.split(row["again"])[1:]) == 1


def test_json_of_hidden_state(capsys: pytest.CaptureFixture[str]) -> None:
    made = document(capsys, "Remembering")
    (row,) = made["rows"]
    assert (made["verdict"], row["mismatch"], row["sampled"]) == ("HOLDS", None, None)
    assert row["product_states"] > row["spec_states"]
    assert row["hidden"]["states"] > 0
    assert row["hidden"]["differences"] == [{"path": "last", "one": None, "other": 0}]
    assert [main(["explain", path, "--spec", LENDING]) for path in row["hidden"]["paths"]] == [0, 0]
    assert sum(row["actions"].values()) == row["transitions"]


def test_json_of_random_runs(capsys: pytest.CaptureFixture[str]) -> None:
    made = document(capsys, "Crashing", "--random", "500", "--seed", "3")
    (row,) = made["rows"]
    assert row["sampled"]["seed"] == 3
    assert row["sampled"]["events"] >= row["mismatch"]["length"] == 2
    assert row["mismatch"]["message"].startswith("IndexError: no block is left (lending_engine.py:")
    assert "--random 500 --seed 3" in row["again"]


def test_every_field_is_documented() -> None:
    page = (ROOT / "docs" / "json-result.md").read_text()
    assert set(fields(ConformDocument)) <= set(re.findall(r"`(\w+)`", page))


def fields(model: type[BaseModel]) -> Iterator[str]:
    """Names of the fields of a model and of the models inside it."""
    for name, field in model.model_fields.items():
        yield name
        parts = (field.annotation, *get_args(field.annotation))
        for inner in parts:
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                yield from fields(inner)


def test_values_in_text_and_json() -> None:
    given = {"a": [None, True, 2], "b": (b"\x01", frozenset({2, 1})), 3: ANYTHING, "c": ""}
    assert value(given) == "{a: [none, yes, 2], b: (01, {1, 2}), 3: anything, c: ''}"
    assert plain(given) == {"a": [None, True, 2], "b": ["01", [1, 2]], "3": "anything", "c": ""}


def test_without_symmetry_there_is_more_to_compare(capsys: pytest.CaptureFixture[str]) -> None:
    few, many = document(capsys, "Engine"), document(capsys, "Engine", "--symmetry", "off", "--workers", "2")
    assert (few["symmetry"], many["symmetry"]) == (True, False)
    assert few["verdict"] == many["verdict"] == "HOLDS"
    assert few["rows"][0]["spec_states"] < many["rows"][0]["spec_states"]
    assert many["rows"][0]["again"].endswith("--symmetry off")


FAULTY = """
import importlib.util, os

found = importlib.util.spec_from_file_location("lending_engine", {engine!r})
engine = importlib.util.module_from_spec(found)
found.loader.exec_module(engine)


class Faulty(engine.Engine):
    first = os.getpid()

    def digest(self, names=None):
        if self.observe()["free"] == []:
            {what}
        return super().digest(names)
"""


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(
    ("what", "code", "said"),
    [
        ("raise KeyError('mine')", 2, r"faulty\.py:14: KeyError: 'mine'"),
        ("raise SystemExit(0)", 2, r"faulty\.py:14: SystemExit: 0"),
        ("os._exit(7) if os.getpid() != self.first else None", 3, r"a worker process has ended \(exit code 7\)"),
    ],
    ids=["error", "exit", "gone"],
)
def test_errors_of_a_driver_end_alike_with_any_number_of_workers(
    workers: str, what: str, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.setattr(parallel, "LEAST", 2)
    (tmp_path / "faulty.py").write_text(FAULTY.format(engine=ENGINE, what=what))
    ended = main(["conform", LENDING, "--target", f"{tmp_path / 'faulty.py'}:Faulty", "--workers", workers, "-q"])
    shown = capsys.readouterr()
    if workers == "1" and code == 3:
        assert ended == 0
    else:
        assert ended == code, shown
        assert re.search(said, shown.err)


def test_the_trace_of_a_difference_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.itf.json"
    assert conform("Engine", "-q", "--trace-out", str(path)) == 0
    assert "nothing differs" in capsys.readouterr().err
    assert not path.exists()
    assert conform("Stack", "-q", "--trace-out", str(path)) == 1
    assert main(["explain", str(path)]) == 0
    assert "finish(r=A)" in capsys.readouterr().out


def test_a_log_that_validates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "run.jsonl"
    assert conform("Engine", "-q", "--random", "3k", "--log", str(log)) == 0
    assert len(log.read_text().splitlines()) == 2000  # the first of two runs
    assert main(["validate", str(log), "--spec", LENDING]) == 0
    assert main(["validate", str(log), "--spec", LENDING, "--bounds", "fence=on"]) == 1


DRIVER = """
from lending_engine import Engine

class Unmade(Engine):
    def __init__(self, values):
        raise KeyError("blocks-of-mine")

class Half:
    title = "half a driver"
    def __init__(self, values): ...
    def reset(self): ...
    def take(self, action, arguments): ...

class Untitled(Engine):
    title = 3

class Loud(Engine):
    quiet = {"borrow"}

class Strange(Engine):
    quiet = frozenset({"lend"})

class NoDigest(Engine):
    def digest(self, names=None):
        return self.pool.colour

class Opaque(Engine):
    def digest(self, names=None):
        return object()

class Blind(Engine):
    def observe(self):
        raise ValueError("nothing to see")

class Stuck(Engine):
    def reset(self):
        raise OSError("the device is busy")

not_a_class = 7
"""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Unmade", r"my_driver\.py:6: Unmade\(values\) failed: KeyError: 'blocks-of-mine'"),
        ("Half", r"Half is no Driver, it lacks quiet, observe, digest \("),
        ("Untitled", r"Untitled\.title is not a text but 3"),
        ("Loud", r"Loud\.quiet is \{'borrow'\}; it has to be a frozenset of names of actions"),
        ("Strange", r"lend"),
        ("NoDigest", r"my_driver\.py:25: AttributeError: 'Pool' object has no attribute 'colour'"),
        ("Opaque", r"a digest is nested tuples of plain values"),
        ("Stuck", r"Stuck\(values\) failed: OSError: the device is busy"),
        ("Nobody", r"my_driver\.py has no class 'Nobody'; it has Unmade, Half, "),
        ("not_a_class", r"my_driver\.py has no class 'not_a_class'; it has "),
        ("", r"name the class of the driver, too, as in .*my_driver\.py:Engine"),
    ],
)
def test_drivers_that_are_none(name: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lending_engine.py").write_bytes(Path(ENGINE).read_bytes())
    (tmp_path / "my_driver.py").write_text(DRIVER)
    assert main(["conform", LENDING, "--target", f"{tmp_path / 'my_driver.py'}:{name}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert re.search(said, line), line


def test_a_driver_that_cannot_observe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lending_engine.py").write_bytes(Path(ENGINE).read_bytes())
    (tmp_path / "my_driver.py").write_text(DRIVER)
    assert main(["conform", LENDING, "--target", f"{tmp_path / 'my_driver.py'}:Blind"]) in (1, 2)
    assert "nothing to see" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("class Engine:\n    def", r"driver\.py:2: syntax error"),
        ("import no_such_engine\n", r"driver\.py:1: import failed: ModuleNotFoundError: No module named 'no_such_engine'"),
        ("import sys\n\nsys.exit(3)\n", r"driver\.py:3: import failed: SystemExit: 3"),
        ("x = 1\n", r"has no class 'Engine'; it has none at all"),
        ("\0", r"driver\.py"),
    ],
)
def test_files_that_are_no_drivers(text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "driver.py").write_text(text)
    assert main(["conform", LENDING, "--target", f"{tmp_path / 'driver.py'}:Engine"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: --target ")
    assert re.search(said, line), line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--target", "vlm"], "there is no target 'vlm'; there is reference, vllm==VERSION, vllm==FOLDER, "),
        (["--target", "nowhere.py:Engine"], "nowhere.py cannot be read: No such file"),
        (["--target", "nowhere.py"], "name the class of the driver, too, as in nowhere.py:Engine"),
        ([LENDING, "--target", "reference"], "reference implements the spec kv, not lending"),
        ([LENDING, "--target", "reference", "--all"], "--all is every row of the manifest of kv"),
        (["--target", "reference", "--all", "--profile", "vllm-0.33"], "leave out the spec, --profile, --fault and --bounds"),
        (["--target", "reference", "--profile", "vllm-9"], "'vllm-9' is no profile"),
        (["--target", "reference", "--fault", "B99"], "'B99' is no fault"),
        (["--target", "reference", "--fault", "B01", "--profile", "vllm-0.33"], "--fault brings its own profile"),
        (["--target", "reference", "--target-bounds", "free-order"], "--target-bounds: 'free-order' is not of the form"),
        (["--target", "reference", "--target-bounds", "free-ordr=tail"], "kv has no bound 'free-ordr'"),
        (["--target", "reference", "--seed", "3"], "--seed is for random runs"),
        (["--target", "reference", "--log", "x"], "--log is for random runs"),
        (["--target", "reference", "--random", "3", "--max-depth", "3"], "--max-depth is for the exhaustive comparison"),
        (["--target", "reference", "--random", "3", "--workers", "2"], "--workers is for the exhaustive comparison"),
        (["--target", "reference", "--random", "3", "--symmetry", "off"], "--symmetry is for the exhaustive comparison"),
        (["--target", "reference", "--random", "3", "--log", "x"], "rows would be one log"),
        (["--target", "reference", "--random", "3", "--log", "no/where/x"], "the folder no/where is not writable"),
        (["--target", "reference", "--random", "many"], "--random: 'many' is not a number"),
        (["--target", "reference", "--json", "-q"], "leave out --quiet"),
        (["--profile", "vllm-0.33"], "Missing option '--target'"),
    ],
)
def test_what_a_user_is_told(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conform", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert said in line


def test_every_profile_and_every_fault_has_rows() -> None:
    known = kvdata.conform()
    assert {row.profile for row in known if row.fault is None} == set(kvdata.profiles())
    assert {row.fault for row in known if row.profile is None} == set(kvdata.faults())
    assert all((row.profile is None) != (row.fault is None) for row in known)
    assert all(row.profile is row.fault is None for row in kvdata.random_sizes())
    assert all(set(row.expected) == {"spec_states", "product_states", "transitions", "depth"} for row in known)
    names = [row.name for row in known if row.profile == "vllm-0.33"]
    assert len(set(names)) == len(names) >= 10


def test_figures_are_recorded_where_they_belong() -> None:
    figures = {"spec_states": 1, "product_states": 2, "transitions": 3, "depth": 4}
    made = "{spec_states: 1, product_states: 2, transitions: 3, depth: 4}"
    before = "# What\nexhaustive:\n  - name: a\n    bounds: {x: 1}\n    figures:\n      p: {}\n      q: {}\n  - name: b\n"
    before += "    figures:\n      p: {}\nfaults:\n  - fault: F\n    figures: {}\n  - fault: F\n    name: z\n    figures: {}\n"
    first, second, rest = before.partition("      p: {}")
    after = first + f"      p: {made}" + rest.replace("    figures: {}", f"    figures: {made}", 1)
    assert second
    assert recorded(before, {("p", "a"): figures, ("F", ""): figures}) == after
    assert recorded(after, {("p", "a"): figures}) == after


def test_rows() -> None:
    everything = rows(Asked(everything=True))
    assert len(everything) == len(kvdata.conform())
    of_release = rows(Asked(profile="vllm-0.27"))
    assert {row.target.model.profile for row in of_release} == {"vllm-0.27"}
    assert [row.target.model.profile for row in rows(Asked())] == ["reference"] * len(of_release)
    (fault,) = rows(Asked(fault="b01"))
    assert (fault.target.model.fault, fault.values["finish-free"], fault.name[:9]) == ("B01", "at-once", "fault B01")
    (own,) = rows(Asked(profile="vllm-0.33", bounds=("requests=2,blocks=3",)))
    assert own.expected == {}
    large = rows(Asked(fault="B01", random=True))
    assert len(large) == len(kvdata.random_sizes())
    assert all(row.values["requests"] != 2 and row.values["finish-free"] == "at-once" for row in large)


def test_the_target_can_differ_on_purpose() -> None:
    (row,) = rows(Asked(bounds=("requests=2",), different=("uncached-free-order=tail",)))
    assert row.target.model.bound.values["uncached-free-order"] == "head"
    assert row.values["uncached-free-order"] == "tail"
    assert row.different == {"uncached-free-order": "tail"}
    changed = rows(Asked(profile="vllm-0.33", different=("victim-rule=any",)))
    assert not any(row.expected for row in changed)


def test_the_command_that_compares_a_row_again() -> None:
    for asked in (
        Asked(profile="vllm-0.27", bounds=("blocks=3",), different=("victim-rule=not-fenced",)),
        Asked(fault="B17-pin"),
        Asked(fault="B17-pin", bounds=("blocks=4",)),
        Asked(spec=LENDING, bounds=("fence=on",)),
    ):
        (row,) = rows(asked)
        words = shlex.split(row.again("X"))
        assert words[:2] == ["fencepost", "conform"]
        given = dict(itertools.pairwise(words))
        same = Asked(
            spec=words[2] if words[2].endswith(".py") else "kv",
            profile=given.get("--profile"),
            fault=given.get("--fault"),
            bounds=tuple(filter(None, [given.get("--bounds")])),
            different=tuple(filter(None, [given.get("--target-bounds")])),
        )
        (again,) = rows(same)
        assert (again.values, again.target.model.bound.values) == (row.values, row.target.model.bound.values)


def test_bounds_are_said_in_few_words() -> None:
    def words(asked: Asked) -> str:
        (row,) = rows(asked)
        return row.bounds

    assert words(Asked(profile="vllm-0.33", bounds=("blocks=3,watermark=1",))) == (
        "profile vllm-0.33, blocks=3, requests=2, watermark=1, else defaults"
    )
    assert words(Asked(spec=LENDING, bounds=("fence=on",))) == "requests=2, blocks=2, fence=on"
    assert words(Asked(fault="B11")).startswith("profile vllm-0.33, blocks=2, requests=1, ")
    assert "uncached-free-order=tail" in words(Asked(fault="B11"))


def test_figures_that_are_not_as_recorded(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import fencepost.checker.cli.conform_session as module

    def expecting(figure: str, amount: int) -> None:
        (row,) = rows(Asked(spec=LENDING))
        made = Row(row.name, row.target, row.values, {}, {figure: amount})

        def recorded(asked: Asked) -> list[Row]:
            return [made]

        monkeypatch.setattr(module, "rows", recorded)

    expecting("spec_states", 11)
    assert conform("Engine", "-q") == 0
    expecting("spec_states", 12)
    assert conform("Engine", "-q") == 4
    assert "internal error: spec " in capsys.readouterr().err
    expecting("product_states", 12)  # of a user's engine nothing is recorded
    assert conform("Engine", "-q") == 0


SLOW = """
import time
from lending_engine import Engine


class Slow(Engine):
    def observe(self):
        time.sleep(0.02)
        return super().observe()
"""


@pytest.mark.parametrize("more", [(), ("--random", "1M")])
def test_ctrl_c_reports_the_figures_so_far(more: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "lending_engine.py").write_bytes(Path(ENGINE).read_bytes())
    (tmp_path / "slow.py").write_text(SLOW)
    words = [sys.executable, "-m", "fencepost.checker.cli.main", "conform", LENDING, "--target", "slow.py:Slow", *more]
    words += ["--bounds", "requests=6,blocks=6"]
    running = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    assert "distinct" in running.stderr.readline()  # the first line of progress: the comparison has begun
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 3, err
    assert "UNDETERMINED: interrupted; at requests=6, blocks=6" in out
    assert "Traceback" not in err


@pytest.mark.parametrize("bad", ["requests=0", "colour=red"])
def test_bounds_that_do_not_fit(bad: str) -> None:
    assert conform("Engine", "--bounds", bad) == 2


def test_an_unknown_fault_with_bounds() -> None:
    with pytest.raises(UsageError, match="is no fault"):
        rows(Asked(fault="B99", bounds=("requests=2",)))


def switches() -> list[str]:
    """The mechanism switches of the KV spec that say what an engine does."""
    spec = load_shipped("kv")
    return [n for n, b in spec.bounds.items() if isinstance(b, Switch) and n not in ("kv-role", "intended-free-order")]


CONSUMER = "kv-role=kv_consumer,remote-tokens=2,prompt-tokens=2,prompt-tokens-least=2"
PLANTED = {
    "cached-free-order": Asked(
        bounds=("enable-prefix-caching=1,requests=1,blocks=3,prompt-tokens=2",), different=("cached-free-order=tail",)
    ),
    "waiting-queues": Asked(profile="vllm-0.27", bounds=(CONSUMER,), different=("waiting-queues=holding",)),
    "reset-while-parked": Asked(bounds=(f"{CONSUMER},reset-running=1",), different=("reset-while-parked=raise",)),
}
"""What shows a switch that no fault changes; a fault shows its own, where the engine does not have it."""


def planted(switch: str) -> Asked:
    """A comparison in which only this switch is another one in the implementation."""
    if switch in PLANTED:
        return PLANTED[switch]
    fault = next(f for f in kvdata.load("faults")["faults"] if switch in f["switch"])
    spec = load_shipped("kv")
    usual = kvdata.profile(fault["base"]).switches.get(switch, spec.bounds[switch].default)
    return Asked(fault=fault["id"], different=(f"{switch}={usual}",))


SOON = ("uncached-free-order", "stale-output", "reset-while-parked")


@pytest.mark.parametrize("switch", [pytest.param(name, marks=() if name in SOON else pytest.mark.slow) for name in switches()])
def test_a_difference_in_any_switch_is_found(switch: str, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = rows(planted(switch))
    assert list(row.different) == [switch]
    words = shlex.split(row.again("reference"))[1:]
    assert main([*words, "--json"]) == 1
    (made,) = json.loads(capsys.readouterr().out)["rows"]
    assert made["target_bounds"] == row.different
    assert 2 <= made["mismatch"]["length"] <= 7
    assert main([word for word in words if word not in ("--target-bounds", f"{switch}={row.different[switch]}")]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(kvdata.conform())))
def test_every_row_agrees_with_the_figures_recorded(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    row = kvdata.conform()[number]
    assert set(row.expected) == {"spec_states", "product_states", "transitions", "depth"}

    def only() -> tuple[kvdata.Conform, ...]:
        return (row,)

    monkeypatch.setattr(kvdata, "conform", only)
    chosen = ["--fault", row.fault] if row.fault else ["--profile", str(row.profile)]
    assert main(["conform", "--target", "reference", *chosen]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("profile", kvdata.profiles())
def test_random_runs_at_large_sizes_agree(profile: str) -> None:
    assert main(["conform", "--target", "reference", "--profile", profile, "--random", "10k", "--seed", "1", "-q"]) == 0
