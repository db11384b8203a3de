"""The result: a config as bounds of the KV spec, with one table that says where each came from."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, PrivateAttr

from .command import READ_FROM_ENV, settings_of_command, settings_of_file
from .parse import Given, Settings
from .profiles import Profile, choose
from .rules import Engine, Fact, engine_of
from .scale import Row, scaled
from .treatment import check_release, reason, refuse

FACTS = ("runner", "pipeline stages", "fence", "chunked prefill")
"""Rows that are no bounds, and that explain some."""


class Derived(BaseModel):
    """What a config makes of the KV spec, under one profile.

    `steps_in_flight` is the engine's own (the bound may be smaller); `fence` is the gate, with `fence_reason`; `bounds`
    are the KV spec's bounds and switches that a config decides, without the profile's mechanism switches; `rows` is the
    table of what was taken, scaled and derived; `ignored` the options left out; `warnings` what a reader must know.
    `source` is the file, or "command line".
    """

    model_config = ConfigDict(frozen=True)

    source: str
    model: str | None
    profile: str
    release: str
    profile_source: str
    role: str
    connector: str | None
    fence: bool
    fence_reason: str
    steps_in_flight: int
    bounds: dict[str, int | str]
    rows: tuple[Row, ...]
    ignored: tuple[Row, ...]
    warnings: tuple[str, ...]
    _settings: Settings = PrivateAttr(default_factory=Settings)

    def for_profile(self, profile: str) -> Derived:
        """The same config under another profile; `ConfigError` for an unknown one."""
        return _derive(self._settings, self.source, choose(profile))

    def bounds_for(self, profile: str) -> dict[str, int | str]:
        """The bounds under a profile: a release decides what an option means, and which options it has."""
        return dict(self.for_profile(profile).bounds)

    def row(self, name: str) -> Row:
        """The row of a bound or fact; KeyError if there is none."""
        return {row.name: row for row in (*self.ignored, *self.rows)}[name]


def derive_from_file(
    path: str | os.PathLike[str], *, profile: str | None = None, env: Mapping[str, str] | None = None
) -> Derived:
    """A vLLM `--config` YAML file as bounds; `ConfigError` says what is wrong with it.

    `env` are the variables that the engine is started with (default: none).
    """
    settings = settings_of_file(os.fspath(path), env or {})
    return _derive(settings, os.fspath(path), choose(profile))


def derive_from_command(argv: Sequence[str], env: Mapping[str, str] | None = None, *, profile: str | None = None) -> Derived:
    """A command line such as `["vllm", "serve", "MODEL", "--kv-transfer-config", "{…}"]` as bounds.

    Assignments in front (`VLLM_USE_V2_MODEL_RUNNER=1 vllm serve …`) override `env`; flags override the file that
    `--config` names; a single argument that holds a whole command is split as a shell would.
    """
    return _derive(settings_of_command(argv, env or {}), "command line", choose(profile))


def _derive(given: Settings, source: str, profile: Profile) -> Derived:
    """The settings under a profile."""
    settings = copy.deepcopy(given)
    absent = check_release(settings, profile)
    engine = engine_of(settings, profile.release)
    refuse(settings, engine)
    bounds = scaled(engine, profile.release)
    derived = Derived(
        source=source,
        model=_model_name(settings),
        profile=profile.name,
        release=profile.release,
        profile_source=profile.source,
        role=engine.transfer.role,
        connector=engine.transfer.connector,
        fence=engine.fence.value,
        fence_reason=engine.fence.why,
        steps_in_flight=engine.steps.value,
        bounds={row.name: row.model for row in bounds if row.model is not None},
        rows=(*_facts(engine, settings, profile), *bounds),
        ignored=(*_limits(engine), *_left_out(settings, given, absent, profile)),
        warnings=tuple(settings.warnings),
    )
    derived._settings = given  # pyright: ignore[reportPrivateUsage]
    return derived


def _model_name(settings: Settings) -> str | None:
    """The model that is served: the first word, or `model`."""
    return settings.model.text if settings.model is not None else settings.value("model")


def _facts(engine: Engine, settings: Settings, profile: Profile) -> list[Row]:
    """Rows for what is no bound: the profile, and what decides the gate."""
    first = Row(
        name="profile",
        model=profile.name,
        config=None,
        source=profile.source,
        how="derived",
        why=f"vLLM {profile.release}",
    )
    policy = settings.given.get("scheduling-policy")
    fixed = [
        Row(
            name="scheduling-policy",
            model="fcfs",
            config="fcfs",
            source=policy.place if policy else "default",
            how="taken" if policy else "default",
            why="first come, first served",
        ),
        Row(
            name="speculative tokens",
            model=0,
            config="0",
            source="default",
            how="default",
            why="no speculative decoding",
        ),
    ]
    found = (engine.runner, engine.stages, engine.fence, engine.chunked)
    return [first, *(_fact(name, fact) for name, fact in zip(FACTS, found, strict=True)), *fixed]


def _fact(name: str, fact: Fact) -> Row:
    """A fact as a row."""
    value = {True: "on", False: "off"}.get(fact.value, str(fact.value)) if isinstance(fact.value, bool) else str(fact.value)
    return Row(name=name, model=None, config=value, source=fact.source, how=fact.how, why=fact.why)


def _limits(engine: Engine) -> list[Row]:
    """Rows for what the KV spec leaves out of this engine whatever its options say."""
    attention = "every model is taken to have one full-attention group: a config does not say which layers it has"
    rows = [_ignored("attention groups", None, "the model", attention)]
    transfer = engine.transfer
    if transfer.connector is None:
        return rows
    if transfer.role in ("kv_producer", "kv_both"):
        what = "sends and stores are not modelled: a block is freed although a real engine may still hold it for one"
        rows.append(_ignored("sends", transfer.connector, transfer.place, what))
    if transfer.loads:
        what = f"every load arrives: failed loads (policy {transfer.failure_policy}) are not modelled"
        rows.append(_ignored("kv_load_failure_policy", transfer.failure_policy, transfer.place, what))
    return rows


def _left_out(settings: Settings, given: Settings, absent: tuple[str, ...], profile: Profile) -> list[Row]:
    """Rows for options and variables that nothing reads."""
    rows = [_option_row(g, why) for g in settings.given.values() if (why := reason(g.option.name)) is not None]
    for name in absent:
        why = f"vLLM {profile.release} has no such option (first seen in {given.given[name].option.since})"
        rows.append(_option_row(given.given[name], why))
    rows += [
        _ignored(name, word.text, word.place, "no rule reads this variable")
        for name, word in settings.env.items()
        if name not in READ_FROM_ENV
    ]
    return rows


def _option_row(given: Given, why: str) -> Row:
    """An option that is left out."""
    shown: Any = given.text if given.option.takes_value else ("on" if given.value else "off")
    return _ignored(given.option.name, shown if len(shown) <= 60 else shown[:57] + "...", given.place, why)


def _ignored(name: str, config: str | None, source: str, why: str) -> Row:
    """A row for what is left out."""
    return Row(name=name, model=None, config=config, source=source, how="ignored", why=why)
