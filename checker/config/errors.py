"""What is said when a config cannot be read, contradicts itself, or asks for what the spec does not model."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ConfigError(ValueError):
    """A config that vLLM would refuse, or that says two things at once. Exit code 2.

    `place` is a file with its line, an argument or a variable; `rule` says what is not allowed there; `fix` what to do.
    """

    exit_code = 2

    def __init__(self, place: str, rule: str, fix: str) -> None:
        super().__init__(f"{place}: {rule}; {fix}")
        self.place = place
        self.rule = rule
        self.fix = fix


class UnsupportedError(ConfigError):
    """A config that vLLM runs and the KV spec cannot model, where leaving it out would make the verdict wrong. Exit
    code 2.
    """

    def __init__(self, place: str, rule: str, fix: str) -> None:
        super().__init__(place, f"UNSUPPORTED: {rule}", fix)


def shown(text: str, most: int = 60) -> str:
    """A text for a message, in quotes and cut to `most` characters."""
    return repr(text if len(text) <= most else text[: most - 3] + "...")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name that is most like `word`, or None."""
    names = sorted(known)
    word = word[:80]
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return close[0]
    begins = [name for name in names if len(word) > 2 and name.lower().startswith(word.lower())]
    return begins[0] if begins else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """A fix that names the nearest known name, or else `otherwise`."""
    found = nearest(word, known)
    return f"did you mean {found!r}?" if found else otherwise
