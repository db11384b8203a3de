"""The fence for any size: the theorems, what they assume, and that each fault is found."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ...spec.fence.declare import Protocol
from ...spec.fence.finite import Finite
from ...spec.fence.logic import Claim
from ...spec.fence.protocol import fence, last_output_implies_done, output_implies_done, scheduler
from ...spec.fence.queue import queue
from ...spec.fence.runs import Run, shortest
from ...spec.fence.variants import Variant, fence_variants, queue_variants
from ..result import Verdict
from .protocol import Proof, Query, decide, prove, worst
from .protocol_obligations import Kind, Known, Obligation, Part, fails

WEAKER = fence.assuming(last_output_implies_done)
"""The fence protocol with the weaker axiom, which is enough."""
PROVED = (scheduler, fence, WEAKER, queue)
"""The protocols that are proved, in the order of the result; `certificate(*PROVED)` is for another solver."""


@dataclass(frozen=True)
class Fault:
    """A variant, and a shortest run in which it breaks its claim at the variant's size; `run` is None where there is none."""

    variant: Variant
    run: Run | None
    seconds: float


@dataclass(frozen=True)
class FenceResult:
    """What is proved of the fence and of the free queue, for any number of requests, blocks and steps.

    `scheduler` assumes nothing, and is about unprocessed steps; `memory` assumes `output-implies-done`, `weaker` only
    `last-output-implies-done`, and both are about what the device may still touch; `axioms` says that the second axiom follows
    from the first, and not the other way round. Faults are expected to be found: one that is not found violates nothing, but
    leaves open whether the proofs say anything.
    """

    scheduler: Proof
    memory: Proof
    weaker: Proof
    axioms: tuple[Query, ...]
    queue: Proof
    faults: tuple[Fault, ...]

    @property
    def verdict(self) -> Verdict:
        """VIOLATED if a proof is, else UNDETERMINED if one is, or if a fault is not found."""
        proofs = (self.scheduler, self.memory, self.weaker, self.queue)
        found = {*(proof.verdict for proof in proofs), *(query.verdict for query in self.axioms)}
        if any(fault.run is None for fault in self.faults):
            found.add(Verdict.UNDETERMINED)
        return worst(found)


def prove_fence(seconds: float = 10.0, tell: Callable[[Query | Fault], None] | None = None) -> FenceResult:
    """Prove everything about the fence, with so many seconds for each query; `tell` hears of each query and fault."""
    tell = tell or (lambda _: None)
    proofs = [prove(protocol, seconds, tell) for protocol in PROVED]
    axioms = tuple(decide(fence, obligation, seconds) for obligation in _axioms())
    for query in axioms:
        tell(query)
    faults: list[Fault] = []
    for variant in (*fence_variants(), *queue_variants()):
        begun = time.monotonic()
        run = shortest(Finite(variant.protocol.claiming(variant.claim), variant.sizes))
        faults.append(Fault(variant, run, time.monotonic() - begun))
        tell(faults[-1])
    return FenceResult(proofs[0], proofs[1], proofs[2], axioms, proofs[3], tuple(faults))


def _axioms() -> list[Obligation]:
    """The weaker axiom follows from the other, given the invariant; and it is weaker: it may be true where the other is not."""

    def both(kind: Kind, protocol: Protocol, claim: Claim) -> Obligation:
        name = "follows" if kind is Kind.SAFE else "weaker"
        parts: tuple[Part, ...] = (*Known(protocol).invariant, fails(claim))
        return Obligation(kind, f"{name}/{last_output_implies_done.name}", parts, claim=claim)

    return [both(Kind.SAFE, fence, last_output_implies_done), both(Kind.POSSIBLE, WEAKER, output_implies_done)]
