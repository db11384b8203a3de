"""What is proved of the fence for any size, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...traces.origin import version
from ..report.schema import SCHEMA_VERSION
from ..report.terminal import columns
from ..report.text import STYLES
from ..report.words import count, seconds
from ..result import Verdict
from .protocol import Proof, Query
from .protocol_fence import Fault, FenceResult

if TYPE_CHECKING:
    from rich.console import Console

NAMED = 5
"""So many things that are wrong are named in one line."""
EXIT_CODES = {Verdict.HOLDS: 0, Verdict.VIOLATED: 1, Verdict.UNDETERMINED: 3}


def verdict_of_fence(out: Console, found: FenceResult) -> None:
    """The verdict line, with what it is of."""
    from rich.text import Text

    wrong = list(_wrong(found))
    more = f"; and {len(wrong) - NAMED} more" if len(wrong) > NAMED else ""
    word, rest = found.verdict.value, f": {'; '.join(wrong[:NAMED])}{more}"
    if found.verdict is Verdict.HOLDS:
        word = "PROVED"
        rest = ": the fence and the free queue, for any number of requests, blocks and steps (docs/fence.md)"
    out.print(Text.assemble((word, STYLES[found.verdict]), rest))


def print_fence(out: Console, found: FenceResult, *, verbose: bool) -> None:
    """The whole report; with `verbose`, every query and a shortest run of every fault."""
    verdict_of_fence(out, found)
    for title, proof in _proofs(found):
        _proof(out, title, proof, verbose=verbose)
    out.print()
    axioms = ", ".join(f"{query.name} {_word(query)}" for query in found.axioms)
    out.print(f"of the axioms: {axioms}")
    _faults(out, found.faults, verbose=verbose)


def _proofs(found: FenceResult) -> list[tuple[str, Proof]]:
    return [
        ("what unprocessed steps name, by the scheduler's own rules", found.scheduler),
        ("what the device may still touch", found.memory),
        ("the same, with the weaker axiom", found.weaker),
        ("the free queue, with caching off", found.queue),
    ]


def _proof(out: Console, title: str, proof: Proof, *, verbose: bool) -> None:
    """One protocol: what it assumes, what is claimed of it, and how many queries that took."""
    protocol = proof.protocol
    assumed = ", ".join(protocol.axioms) or "nothing"
    open_ = [query for query in proof.queries if query.outside]
    fragment = "all decidable" if not open_ else f"{count(len(open_), 'query')} outside the decidable fragment"
    out.print()
    out.print(f"{title} (assumes {assumed})", style="bold")
    out.print(f"  {count(len(proof.queries), 'query')}, {fragment}, {seconds(proof.seconds)}")
    table = columns("", "", "")
    for claim in protocol.claims.values():
        table.add_row("", f"{_word_of_claim(proof, claim.name)} {claim.name}", claim.sentence)
    out.print(table)
    failed = [query for query in proof.queries if query.verdict is not Verdict.HOLDS]
    for query in proof.queries if verbose else failed:
        out.print(f"  {query.name}: {_word(query)} ({query.kind.value})")
        for line in _counterexample(query):
            out.print(f"    {line}")


def _word(query: Query) -> str:
    return {Verdict.HOLDS: "shown", Verdict.VIOLATED: "FALSE", Verdict.UNDETERMINED: "no answer in time"}[query.verdict]


def _word_of_claim(proof: Proof, claim: str) -> str:
    """Proved only together with the invariant that it follows from."""
    own = any(query.claim == claim and query.verdict is not Verdict.HOLDS for query in proof.queries)
    return "proved" if proof.verdict is Verdict.HOLDS else "not proved" if own else "open"


def _counterexample(query: Query) -> list[str]:
    found = query.counterexample
    if found is None:
        return []
    sizes = ", ".join(f"{size} {sort.__name__}" for sort, size in found.sizes.items())
    values = ", ".join(f"{parameter.name}={value}" for parameter, value in found.arguments.items())
    return [f"a structure of {sizes}; {values}", f"relations: {found.state}"]


def _faults(out: Console, faults: Sequence[Fault], *, verbose: bool) -> None:
    out.print()
    out.print("each fault is found:" if all(fault.run for fault in faults) else "NOT every fault is found:", style="bold")
    table = columns("fault", "breaks", "actions", "what is wrong")
    for fault in faults:
        length = "not found" if fault.run is None else str(len(fault.run.steps))
        table.add_row(fault.variant.name, fault.variant.claim, length, fault.variant.sentence)
    out.print(table)
    for fault in faults if verbose else ():
        if fault.run is not None:
            out.print()
            out.print(f"{fault.variant.name}:", style="bold")
            for line in fault.run.lines():
                out.print(f"  {line}")


def _wrong(found: FenceResult) -> list[str]:
    queries = [*(query for _, proof in _proofs(found) for query in proof.queries), *found.axioms]
    told = [f"{query.name} {_word(query)}" for query in queries if query.verdict is not Verdict.HOLDS]
    return told + [f"fault {fault.variant.name} is not found" for fault in found.faults if fault.run is None]


def document_of_fence(found: FenceResult) -> dict[str, Any]:
    """The result as one JSON object (docs/json-result.md)."""
    names = ("scheduler", "memory", "weaker", "queue")
    return {
        "schema_version": SCHEMA_VERSION,
        "fencepost": version(),
        "method": "any size",
        "verdict": found.verdict.value,
        "exit_code": EXIT_CODES[found.verdict],
        "proofs": [_part(name, proof) for name, (_, proof) in zip(names, _proofs(found), strict=True)],
        "axioms": [_query(query) for query in found.axioms],
        "faults": [
            {
                "name": fault.variant.name,
                "statement": fault.variant.sentence,
                "breaks": fault.variant.claim,
                "run": None if fault.run is None else fault.run.lines(),
            }
            for fault in found.faults
        ],
    }


def _part(name: str, proof: Proof) -> dict[str, Any]:
    return {
        "name": name,
        "verdict": proof.verdict.value,
        "assumes": list(proof.protocol.axioms),
        "claims": {claim.name: claim.sentence for claim in proof.protocol.claims.values()},
        "queries": [_query(query) for query in proof.queries],
    }


def _query(query: Query) -> dict[str, Any]:
    return {
        "name": query.name,
        "kind": query.kind.value,
        "verdict": query.verdict.value,
        "decidable": query.outside is None,
        "seconds": query.seconds,
        "counterexample": _counterexample(query) or None,
    }
