"""What a trace says of where it comes from: spec, bounds, who found it, and hashes that tell whether it still fits."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from ..spec.lang import BoundSpec

FORMAT = 1
"""The version of the trace format; a reader refuses a greater one."""


@dataclass(frozen=True)
class Origin:
    """The origin of a trace; `source` is the spec's file as it was given, None for a spec that Fencepost ships."""

    version: str
    spec: str
    source: str | None
    spec_hash: str
    bounds: Mapping[str, int | str]
    bounds_hash: str
    property: str
    statement: str = ""
    profile: str | None = None
    fault: str | None = None
    engine: str | None = None

    @classmethod
    def of(
        cls,
        bound: BoundSpec,
        shown: str,
        *,
        source: str | None = None,
        profile: str | None = None,
        fault: str | None = None,
        engine: str | None = None,
    ) -> Origin:
        """The origin of a trace of this spec that shows `shown` (a property, `deadlock` or `spec-error`)."""
        statement = next((p.declared.doc for p in bound.every if p.name == shown), "")
        return cls(
            version=version(),
            spec=bound.spec.name,
            source=source,
            spec_hash=bound.spec.source_hash(),
            bounds=dict(bound.values),
            bounds_hash=hash_of_bounds(bound.values),
            property=shown,
            statement=statement,
            profile=profile,
            fault=fault,
            engine=engine,
        )

    def differences(self, bound: BoundSpec) -> list[str]:
        """What differs between the spec and bounds of this origin and those here, in words."""
        found: list[str] = []
        here = bound.spec.source_hash()
        if self.spec != bound.spec.name:
            found.append(f"it is of spec {self.spec}, here is {bound.spec.name}")
        if self.spec_hash != here:
            found.append(f"the spec has another text (then {self.spec_hash[:8]}, now {here[:8]})")
        if self.bounds_hash != hash_of_bounds(bound.values):
            found.append(_bounds_that_differ(self.bounds, bound.values))
        return found


def _bounds_that_differ(then: Mapping[str, int | str], now: Mapping[str, int | str]) -> str:
    names = [name for name in dict.fromkeys((*then, *now)) if then.get(name) != now.get(name)]
    if not names:
        return "the hash of its bounds does not belong to them"
    parts = [f"{name} was {then.get(name, 'unknown')}, is {now.get(name, 'unknown')}" for name in names]
    return "other bounds: " + "; ".join(parts)


def hash_of_bounds(values: Mapping[str, int | str]) -> str:
    """SHA-256 over all bounds and switches with their values, whatever their order."""
    return hashlib.sha256(json.dumps(dict(sorted(values.items()))).encode()).hexdigest()


@functools.cache
def version() -> str:
    """The version of Fencepost that runs."""
    import importlib.metadata

    try:
        return importlib.metadata.version("fencepost")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
