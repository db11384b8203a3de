"""The options of `vllm serve`: what each is called, what kind of value it takes, and which releases have it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict

from .errors import ConfigError, did_you_mean, shown

Kind = Literal["bool", "flag", "int", "float", "str", "size", "size-or-auto", "list", "json", "json-or-text", "maybe-text"]


class Option(BaseModel):
    """One option; `none` allows the word None; the limits are those that the releases themselves check."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    kind: Kind
    none: bool = False
    short: tuple[str, ...] = ()
    alias: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None

    @property
    def takes_value(self) -> bool:
        """Whether the option is followed by a value."""
        return self.kind not in ("bool", "flag")


@dataclass(frozen=True)
class Spelling:
    """One way to write an option; `on` is what it means for an option without a value."""

    option: Option
    on: bool = True


def data(name: str) -> Any:
    """A data file of this package, parsed."""
    text = resources.files(__package__ or "").joinpath("data", name).read_text(encoding="utf-8")
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # the C parser is ten times faster


@cache
def all_options() -> dict[str, Option]:
    """The options by name."""
    table: dict[str, dict[str, Any]] = data("vllm_options.yaml")
    return {name: Option.model_validate({"name": name, **entry}) for name, entry in table.items()}


@cache
def spellings() -> dict[str, Spelling]:
    """Every way to write an option, with its dashes.

    A switch `--x` has `--no-x`; 0.33.0 also pairs `--enable-x` with `--disable-x` (`EnableDisableAction`,
    vllm/utils/argparse_utils.py).
    """
    table: dict[str, Spelling] = {}
    for option in all_options().values():
        for name in (option.name, *option.alias):
            table[f"--{name}"] = Spelling(option)
        for short in option.short:
            table[short] = Spelling(option)
        if option.kind == "bool":
            table[f"--no-{option.name}"] = Spelling(option, on=False)
    for option in all_options().values():
        if option.kind == "bool":
            for prefix, inverse in (("enable-", "disable-"), ("disable-", "enable-")):
                if option.name.startswith(prefix):
                    table.setdefault(f"--{inverse}{option.name.removeprefix(prefix)}", Spelling(option, on=False))
    return table


def dashed(word: str) -> str:
    """A long option's name with dashes for underscores, up to the first dot or equals sign, as vLLM accepts it."""
    match = re.match(r"--[^.=]*", word)
    return match.group().replace("_", "-") + word[match.end() :] if match else word


def resolve(written: str, place: str) -> tuple[Spelling, str]:
    """The option that `written` (with dashes in front) names, and its full spelling; `ConfigError` for none or several.

    Unambiguous beginnings count, as in argparse, which vLLM uses with its default `allow_abbrev`.
    """
    table = spellings()
    name = dashed(written)
    if name in table:
        return table[name], name
    fits = {full: spelling for full, spelling in table.items() if name.startswith("--") and full.startswith(name)}
    if not fits:
        fix = did_you_mean(name, table, "see `vllm serve --help=all`, or remove it")
        raise ConfigError(place, f"{shown(written)} is no option of vllm serve (releases 0.23.0 to 0.33.0)", fix)
    if len({(s.option.name, s.on) for s in fits.values()}) > 1:
        some = ", ".join(sorted(fits)[:4])
        raise ConfigError(place, f"{shown(written)} is the beginning of several options ({some})", "write the name out")
    full, spelling = next(iter(fits.items()))
    return spelling, full
