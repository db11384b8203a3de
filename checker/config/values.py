"""One option's value, read from its words as vLLM's argument parser reads it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, cast

from .errors import ConfigError, did_you_mean, shown
from .options import Option

LARGEST = 2**31 - 1
"""No size of a real engine is beyond this (block ids and token counts are 32-bit in vLLM's kernels)."""

_POWERS = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SUFFIXED = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT])")


def human_int(text: str) -> int:
    """A whole number that may carry a suffix: 1k is 1000, 1K is 1024 (`human_readable_int`, vLLM 0.33.0); ValueError
    otherwise.
    """
    text = text.strip()
    match = _SUFFIXED.fullmatch(text)
    if not match:
        return int(text)
    number, suffix = match.groups()
    return int(number) * _POWERS[suffix] if suffix.isupper() else int(float(number) * _POWERS[suffix])


def parse_json(text: str, place: str, name: str) -> dict[str, Any]:
    """A JSON object, with suffixed numbers allowed outside strings as in vLLM."""
    parts = re.split(r'("(?:[^"\\]|\\.)*")', text)
    parts[::2] = [re.sub(r"\b\d+(?:\.\d+)?[kKmMgGtT]\b", lambda m: str(human_int(m.group())), p) for p in parts[::2]]
    try:
        value = json.loads("".join(parts))
    except RecursionError:
        raise ConfigError(place, f"{name}: the JSON is nested too deep", "write it flat") from None
    except ValueError as error:
        rule = f"{name} takes a JSON object, and {shown(text)} is not valid JSON ({error})"
        raise ConfigError(place, rule, "quote the whole object with ' and its keys and strings with \"") from None
    if not isinstance(value, dict):
        raise ConfigError(place, f"{name} takes a JSON object, not {kind_of(value)}", 'write {"key": "value"}')
    return cast("dict[str, Any]", value)


def kind_of(value: object) -> str:
    """What a value is, in words."""
    names: dict[type, str] = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "a text",
        list: "a list",
        dict: "an object",
    }
    return "nothing" if value is None else names.get(type(value), f"a {type(value).__name__}")


def parse_value(option: Option, text: str, place: str) -> Any:
    """The value of an option that takes one; `ConfigError` where vLLM would refuse it."""
    name = f"--{option.name}"
    if option.none and text in ("", "None"):
        return None
    match option.kind:
        case "int" | "size" | "size-or-auto" | "float":
            return _checked(option, _number(option, text, place, name), place, name)
        case "json":
            return parse_json(text, place, name)
        case "json-or-text":
            return parse_json(text, place, name) if re.fullmatch(r"(?s)\s*{.*}\s*", text) else text
        case _:
            if option.choices and text not in option.choices:
                known = ", ".join(option.choices)
                raise ConfigError(
                    place,
                    f"{name} is {shown(text)}, which is none of {known}",
                    did_you_mean(text, option.choices, f"choose one of {known}"),
                )
            return text


def _number(option: Option, text: str, place: str, name: str) -> int | float:
    """The number that `text` writes."""
    wanted = {"int": "a whole number", "float": "a number"}.get(option.kind, "a whole number such as 8192, 8k or 8K")
    try:
        if option.kind == "float":
            return float(text)
        if option.kind == "int":
            return int(text)
        if option.kind == "size-or-auto" and text.strip().lower() in ("-1", "auto"):
            return -1
        return human_int(text)
    except ValueError:
        raise ConfigError(place, f"{name} takes {wanted}, not {shown(text)}", f"write {wanted}") from None


def _checked(option: Option, value: int | float, place: str, name: str) -> int | float:
    """The number, if it lies within what the release allows and what an engine can be."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(place, f"{name} is {value}, not a finite number", "write a plain number")
    if all(limit is None for limit in (option.least, option.above, option.below, option.most)):
        return value
    size = value if abs(value) < 10**20 else f"a number of {len(str(abs(int(value))))} digits"
    for words in _beyond(option, value):
        fix = "give a value in that range, or leave the option out"
        raise ConfigError(place, f"{name} is {size}, and must be {words}", fix)
    return value


def _beyond(option: Option, value: int | float) -> Iterator[str]:
    """The limits that a value breaks, in words."""
    if option.least is not None and value < option.least:
        yield f"at least {option.least:g}"
    if option.above is not None and value <= option.above:
        yield f"greater than {option.above:g}"
    if option.below is not None and value >= option.below:
        yield f"less than {option.below:g}"
    if option.most is not None and value > option.most:
        yield f"at most {option.most:g}"
    if value > LARGEST:
        yield f"at most {LARGEST}; no engine is larger"
