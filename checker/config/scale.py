"""From an engine's sizes to bounds of the KV spec (`spec/kv`), each with a row that says what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from .options import data
from .profiles import has
from .rules import Engine, Fact

RowHow = Literal["taken", "scaled", "derived", "default", "assumed", "model", "ignored"]


class Row(BaseModel):
    """One line of the table: a bound, switch, fact or option.

    `model` is its value in the model (None: it has none), `config` what the config gives or leads to, `source` where
    that stands (file:line, argument, environment, default), `how` what was done, `why` the rule or reason.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    model: int | str | None
    config: str | None
    source: str
    how: RowHow
    why: str


@cache
def sizes() -> Mapping[str, int]:
    """The sizes of the model."""
    return data("scaling.yaml")


def scaled(engine: Engine, release: str) -> list[Row]:
    """A row for every bound and switch of the KV spec that a config decides."""
    limit = sizes()
    return [
        _own("requests", "no option says how many requests come"),
        _blocks(engine),
        _switch("async-scheduling", engine.async_scheduling),
        _at_most("steps-in-flight", engine.steps, limit["steps-in-flight"]),
        _block_size(engine),
        _own("prompt-tokens", "prompts come from clients"),
        _own("prompt-tokens-least", "prompts come from clients"),
        _own("max-tokens", "output lengths come from clients"),
        _budget(engine),
        _at_most("max-num-seqs", engine.running, limit["requests"], "no more requests than the model has"),
        _switch("enable-prefix-caching", engine.caching),
        _groups(engine),
        *_transfer(engine),
        _watermark(engine, release),
        _switch("scheduler-reserve-full-isl", engine.whole),
        _own("aborts", "clients may disconnect at any time"),
        _own("empty-steps", "steps without tokens come back at once"),
        _own("reset-running", "reset_prefix_cache(reset_running_requests=True) is called by an operator, not by a config"),
    ]


def _transfer(engine: Engine) -> list[Row]:
    """The role, and how much of a prompt loads bring: all of it, or nothing where no load is unordered."""
    transfer = engine.transfer
    remote = sizes()["prompt-tokens"] if transfer.loads else 0
    words = _role_words(engine)
    return [
        Row(name="kv-role", model=transfer.role, config=words, source=transfer.place, how="taken", why=transfer.role_why),
        Row(
            name="remote-tokens",
            model=remote,
            config=None,
            source=transfer.place,
            how="derived",
            why=transfer.loads_why,
        ),
    ]


def _role_words(engine: Engine) -> str:
    """Connector and role, for the table."""
    transfer = engine.transfer
    return "no connector" if transfer.connector is None else f"{transfer.connector}, {transfer.role}"


def _own(name: str, why: str) -> Row:
    """A bound that no option decides."""
    return Row(name=name, model=sizes()[name], config=None, source="the model", how="model", why=why)


def _words(value: Any) -> str | None:
    """A config's value in words."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return None if value is None else str(value)


def _at_most(name: str, fact: Fact, limit: int, why: str = "the largest that is modelled") -> Row:
    """A size, or the model's where it is larger or decided at start."""
    if fact.value is None:
        reason = f"{fact.why}; {why}"
        return Row(name=name, model=limit, config=None, source=fact.source, how="scaled", why=reason)
    if fact.value <= limit:
        return Row(name=name, model=fact.value, config=_words(fact.value), source=fact.source, how=fact.how, why=fact.why)
    reason = f"{fact.why}; scaled to {limit}: {why}"
    return Row(name=name, model=limit, config=_words(fact.value), source=fact.source, how="scaled", why=reason)


def _blocks(engine: Engine) -> Row:
    """Usable blocks: the pool without its null block (`BlockPool.__init__`)."""
    limit = sizes()["blocks"]
    total = engine.pool.value
    if total is None:
        why = f"{engine.pool.why}; scaled to {limit}, a pool that runs full"
        return Row(name="blocks", model=limit, config=None, source=engine.pool.source, how="scaled", why=why)
    usable = total - 1
    why = f"{total} blocks less the null block" + (f"; scaled to {limit}, a pool that runs full" if usable > limit else "")
    how: RowHow = "scaled" if usable > limit else "derived"
    return Row(
        name="blocks",
        model=min(usable, limit),
        config=f"{total} with the null block",
        source=engine.pool.source,
        how=how,
        why=why,
    )


def _block_size(engine: Engine) -> Row:
    """Tokens a block: larger where the pool has fewer blocks than a request of the model has tokens (at most 4)."""
    limit, usable = sizes(), _blocks(engine).model
    tokens = limit["prompt-tokens"] + limit["max-tokens"]
    room = min(4, -(-tokens // int(usable or 1)))
    return _at_most("block-size", engine.block_size, max(limit["block-size"], room))


def _budget(engine: Engine) -> Row:
    """The token budget of a step: small where prompts may be cut, large enough for whole prompts where they may not."""
    fact, limit = engine.budget, sizes()
    if engine.chunked.value:
        row = _at_most(
            "max-num-batched-tokens", fact, limit["budget-chunked"], "less than two prompts, so that prompts are cut"
        )
        return row
    whole = limit["budget-whole"]
    why = f"{fact.why}; {whole} tokens hold every prompt whole: chunked prefill is off ({engine.chunked.source})"
    return Row(
        name="max-num-batched-tokens",
        model=whole,
        config=_words(fact.value),
        source=fact.source,
        how="scaled",
        why=why,
    )


def _switch(name: str, fact: Fact) -> Row:
    """A switch as 0 or 1."""
    return Row(name=name, model=int(fact.value), config=_words(fact.value), source=fact.source, how=fact.how, why=fact.why)


def _groups(engine: Engine) -> Row:
    """Common prompt texts: only with prefix caching."""
    on = engine.caching.value
    why = "requests may share a prompt" if on else "without prefix caching, nothing is shared"
    model = sizes()["prefix-groups"] if on else 0
    return Row(name="prefix-groups", model=model, config=None, source="the model", how="model", why=why)


def _watermark(engine: Engine, release: str) -> Row:
    """Blocks kept free at admissions: the fraction of the model's pool, at least one block where the option is set."""
    fact = engine.watermark
    fraction = fact.value
    if not has(release, "0.25.0", None):
        why = f"{release} has no watermark"
        return Row(name="watermark", model=0, config=None, source="default", how="default", why=why)
    blocks = _blocks(engine).model
    kept = max(1, int(fraction * int(blocks or 0))) if fraction else 0
    how: RowHow = "scaled" if fraction else fact.how
    why = f"{fraction} of the pool; at least one block" if fraction else "nothing is kept free"
    return Row(name="watermark", model=kept, config=_words(fraction), source=fact.source, how=how, why=why)
