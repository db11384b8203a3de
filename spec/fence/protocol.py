"""The fence: when a block that was given up may be handed out again, whatever the number of requests, blocks and steps.

An engine schedules steps ahead of the device. A step that was issued reads and writes blocks until the device is through
with it, also blocks of requests that have ended since. A transfer from another machine writes blocks, too, in no order with
the device. So a block must not go back to the pool while a step in flight names it: it is parked behind a fence, a step,
until the output of that step was processed (vLLM #45357; v1/core/sched/scheduler.py of 0.25.0 to 0.33.0:
_free_request_blocks and _drain_deferred_frees).

Everything an engine may do is here in its laxest form: block by block, and as late as it likes. A real scheduler takes
several of these actions at once, parks a block that it could free, or waits with a drain; it takes none that is not here.
Every guard is needed: proofs fail without it (or it only rules out what changes nothing).
"""

from __future__ import annotations

from .declare import Do, Protocol, claim
from .logic import Formula, Ordered, Relation, Sort, every, implies, same, some


class Request(Sort):
    """A request, from its first admission on; one that was preempted and comes back is the same."""

    @classmethod
    def shown(cls, number: int) -> str:
        """Requests are letters."""
        return chr(ord("A") + number) if number < 26 else f"R{number}"


class Block(Sort):
    """A KV-cache block; content cached under a hash is not looked at, so any block can be hit."""


class Step(Ordered):
    """One execution of the model, in the order in which the scheduler builds them."""

    @classmethod
    def shown(cls, number: int) -> str:
        """Steps are counted from 1."""
        return str(number + 1)


fence = Protocol("fence", "Blocks that are given up wait behind a fence while a step in flight names them.")

issued = fence.relation("issued", Step, sentence="the step was sent to the device")
executed = fence.relation("executed", Step, sentence="the device is through with the step, and touches no memory for it")
processed = fence.relation("processed", Step, sentence="the scheduler has processed the step's output")
names = fence.relation("names", Step, Request, Block, sentence="the step reads or writes the block for the request")
owns = fence.relation("owns", Request, Block, sentence="the block is in the request's table")
waits = fence.relation("waits", Block, Step, sentence="the block was given up, and waits for the step to be processed")
loading = fence.relation("loading", Request, Block, sentence="a transfer for the request still writes the block")
sending = fence.relation("sending", Request, Block, sentence="a transfer for the request still reads the block")


def in_pool(b: Block) -> Formula:
    """Whether a block can be handed out: nobody owns it, and it waits for no step."""
    return ~some(Request, lambda q: owns(q, b)) & ~some(Step, lambda t: waits(b, t))


@fence.action
def allocate(do: Do, r: Request, b: Block) -> None:
    """Request {r} is given block {b} from the pool, to be overwritten."""
    do.require("in-pool", in_pool(b))
    do.insert(owns(r, b))


@fence.action
def hit(do: Do, r: Request, b: Block) -> None:
    """Request {r} shares block {b}, whoever has it, for its content: a hit in the prefix cache."""
    do.require("loaded", ~some(Request, lambda q: loading(q, b)))
    do.insert(owns(r, b))


@fence.action
def issue(do: Do, s: Step, plan: Relation[Request, Block]) -> None:
    """Step {s} is built and sent to the device; it reads and writes {plan}."""
    do.require("newest", every(Step, lambda t: implies(issued(t), t < s)))
    do.require("owned", every(Request, Block, lambda r, b: implies(plan(r, b), owns(r, b))))
    do.require("loaded", every(Request, Block, lambda r, b: implies(plan(r, b), ~loading(r, b))))
    do.insert(issued(s))
    do.becomes(names, lambda t, r, b: names(t, r, b) | (same(t, s) & plan(r, b)))


@fence.action
def execute(do: Do, s: Step) -> None:
    """The device is through with step {s}."""
    do.require("issued", issued(s))
    do.insert(executed(s))


@fence.action
def process(do: Do, s: Step) -> None:
    """The scheduler processes the output of step {s}."""
    do.require("issued", issued(s))
    do.require("in-order", every(Step, lambda t: implies(issued(t) & (t < s), processed(t))))
    do.insert(processed(s))


def give_up(do: Do, r: Request, b: Block) -> None:
    """What a request needs to give a block up: it has it, and no transfer of its own still uses it."""
    do.require("owned", owns(r, b))
    do.require("loaded", ~loading(r, b))
    do.require("sent", ~sending(r, b))
    do.remove(owns(r, b))


@fence.action
def free(do: Do, r: Request, b: Block) -> None:
    """Request {r} gives up block {b} at once: it finished, was aborted or preempted, or its window slid on."""
    give_up(do, r, b)
    do.require("processed", every(Step, lambda s: implies(names(s, r, b), processed(s))))


@fence.action
def park(do: Do, r: Request, b: Block, until: Step) -> None:
    """Request {r} gives up block {b}, which waits for the steps up to {until} to be processed."""
    give_up(do, r, b)
    do.require("covered", every(Step, lambda s: implies(names(s, r, b) & ~processed(s), s <= until)))
    do.becomes(waits, lambda c, s: waits(c, s) | (same(c, b) & (s <= until)))


