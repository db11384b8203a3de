"""The free queue with caching off: the block that was freed last is handed out first, whatever the length of the queue.

vLLM meant that order from 0.25.0 on (#42656), lost it in 0.27.0 (#48017: with caching off blocks went to the tail) and has it
back in 0.33.0 (#51482); in spec/kv it is the switch `uncached-free-order`. A table that is given up counts as freed block after
block, in its order, so its last block is to be reused first (v1/core/block_pool.py prepends the reversed table).

What the queue does and when blocks were freed are kept apart: `ahead` is the queue, moments are only what is known of the past.
"""

from __future__ import annotations

from .declare import Do, Protocol
from .logic import Formula, Ordered, Relation, Sort, every, implies, same, some


class Block(Sort):
    """A KV-cache block."""


class Moment(Ordered):
    """When one block is freed; of a table, one block after the other."""

    @classmethod
    def shown(cls, number: int) -> str:
        """Moments are t0, t1 and so on."""
        return f"t{number}"


queue = Protocol("free-queue", "Blocks are taken from the head of the free queue, and come back there.")

free = queue.relation("free", Block, sentence="the block is in the queue")
ahead = queue.relation("ahead", Block, Block, sentence="both are in the queue, and the first is handed out earlier")
freed = queue.relation("freed", Block, Moment, sentence="the block was last freed at this moment")
past = queue.relation("past", Moment, sentence="a block was freed at this moment")


@queue.initially
def all_are_free(b: Block) -> Formula:
    """At first every block is in the queue."""
    return free(b)


@queue.initially
@queue.safety()
@queue.invariant
def in_one_line(b: Block, c: Block, d: Block) -> Formula:
    """The queue is one line of the free blocks: of any two, one is ahead of the other, and it carries on."""
    placed = implies(free(b) & free(c), ahead(b, c) | ahead(c, b) | same(b, c))
    return placed & implies(ahead(b, c), free(b) & free(c) & ~ahead(c, b)) & implies(ahead(b, c) & ahead(c, d), ahead(b, d))


@queue.action
def take(do: Do, b: Block) -> None:
    """Block {b}, the head of the queue, is handed out."""
    do.require("free", free(b))
    do.require("head", ~some(Block, lambda c: ahead(c, b)))
    do.remove(free(b))
    do.becomes(ahead, lambda c, d: ahead(c, d) & ~same(c, b))


def come_back(do: Do, table: Relation[Block], when: Relation[Block, Moment]) -> None:
    """A table is given up: its blocks are held, and each is freed at a moment of its own, later than all before."""
    do.require("held", every(Block, lambda b: implies(table(b), ~free(b))))
    do.require("each", every(Block, lambda b: implies(table(b), some(Moment, lambda m: when(b, m)))))
    do.require("only", every(Block, Moment, lambda b, m: implies(when(b, m), table(b))))
    do.require("once", every(Block, Moment, Moment, lambda b, m, n: implies(when(b, m) & when(b, n), same(m, n))))
    do.require("in-turn", every(Block, Block, Moment, lambda b, c, m: implies(when(b, m) & when(c, m), same(b, c))))
    do.require("later", every(Block, Moment, Moment, lambda b, m, n: implies(when(b, m) & past(n), n < m)))
    do.becomes(free, lambda b: free(b) | table(b))
    do.becomes(freed, lambda b, m: when(b, m) | (freed(b, m) & ~table(b)))
    do.becomes(past, lambda m: past(m) | some(Block, lambda b: when(b, m)))


def earlier(when: Relation[Block, Moment], b: Block, c: Block) -> Formula:
    """Whether the first block comes earlier in a table than the second."""
    return some(Moment, Moment, lambda m, n: when(b, m) & when(c, n) & (m < n))


@queue.action
def give_back(do: Do, table: Relation[Block], when: Relation[Block, Moment]) -> None:
    """The table {table} comes back to the head, last block first; they were freed in its order, {when}."""
    come_back(do, table, when)
    do.becomes(ahead, lambda b, c: ahead(b, c) | (table(b) & free(c)) | earlier(when, c, b))


def give_back_to_tail(do: Do, table: Relation[Block], when: Relation[Block, Moment]) -> None:
    """The table {table} comes back to the tail, last block first; they were freed in its order, {when}."""
    come_back(do, table, when)
    do.becomes(ahead, lambda b, c: ahead(b, c) | (free(b) & table(c)) | earlier(when, c, b))


def give_back_as_it_is(do: Do, table: Relation[Block], when: Relation[Block, Moment]) -> None:
    """The table {table} comes back to the head, first block first; they were freed in its order, {when}."""
    come_back(do, table, when)
    do.becomes(ahead, lambda b, c: ahead(b, c) | (table(b) & free(c)) | earlier(when, b, c))


@queue.invariant
def later_freed_is_ahead(b: Block, c: Block, m: Moment, n: Moment) -> Formula:
    """Of two free blocks, the one that was freed later is ahead."""
    return implies(free(b) & free(c) & freed(b, m) & freed(c, n) & (n < m), ahead(b, c))


@queue.invariant
def freed_is_ahead_of_fresh(b: Block, c: Block) -> Formula:
    """A block that was freed is ahead of one that never was."""
    was, never = some(Moment, lambda m: freed(b, m)), ~some(Moment, lambda n: freed(c, n))
    return implies(free(b) & free(c) & was & never, ahead(b, c))


@queue.invariant
def freed_in_the_past(b: Block, m: Moment) -> Formula:
    """Moments at which blocks were freed are over."""
    return implies(freed(b, m), past(m))


@queue.safety(take)
def last_freed_first(b: Block, c: Block, n: Moment) -> Formula:
    """The block that is handed out was freed last of those in the queue, if any of them ever was."""
    return implies(free(c) & freed(c, n), some(Moment, lambda m: freed(b, m) & (n <= m)))


tail = queue.replacing(give_back, give_back_to_tail)
"""The queue of 0.27.0, with caching off."""
as_it_is = queue.replacing(give_back, give_back_as_it_is)
"""A queue that forgets to reverse a table."""
