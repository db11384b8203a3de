"""From the command line of `fencepost conform` to its rows: which spec at which bounds, and what the target gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...spec.lang import Index
from . import kvdata
from .errors import UsageError
from .target import SHIPPED, Target, Values, Wanted, parse_bounds, resolve

QUICK = 10_000
"""The most transitions of a row that is compared with `--quick`."""


@dataclass(frozen=True)
class Asked:
    """What was asked for: a shipped spec or a file, and its bounds; `different` is what only the target gets.

    `standard` is the profile where none is named: that of the target.
    """

    spec: str = "kv"
    profile: str | None = None
    fault: str | None = None
    bounds: tuple[str, ...] = ()
    different: tuple[str, ...] = ()
    everything: bool = False
    random: bool = False
    quick: bool = False
    standard: str = kvdata.DEFAULT


@dataclass(frozen=True)
class Row:
    """One comparison: a model, the values of all bounds that the target is made from, and the figures it should have.

    `name` says what these bounds are about; `different` are the values that the target does not share; `longest` is the
    most transitions of the paths that are compared, where that is bounded.
    """

    name: str
    target: Target
    values: Values
    different: Values = field(default_factory=dict[str, int | str])
    expected: Mapping[str, int] = field(default_factory=dict[str, int])
    longest: int | None = None

    @property
    def bounds(self) -> str:
        """The bounds in words: the profile, the sizes, and whatever else is not as by default."""
        model = self.target.model
        shown = [f"profile {model.profile}"] if model.profile else []
        left = 0
        for name, bound in model.spec.bounds.items():
            value = model.bound.values[name]
            if isinstance(bound, Index) or value != self.target.implied.get(name, bound.default):
                shown.append(f"{name}={value}")
            elif name not in self.target.implied:
                left += 1
        if self.longest is not None:
            shown.append(f"at most {self.longest} transitions")
        words = ", ".join(shown) or "its one size (no bounds)"
        return f"{words}, else defaults" if left else words

    def again(self, target: str, more: Sequence[str] = ()) -> str:
        """The command that makes this comparison again, with these words besides, when run in the same folder."""
        import shlex

        values = self.target.model.bound.values
        own = {n: v for n, v in values.items() if self.target.base.get(n) != v}
        words = [self.target.source] if self.target.source is not None else [*self.target.again]
        words += ["--target", target]
        # For a profile without bounds the manifest decides, so the sizes are named even where they are the defaults.
        manifest = self.target.source is None and not self.target.model.fault
        sizes = {n: values[n] for n, b in self.target.model.spec.bounds.items() if manifest and isinstance(b, Index)}
        for option, given in (("--bounds", {**sizes, **own}), ("--target-bounds", self.different)):
            if given:
                words += [option, ",".join(f"{name}={value}" for name, value in given.items())]
        return shlex.join(["fencepost", "conform", *words, *more])


def rows(asked: Asked) -> list[Row]:
    """The rows of a command line; `UsageError` where there are none."""
    if asked.everything and (asked.profile or asked.fault or asked.bounds or asked.spec not in SHIPPED):
        raise UsageError("--all is every row of the manifest of kv: leave out the spec, --profile, --fault and --bounds")
    if asked.quick and (asked.bounds or asked.spec not in SHIPPED):
        raise UsageError("--quick chooses among the rows of the manifest of kv: leave out the spec and --bounds")
    if asked.bounds or asked.spec not in SHIPPED:
        named = asked.profile or (None if asked.fault or asked.spec not in SHIPPED else asked.standard)
        return [_row(asked, kvdata.Conform("", named, asked.fault, asked.bounds, None, {}))]
    profile = asked.profile or (None if asked.fault or asked.everything else asked.standard)
    named = _sizes(asked, profile) if asked.random else [r for r in kvdata.conform() if _is_of(r, asked, profile)]
    if asked.quick and not asked.random:
        named = [row for row in named if row.expected.get("transitions", 0) <= QUICK]
    if named:
        return [_row(asked, row) for row in named]
    if asked.fault:
        return [_row(asked, kvdata.Conform("", asked.profile, asked.fault, (), None, {}))]
    kvdata.profile(str(profile))
    raise UsageError(f"no row of the manifest is of profile {profile}; give bounds of your own with --bounds")


def _is_of(row: kvdata.Conform, asked: Asked, profile: str | None) -> bool:
    if asked.everything:
        return True
    if asked.fault is not None:
        return asked.profile is None and row.fault is not None and row.fault.upper() == asked.fault.upper()
    return row.fault is None and row.profile == profile


def _sizes(asked: Asked, profile: str | None) -> list[kvdata.Conform]:
    """The large sizes, for each profile or fault that was asked for."""
    sizes = kvdata.random_sizes()
    of = [(name, None) for name in kvdata.profiles()] if asked.everything else [(profile, asked.fault)]
    return [replace(size, profile=name, fault=fault) for name, fault in of for size in sizes]


def _row(asked: Asked, row: kvdata.Conform) -> Row:
    words = () if row.fault is not None and asked.spec == "kv" else (asked.spec,)
    target = resolve(Wanted(words, row.profile, row.fault, row.bounds, enumerable=not asked.random))
    model = target.model
    given = _different(asked)
    values = model.spec.values({**model.bound.values, **given})
    different = {name: values[name] for name in given}
    return Row(row.name or target.origin, target, values, different, {} if given else row.expected, row.longest)


def _different(asked: Asked) -> Values:
    try:
        return parse_bounds(asked.different)
    except UsageError as error:
        raise UsageError(str(error).replace("--bounds", "--target-bounds")) from None