@fence.action
def drain(do: Do, b: Block, until: Step) -> None:
    """Block {b} waits no more: step {until} is processed, and the block waits for none after it."""
    do.require("processed", processed(until))
    do.require("last", every(Step, lambda s: implies(waits(b, s), s <= until)))
    do.becomes(waits, lambda c, s: waits(c, s) & ~same(c, b))


@fence.action
def load(do: Do, r: Request, b: Block) -> None:
    """Request {r} is given block {b} from the pool, and a transfer starts to write it."""
    do.require("in-pool", in_pool(b))
    do.insert(owns(r, b))
    do.insert(loading(r, b))


@fence.action
def land(do: Do, r: Request, b: Block) -> None:
    """The transfer for request {r} has written block {b}."""
    do.require("loading", loading(r, b))
    do.remove(loading(r, b))


@fence.action
def send(do: Do, r: Request, b: Block) -> None:
    """A transfer starts to read block {b} of request {r}: somebody fetches it, or it is pushed or stored."""
    do.require("owned", owns(r, b))
    do.insert(sending(r, b))


@fence.action
def sent(do: Do, r: Request, b: Block) -> None:
    """The transfer for request {r} has read block {b}."""
    do.require("sending", sending(r, b))
    do.remove(sending(r, b))


# What is always true.


@fence.invariant
def references_are_protected(s: Step, r: Request, b: Block) -> Formula:
    """A block that an unprocessed step names is still its request's, or waits for that step."""
    return implies(names(s, r, b) & ~processed(s), owns(r, b) | waits(b, s))


@fence.invariant
def named_by_issued_steps(s: Step, r: Request, b: Block) -> Formula:
    """Only a step that was issued names blocks."""
    return implies(names(s, r, b), issued(s))


@fence.safety()
@fence.invariant
def done_steps_were_issued(s: Step) -> Formula:
    """Only a step that was issued is executed or processed."""
    return implies(executed(s) | processed(s), issued(s))


@fence.invariant
def processed_in_order(s: Step, t: Step) -> Formula:
    """Steps are processed in the order in which they were issued."""
    return implies(processed(t) & issued(s) & (s < t), processed(s))


@fence.safety()
@fence.invariant
def load_target_is_owned(r: Request, b: Block) -> Formula:
    """A block that a transfer writes is in the table of the request that it is for."""
    return implies(loading(r, b), owns(r, b))


@fence.safety()
@fence.invariant
def load_target_has_one_owner(r: Request, q: Request, b: Block) -> Formula:
    """A block that a transfer writes is in nobody else's table."""
    return implies(loading(r, b) & owns(q, b), same(r, q))


@fence.safety()
@fence.invariant
def no_unordered_write_in_flight(r: Request, q: Request, b: Block, s: Step) -> Formula:
    """No block is the target of a transfer while an unprocessed step names it."""
    return implies(loading(r, b) & names(s, q, b), processed(s))


@fence.invariant
def sent_block_is_owned(r: Request, b: Block) -> Formula:
    """A block that a transfer reads is in the table of the request that it is for."""
    return implies(sending(r, b), owns(r, b))


# What is assumed.


@fence.axiom
def output_implies_done(s: Step) -> Formula:
    """When a step's output is processed, the device is through with the step."""
    return implies(processed(s), executed(s))


@claim
def last_output_implies_done(b: Block) -> Formula:
    """When the output of the last step that names a block is processed, the device is through with all that name it.

    Enough in place of `output-implies-done`. Outputs are processed in order, so "the last one is processed" is said here as
    "all of them are".
    """
    all_processed = every(Step, Request, lambda s, r: implies(names(s, r, b), processed(s)))
    return implies(all_processed, every(Step, Request, lambda s, r: implies(names(s, r, b), executed(s))))


# What is proved: beside the invariants marked so, what the scheduler sees to by itself ...


@fence.safety(allocate, load)
def no_reuse_in_flight(b: Block, q: Request, s: Step) -> Formula:
    """No block is handed out again while an unprocessed step names it."""
    return implies(names(s, q, b), processed(s))


@fence.safety(allocate, load)
def no_reuse_while_sent(b: Block, q: Request) -> Formula:
    """No block is handed out again while a transfer still reads it."""
    return ~sending(q, b)


@fence.safety(free, park)
def no_double_free(r: Request, b: Block) -> Formula:
    """A request gives up only what it has."""
    return owns(r, b)


# ... and what follows of memory, given an axiom.


@fence.safety()
def no_unordered_write_while_used(r: Request, q: Request, b: Block, s: Step) -> Formula:
    """No block is the target of a transfer while the device may still touch it for a step."""
    return implies(loading(r, b) & names(s, q, b), executed(s))


@fence.safety(allocate, load)
def no_reuse_while_used(b: Block, q: Request, s: Step) -> Formula:
    """No block is handed out again while the device may still touch it for a step."""
    return implies(names(s, q, b), executed(s))


ABOUT_MEMORY = (no_unordered_write_while_used, no_reuse_while_used)
scheduler = fence.assuming().without_claims(*ABOUT_MEMORY)
"""The protocol without axioms, and with what it claims then."""
