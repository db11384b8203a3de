"""What is to be checked: a spec bound to bounds, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..spec.lang import BoundSpec, Spec

DEADLOCK = "deadlock"
"""The name under which a state without successors is reported."""
SPEC_ERROR = "spec-error"
"""The name under which a state or transition that leaves the spec's own bounds is reported."""

NO_ERROR = "no-error"
"""The name under which an implementation is reported that stops with an error of which the spec knows nothing."""


@dataclass(frozen=True)
class Limits:
    """Where a search stops short; a search that did is UNDETERMINED. Seconds and bytes of this process."""

    max_states: int | None = None
    max_depth: int | None = None
    max_seconds: float | None = None
    max_bytes: int | None = None
    cancelled: Callable[[], bool] = field(default=lambda: False)

    def reason(self, reached: str) -> str:
        """Why a search stopped that reached a limit: max-states, max-depth, max-time, max-memory or cancelled."""
        return {
            "max-states": f"more than {self.max_states or 0:,} states (--max-states)",
            "max-depth": f"depth limit of {self.max_depth} (--max-depth)",
            "max-time": f"time limit of {self.max_seconds or 0:g} s (--max-time)",
            "max-memory": f"memory limit of {self.max_bytes or 0:,} bytes (--max-memory)",
            "cancelled": "interrupted",
        }[reached]


@dataclass(frozen=True)
class Options:
    """How a model is searched: `symmetry` over the permutable indices, looking for a `deadlock`, past violations or not."""

    symmetry: bool = True
    deadlock: bool = True
    keep_going: bool = False
    threads: int | None = None
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class Model:
    """A spec at bounds, with what the user calls it (`profile` and `fault` for the KV spec)."""

    bound: BoundSpec
    label: str
    profile: str | None = None
    fault: str | None = None

    @property
    def spec(self) -> Spec:
        """The spec."""
        return self.bound.spec

    @classmethod
    def of(
        cls,
        spec: Spec,
        bounds: Mapping[str, int | str] | None = None,
        *,
        profile: str | None = None,
        fault: str | None = None,
        enumerable: bool = True,
    ) -> Model:
        """Bind a spec; `BoundsError` where the bounds do not fit it, or leave too many instances of actions to try all."""
        return cls(BoundSpec(spec, bounds or {}, enumerable=enumerable), spec.name, profile, fault)
