"""Bounded search: bit-vectors beside integers, and both beside an exhaustive search of the same depth.

python benchmarks/bounded_search.py            # prints one line a model, with the ratios
python benchmarks/bounded_search.py --limit N  # seconds each search may take (default 120)
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fencepost.checker.cli.target import Wanted, resolve
from fencepost.checker.explore.findings import Findings
from fencepost.checker.explore.native.engine import NativeEngine
from fencepost.checker.model import Limits, Model, Options
from fencepost.checker.prove.bmc import Bounded, BoundedSearch
from harness import machine

KVFENCE = str(Path(__file__).resolve().parent / "kvfence.py")
RACE = "no-unordered-write-in-flight"
LARGE = (
    "requests=6,blocks=16,steps-in-flight=3,kv-role=kv_consumer,remote-tokens=1,prompt-tokens=1,max-tokens=2,abort-free=at-once"
)


@dataclass(frozen=True)
class Case:
    """A model, and how deep it is searched; `big` where only bit-vectors are tried, as the others would not end."""

    name: str
    wanted: Wanted
    depth: int
    big: bool = False


CASES = (
    Case("kvfence small, fence 1", Wanted((KVFENCE,), bounds=("requests=3,blocks=3,steps=2,fence=1",)), 5),
    Case("kvfence small, fence 0", Wanted((KVFENCE,), bounds=("requests=3,blocks=3,steps=2,fence=0",)), 4),
    Case("kv, fault B03-abort", Wanted(fault="B03-abort"), 5),
    Case("kv, fault B22", Wanted(fault="B22"), 6),
    Case("kv, fault B01", Wanted(fault="B01"), 7),
    Case("kv, the race at 6 requests, 16 blocks, 3 steps", Wanted(("kv",), "vllm-0.33", None, (LARGE,), (RACE,)), 5, big=True),
)


def timed(
    limit: float, search: Callable[[Model, Limits], tuple[Bounded | Findings, float]], case: Case
) -> tuple[str, float | None]:
    """What a search found of the properties, in words, and its CPU seconds (None: it did not end within the limit)."""
    found, seconds = search(resolve(case.wanted).model, Limits(max_depth=case.depth, max_seconds=limit))
    if found.cut is not None and "time" in found.cut:
        return f"not within {limit:g} s", None
    if isinstance(found, Bounded):
        shown = [f"{p.name} at {p.depth}" for p in found.violations]
    else:
        shown = [f"{name} at {failure.length}" for name, failure in found.failures.items()]
    return ", ".join(sorted(shown)) or f"nothing to depth {case.depth}", seconds


def bits(model: Model, limits: Limits) -> tuple[Bounded, float]:
    """Bounded search with bit-vectors, translation included."""
    begin = time.process_time()
    return BoundedSearch(model, limits).run(), time.process_time() - begin


def integers(model: Model, limits: Limits) -> tuple[Bounded, float]:
    """The same with integers."""
    begin = time.process_time()
    return BoundedSearch(model, limits, integers=True).run(), time.process_time() - begin


def exhaustive(model: Model, limits: Limits) -> tuple[Findings, float]:
    """The native engine with symmetry; compiling is not counted."""
    options = Options(deadlock=False, threads=1, limits=limits)
    engine = NativeEngine(model)
    engine.load(options)
    begin = time.process_time()
    return engine.run(options, None), time.process_time() - begin


def measure(case: Case, limit: float) -> bool:
    """Print one line; whether all searches found the same."""
    said, ours = timed(limit, bits, case)
    line, agree = [f"{case.name}: {said}", f"bit-vectors {_seconds(ours)}"], True
    for name, search in (("integers", integers), ("exhaustive", exhaustive)):
        if case.big and name == "integers":
            continue
        other, theirs = timed(limit, search, case)
        times = "" if ours is None or theirs is None else f" ({theirs / ours:.3g} times)"
        line.append(f"{name} {_seconds(theirs)}{times}")
        agree = agree and (None in (ours, theirs) or other == said)
    print("; ".join(line) + ("" if agree else " - THEY DIFFER"), flush=True)
    return agree


def _seconds(value: float | None) -> str:
    return "did not end" if value is None else f"{value:.2f} s"


def main() -> int:
    """Measure every model, print, and end with 1 where two searches differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=120, help="seconds each search may take (default 120)")
    asked = parser.parse_args()
    print("\n".join(machine.description()))
    agree = [measure(case, asked.limit) for case in CASES]
    return int(not all(agree))


if __name__ == "__main__":
    sys.exit(main())
