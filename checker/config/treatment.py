"""What becomes of options that the KV spec does not model: refused, or left out with a reason.

Refused (`UnsupportedError`) is what would make the verdict wrong: another schedule, another kind of block, or writes at
other times than the model has. Left out is what only delays requests, changes sizes that are scaled anyway, or never
reaches the scheduler and the pool. A producer's sends are left out too: the model then frees a block that a real
producer still holds for a send, so a verdict for a producer is about scheduling and the pool, and says nothing about
sends; the row says so.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, cast

from .errors import ConfigError, UnsupportedError
from .options import all_options, data
from .parse import Given, Settings
from .profiles import Profile, has
from .rules import Engine
from .transfer import OPTION

ELSEWHERE = "it reaches neither the scheduler nor the block pool"
READ = frozenset(
    {
        OPTION,
        "kv-offloading-size",
        "kv-offloading-backend",
        "pipeline-parallel-size",
        "async-scheduling",
        "enable-prefix-caching",
        "block-size",
        "decode-context-parallel-size",
        "prefill-context-parallel-size",
        "num-gpu-blocks-override",
        "max-num-seqs",
        "max-num-active-seqs",
        "max-num-batched-tokens",
        "max-num-scheduled-tokens",
        "enable-chunked-prefill",
        "scheduler-reserve-full-isl",
        "watermark",
        "scheduling-policy",
        "scheduler-cls",
        "runner",
    }
)
"""The options that the rules read and that the table shows as such."""


class Refusal(NamedTuple):
    """An option that cannot be modelled where `applies` to its value, and why."""

    option: str
    applies: Callable[[Any], bool]
    rule: str


def _set(value: Any) -> bool:
    return value is not None


def _on(value: Any) -> bool:
    return bool(value)


def _is(*values: str) -> Callable[[Any], bool]:
    return lambda value: value in values


def _hisparse(value: Any) -> bool:
    return isinstance(value, dict) and bool(cast("dict[str, Any]", value).get("hisparse_config"))


DRAFTS = "speculative decoding writes and takes back draft tokens, and has lookahead blocks"
STATES = "the engine has state (mamba) blocks, which every step rewrites whole"
REFUSALS = (
    Refusal("speculative-config", _on, DRAFTS),
    Refusal("spec-method", _set, DRAFTS),
    Refusal("spec-model", _set, DRAFTS),
    Refusal("spec-tokens", _set, DRAFTS),
    Refusal("scheduling-policy", _is("priority"), "the priority policy chooses other victims than FCFS"),
    Refusal("runner", _is("pooling", "draft"), "a pooling engine has no decode steps"),
    Refusal("convert", _is("embed", "classify", "reward"), "a pooling engine has no decode steps"),
    Refusal("mamba-block-size", _set, STATES),
    Refusal("mamba-cache-mode", _is("align", "all"), STATES),
    Refusal("enable-mamba-shared-prefix-checkpoint", _on, STATES),
    Refusal("use-replayssm", _on, STATES),
    Refusal("diffusion-config", _on, "a diffusion engine rewrites the tokens of a block"),
    Refusal("attention-config", _hisparse, "HiSparse keeps a second pool"),
)
"""What is refused; a later release of the spec shortens this list."""


@cache
def _reasons() -> dict[str, str]:
    """Why an option that touches scheduling or blocks is left out."""
    entries = cast("list[dict[str, Any]]", data("ignored.yaml"))
    return {option: entry["why"] for entry in entries for option in entry["options"]}


def check_release(settings: Settings, profile: Profile) -> tuple[str, ...]:
    """Take out what the profile's release does not have yet, and name it; options that it has no more are refused, as
    by vLLM.

    An option that is newer than the profile is left out rather than refused, so that one config can be held against old
    releases too.
    """
    missing = [g for g in settings.given.values() if not has(profile.release, g.option.since, None)]
    for given in settings.given.values():
        if not has(profile.release, None, given.option.until):
            rule = f"--{given.option.name} is gone: {given.option.until} is the last release read that has it"
            fix = f"remove it, or choose a --profile up to {given.option.until}"
            raise ConfigError(given.place, f"{rule}, and the profile is {profile.name}", fix)
    for given in missing:
        del settings.given[given.option.name]
    return tuple(g.option.name for g in missing)


def refuse(settings: Settings, engine: Engine) -> None:
    """Raise `UnsupportedError` for the first option that cannot be modelled and cannot be left out."""
    for refusal in REFUSALS:
        given = settings.given.get(refusal.option)
        if given is not None and refusal.applies(given.value):
            rule = f"--{refusal.option}{_shown(given)}: {refusal.rule}, which the KV spec does not model yet"
            raise UnsupportedError(given.place, rule, "remove it to check the rest of the config without it")
    _refuse_scheduler(settings, engine)
    unit = settings.given.get("prefix-match-unit")
    if unit is not None and unit.value is not None and engine.caching.value:
        rule = "--prefix-match-unit lets a part of a block be hit and copied, which the KV spec does not model yet"
        raise UnsupportedError(unit.place, rule, "remove it, or switch prefix caching off")


def _refuse_scheduler(settings: Settings, engine: Engine) -> None:
    """A scheduler class of the user's own does what it likes."""
    given = settings.given.get("scheduler-cls")
    if given is None or given.value is None:
        return
    own = "async_scheduler.AsyncScheduler" if engine.async_scheduling.value else "scheduler.Scheduler"
    if given.value != f"vllm.v1.core.sched.{own}":
        rule = f"--scheduler-cls {given.value} replaces the scheduler that the KV spec models (vllm.v1.core.sched.{own})"
        raise UnsupportedError(given.place, rule, "remove it to check vLLM's own scheduler with these settings")


def _shown(given: Given) -> str:
    """A value in a message, cut short."""
    text = given.text if given.option.takes_value else ""
    return f" {text if len(text) <= 60 else text[:57] + '...'}" if text else ""


def reason(name: str) -> str | None:
    """Why an option is left out; None for one that the rules read."""
    if name in READ:
        return None
    return _reasons().get(name, ELSEWHERE)


def unknown_names() -> set[str]:
    """Names in this module's tables that are no options (for the tests)."""
    named = set(_reasons()) | READ | {refusal.option for refusal in REFUSALS}
    return named - set(all_options())
