"""The bounds of an audit: the small rows of the manifest, or those derived from a config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from . import kvdata
from .target import Wanted, load_shipped, parse_bounds, resolve

if TYPE_CHECKING:
    from ..config import Derived
    from ..conform.audit_report import Mechanism
    from ..conform.classify import Classification, Profile
    from ..model import Model

SMALL = 7_000
"""Transitions that a row of the manifest has at most, for the profile that an implementation comes nearest to."""


@dataclass(frozen=True)
class AuditRow:
    """Bounds, without the mechanism switches, under a name."""

    name: str
    bounds: Mapping[str, int | str]

    def model(self, mix: Mapping[str, int | str], profile: str | None) -> Model:
        """The spec with these switches at these bounds; `profile` is their name, if they have one."""
        from ..model import Model

        return Model.of(load_shipped("kv"), {**self.bounds, **mix}, profile=profile)


def small_rows(profile: str) -> list[AuditRow]:
    """The small rows of the manifest for a profile."""
    rows = [row for row in kvdata.conform() if row.fault is None and row.profile == profile]
    return [AuditRow(row.name, parse_bounds(row.bounds)) for row in rows if row.expected["transitions"] <= SMALL]


def fault_rows(switches: tuple[str, ...]) -> list[AuditRow]:
    """The small bounds at which public bugs show, each once."""
    rows: dict[tuple[tuple[str, int | str], ...], AuditRow] = {}
    small = {row.fault for row in kvdata.conform() if row.fault and not row.bounds and row.expected["transitions"] <= SMALL}
    for fault in kvdata.faults().values():
        bounds = {name: value for name, value in fault.values.items() if name not in switches}
        if fault.id in small:
            rows.setdefault(tuple(sorted(bounds.items())), AuditRow(f"where {fault.id} shows", bounds))
    return list(rows.values())


def config_row(config: Path, profile: str) -> tuple[AuditRow, Derived]:
    """The bounds derived from a config, for the release that a profile is of; its errors say what is wrong with it."""
    found = resolve(Wanted((str(config),), profile))
    assert found.derived is not None
    return AuditRow(str(config), found.derived.bounds), found.derived


def mechanisms(found: Classification, known: tuple[Profile, ...]) -> list[Mechanism]:
    """The switches in which the profiles differ, or the implementation from the nearest, with where that was read."""
    from ..conform.audit_report import Mechanism

    spec = load_shipped("kv")
    nearest = found.nearest.name
    told = {finding.switch for finding in found.findings if not finding.untold}
    made: list[Mechanism] = []
    for name, choice in found.mix.items():
        choices = {profile.name: str(profile.mix[name]) for profile in known}
        differs = choices[nearest] != str(choice)
        if differs or len(set(choices.values())) > 1:
            source = _source(name, str(choice), nearest, choices)
            made.append(Mechanism(name, spec.bounds[name].doc, str(choice), choices, differs, name in told, source))
    return made


def _source(switch: str, choice: str, nearest: str, choices: Mapping[str, str]) -> str:
    """Where it was read that a release has this choice: of the nearest profile, else of the first that says."""
    for profile in (nearest, *choices):
        sources: dict[str, str] = kvdata.load("profiles")["profiles"][profile].get("sources") or {}
        if choices[profile] == choice and switch in sources:
            return f"{profile}: {sources[switch]}"
    return ""
