"""Names of the KV spec for what an engine knows by ids, token values and hashes."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property

from ..engine.simulated_worker import Tag, prefix_tags

STOP_TOKEN = 1
_OUTPUTS_FROM = 1 << 19
_SHARED = 1 << 60

Hash = Hashable
"""The hash of a full block, chained to the one before."""
Prefix = tuple[int, int | None, int]
"""What a block's hash stands for: the text (one above the shared ones: a request's own), whose text it is, its place."""


def by_position(prefix: Prefix) -> tuple[int, int, int]:
    """The order in which prefixes are shown: place, text, request (none first).

    It has a twin in `spec/kv/observe.py`, on purpose: the drivers and the spec import nothing of each other.
    """
    text, r, place = prefix
    return place, text, -1 if r is None else r


class Life:
    """One life of a request: member `r` of the spec's index, submitted as the `number`th, and its prompt.

    Prompts of one `group` begin with the same tokens; with group 0, and in all outputs, no token is ever used twice.
    """

    def __init__(self, r: int, number: int, prompt: int, group: int) -> None:
        self.r, self.number, self.prompt, self.group = r, number, prompt, group
        self.id = f"{r}#{number}"

    @property
    def _first_token(self) -> int:
        return ((self.number << 10) + self.r) << 20

    def tokens(self) -> list[int]:
        """The prompt."""
        first = _SHARED + (self.group << 20) if self.group else self._first_token
        return list(range(first, first + self.prompt))

    def output_token(self, number: int) -> int:
        """The output token of this number."""
        return self._first_token + _OUTPUTS_FROM + number

    @cached_property
    def tags(self) -> list[Tag]:
        """What the KV of the prompt's tokens depends on."""
        return prefix_tags(self.tokens())
