"""A scheduler of the loaded release, built from sizes alone: no model, no device, no engine process.

Real are the scheduler, cache, parallel, observability and transfer configurations (their classes, with a few fields set), and
everything the scheduler builds from them. The model's configuration is a stand-in: a model without images, adapters or drafts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from . import clock, own_classes, own_sources
from .errors import ReleaseError

STAND_IN = "RemotePrefillConnector"
"""The name under which the connector of `remote_connector` is registered."""
LARGE = 1 << 15
"""A number that is no member's."""
LONGEST = 1 << 20
"""Tokens that the model's context has room for: more than any request asks for."""


@dataclass(frozen=True)
class Settings:
    """Sizes and policies of an engine; `num_gpu_blocks` with the null block, `watermark` in blocks.

    `max_empty_batches` are steps without tokens that are kept in flight. Of a prompt `remote_tokens` can be loaded; requests
    end after `max_tokens` output tokens or at `stop_token`. `scheduler_cls` and `connector` name a class of the user's own as
    `module:Class` (None: the release's scheduler, and a connector that stands in); `connector_config` is its
    `kv_connector_extra_config`.
    """

    num_gpu_blocks: int
    block_size: int
    max_num_seqs: int
    max_num_batched_tokens: int
    enable_prefix_caching: bool
    scheduler_reserve_full_isl: bool
    watermark: int
    async_scheduling: bool
    max_concurrent_batches: int
    max_empty_batches: int
    kv_role: str
    remote_tokens: int
    max_tokens: int
    stop_token: int
    scheduler_cls: str | None = None
    connector: str | None = None
    connector_config: Mapping[str, Any] = field(default_factory=dict[str, Any])


def load_params(request_id: str) -> dict[str, Any]:
    """What a request says in `kv_transfer_params` if its prompt can be loaded from a remote side, as with NIXL.

    The remote side knows it by the same id.
    """
    return {
        "do_remote_prefill": True,
        "do_remote_decode": False,
        "remote_engine_id": "prefill",
        "remote_request_id": request_id,
        "remote_block_ids": ([LARGE],),
        "remote_host": "localhost",
        "remote_port": LARGE,
        "tp_size": LARGE,
        "pp_size": LARGE,
        "dcp_size": LARGE,
    }


def build_scheduler(settings: Settings) -> Any:
    """A scheduler in its initial state."""
    with own_classes.blamed(settings.scheduler_cls, settings.connector):
        return _built(settings)


def _built(settings: Settings) -> Any:
    config = _vllm_config(settings)
    interface = import_module("vllm.v1.kv_cache_interface")
    torch = import_module("torch")
    layers = interface.FullAttentionSpec(block_size=settings.block_size, num_kv_heads=1, head_size=1, dtype=torch.float32)
    cache = interface.KVCacheConfig(
        num_blocks=settings.num_gpu_blocks,
        kv_cache_tensors=[],
        kv_cache_groups=[interface.KVCacheGroupSpec(["attention"], layers)],
    )
    scheduler_class = _scheduler_class(settings)
    with clock.standing():
        scheduler = scheduler_class(
            vllm_config=config,
            kv_cache_config=cache,
            structured_output_manager=_NoStructuredOutput(),
            block_size=settings.block_size,
            log_stats=False,
        )
    clock.stand_still(own_sources.modules_behind([scheduler_class, scheduler.connector.__class__]))
    return scheduler


def _scheduler_class(settings: Settings) -> Any:
    if settings.scheduler_cls is not None:
        return own_classes.SCHEDULER.find(settings.scheduler_cls)
    name = "async_scheduler.AsyncScheduler" if settings.async_scheduling else "scheduler.Scheduler"
    module, _, class_name = name.partition(".")
    return getattr(import_module(f"vllm.v1.core.sched.{module}"), class_name)


class _StandIn(SimpleNamespace):
    """Stands in for a configuration that newer releases have: fields that never change."""


class _NoStructuredOutput:
    """Stands in for the manager of grammars: no request has one."""

    def should_advance(self, *_: Any, **__: Any) -> bool:
        return False

    def accept_tokens(self, *_: Any, **__: Any) -> bool:
        return True

    def grammar_bitmask(self, *_: Any, **__: Any) -> None:
        return None


