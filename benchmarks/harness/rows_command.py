"""The rows about the command and the KV spec."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

import yaml

from .ours import ANY_VERDICT, REPOSITORY, parsed, trace_length
from .process import BenchmarkError, run
from .report import Report, amount
from .session import Session

EXAMPLE = "examples/decode-consumer.yaml"
PROFILES = ("vllm-0.23", "vllm-0.25", "vllm-0.27", "vllm-0.33", "reference")
EXPECTED_CODES = {"vllm-0.23": 1, "vllm-0.27": 1, "vllm-0.33": 0}
CACHES = ("FENCEPOST_CACHE", "XDG_CACHE_HOME", "PIP_CACHE_DIR")
KV_BOUNDS = REPOSITORY / "benchmarks" / "kv-reference.yaml"


def check_fresh(session: Session) -> Report:
    """`make check` in a fresh copy of the files, with empty caches."""
    report = Report("check-fresh", "make check on a fresh copy, downloads and compilation included", ("run", "s"))
    seconds: list[float] = []
    for turn in range(session.repeat):
        with tempfile.TemporaryDirectory(prefix="a fresh copy ") as place:
            copy = _copied(Path(place))
            env = {name: str(Path(place) / name) for name in CACHES}
            ended = run(("make", "check"), cwd=copy, env=env).checked()
        seconds.append(ended.seconds)
        session.say(f"  make check, run {turn + 1}: {ended.seconds:.1f} s")
        report.table.append((str(turn + 1), amount(ended.seconds)))
    report.at_most("median", median(seconds), 120)
    return report


def _copied(place: Path) -> Path:
    """A copy of the files that git knows or would add."""
    listed = run(("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), cwd=REPOSITORY).checked()
    for name in filter(None, listed.out.split("\0")):
        if (REPOSITORY / name).is_file():
            target = place / "copy" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, target)
    return place / "copy"


def second_run(session: Session) -> Report:
    """The check of the example with a warm cache, each profile."""
    report = Report("check-second-run", "fencepost check of the example, second run, medians", ("profile", "verdict", "s"))
    for profile in PROFILES:
        arguments = (EXAMPLE, "--profile", profile)
        session.command.warm(*arguments)
        codes = (EXPECTED_CODES[profile],) if profile in EXPECTED_CODES else ANY_VERDICT
        ended = [session.command.check(*arguments, "--quiet").checked(*codes) for _ in range(session.repeat)]
        seconds = median(each.seconds for each in ended)
        verdict = {0: "HOLDS", 1: "VIOLATED", 3: "UNDETERMINED"}[ended[0].code]
        report.table.append((profile, verdict, amount(seconds)))
        report.at_most(profile, seconds, 3)
    return report


def cold_counterexample(session: Session) -> Report:
    """The counterexample of vllm-0.23 with nothing compiled yet."""
    report = Report("cold-counterexample", "the counterexample of vllm-0.23 from a cold start", ("run", "s"))
    seconds: list[float] = []
    for turn in range(session.repeat):
        with tempfile.TemporaryDirectory() as cache:
            ended = session.command.check(EXAMPLE, "--profile", "vllm-0.23", "--quiet", cache=Path(cache)).checked(1)
        seconds.append(ended.seconds)
        report.table.append((str(turn + 1), amount(ended.seconds)))
    report.at_most("median", median(seconds), 3)
    return report


def kv_reference(session: Session) -> Report:
    """The KV spec at bounds beyond the example's, caching off and on."""
    header = ("what", "verdict", "distinct", "generated", "depth", "search s", "wall s")
    report = Report("kv-reference", "the KV spec, profile reference, warm cache, medians", header)
    runs = yaml.safe_load(KV_BOUNDS.read_text(encoding="utf-8"))["runs"]
    for each in runs:
        arguments = tuple(map(str, each["arguments"]))
        session.command.warm(*arguments)
        found = [session.command.result(*arguments) for _ in range(session.repeat if each.get("target") else 1)]
        result = found[0][0]
        search = median(result["seconds"]["search"] for result, _ in found)
        counted = (f"{result[name]:,}" for name in ("distinct", "generated", "depth"))
        wall = median(ended.seconds for _, ended in found)
        report.table.append((each["name"], result["verdict"], *counted, amount(search), amount(wall)))
        if each.get("target"):
            report.at_most(each["name"], search, float(each["target"]))
    return report


def all_faults(session: Session) -> Report:
    """Every fault at its own bounds, one after another, warm cache."""
    report = Report("all-faults", "all faults found, one after another, warm cache", ("fault", "actions", "s"))
    faults = fault_names(session)
    for name in faults:
        session.command.warm("--fault", name)
    totals: list[float] = []
    for _ in range(session.repeat):
        found = {name: session.command.result("--fault", name) for name in faults}
        if lost := [name for name, (result, _) in found.items() if trace_length(result) is None]:
            raise BenchmarkError(f"not found: {', '.join(lost)}")
        totals.append(sum(ended.seconds for _, ended in found.values()))
        report.table = [(name, str(trace_length(result)), amount(ended.seconds)) for name, (result, ended) in found.items()]
    report.at_most(f"all {len(faults)}", median(totals), 60)
    return report


def fault_names(session: Session) -> list[str]:
    """The faults that `fencepost models` lists."""
    listed = parsed(run((*session.command.words, "models", "--json"), cwd=REPOSITORY).checked())
    names = list(listed["faults"])
    if not names:
        raise BenchmarkError("fencepost models lists no faults")
    return names


ROWS: dict[str, Callable[[Session], Report]] = {
    "check-fresh": check_fresh,
    "check-second-run": second_run,
    "cold-counterexample": cold_counterexample,
    "kv-reference": kv_reference,
    "all-faults": all_faults,
}
