"""What an engine does with its settings: the rules of vLLM that decide the fence and the sizes, one function a rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from .errors import ConfigError
from .parse import Settings
from .profiles import has, numbers
from .transfer import Transfer, env_flag, transfer_of

How = Literal["taken", "derived", "default", "assumed"]
RUNNER_ENV = "VLLM_USE_V2_MODEL_RUNNER"


@dataclass(frozen=True)
class Fact:
    """One thing known of the engine: its value (None: decided at start, by device or memory), from where, and by which
    rule.
    """

    value: Any
    source: str
    why: str
    how: How


@dataclass(frozen=True)
class Engine:
    """An engine as its settings make it, before any scaling."""

    transfer: Transfer
    runner: Fact
    stages: Fact
    async_scheduling: Fact
    steps: Fact
    fence: Fact
    caching: Fact
    block_size: Fact
    pool: Fact
    running: Fact
    budget: Fact
    chunked: Fact
    whole: Fact
    watermark: Fact


def engine_of(settings: Settings, release: str) -> Engine:
    """The engine that a release makes of the settings; `ConfigError` where it would refuse to start."""
    transfer = transfer_of(settings, release)
    stages = _given(settings, "pipeline-parallel-size", 1)
    runner = _runner(settings, release, stages.value)
    on = _async_scheduling(settings, release, runner, stages.value)
    steps = _steps(on, runner, stages)
    engine = Engine(
        transfer=transfer,
        runner=runner,
        stages=stages,
        async_scheduling=on,
        steps=steps,
        fence=_fence(transfer, steps.value, release),
        caching=_given(settings, "enable-prefix-caching", True, "on where the model supports it"),
        block_size=_block_size(settings),
        pool=_given(settings, "num-gpu-blocks-override", None, "from the free memory, at start"),
        running=_smaller(settings, "max-num-seqs", "max-num-active-seqs"),
        budget=_smaller(settings, "max-num-batched-tokens", "max-num-scheduled-tokens"),
        chunked=_given(settings, "enable-chunked-prefill", True, "on where the model supports it"),
        whole=_given(settings, "scheduler-reserve-full-isl", True),
        watermark=_given(settings, "watermark", 0.0),
    )
    _check_sizes(settings, engine)
    return engine


def _given(settings: Settings, name: str, default: Any, words: str = "") -> Fact:
    """An option's value, or its default (`words` says how vLLM finds it where it is not a constant)."""
    found = settings.given.get(name)
    if found is not None and found.value is not None:
        return Fact(found.value, found.place, f"--{name}", "taken")
    return Fact(default, "default", words or f"default of --{name}", "assumed" if words else "default")


def _smaller(settings: Settings, name: str, tighter: str) -> Fact:
    """A limit that a second option may tighten."""
    limit = _given(settings, name, None, "by device and usage, at start")
    inner = settings.given.get(tighter)
    if inner is None or inner.value is None:
        return limit
    if limit.value is not None and inner.value > limit.value:
        if tighter == "max-num-active-seqs":
            rule = f"--{tighter} {inner.value} is greater than --{name} {limit.value} ({limit.source})"
            raise ConfigError(inner.place, rule, f"give at most {limit.value}")
        return limit
    return Fact(inner.value, inner.place, f"--{tighter}", "taken")


def _block_size(settings: Settings) -> Fact:
    """Tokens a block: with context parallelism a block spans all its ranks."""
    size = _given(settings, "block-size", 16, "16, unless the attention backend wants another")
    ranks = (
        _given(settings, "decode-context-parallel-size", 1).value * _given(settings, "prefill-context-parallel-size", 1).value
    )
    if ranks == 1:
        return size
    return Fact(size.value * ranks, size.source, f"{size.value} tokens on each of {ranks} context-parallel ranks", "derived")


def _runner(settings: Settings, release: str, stages: int) -> Fact:
    """Model runner V1 or V2 (`use_v2_model_runner`, vllm/config/vllm.py); it matters only with several stages."""
    chosen = env_flag(settings, RUNNER_ENV)
    if settings.value("watermark-config") is not None and numbers(release) >= numbers("0.33.0"):
        return Fact("V2", settings.place("watermark-config"), "text watermarking forces the V2 runner", "derived")
    if chosen is not None:
        return Fact("V2" if chosen else "V1", settings.env[RUNNER_ENV].place, RUNNER_ENV, "taken")
    if settings.value("distributed-executor-backend") == "external_launcher" and stages > 1:
        why = "the V2 runner cannot do several stages with external_launcher"
        return Fact("V1", settings.place("distributed-executor-backend"), why, "derived")
    if numbers(release) >= numbers("0.33.0"):
        return Fact("V2", "default", "0.33.0 runs V2 wherever Triton is available", "default")
    why = f"in {release} the model's architecture decides; V2 has more steps in flight ({RUNNER_ENV} says which)"
    return Fact("V2", "default", why, "assumed")


