"""The expected data of kvfence: sizes and counts, read from kvfence.yaml."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent.parent
SIZES = ("tiny", "small", "medium", "large")


@dataclass(frozen=True)
class Bounds:
    """The bounds of one run, by the names of the spec."""

    requests: int
    blocks: int
    steps: int
    per_request: int
    fence: int

    @property
    def text(self) -> str:
        """As `--bounds` takes them."""
        return ",".join(f"{name}={value}" for name, value in vars(self).items())


@dataclass(frozen=True)
class Counts:
    """What a tool found: `trace` is the number of actions of the shortest counterexample, None where there is none."""

    distinct: int
    generated: int
    depth: int
    trace: int | None = None


@dataclass(frozen=True)
class Case:
    """One row of the expected data; `symmetry` is none, requests or both."""

    size: str
    symmetry: str
    bounds: Bounds
    counts: Counts

    @property
    def name(self) -> str:
        """A short name."""
        return f"{self.size}, fence {self.bounds.fence}, symmetry {self.symmetry}"


def load(file: Path = HERE / "kvfence.yaml") -> list[Case]:
    """Every case of the file."""
    data = yaml.safe_load(file.read_text(encoding="utf-8"))
    return [
        Case(
            row["size"],
            row["symmetry"],
            Bounds(**data["sizes"][row["size"]], fence=row["fence"]),
            Counts(row["distinct"], row["generated"], row["depth"], row.get("trace")),
        )
        for row in data["expected"]
    ]


def case(size: str, fence: int = 1, symmetry: str = "none") -> Case:
    """One case; `LookupError` where the file has none."""
    for found in load():
        if (found.size, found.bounds.fence, found.symmetry) == (size, fence, symmetry):
            return found
    raise LookupError(f"kvfence.yaml has no {size} with fence {fence} and symmetry {symmetry}")
