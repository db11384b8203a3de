"""Traces as one word, for logs and command lines: `kv:1f2e3d4c5b6a7988:0,3.1,2.0`.

The name of the spec; eight digits of the hash of its text and eight of the hash of its bounds; then one item an action:
its number among the actions at these bounds, and its arguments (members and numbers as they are, truth values 0 or 1,
sets as bit masks). `@1.0` in front is the initial state where there are several; `~2` at the end says that the last state
is state 2 again: the path is a lasso.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..spec.lang import Arguments, BoundSpec, Rule
from .files import TraceError
from .origin import hash_of_bounds
from .trace import Trace

_NAME = r"(?P<spec>[^/\n]+)"
"""The name of a spec is that of its file, which may hold spaces, accents and colons."""
_FORM = re.compile(_NAME + r":(?P<hash>[0-9a-f]{16}):(?P<items>[-@~.,0-9]*)")


@dataclass(frozen=True)
class Short:
    """A short form taken apart: numbers of actions with their arguments."""

    spec: str
    hash: str
    start: tuple[int, Arguments] | None
    items: tuple[tuple[int, Arguments], ...]
    loop: int | None


def is_short(text: str) -> bool:
    """Whether a text is meant as a short form rather than as the name of a file."""
    return re.match(_NAME + r":[0-9a-f]{4,}:", text) is not None


def hash_of(bound: BoundSpec) -> str:
    """Sixteen digits: eight of the spec's text, eight of its bounds."""
    return bound.spec.source_hash()[:8] + hash_of_bounds(bound.values)[:8]


def shorten(bound: BoundSpec, trace: Trace) -> str:
    """The short form of a trace."""
    actions = {rule.name: rule.number for rule in bound.actions}
    items = [_item(actions[step.action], step.arguments) for step in trace.steps]
    if trace.start is not None and len(bound.initial()) > 1:
        inits = {rule.name: rule.number for rule in bound.inits}
        items.insert(0, "@" + _item(inits[trace.start[0]], trace.start[1]))
    if trace.loop is not None:
        items.append(f"~{trace.loop}")
    return f"{bound.spec.name}:{hash_of(bound)}:{','.join(items)}"


def _item(number: int, args: Arguments) -> str:
    return ".".join(map(str, (number, *args)))


def parse(text: str) -> Short:
    """Take a short form apart; `TraceError` where it has another form."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise TraceError(f"{text[:60]!r} is not a short trace; it looks like kv:1f2e3d4c5b6a7988:0,3.1,2.0")
    items = found["items"].split(",") if found["items"] else []
    start = _numbers(items.pop(0)[1:], text) if items and items[0].startswith("@") else None
    loop = _numbers(items.pop()[1:], text)[0] if items and items[-1].startswith("~") else None
    return Short(found["spec"], found["hash"], start, tuple(_numbers(item, text) for item in items), loop)


def _numbers(item: str, text: str) -> tuple[int, Arguments]:
    try:
        number, *args = map(int, item.split("."))
    except ValueError:
        raise TraceError(f"{text[:60]!r}: {item!r} is not an action and its arguments, such as 3.1") from None
    return number, tuple(args)


def difference(short: Short, bound: BoundSpec) -> str | None:
    """What differs between the spec and bounds of a short form and those here, in words; None if nothing does."""
    here = hash_of(bound)
    found: list[str] = []
    if short.spec != bound.spec.name:
        found.append(f"it is of spec {short.spec}, here is {bound.spec.name}")
    if short.hash[:8] != here[:8]:
        found.append(f"the spec has another text (then {short.hash[:8]}, now {here[:8]})")
    if short.hash[8:] != here[8:]:
        found.append(f"other bounds (then {short.hash[8:]}, now {here[8:]}; give them with --bounds)")
    return "; ".join(found) or None


def rule_of(rules: tuple[Rule, ...], number: int, step: int) -> Rule:
    """The action with this number; `TraceError` if there is none."""
    if not 0 <= number < len(rules):
        raise TraceError(f"step {step}: there is no action {number} at these bounds (0 to {len(rules) - 1})")
    return rules[number]
