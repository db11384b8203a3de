"""The KV transfer of an engine: connector, role, and whether loads are written in no order with the compute stream.

Follows `KVTransferConfig` (vllm/config/kv_transfer.py) and `_post_init_kv_transfer_config` (vllm/config/vllm.py),
0.33.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, cast

from .errors import ConfigError, UnsupportedError, did_you_mean, shown
from .options import data
from .parse import Settings
from .profiles import has
from .values import kind_of

Role = Literal["none", "kv_producer", "kv_consumer", "kv_both"]
ROLES = ("kv_producer", "kv_consumer", "kv_both")
OPTION = "kv-transfer-config"
FIELDS: dict[str, tuple[type, ...]] = {
    "kv_connector": (str,),
    "engine_id": (str,),
    "kv_buffer_device": (str,),
    "kv_role": (str,),
    "kv_port": (int,),
    "kv_connector_extra_config": (dict,),
    "kv_connector_module_path": (str,),
    "enable_permute_local_kv": (bool,),
    "kv_load_failure_policy": (str,),
}
"""The fields of 0.33.0 and their types; None is allowed where the default is None."""
OLD_FIELDS = ("kv_buffer_size", "kv_rank", "kv_parallel_size", "kv_ip")
"""Fields that releases up to 0.27.0 also have; they choose addresses and buffers of a connector."""


@dataclass(frozen=True)
class Transfer:
    """The connector (None: none), the role as the engine acts on it, and whether unordered loads exist; with places and
    reasons.
    """

    connector: str | None
    role: Role
    loads: bool
    place: str
    role_why: str
    loads_why: str
    failure_policy: str = "fail"


NO_TRANSFER = Transfer(None, "none", False, "default", "no kv-transfer-config and no kv-offloading-size", "no connector")


@cache
def connectors() -> dict[str, dict[str, str]]:
    """The registered connectors."""
    return data("connectors.yaml")


def transfer_of(settings: Settings, release: str) -> Transfer:
    """The transfer that the settings ask for; `ConfigError` where vLLM would refuse it."""
    config: dict[str, Any] | None = settings.value(OPTION)
    place = settings.place(OPTION) if OPTION in settings.given else "default"
    if config is not None:
        _check_fields(config, place, release)
        _check_role(config, place)
    if settings.value("kv-offloading-size") is not None:
        return _offloading(settings, config)
    if config is None:
        return NO_TRANSFER
    connector, role = config.get("kv_connector"), config.get("kv_role")
    if connector is None:
        settings.warnings.append(f"{place}: without kv_connector, vLLM makes no connector, whatever kv_role says")
        return Transfer(None, "none", False, place, "kv-transfer-config without kv_connector has no effect", "no connector")
    loads, loads_why = _loads(config, place, release, 0)
    if role == "kv_producer":
        loads, loads_why = False, "a producer loads nothing"
    policy = config.get("kv_load_failure_policy", "fail")
    return Transfer(str(connector), cast("Role", role), loads, place, f"kv_role of {connector}", loads_why, policy)


def _check_role(config: Mapping[str, Any], place: str) -> None:
    """A role must be one of the three, and a connector must have one."""
    connector, role = config.get("kv_connector"), config.get("kv_role")
    known = ", ".join(ROLES)
    if role is not None and role not in ROLES:
        fix = did_you_mean(role, ROLES, f"choose one of {known}")
        raise ConfigError(place, f"kv_role is {shown(role)}, which is none of {known}", fix)
    if connector is not None and role is None:
        fix = 'add "kv_role": "kv_consumer" (decode side), "kv_producer" (prefill side) or "kv_both"'
        raise ConfigError(place, f"kv_connector is {shown(str(connector))} and kv_role is missing", fix)


def _offloading(settings: Settings, config: Mapping[str, Any] | None) -> Transfer:
    """`--kv-offloading-size` sets the connector and makes the role kv_both, whatever kv-transfer-config says."""
    backend = settings.value("kv-offloading-backend") or "native"
    connector = "LMCacheMPConnector"
    if backend == "native":
        simple = env_flag(settings, "VLLM_USE_SIMPLE_KV_OFFLOAD")
        connector = "SimpleCPUOffloadConnector" if simple else "OffloadingConnector"
    place = settings.place("kv-offloading-size")
    if config and config.get("kv_connector") not in (None, connector):
        settings.warnings.append(f"{place}: replaces the kv_connector {config['kv_connector']} with {connector}")
    why = f"kv-offloading-size makes {connector} with kv_both (backend {backend})"
    policy = (config or {}).get("kv_load_failure_policy", "fail")
    return Transfer(connector, "kv_both", True, place, why, f"{connector} loads asynchronously", policy)


def env_flag(settings: Settings, name: str) -> bool | None:
    """A 0/1 environment variable, None if unset; `ConfigError` if vLLM could not read it."""
    word = settings.env.get(name)
    if word is None:
        return None
    try:
        return bool(int(word.text))
    except ValueError:
        raise ConfigError(word.place, f"{shown(word.text)} is not a number", "set it to 0 or 1, or unset it") from None


def _check_fields(config: Mapping[str, Any], place: str, release: str) -> None:
    """Field names and types, as vLLM's dataclass checks them."""
    for field, value in config.items():
        if field in OLD_FIELDS and has(release, None, "0.27.0"):
            continue
        if field not in FIELDS:
            rule = f"{shown(field)} is no field of {OPTION}" + (" since 0.33.0" if field in OLD_FIELDS else "")
            raise ConfigError(place, rule, did_you_mean(field, FIELDS, f"the fields are {', '.join(FIELDS)}"))
        types = FIELDS[field]
        fits = isinstance(value, types) and (bool in types or not isinstance(value, bool))
        if not fits and not (value is None and field in ("kv_connector", "engine_id", "kv_role", "kv_connector_module_path")):
            wanted = kind_of(types[0]())
            raise ConfigError(place, f"{field} is {kind_of(value)}, and must be {wanted}", "correct its value")
    policy = config.get("kv_load_failure_policy", "fail")
    if policy not in ("fail", "recompute"):
        fix = did_you_mean(policy, ("fail", "recompute"), "choose fail or recompute")
        raise ConfigError(place, f"kv_load_failure_policy is {shown(policy)}, which is neither fail nor recompute", fix)


