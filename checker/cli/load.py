"""From a recorded trace (a file or a short form) to a model and a trace that runs on it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..model import Model
from . import kvdata
from .errors import UsageError
from .target import SHIPPED, Target, Values, implied_by, load_shipped, load_user_spec, parse_bounds

if TYPE_CHECKING:
    from ...spec.lang import Spec
    from ...traces.origin import Origin
    from ...traces.revive import Revived


@dataclass(frozen=True)
class Loaded:
    """A recorded trace on the spec at hand; `path` is its file, None for a short form."""

    target: Target
    revived: Revived
    path: str | None


@dataclass(frozen=True)
class On:
    """On which spec and bounds a trace is to run, where that is not as recorded."""

    spec: str | None = None
    profile: str | None = None
    fault: str | None = None
    bounds: tuple[str, ...] = ()


def load(text: str, on: On) -> Loaded:
    """Read a trace and run it; errors of the trace, the spec or the bounds where that fails."""
    from ...traces import recorded
    from ...traces.files import TraceError
    from ...traces.revive import revive, revive_short
    from ...traces.short import is_short, parse

    if not text:
        raise UsageError("the name of the trace is empty (is a shell variable not set?)")
    if is_short(text) and not Path(text).exists():
        short = parse(text)
        target = _target(short.spec, None, {}, on)
        return Loaded(target, revive_short(target.model.bound, short), None)
    read = recorded.read(Path(text))
    origin = read.origin
    if origin is None and on.spec is None:
        raise TraceError(f"{text}: names no spec (it was not written by Fencepost); name one with --spec")
    name = origin.spec if origin is not None else str(on.spec)
    target = _target(name, origin, dict(origin.bounds) if origin is not None else {}, on)
    return Loaded(target, revive(target.model.bound, read), text)


def _target(name: str, origin: Origin | None, recorded: Values, on: On) -> Target:
    spec, source = _spec(name, origin, on)
    values, again, profile = _values(on, name, origin)
    asked = parse_bounds(on.bounds)
    changed = bool(on.profile or on.fault or asked)
    kept = {n: v for n, v in recorded.items() if n in spec.bounds} if changed else recorded
    over = values if on.profile or on.fault else {}
    model = Model.of(
        spec,
        {**values, **kept, **over, **asked},
        profile=profile or (origin.profile if origin is not None else None),
        fault=on.fault or (origin.fault if origin is not None else None),
    )
    defaults = {n: v for n, b in spec.bounds.items() if (v := b.default) is not None}
    words = ("--spec", source) if source is not None else again
    known = kvdata.profiles().get(model.profile or "") if source is None else None
    implied = {} if known is None else implied_by(spec, known.switches)
    return Target(model, source or f"spec {name}", source, words, {**defaults, **values}, implied=implied)


def _spec(name: str, origin: Origin | None, on: On) -> tuple[Spec, str | None]:
    """The spec of a trace, and its file if it is a user's."""
    source = on.spec if on.spec is not None else origin.source if origin is not None else None
    if source is not None and source not in SHIPPED:
        if on.spec is None and not Path(source).is_file():
            raise UsageError(f"the trace is of {source}, which is not there; name the spec's file with --spec")
        return load_user_spec(source), source
    return load_shipped(source or name), None


def _values(on: On, name: str, origin: Origin | None) -> tuple[Values, tuple[str, ...], str | None]:
    """The values that --profile or --fault (else what the trace names) stands for, these words, and the profile's name."""
    if on.fault is not None and on.profile is not None:
        raise UsageError("--fault brings its own profile: leave out --profile")
    if (on.fault or on.profile) and name != "kv" and on.spec != "kv":
        raise UsageError("--profile and --fault are for traces of the spec kv")
    if on.fault is not None:
        found = kvdata.fault(on.fault)
        return dict(found.values), ("--fault", found.id), found.base
    if on.profile is not None:
        return dict(kvdata.profile(on.profile).switches), ("--profile", on.profile), on.profile
    if origin is not None and origin.fault in kvdata.faults():
        return _values(On(fault=origin.fault), name, None)
    if origin is not None and origin.profile in kvdata.profiles():
        return _values(On(profile=origin.profile), name, None)
    return {}, (), None
