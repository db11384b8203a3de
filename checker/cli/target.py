"""From what a user names (a config, a command line, a spec file, a shipped spec, a fault) to a model."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..model import DEADLOCK, SPEC_ERROR, Model
from . import kvdata
from .errors import UsageError

if TYPE_CHECKING:
    from ...spec.lang import Spec
    from ..config import Derived

SHIPPED = {"kv": "fencepost.spec.kv.kv"}
"""The specs that come with Fencepost, with their modules."""
MOST = 1_000_000
"""The largest value of any bound: no search reaches it, and a layout of that size would fill the memory."""
Values = dict[str, int | str]


@dataclass(frozen=True)
class Target:
    """A model, and how it came about.

    `origin` is where it came from, in words; `source` the file of a user's spec; `again` the options that lead to the
    same spec (with `base`, their bounds) in another command; `only` the properties to check (empty: all); `implied` the
    values that naming the profile says already.
    """

    model: Model
    origin: str
    source: str | None
    again: tuple[str, ...]
    base: Values
    only: tuple[str, ...] = ()
    implied: Values = field(default_factory=dict[str, int | str])
    derived: Derived | None = None
    notes: tuple[str, ...] = ()

    @property
    def bounds(self) -> str:
        """The bounds in words: the profile, then what it does not say already."""
        values = self.model.bound.values
        rest = {name: value for name, value in values.items() if self.implied.get(name) != value}
        profile = [f"profile {self.model.profile}"] if self.model.profile else []
        return ", ".join([*profile, *(f"{name}={value}" for name, value in rest.items())]) or "its one size (no bounds)"

    def identity(self) -> dict[str, Any]:
        """What says in JSON which model this is: the spec, its profile and fault, and its bounds."""
        model = self.model
        return {
            "spec": {"name": model.spec.name, "source": self.source, "sha256": model.spec.source_hash()},
            "profile": model.profile,
            "fault": model.fault,
            "bounds": dict(model.bound.values),
        }


@dataclass(frozen=True)
class Wanted:
    """What was asked for on a command line; with `enumerable`, all instances of actions are to be tried."""

    words: tuple[str, ...] = ()
    profile: str | None = None
    fault: str | None = None
    bounds: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    enumerable: bool = True


def resolve(wanted: Wanted) -> Target:
    """The model of a command line; `UsageError`, or the error of the spec or config, where there is none."""
    if wanted.fault is not None:
        made = _fault(wanted)
    elif len(wanted.words) == 0:
        raise UsageError(
            "nothing to check: name a vLLM config (config.yaml), a spec (my_spec.py), or kv; "
            "or paste a command line after --, as in: fencepost check -- vllm serve MODEL"
        )
    elif len(wanted.words) > 1 or _is_command(wanted.words[0]):
        made = _config(wanted, list(wanted.words))
    else:
        made = _named(wanted, wanted.words[0])
    restrict(made.model, wanted.properties or made.only)
    return made


def _is_command(word: str) -> bool:
    """Whether one word holds a whole pasted command line (a file's name may have spaces too)."""
    return word == "vllm" or (" " in word and "vllm" in word and not Path(word).exists())


def _named(wanted: Wanted, word: str) -> Target:
    if not word:
        raise UsageError("the name of what to check is empty (is a shell variable not set?)")
    if word in SHIPPED:
        return _shipped(wanted, word)
    path = Path(word)
    if path.suffix == ".py":
        return _file(wanted, word)
    if path.suffix in (".yaml", ".yml", ".json") or (path.is_file() and path.suffix != ".py"):
        return _config(wanted, word)
    if path.exists():
        raise UsageError(f"{word}: neither a vLLM config (.yaml) nor a spec (.py)")
    raise UsageError(f"{word}: there is no such file, and no spec of this name is shipped (there is: {', '.join(SHIPPED)})")


def load_shipped(name: str) -> Spec:
    """A spec that comes with Fencepost; `UsageError` if there is none of this name."""
    from ...spec.lang import load_module

    if name not in SHIPPED:
        raise UsageError(f"no spec named {name!r} is shipped (only {', '.join(SHIPPED)}); name its file with --spec")
    return load_module(SHIPPED[name], name)


def _shipped(wanted: Wanted, name: str) -> Target:
    spec = load_shipped(name)
    profile = kvdata.profile(wanted.profile or kvdata.DEFAULT)
    values = profile.switches
    model = Model.of(spec, {**values, **parse_bounds(wanted.bounds)}, profile=profile.name, enumerable=wanted.enumerable)
    again = ("--profile", profile.name)
    return Target(model, f"spec {name}", None, again, spec.values(values), implied=implied_by(spec, values))


def load_user_spec(path: str) -> Spec:
    """A spec in a user's file; what it prints while it is imported is kept out of the report and of --json."""
    from contextlib import redirect_stdout

    from ...spec.lang import load_file

    with redirect_stdout(sys.stderr):
        return load_file(Path(path))


def _file(wanted: Wanted, word: str) -> Target:
    if wanted.profile is not None:
        raise UsageError("--profile: profiles are those of the spec kv, not of a spec file; use --bounds for its switches")
    spec = load_user_spec(word)
    given = parse_bounds(wanted.bounds)
    base = {name: value for name, b in spec.bounds.items() if (value := b.default) is not None}
    return Target(Model.of(spec, given, enumerable=wanted.enumerable), f"spec {word}", word, ("--spec", word), dict(base))


def _fault(wanted: Wanted) -> Target:
    if wanted.words not in ((), ("kv",)) or wanted.profile is not None:
        raise UsageError("--fault brings its own profile and bounds: leave out TARGET and --profile")
    found = kvdata.fault(str(wanted.fault))
    spec = load_shipped("kv")
    values = {**found.values, **parse_bounds(wanted.bounds)}
    model = Model.of(spec, values, profile=found.base, fault=found.id, enumerable=wanted.enumerable)
    notes = tuple(text for text in (found.bug and f"the bug: {found.bug}", found.note) if text)
    again = ("--fault", found.id)
    implied = implied_by(spec, kvdata.profile(found.base).switches)
    origin = f"fault {found.id}: {found.title}"
    return Target(model, origin, None, again, spec.values(found.values), (found.breaks,), implied, notes=notes)


def _config(wanted: Wanted, given: str | list[str]) -> Target:
    from ..config import derive_from_command, derive_from_file

    if isinstance(given, str):
        derived = derive_from_file(given, profile=wanted.profile, env=dict(os.environ))
    else:
        derived = derive_from_command(given, dict(os.environ), profile=wanted.profile)
    switches = kvdata.profile(derived.profile).switches
    spec = load_shipped("kv")
    values = {**switches, **derived.bounds, **parse_bounds(wanted.bounds)}
    model = Model.of(spec, values, profile=derived.profile)
    return Target(
        model,
        derived.source,
        None,
        ("--profile", derived.profile),
        spec.values(switches),
        implied=implied_by(spec, switches),
        derived=derived,
        notes=tuple(derived.warnings),
    )


def implied_by(spec: Spec, switches: Values) -> Values:
    """What naming a profile says already: the choice of every switch, by the profile or by default."""
    from ...spec.lang import Switch

    return {name: switches.get(name, b.default) for name, b in spec.bounds.items() if isinstance(b, Switch)}


def parse_bounds(given: Sequence[str]) -> Values:
    """Bounds as `a=1,b=2`, in one option or several; `UsageError` for another form or a name given twice."""
    values: Values = {}
    for part in (part.strip() for text in given for part in text.split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not (name and equals and value):
            raise UsageError(f"--bounds: {part!r} is not of the form name=value (write --bounds requests=3,blocks=4)")
        if name in values:
            raise UsageError(f"--bounds: {name} is given twice")
        if value.isdecimal() and not value.isascii():
            raise UsageError(f"--bounds: {name}={value}: write the number with the digits 0 to 9")
        if value.isdecimal() and (len(value) > 7 or int(value) > MOST):
            raise UsageError(f"--bounds: {name}={value} is far too large; sizes are small numbers (at most {MOST:,})")
        values[name] = value
    return values


def restrict(model: Model, names: Sequence[str]) -> None:
    """Leave only these properties in a model (all, if none is named); `UsageError` for an unknown one."""
    if not names:
        return
    bound = model.bound
    known = [p.name for p in bound.properties]
    for name in names:
        if name in bound.not_applicable:
            raise UsageError(f"--property: {name} does not apply at these bounds (its when= is false)")
        if name not in (*(p.name for p in bound.every), DEADLOCK, SPEC_ERROR):
            raise UsageError(f"--property: {bound.spec.name} has no property {name!r}; it has {', '.join(known)}")
    bound.properties = tuple(p for p in bound.every if p.name in names)


def again(target: Target, trace: str, verb: str = "replay", options: Sequence[str] = ()) -> str:
    """The command that replays (or explains) a trace given in its short form, when run in the same folder."""
    import shlex

    differing = {n: v for n, v in target.model.bound.values.items() if target.base.get(n) != v}
    options = [*target.again, *options]
    if differing:
        options += ["--bounds", ",".join(f"{name}={value}" for name, value in differing.items())]
    return shlex.join(["fencepost", verb, *words_of(trace, options)])


def words_of(name: str, options: Sequence[str] = ()) -> list[str]:
    """An argument and options as they stand in a command; an argument that begins with a dash goes last, after --."""
    return [*options, "--", name] if name.startswith("-") else [name, *options]
