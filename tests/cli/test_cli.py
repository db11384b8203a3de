"""The command line beyond its output: exit codes, errors, interruption, files, start-up."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fencepost.checker.cli import doctor, units
from fencepost.checker.cli import main as module
from fencepost.checker.cli.errors import UsageError
from fencepost.checker.cli.main import VERBS, main
from fencepost.checker.report import terminal

SPECS = Path(__file__).parent / "specs"
LENDING = str(SPECS / "lending.py")
REFERENCE = ("--engine", "reference")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Usage: fencepost" in shown
    assert "Exit codes" in shown or verb in ("explain", "models")


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("fencepost ")


def test_no_verb_at_all_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    shown = capsys.readouterr()
    assert all(verb in shown.out + shown.err for verb in VERBS)


def test_an_internal_error_is_short(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(words: list[str]) -> int:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(module, "_run", fail)
    assert main(["check"]) == 4
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        "internal error: ZeroDivisionError: by zero",
        "This is a defect of Fencepost. FENCEPOST_DEBUG=1 shows where; please report it.",
    ]
    monkeypatch.setenv("FENCEPOST_DEBUG", "1")
    assert main(["check"]) == 4
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 3), (MemoryError(), 3)])
def test_being_stopped_is_undetermined(error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(words: list[str]) -> int:
        raise error

    monkeypatch.setattr(module, "_run", fail)
    assert main(["check"]) == code


def test_ctrl_c_outside_a_search(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "collected", interrupt)
    assert main(["doctor"]) == 3
    assert capsys.readouterr().err == "interrupted\n"


def command(*words: str) -> list[str]:
    """A command line for a process of its own."""
    return [sys.executable, "-m", "fencepost.checker.cli.main", *words]


SLOW = '''"""A number that counts far, slowly."""

from fencepost.spec.lang import Int, action, state


@state
class Far:
    """Four numbers."""

    a: Int(0, 60)
    b: Int(0, 60)
    c: Int(0, 60)
    d: Int(0, 60)


@action
def move(s, w: Int(0, 3)):
    """One of the numbers goes round."""
    if w == 0:
        s.a = (s.a + 1) % 61
    elif w == 1:
        s.b = (s.b + 1) % 61
    elif w == 2:
        s.c = (s.c + 1) % 61
    else:
        s.d = (s.d + 1) % 61
'''


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_reports_the_figures_so_far(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "far.py").write_text(SLOW)
    running = subprocess.Popen(
        command("check", "far.py", *REFERENCE), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    assert "distinct" in running.stderr.readline()  # the first line of progress: the search has begun
    running.send_signal(number)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 3, err
    assert "UNDETERMINED: interrupted; at its one size" in out
    assert "distinct states" in out
    assert "Traceback" not in err


def test_a_reader_that_goes_away() -> None:
    running = subprocess.Popen(command("models", "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdout is not None
    assert running.stderr is not None
    running.stdout.close()
    assert running.wait(timeout=60) == 141
    assert running.stderr.read() == b""
    running.stderr.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", [("models",), ("check", "--help"), ("check", LENDING, *REFERENCE)])
def test_output_to_a_full_disk(words: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(command(*words), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "error: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize(("closed", "code"), [("<&-", 1), (">&-", 1), ("2>&-", 1), ("<&- >&- 2>&-", 1)])
def test_streams_that_are_closed(closed: str, code: int) -> None:
    words = " ".join(f"'{word}'" for word in command("check", LENDING, *REFERENCE))
    done = subprocess.run(["/bin/sh", "-c", f"{words} {closed}"], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "error" not in done.stderr


def test_names_that_are_no_text(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/b\xe9d.py"
    with open(name, "wb") as stream:
        stream.write(Path(LENDING).read_bytes())
    for more in ([], ["--json"]):
        done = subprocess.run([*command("check"), name, *more], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert "not text in the encoding of this locale" in done.stderr
    assert main(["check", "b\udce9d.py"]) == 2


def test_the_start_imports_next_to_nothing() -> None:
    """Ctrl-C while the command line is still being imported cannot be answered; so that takes no time."""
    script = "import sys\nimport fencepost.checker.cli.main\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    ours = {name for name in done.stdout.split() if name.startswith("fencepost.")}
    assert ours <= {"fencepost.checker", "fencepost.checker.cli", "fencepost.checker.cli.main", "fencepost.checker.cli.errors"}
    assert not {"typer", "rich", "dataclasses", "subprocess"} & set(done.stdout.split())


@pytest.mark.parametrize("name", ["my spec", "a:b", "-x", "ünï", "kv"])
def test_the_command_that_replays_a_spec_of_any_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(f"{name}.py").write_bytes(Path(LENDING).read_bytes())
    for more in ([], ["--trace-out", f"{name}.itf.json"]):
        assert main(["check", *REFERENCE, *more, "--", f"{name}.py"]) == 1
        (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("replay: "))
        assert main(shlex.split(line)[2:]) == 0


def test_json_stays_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "loud.py").write_text(Path(LENDING).read_text() + '\nprint("imported")\n')
    assert main(["check", str(tmp_path / "loud.py"), "--json", *REFERENCE]) == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out)["verdict"] == "VIOLATED"
    assert "imported" in shown.err
    assert main(["check", LENDING, "--json", "--trace-out", "/dev/stdout"]) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "vllm", "serve", "MODEL", "--max-num-seqs", "4"], "goes after --, as in: fencepost check -- vllm serve"),
        (["check", "kv", "--bonds", "requests=3"], "No such option: --bonds"),
        (["check", "kv", "--engine", "turbo"], "Invalid value for '--engine': 'turbo' is not one of"),
        (["check", ""], "is empty"),
        (["replay", ""], "is empty"),
        (["check", "kv", "--bounds", "requests=٣"], "the digits 0 to 9"),
    ],
)
def test_what_a_user_is_told(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert said in line
    assert ("goes after --" in line) == ("vllm" in words)


def test_the_time_limit_is_named_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path / "nothing compiled yet"))
    (tmp_path / "far.py").write_text(SLOW)
    assert main(["check", str(tmp_path / "far.py"), "--max-time", "2.5s", "-q"]) == 3
    assert "time limit of 2.5 s (--max-time)" in capsys.readouterr().out


def test_output_without_unicode(tmp_path: Path) -> None:
    text = Path(LENDING).read_text().replace("at the head of the free queue", "at the head of the “free” queue")
    (tmp_path / "quotes.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        command("check", "quotes.py", *REFERENCE),
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 1, done.stderr
    assert b"at the head of the ?free? queue" in done.stdout.replace(b"\n", b" ") or b"?free?" in done.stdout


def test_several_violations_are_written_to_several_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kinds = str(SPECS.parents[1] / "traces" / "specs" / "kinds.py")
    words = ["check", kinds, *REFERENCE, "--bounds", "requests=1,blocks=1", "--keep-going"]
    assert main([*words, "--trace-out", str(tmp_path / "x.itf.json")]) == 2  # the spec leaves its own bounds, too
    shown = capsys.readouterr().out
    names = sorted(os.listdir(tmp_path))
    assert names == ["x.idle-is-calm.itf.json", "x.itf.json", "x.never-quieter.itf.json", "x.spec-error.itf.json"]
    for name in names:
        assert f"fencepost replay {tmp_path / name}" in shown
        assert main(["replay", str(tmp_path / name), "-q"]) == 0


def test_nothing_is_written_where_nothing_is_violated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "x.itf.json"
    assert main(["check", LENDING, *REFERENCE, "-q", "--bounds", "fence=on", "--trace-out", str(target)]) == 0
    assert not target.exists()
    assert "is not written" in capsys.readouterr().err


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert main(["check", LENDING, *REFERENCE, "--trace-out", str(tmp_path / "x.itf.json")]) == 2
    shown = capsys.readouterr()
    assert "VIOLATED" in shown.out  # what was found is said before the file is written
    assert "x.itf.json: cannot be written: No space left on device" in shown.err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("symmetry", ["on", "off"])
@pytest.mark.parametrize("engine", ["native", "reference"])
def test_the_report_does_not_depend_on_the_engine(engine: str, symmetry: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", LENDING, "--symmetry", symmetry, "--keep-going"]
    assert main([*words, *REFERENCE]) == 1
    expected = capsys.readouterr().out
    assert main([*words, "--engine", engine]) == 1
    assert capsys.readouterr().out == expected


def test_the_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    assert "usable of" in capsys.readouterr().out
    assert main(["doctor", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["cores"]["usable"] >= 1
    assert 0 < facts["memory"]["default_limit_bytes"] <= facts["memory"]["machine_bytes"]
    assert facts["packages"]["numpy"]


def test_the_doctor_asks_for_what_is_needed_and_no_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needs = ["numpy>=2.0", "no_such-thing[x]>=1; python_version>'3'", 'pytest>=8; extra == "test"']

    def requires(name: str) -> list[str]:
        return needs

    monkeypatch.setattr(importlib.metadata, "requires", requires)
    assert doctor.needed() == ["numpy", "no_such-thing"]
    assert main(["doctor"]) == 2
    assert "no_such-thing is not installed" in capsys.readouterr().out


def test_the_doctor_sees_a_cache_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path / "file" / "cache"))
    assert main(["doctor"]) == 0
    assert "cannot be written: each start compiles again" in " ".join(capsys.readouterr().out.split())


def test_models_lists_specs_profiles_and_faults(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("spec kv", "vllm-0.33", "B01"))
    assert main(["models", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"specs", "profiles", "faults", "expected"}


@pytest.mark.parametrize(("text", "amount"), [("30", 30), ("30s", 30), ("1.5 min", 90), ("2h", 7200), ("1_000s", 1000)])
def test_times(text: str, amount: float) -> None:
    assert units.seconds(text, "--max-time") == amount


@pytest.mark.parametrize(
    ("text", "amount"), [("1024", 1024), ("2GiB", 2**31), ("2g", 2**31), ("500MB", 500_000_000), ("1.5KiB", 1536)]
)
def test_sizes(text: str, amount: int) -> None:
    assert units.size(text, "--max-memory") == amount


@pytest.mark.parametrize("text", ["", "-5", "s", "5 parsecs", "1e3", "nan", "٣", "0", "9" * 40])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(UsageError, match="--max-time: "):
        units.seconds(text, "--max-time")


def test_counts() -> None:
    assert units.number("5M", "--max-states") == 5_000_000
    assert units.number("1_000", "--max-states") == 1000
    with pytest.raises(UsageError, match="not a whole number"):
        units.number("1.0001k", "--max-states")


HEAVY = ("yaml", "z3", "networkx", "jinja2", "llvmlite", "numpy", "rich.table", "fencepost.checker.config", "torch")


def test_starting_imports_nothing_that_is_not_needed() -> None:
    script = "import sys\nfrom fencepost.checker.cli.main import main\nmain(['replay', 'nothing'])\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & set(HEAVY)
    assert len(loaded) < 350, "nearly 300 are what Python and the command line need"


def test_a_narrow_terminal_loses_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", "--max-depth", "0", "--", "vllm", "serve", "MODEL", "--max-num-batched-tokens", "4096"]
    monkeypatch.setattr(terminal, "_columns", lambda: 40)
    assert main(words) == 3
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 40
    assert "max-num-batched-tokens: 3, scaled from" in shown
    assert "a-request-ends-in-flight" in shown.replace(" ", "").replace("\n", "")
