"""Small things in words: numbers, bytes, seconds, bounds."""

from __future__ import annotations

from collections.abc import Mapping


def number(value: int) -> str:
    """A whole number with thousands separated."""
    return f"{value:,}"


def size(count: int) -> str:
    """Bytes in binary units, such as `1.5 GiB`."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def seconds(amount: float) -> str:
    """A time, such as `0.35 s` or `2 min 5 s`."""
    if amount < 120:
        return f"{amount:.2f} s" if amount < 10 else f"{amount:.1f} s"
    return f"{int(amount) // 60} min {int(amount) % 60} s"


def count(amount: int, noun: str) -> str:
    """A number with its noun, such as `1 state`, `2 witnesses` or `3 properties`."""
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + ("es" if noun.endswith("s") else "s")
    return f"{amount:,} {noun if amount == 1 else plural}"


def bounds(values: Mapping[str, int | str]) -> str:
    """Bounds as they are given on a command line, separated by commas and spaces."""
    return ", ".join(f"{name}={value}" for name, value in values.items())