def _async_scheduling(settings: Settings, release: str, runner: Fact, stages: int) -> Fact:
    """On unless switched off or not supported (`VllmConfig.__post_init__`); asked for and not supported is refused."""
    asked = settings.given.get("async-scheduling")
    if asked is not None and not asked.value:
        return Fact(False, asked.place, "switched off", "taken")
    obstacle = _async_obstacle(settings, release, runner, stages)
    if asked is None:
        if obstacle is None:
            return Fact(True, "default", "on where nothing speaks against it", "default")
        return Fact(False, obstacle[0], obstacle[1], "derived")
    if obstacle is not None:
        raise ConfigError(asked.place, f"--async-scheduling, but {obstacle[1]} ({obstacle[0]})", "remove one of the two")
    return Fact(True, asked.place, "switched on", "taken")


def _async_obstacle(settings: Settings, release: str, runner: Fact, stages: int) -> tuple[str, str] | None:
    """Where and why a release does not do async scheduling.

    Executors that support it: one process, multiprocessing, external_launcher, and Ray through its V2 executor, the
    default of all four releases (`supports_async_scheduling`, vllm/v1/executor/). An executor class of the user's own
    is taken to.
    """
    old_ray = env_flag(settings, "VLLM_USE_RAY_V2_EXECUTOR_BACKEND") is False and has(release, None, "0.27.0")
    if settings.value("distributed-executor-backend") == "ray" and old_ray:
        return settings.env["VLLM_USE_RAY_V2_EXECUTOR_BACKEND"].place, "the first Ray executor does not support it"
    if runner.value == "V1" and stages > 1 and numbers(release) >= numbers("0.33.0"):
        return runner.source, "the V1 runner does not support it with several pipeline stages"
    return None


def _steps(on: Fact, runner: Fact, stages: Fact) -> Fact:
    """`max_concurrent_batches` (vllm/config/vllm.py, 0.23.0 to 0.33.0): the size of the engine's batch queue."""
    if on.value and runner.value == "V2":
        value, why = stages.value + 1, f"async scheduling on runner V2: {stages.value} pipeline stages + 1"
    elif on.value and stages.value == 1:
        value, why = 2, "async scheduling on runner V1: 2 with one pipeline stage"
    else:
        value, why = stages.value, f"{'runner V1' if on.value else 'no async scheduling'}: one for each pipeline stage"
    if stages.value == 1:
        why = "async scheduling, one pipeline stage" if on.value else "no async scheduling, one pipeline stage"
    given = [fact.source for fact in (on, stages) if fact.source != "default"]
    if stages.value > 1 and on.value:
        given += [runner.source] if runner.source != "default" else []
        how: How = "assumed" if runner.how == "assumed" else "derived"
        why += "; the runner is assumed" if how == "assumed" else ""
        return Fact(value, ", ".join(dict.fromkeys(given)) or "default", why, how)
    return Fact(value, ", ".join(dict.fromkeys(given)) or "default", why, "derived")


def _fence(transfer: Transfer, steps: int, release: str) -> Fact:
    """The gate of deferred frees: several steps in flight, and a role that loads (`Scheduler.__init__`, 0.25.0 to
    0.33.0).
    """
    source = transfer.place
    if transfer.role == "none":
        return Fact(False, source, "off: no connector", "derived")
    if transfer.role == "kv_producer":
        return Fact(False, source, "off: kv_producer; only kv_consumer and kv_both turn it on", "derived")
    if steps == 1:
        return Fact(False, source, f"off: {transfer.role}, but one step in flight", "derived")
    why = f"on: {transfer.role} and {steps} steps in flight"
    if numbers(release) < numbers("0.25.0"):
        why += f"; but vLLM {release} has no fence (it came with #45357) and frees at once"
    return Fact(True, source, why, "derived")


def _check_sizes(settings: Settings, engine: Engine) -> None:
    """Sizes that contradict each other (`verify_max_model_len`, vllm/config/scheduler.py, 0.33.0)."""
    tokens, seqs = settings.value("max-num-batched-tokens"), settings.value("max-num-seqs")
    if tokens is not None and seqs is not None and tokens < seqs:
        place = settings.place("max-num-batched-tokens")
        other = f"--max-num-seqs {seqs} ({settings.place('max-num-seqs')})"
        rule = f"--max-num-batched-tokens {tokens} is smaller than {other}"
        raise ConfigError(place, rule, f"give at least {seqs} tokens, or fewer sequences")
    longest = settings.value("max-model-len")
    if not engine.chunked.value and tokens is not None and longest is not None and tokens < longest:
        place = settings.place("max-num-batched-tokens")
        rule = f"--max-num-batched-tokens {tokens} is smaller than --max-model-len {longest}, and chunked prefill is off"
        raise ConfigError(place, rule, "allow chunked prefill, or raise the budget")
