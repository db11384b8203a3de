"""The KV-block lifecycle of a vLLM engine: scheduler, block pool, transfers and device, on four separate clocks.

Facts are those of vLLM 0.23.0, 0.25.0, 0.27.0 and 0.33.0; a profile (data/profiles.yaml) sets the switches as one
release has them. Not modelled yet: several KV groups, windows, state blocks, producers, offload, drafts, priorities.
"""

from __future__ import annotations

# ruff: noqa: I001 - the order of these imports is the order of declaration: of actions in a trace, of properties in a report

from .bounds import BLOCKS, REQUESTS
from .state import KV, boot
from .scheduler import submit, schedule
from .device import run_step
from .output import process
from .transfers import land, report
from .output import abort, reset_prefix_cache, reset_running
from .properties import (
    no_unordered_write_in_flight,
    free_order,
    no_reuse_in_flight,
    write_ownership,
    read_freshness,
    no_hit_on_unwritten,
    refcount_exact,
    no_double_free,
    pool_conservation,
    alloc_atomic,
    table_consistency,
    write_in_bounds,
    counter_sound,
    stale_output_safe,
    fence_sound,
    completion_once,
    no_error,
    preemption_pays,
    no_deadlock,
    no_leak,
    block_in_flight_is_allocatable,
)
from .witnesses import (
    pool_runs_full,
    preemption_with_a_step_in_flight,
    a_free_is_parked,
    a_parked_block_is_hit,
    a_load_lands_while_a_step_is_in_flight,
    a_step_runs_ahead,
    a_request_ends_in_flight,
    abort_while_running_in_flight,
    abort_while_waiting,
    aborted_load_is_held,
    an_unwritten_block_is_hit,
    an_eviction_is_next,
    two_requests_share_a_block,
    a_prompt_is_chunked,
    a_token_is_known,
)
from .narrate import tell
from .observe import observe, state_of
from .events import cache_events

__all__ = [
    "BLOCKS",
    "KV",
    "REQUESTS",
    "a_free_is_parked",
    "a_load_lands_while_a_step_is_in_flight",
    "a_parked_block_is_hit",
    "a_prompt_is_chunked",
    "a_request_ends_in_flight",
    "a_step_runs_ahead",
    "a_token_is_known",
    "abort",
    "abort_while_running_in_flight",
    "abort_while_waiting",
    "aborted_load_is_held",
    "alloc_atomic",
    "an_eviction_is_next",
    "an_unwritten_block_is_hit",
    "block_in_flight_is_allocatable",
    "boot",
    "cache_events",
    "completion_once",
    "counter_sound",
    "fence_sound",
    "free_order",
    "land",
    "no_deadlock",
    "no_double_free",
    "no_error",
    "no_hit_on_unwritten",
    "no_leak",
    "no_reuse_in_flight",
    "no_unordered_write_in_flight",
    "observe",
    "pool_conservation",
    "pool_runs_full",
    "preemption_pays",
    "preemption_with_a_step_in_flight",
    "process",
    "read_freshness",
    "refcount_exact",
    "report",
    "reset_prefix_cache",
    "reset_running",
    "run_step",
    "schedule",
    "stale_output_safe",
    "state_of",
    "submit",
    "table_consistency",
    "tell",
    "two_requests_share_a_block",
    "write_in_bounds",
    "write_ownership",
]