def _vllm_config(settings: Settings) -> Any:
    configs = import_module("vllm.config")
    config = _config_class(configs.VllmConfig, settings.max_concurrent_batches)()
    _set(config, dict.fromkeys(_field_names(configs.VllmConfig)))
    _set(
        config,
        {
            "model_config": _ModelConfig(),
            "scheduler_config": _scheduler_config(configs, settings),
            "cache_config": _cache_config(configs, settings),
            "parallel_config": _with(configs.ParallelConfig(), pipeline_parallel_size=_stages(settings)),
            "observability_config": configs.ObservabilityConfig(),
            "kv_transfer_config": _transfer_config(configs, settings),
            "ec_manager_config": _StandIn(get_encoder_cache_manager_obj=_no_class),
            "aux_output_config": _StandIn(enabled=False),
        },
    )
    if config.kv_transfer_config is not None:  # as VllmConfig.__post_init__ does where the user says nothing of it
        factory = import_module("vllm.distributed.kv_transfer.kv_connector.factory").KVConnectorFactory
        hybrid = factory.supports_hma_config(config.kv_transfer_config)
        _set(config.scheduler_config, {"disable_hybrid_kv_cache_manager": not hybrid})
    return config


def _config_class(whole: Any, max_concurrent_batches: int) -> Any:
    """The release's own configuration, whose properties are its own, but for what a device or a model decides."""

    class Config(whole):
        def __init__(self) -> None:  # its own asks for a model and a device
            pass

        @property
        def max_concurrent_batches(self) -> int:
            return max_concurrent_batches

        @property
        def use_v2_model_runner(self) -> bool:
            return False

    return Config


def _field_names(made: Any) -> Iterable[str]:
    return made.__dataclass_fields__


def _set(config: Any, values: dict[str, Any]) -> None:
    for name, value in values.items():
        object.__setattr__(config, name, value)


def _with(config: Any, **values: Any) -> Any:
    """A configuration with these fields, past its checks: sizes here are smaller than any that make sense on a device."""
    _set(config, values)
    return config


def _no_class() -> None:
    return None


def _stages(settings: Settings) -> int:
    """Pipeline stages: asynchronous scheduling alone has two steps in flight."""
    return 1 if settings.async_scheduling and settings.max_concurrent_batches <= 2 else settings.max_concurrent_batches


class _ModelConfig:
    """Stands in for a model's configuration: every feature that is asked for is absent."""

    max_model_len = LONGEST
    runner_type = "generate"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return False if name.startswith(("is_", "uses_", "supports_", "enable_", "return_", "has_")) else None


def _scheduler_config(configs: Any, settings: Settings) -> Any:
    made = configs.SchedulerConfig.default_factory(max_model_len=LONGEST)
    values: dict[str, Any] = {
        "max_num_seqs": settings.max_num_seqs,
        "max_num_batched_tokens": settings.max_num_batched_tokens,
        "max_num_scheduled_tokens": settings.max_num_batched_tokens,
        "enable_chunked_prefill": True,
        "scheduler_reserve_full_isl": settings.scheduler_reserve_full_isl,
        "async_scheduling": settings.async_scheduling,
        "disable_hybrid_kv_cache_manager": False,
        "policy": "fcfs",
    }
    if settings.watermark:
        if "watermark" not in _field_names(configs.SchedulerConfig):
            raise ReleaseError("this release has no watermark: it came with 0.25; leave watermark at 0")
        # A share of all blocks, of which the release takes the whole blocks: the half keeps rounding out of it.
        values["watermark"] = (settings.watermark + 0.5) / settings.num_gpu_blocks
    return _with(made, **values)


def _cache_config(configs: Any, settings: Settings) -> Any:
    return _with(
        configs.CacheConfig(),
        num_gpu_blocks=settings.num_gpu_blocks,
        block_size=settings.block_size,
        enable_prefix_caching=settings.enable_prefix_caching,
        mamba_cache_mode="none",
    )


def _transfer_config(configs: Any, settings: Settings) -> Any:
    if settings.kv_role == "none":
        return None
    if settings.connector is not None:
        module, _, name = settings.connector.replace(":", ".").rpartition(".")
        if module:  # else it is one that the release has by this name
            own_classes.CONNECTOR.find(settings.connector)
        return configs.KVTransferConfig(
            kv_connector=name,
            kv_connector_module_path=module or None,
            kv_role=settings.kv_role,
            kv_connector_extra_config=dict(settings.connector_config),
        )
    factory = import_module("vllm.distributed.kv_transfer.kv_connector.factory").KVConnectorFactory
    with suppress(ValueError):  # it is registered once a process
        factory.register_connector(STAND_IN, f"{__package__}.remote_connector", STAND_IN)
    return configs.KVTransferConfig(
        kv_connector=STAND_IN,
        kv_role=settings.kv_role,
        kv_connector_extra_config={"remote_tokens": settings.remote_tokens},
    )
