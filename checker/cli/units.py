"""Limits in the units that people write: `30s`, `2GiB`, `5M`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .errors import UsageError

SECONDS = {"": 1.0, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
BYTES = {
    "": 1, "b": 1, "k": 2**10, "kb": 10**3, "kib": 2**10, "m": 2**20, "mb": 10**6, "mib": 2**20,
    "g": 2**30, "gb": 10**9, "gib": 2**30, "t": 2**40, "tb": 10**12, "tib": 2**40,
}  # fmt: skip
COUNTS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_FORM = re.compile(r"\s*(\d+(?:_\d+)*(?:\.\d+)?)\s*([a-zA-Z]*)\s*", re.ASCII)


def seconds(text: str, option: str) -> float:
    """A time in seconds, such as `30s`, `5min` or `1.5h`; `UsageError` names the option."""
    return _parse(text, SECONDS, option, "a time such as 30s, 5min or 1h")


def size(text: str, option: str) -> int:
    """A number of bytes, such as `2GiB` or `500MB`; `UsageError` names the option."""
    return int(_parse(text, BYTES, option, "a size such as 2GiB or 500MB"))


def number(text: str, option: str) -> int:
    """A whole number, such as `1000000`, `1_000_000` or `5M`; `UsageError` names the option."""
    amount = _parse(text, COUNTS, option, "a number such as 1000000 or 5M")
    if amount != int(amount):
        raise UsageError(f"{option}: {text!r} is not a whole number")
    return int(amount)


def _parse(text: str, units: Mapping[str, float], option: str, form: str) -> float:
    found = _FORM.fullmatch(text)
    if found is None or found[2].lower() not in units:
        raise UsageError(f"{option}: {text!r} is not {form}")
    amount = float(found[1]) * units[found[2].lower()]
    if not 0 < amount < 2**62:
        raise UsageError(f"{option}: {text!r} is out of range; give {form}")
    return amount
