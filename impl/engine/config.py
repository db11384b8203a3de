"""Sizes and policies of an engine, and the mechanisms in which releases of vLLM differ."""

# beyond the spec: a configuration is made and checked before the first event

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, cast, get_args, get_type_hints

KVRole = Literal["none", "kv_consumer", "kv_both", "kv_producer"]


@dataclass(frozen=True)
class Mechanisms:
    """One choice for each mechanism; the defaults are the protocol as it should be.

    `ValueError`, naming the field and its choices, for anything else.
    """

    finish_free: Literal["fenced", "at-once"] = "fenced"
    """Blocks of a request that ended at output processing (0.23: at once; fenced since #45357)."""
    abort_free: Literal["fenced", "at-once"] = "fenced"
    """Blocks of an aborted request (the same change)."""
    preemption_free: Literal["fenced", "at-once"] = "fenced"
    """Blocks of a preempted request (the same change)."""
    uncached_free_order: Literal["head", "tail"] = "head"
    """Where freed blocks go with caching off: the tail in 0.23 and 0.27 (#48017), the head in 0.25 and 0.33 (#51482)."""
    cached_free_order: Literal["split", "tail"] = "split"
    """The same with caching on: all to the tail in 0.23; since #42656 blocks without a hash go to the head."""
    victim_rule: Literal["not-fenced", "any"] = "not-fenced"
    """Whether a request is preempted whose blocks would only be parked (0.25 and 0.27: any; #49675)."""
    stale_output: Literal["marked", "counted"] = "marked"
    """Output that comes after its request's preemption (0.23 and 0.25 count it like any other; #48245)."""
    waiting_queues: Literal["holding", "skipped"] = "holding"
    """The queue that is looked at before `waiting`: of requests that hold blocks (0.33), or of skipped ones."""
    reset_while_parked: Literal["refuse", "raise"] = "refuse"
    """A reset with running requests that cannot empty the pool (0.23 to 0.33 preempt everybody and raise)."""
    abort_of_load: Literal["hold", "at-once"] = "hold"
    """Blocks of a request aborted during its remote load (#32255)."""
    abort_after_report: Literal["free", "hold"] = "free"
    """The same once the load was reported complete."""
    admission_reservation: Literal["on", "off"] = "on"
    """Whether loads leave room for what admitted prompts still need (#44560)."""
    preempt_skips_ended: Literal["yes", "no"] = "yes"
    """Whether a request leaves the running list as it ends, so that it is never a victim (no: SGLang #18694)."""
    pin_before_test: Literal["no", "yes"] = "no"
    """Whether prefix hits are pinned before the capacity test, which keeps the pins if it fails (#11565)."""
    capacity_counts_hits: Literal["no", "yes"] = "no"
    """Whether the capacity test takes hits that sit in the free queue for free blocks (#11565)."""
    ended_rows: Literal["written", "dropped"] = "written"
    """Tokens of a dispatched step whose request has ended; all releases write them."""

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            value = getattr(self, _field_name(name))
            if value not in choices:
                raise ValueError(f"{_field_name(name)}: {value!r} is none of {', '.join(choices)}")

    @classmethod
    def of(cls, choices: Mapping[str, str]) -> Mechanisms:
        """The mechanisms with these choices by name, the others as they are by default; `ValueError` for unknown names."""
        unknown = sorted(set(choices) - set(CHOICES))
        if unknown:
            raise ValueError(f"no such mechanism: {', '.join(unknown)}; there are {', '.join(CHOICES)}")
        return cls(**cast("dict[str, Any]", {_field_name(name): choice for name, choice in choices.items()}))


def _field_name(name: str) -> str:
    return name.replace("-", "_")


def _all_choices() -> dict[str, tuple[str, ...]]:
    hints = get_type_hints(Mechanisms)
    return {f.name.replace("_", "-"): get_args(hints[f.name]) for f in fields(Mechanisms)}


CHOICES: Mapping[str, tuple[str, ...]] = _all_choices()
"""The choices of each mechanism by its name (`finish-free`), the default first."""


@dataclass(frozen=True)
class EngineConfig:
    """Sizes and policies, under the names and with the defaults of vLLM 0.33 where it has them.

    `ValueError`, naming the field, for a size below its least or an unknown role.
    """

    num_gpu_blocks: int
    """Blocks of KV memory, the null block included, which is never handed out."""
    block_size: int = 16
    """Tokens a block."""
    max_num_seqs: int = 128
    """Running requests, at most."""
    max_num_batched_tokens: int = 2048
    """Tokens a step, at most."""
    enable_prefix_caching: bool = True
    """Whether full blocks are hashed and can be hit by later requests."""
    scheduler_reserve_full_isl: bool = True
    """Whether all known tokens of a request must fit into the pool at its admission."""
    watermark: int = 0
    """Blocks kept free at admissions while something runs (vLLM takes a share of the pool)."""
    async_scheduling: bool = True
    """Whether decode is scheduled ahead of its outputs, on placeholders."""
    max_concurrent_batches: int = 2
    """Steps scheduled and not yet processed, at most."""
    max_empty_batches: int = 0
    """Steps without tokens among them, at most. The releases send such steps out like any other and get them back, which
    the value of `max_concurrent_batches` would do; 0: one is processed as soon as it is built."""
    kv_role: KVRole = "none"
    """What the KV connector does: loads (consumer), sends (producer), both, or no connector."""
    mechanisms: Mechanisms = field(default_factory=Mechanisms)

    def __post_init__(self) -> None:
        for name, least in LEAST.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name}: {getattr(self, name)} is less than {least}")
        if self.kv_role not in get_args(KVRole):
            raise ValueError(f"kv_role: {self.kv_role!r} is none of {', '.join(get_args(KVRole))}")

    @property
    def fence(self) -> bool:
        """Whether frees are deferred: several steps in flight, and a role that loads (Scheduler.__init__, 0.25 on)."""
        return self.max_concurrent_batches > 1 and self.kv_role in ("kv_consumer", "kv_both")

    @property
    def requires_kv_delivery(self) -> bool:
        """Whether late output is dropped since a hand-off would miss the preempted request's blocks (0.27 on, #48245)."""
        return self.kv_role in ("kv_producer", "kv_both") and self.mechanisms.stale_output == "marked"


LEAST: Mapping[str, int] = {
    "num_gpu_blocks": 2,
    "block_size": 1,
    "max_num_seqs": 1,
    "max_num_batched_tokens": 1,
    "watermark": 0,
    "max_concurrent_batches": 1,
    "max_empty_batches": 0,
}
"""The least value of each size."""
