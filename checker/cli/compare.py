"""Whether a search with symmetry and a full one say the same."""

from __future__ import annotations

import math

from ..model import Model
from ..result import Result


def differences(model: Model, reduced: Result, full: Result) -> list[str]:
    """In what two results disagree, in words; searches that were cut short are not compared."""
    if reduced.cut or full.cut:
        return []
    found: list[str] = []
    if reduced.verdict is not full.verdict:
        found.append(f"the verdicts are {reduced.verdict.value} and {full.verdict.value}")
    if reduced.figures.depth != full.figures.depth:
        found.append(f"the depths are {reduced.figures.depth} and {full.figures.depth}")
    others = {p.name: p for p in full.properties}
    for one in reduced.properties:
        other = others.get(one.name)
        if other is None or (one.status, one.depth) != (other.status, other.depth):
            words = "not there" if other is None else f"{other.status.value} (depth {other.depth})"
            found.append(f"{one.name} is {one.status.value} (depth {one.depth}) and {words}")
        elif one.trace != other.trace:
            found.append(f"the traces of {one.name} differ")
    found += _counts(model, reduced, full)
    return found


def _counts(model: Model, reduced: Result, full: Result) -> list[str]:
    """Each class of states has between one member and as many as there are relabellings."""
    most = math.prod(math.factorial(count) for count in model.bound.indices().values())
    pairs = zip(reduced.figures.per_depth, full.figures.per_depth, strict=False)
    return [
        f"the numbers of states at depth {depth} are {few:,} and {many:,}, which does not fit {most:,} relabellings"
        for depth, (few, many) in enumerate(pairs)
        if not few <= many <= few * most
    ]
