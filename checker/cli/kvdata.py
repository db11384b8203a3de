"""The data files of the KV spec: profiles, faults, and expected results."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .errors import UsageError

DEFAULT = "reference"
"""The profile of the KV spec where none is asked for and no config says which release it is."""
Values = dict[str, int | str]


@dataclass(frozen=True)
class Profile:
    """What one release does: the value of each mechanism switch."""

    name: str
    title: str
    switches: Values


@dataclass(frozen=True)
class Fault:
    """A public bug, re-introduced by one changed switch: the bounds that show it, and what it breaks after how long."""

    id: str
    title: str
    bug: str
    base: str
    values: Values
    breaks: str
    depth: int | None
    note: str


@dataclass(frozen=True)
class Conform:
    """A row of the manifest of `fencepost conform`: bounds, and for a profile or fault at them the recorded figures.

    With `longest`, only paths of at most so many transitions are compared.
    """

    name: str
    profile: str | None
    fault: str | None
    bounds: tuple[str, ...]
    longest: int | None
    expected: dict[str, int]


def _folder() -> Path:
    from ...spec import kv

    return Path(str(kv.__file__)).parent / "data"


@cache
def load(name: str) -> Any:
    """A data file of the KV spec, as YAML gives it; an empty mapping if there is none of this name."""
    import yaml

    path = _folder() / f"{name}.yaml"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return (yaml.load(path.read_bytes(), Loader=loader) or {}) if path.exists() else {}


def profiles() -> dict[str, Profile]:
    """Every profile by its name."""
    found: dict[str, Any] = load("profiles").get("profiles", {})
    return {name: Profile(name, _line(p.get("title")), dict(p.get("switches") or {})) for name, p in found.items()}


def profile(name: str) -> Profile:
    """The profile of this name; `UsageError` names the nearest one."""
    known = profiles()
    if name not in known:
        raise UsageError(f"--profile: {name!r} is no profile; {_instead(name, known)}")
    return known[name]


def faults() -> dict[str, Fault]:
    """Every fault by its id."""
    found: list[dict[str, Any]] = load("faults").get("faults", [])
    return {str(f["id"]): _fault(f) for f in found}


def fault(name: str) -> Fault:
    """The fault with this id, in upper or lower case; `UsageError` names the nearest one."""
    known = faults()
    found = next((value for key, value in known.items() if key.upper() == name.upper()), None)
    if found is None:
        raise UsageError(f"--fault: {name!r} is no fault; {_instead(name, known)}")
    return found


def _fault(made: dict[str, Any]) -> Fault:
    values: Values = {}
    for part in ("config", "bounds", "switch"):
        values |= made.get(part) or {}
    base = str(made["base"])
    return Fault(
        id=str(made["id"]),
        title=_line(made.get("title")),
        bug=_line(made.get("bug")),
        base=base,
        values={**profile(base).switches, **values},
        breaks=str(made["property"]),
        depth=made.get("depth"),
        note=_line(made.get("note")),
    )


def conform() -> tuple[Conform, ...]:
    """The rows of the manifest of `fencepost conform`: profile after profile, then the faults."""
    sizes: list[dict[str, Any]] = load("conform").get("exhaustive", [])
    faulty: list[dict[str, Any]] = load("conform").get("faults", [])
    of_profiles = [_conform(row, name, row["figures"][name]) for name in profiles() for row in sizes if name in row["figures"]]
    return (*of_profiles, *(_conform(row, None, row["figures"]) for row in faulty))


def random_sizes() -> tuple[Conform, ...]:
    """The large sizes of random runs, of no profile."""
    found: list[dict[str, Any]] = load("conform").get("random", [])
    return tuple(_conform(row, None, {}) for row in found)


def _conform(row: dict[str, Any], of: str | None, figures: dict[str, int]) -> Conform:
    return Conform(
        name=_line(row.get("name")),
        profile=of,
        fault=row.get("fault"),
        bounds=_words(row.get("bounds") or {}),
        longest=row.get("longest"),
        expected=dict(figures),
    )


def _words(bounds: Values) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in bounds.items())


def _line(text: Any) -> str:
    return " ".join(str(text or "").split())


def _instead(name: str, known: Iterable[str]) -> str:
    names = list(known)
    close = difflib.get_close_matches(name, names, 1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}"
