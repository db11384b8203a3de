"""Proofs by induction: seconds for each property, beside an exhaustive search of the same bounds.

python benchmarks/proofs.py                   # small bounds; prints one table a model
python benchmarks/proofs.py --large           # 3 requests and 5 blocks; 4, 8 and 3 steps, which takes many minutes
python benchmarks/proofs.py --bounds B        # the KV spec at other bounds, NAME=VALUE,…; --profile P
python benchmarks/proofs.py --workers N       # processes (default: one a core)
python benchmarks/proofs.py --solver S        # sat (default), or Z3 by bit-vectors or integers
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fencepost.checker.cli.target import Wanted, resolve
from fencepost.checker.explore.memory import default_budget
from fencepost.checker.explore.native.engine import NativeEngine
from fencepost.checker.explore.native.memory import processors
from fencepost.checker.model import Limits, Model, Options
from fencepost.checker.prove.asked import Answer
from fencepost.checker.prove.deciders import DECIDERS
from fencepost.checker.prove.induction import Induced, Induction
from harness import machine

CONSUMER = "max-tokens=2,kv-role=kv_consumer,remote-tokens=1"


@dataclass(frozen=True)
class Case:
    """A model whose properties are proved, each query in so many seconds."""

    name: str
    wanted: Wanted
    each: float = 60.0


SMALL = (
    Case("kv, 2 requests, 2 blocks", Wanted(("kv",), "reference", None, (f"requests=2,blocks=2,prompt-tokens=1,{CONSUMER}",))),
    Case("kv, 2 requests, 3 blocks", Wanted(("kv",), "reference", None, (f"requests=2,blocks=3,prompt-tokens=1,{CONSUMER}",))),
)
LARGE = (
    Case(
        "kv, 3 requests, 5 blocks",
        Wanted(("kv",), "reference", None, (f"requests=3,blocks=5,{CONSUMER},prompt-tokens=2",)),
        300,
    ),
    Case(
        "kv, 4 requests, 8 blocks, 3 steps",
        Wanted(("kv",), "reference", None, (f"requests=4,blocks=8,steps-in-flight=3,{CONSUMER},prompt-tokens=2",)),
        600,
    ),
)
SEARCHED = 60.0
"""Most seconds to search."""


@dataclass(frozen=True)
class Search:
    """States of an exhaustive search, its seconds without those of the compiler, what it finds violated, why it was cut."""

    distinct: int
    seconds: float
    violated: set[str]
    cut: str | None


def searched(model: Model) -> Search:
    """An exhaustive search of the same bounds, as far as it comes."""
    limits = Limits(max_seconds=SEARCHED, max_bytes=default_budget())
    options = Options(deadlock=False, keep_going=True, threads=1, limits=limits)
    engine = NativeEngine(model)
    engine.load(options)
    begun = time.monotonic()
    found = engine.run(options, None)
    return Search(found.distinct, time.monotonic() - begun, set(found.failures), found.cut)


def rows(answers: Sequence[Answer]) -> Mapping[str, tuple[float, str]]:
    """For each property and lemma: the seconds of its queries, and the action that took most of them."""
    found: dict[str, tuple[float, str]] = {}
    for name in dict.fromkeys(answer.fact for answer in answers):
        own = [answer for answer in answers if answer.fact == name]
        slowest = max(own, key=lambda answer: answer.seconds)
        found[name] = sum(answer.seconds for answer in own), slowest.action
    return found


def show(case: Case, induced: Induced, wall: float, search: Search) -> None:
    """Print a table for a model."""
    lost = {answer.fact for answer in induced.answers if answer.answer != "proved"}
    proved = {*induced.kept, *induced.stepped}
    print(
        f"\n{case.name}: proved {len(proved)} in {wall:.1f} s; {search.distinct:,} states searched in {search.seconds:.2f} s",
        end="",
    )
    print(f" ({search.cut})" if search.cut else "")
    print(f"\n| {'property or lemma':30} | queries s | most of it in |\n| {'-' * 30} | --------: | ------------- |")
    for name, (spent, action) in sorted(rows(induced.answers).items(), key=lambda row: -row[1][0]):
        print(f"| {name + (' (not proved)' if name in lost else ''):30} | {spent:9.2f} | {action:13} |")


def told(action: str, answers: Sequence[Answer], seconds: float) -> None:
    """Say on standard error that all questions about an action are answered, as a large proof takes long."""
    lost = ", ".join(answer.fact for answer in answers if answer.answer != "proved")
    print(f"{action}: {seconds:.1f} s{', not proved: ' + lost if lost else ''}", file=sys.stderr, flush=True)


def main() -> int:
    """Measure; 1 where something is not proved, or is proved and violated."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--large", action="store_true", help="3 requests and 5 blocks; 4, 8 and 3 steps")
    parser.add_argument("--bounds", help="the KV spec at these bounds instead")
    parser.add_argument("--profile", default="reference", help="which release (default: reference)")
    parser.add_argument("--workers", type=int, default=processors(), help="processes (default: one a core)")
    parser.add_argument("--solver", choices=DECIDERS, default="sat", help="what decides the queries about actions")
    given = parser.parse_args()
    print("\n".join((*machine.description(), f"{given.workers} processes, {given.solver}")))
    wrong = False
    own = Case(f"kv, {given.profile}, {given.bounds}", Wanted(("kv",), given.profile, None, (given.bounds or "",)), 600)
    for case in (own,) if given.bounds else LARGE if given.large else SMALL:
        model = resolve(case.wanted).model
        search = searched(resolve(case.wanted).model)
        begun = time.monotonic()
        decider = DECIDERS[given.solver]
        induced = Induction(model, Limits(), told, each=case.each, workers=given.workers, decider=decider).run()
        show(case, induced, time.monotonic() - begun, search)
        proved = {*induced.kept, *induced.stepped}
        wrong = (
            wrong
            or bool(search.violated)
            or any(p.name not in proved for p in model.bound.every if p.kind in ("always", "step"))
        )
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
