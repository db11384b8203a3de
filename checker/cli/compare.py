"""Whether a search with symmetry and a full one say the same."""

from __future__ import annotations

from ...spec.lang.symmetry import Symmetry
from ..model import Model
from ..result import Result

COUNTED = 20_000
"""The largest full search whose classes of states are counted one by one, in plain Python: some ten seconds."""


def differences(model: Model, reduced: Result, full: Result, *, keep_going: bool) -> list[str]:
    """In what two results disagree, in words; searches that were cut short are not compared, stopped ones not by counts."""
    if reduced.cut or full.cut:
        return []
    found: list[str] = []
    if reduced.verdict is not full.verdict:
        found.append(f"the verdicts are {reduced.verdict.value} and {full.verdict.value}")
    others = {p.name: p for p in full.properties}
    for one in reduced.properties:
        other = others.get(one.name)
        if other is None or (one.status, one.depth) != (other.status, other.depth):
            words = "not there" if other is None else f"{other.status.value} (depth {other.depth})"
            found.append(f"{one.name} is {one.status.value} (depth {one.depth}) and {words}")
        elif one.trace != other.trace:
            found.append(f"the traces of {one.name} differ")
    missing = others.keys() - {one.name for one in reduced.properties}
    found += [f"{name} is not there and {others[name].status.value}" for name in sorted(missing)]
    stopped = not keep_going and (reduced.violations or full.violations)
    return found if stopped or not reduced.figures.symmetry else found + _counts(model, reduced, full)


def _counts(model: Model, reduced: Result, full: Result) -> list[str]:
    """Whether as many classes were counted as the full search has."""
    few = reduced.figures.distinct
    if full.figures.distinct > COUNTED:
        return []
    orbits = _orbits(model)
    return [] if orbits == few else [f"{few:,} classes of states were found, and the full search has {orbits:,}"]


def _orbits(model: Model) -> int:
    """Classes of reachable states under relabelling, from every state of a full search in plain Python."""
    from ..explore.reference import ReferenceEngine
    from ..model import Options

    engine = ReferenceEngine(model)
    engine.run(Options(symmetry=False, deadlock=False, keep_going=True))
    symmetry = Symmetry(model.bound.shape, model.bound.permutable())
    return len({symmetry.canonical(state) for level in engine.levels for state in level})