def _loads(config: Mapping[str, Any], place: str, release: str, depth: int) -> tuple[bool, str]:
    """Whether a connector's loads are written in no order with the compute stream, and why."""
    name = config.get("kv_connector")
    if config.get("kv_connector_module_path"):
        return True, f"{name} comes from a module of its own: its loads are taken to be asynchronous"
    entry = connectors().get(str(name))
    if entry is None:
        known = connectors()
        fix = did_you_mean(str(name), known, "for a connector of your own, give kv_connector_module_path")
        raise ConfigError(place, f"{shown(str(name))} is no connector that vLLM registers", fix)
    if not has(release, entry.get("since"), entry.get("until")):
        raise ConfigError(place, f"vLLM {release} has no {name}", "choose another connector, or another --profile")
    if name == "HiSparseConnector":
        raise UnsupportedError(place, "HiSparseConnector keeps a second pool on the host", "remove it to check the rest")
    if entry["loads"] == "children":
        return _child_loads(config, place, release, depth)
    if entry["loads"] == "async":
        return True, f"{name} loads asynchronously"
    why = "loads within the step of its request" if entry["loads"] == "sync" else "never loads"
    return False, f"{name} {why}"


def _child_loads(config: Mapping[str, Any], place: str, release: str, depth: int) -> tuple[bool, str]:
    """MultiConnector: unordered if one of its connectors is."""
    extra = cast("dict[str, Any]", config.get("kv_connector_extra_config") or {})
    children: Any = extra.get("connectors")
    if not isinstance(children, list) or not children or depth > 4:
        fix = '"kv_connector_extra_config": {"connectors": [{"kv_connector": "…", "kv_role": "…"}]}'
        raise ConfigError(place, "MultiConnector needs a list of connectors", fix)
    reasons: list[tuple[bool, str]] = []
    for child in cast("list[Any]", children):
        if not isinstance(child, dict):
            raise ConfigError(
                place, f"a connector in MultiConnector is {kind_of(child)}, not an object", "write each as an object"
            )
        inner = cast("dict[str, Any]", child)
        _check_fields(inner, place, release)
        _check_role(inner, place)
        reasons.append(_loads(inner, place, release, depth + 1))
    return max(reasons, key=lambda reason: reason[0])
