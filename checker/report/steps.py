"""A trace told step by step: the action, one plain sentence, and what changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...spec.lang import Arguments, BoundSpec, Rule, State
from ...spec.lang.layout import decode
from ...traces.trace import Trace
from .show import Change, Shower


@dataclass(frozen=True)
class Told:
    """One transition in words; `call` is the action with its arguments."""

    number: int
    action: str
    call: str
    sentences: tuple[str, ...]
    changes: tuple[Change, ...]


def tell(bound: BoundSpec, trace: Trace) -> Iterator[Told]:
    """Every step of a trace, the initial state (number 0) left out."""
    rules = {rule.name: rule for rule in bound.actions}
    shower = Shower(bound)
    for number, (before, step) in enumerate(zip(trace.states, trace.steps, strict=False), 1):
        rule = rules[step.action]
        yield Told(
            number,
            step.action,
            call(bound, rule, step.arguments),
            tuple(sentences(bound, rule, step.arguments, before, step.state)),
            tuple(shower.changes(before, step.state)),
        )


def call(bound: BoundSpec, rule: Rule, args: Arguments) -> str:
    """An action with its arguments, such as `finish(r=A)`."""
    return f"{rule.name}({', '.join(f'{n}={_word(v)}' for n, v in bound.show_arguments(rule, args).items())})"


def _word(value: Any) -> str:
    if isinstance(value, list):
        return "{" + ", ".join(map(str, value)) + "}"  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def sentences(bound: BoundSpec, rule: Rule, args: Arguments, before: State, after: State) -> list[str]:
    """What a transition does: the spec's narrator tells it, else the first sentence of the action's docstring does."""
    told = _narrate(bound, rule, args, before, after)
    if told:
        return told
    words = {name: _word(value) for name, value in bound.show_arguments(rule, args).items()}
    text = re.sub(r"\{(\w+)\}", lambda found: words.get(found[1], found[0]), _first_paragraph(rule.declared.doc))
    return [text] if text else []


def _narrate(bound: BoundSpec, rule: Rule, args: Arguments, before: State, after: State) -> list[str]:
    narrator = bound.spec.narrator
    if narrator is None:
        return []
    named = dict(zip((p.name for p in rule.declared.parameters), bound.arguments(rule, args), strict=True))
    try:
        told = narrator(decode(bound.shape, before), decode(bound.shape, after), rule.name, named)
    except Exception as error:  # whoever wrote the narrator must hear of it, but a report must not fail for it
        return [f"(the narrator of {bound.spec.name} failed: {type(error).__name__}: {error})"]
    return [str(sentence) for sentence in told or []]


def _first_paragraph(doc: str) -> str:
    return " ".join(doc.split("\n\n")[0].split())
