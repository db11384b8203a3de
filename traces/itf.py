"""Traces as files: `NAME.itf.json`, valid ITF (Apalache's ADR 015) with Fencepost's own fields under `#meta`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..spec.lang import Arguments, BoundSpec, Rule, SetOf, State
from ..spec.lang.layout import changes
from ..spec.lang.types import Bool
from .files import write_whole
from .origin import FORMAT, Origin
from .trace import Trace
from .untyped import is_list
from .values import UNIT, big, to_itf, type_in_apalache

FORMAT_PAGE = "https://apalache-mc.org/docs/adr/015adr-trace.html"
ACTION_TAKEN, NONDET_PICKS = "mbt::actionTaken", "mbt::nondetPicks"
"""The variables in which Quint says which action led to a state, and with which choices."""


def document(bound: BoundSpec, trace: Trace, origin: Origin, *, mbt: bool = False) -> dict[str, Any]:
    """The trace as an ITF object; `mbt` adds Quint's two variables to every state."""
    names = [name for name, _, _ in bound.shape.fields]
    made: dict[str, Any] = {
        "#meta": _meta(bound, trace, origin, mbt=mbt),
        "vars": names + ([ACTION_TAKEN, NONDET_PICKS] if mbt else []),
        "states": [_state(bound, trace, number, mbt=mbt) for number in range(len(trace.states))],
    }
    if trace.loop is not None:
        made["loop"] = min(trace.loop + 1, len(trace))  # what follows the last state, a copy of trace.loop
    return made


def write(path: Path, made: Mapping[str, Any]) -> None:
    """Write an ITF object as a file, whole or not at all; `TraceError` where it cannot be written."""
    write_whole(path, dump(made))


def dump(made: Mapping[str, Any]) -> str:
    """An ITF object as text, one state a line, so that two traces can be compared line by line."""
    head = {key: value for key, value in made.items() if key != "states"}
    states = ",\n    ".join(json.dumps(state, ensure_ascii=False) for state in made["states"])
    body = json.dumps(head, indent=2, ensure_ascii=False).removesuffix("\n}")
    return f'{body},\n  "states": [\n    {states}\n  ]\n}}\n'


def _meta(bound: BoundSpec, trace: Trace, origin: Origin, *, mbt: bool) -> dict[str, Any]:
    types = {name: type_in_apalache(inner) for name, _, inner in bound.shape.fields}
    if mbt:
        types[ACTION_TAKEN] = "Str"
        picks = [f"{name}: Some({type_of}) | None(UNIT)" for name, type_of in _pick_types(bound).items()]
        types[NONDET_PICKS] = "{ " + ", ".join(picks) + " }"
    start = None if trace.start is None else _named(bound.inits, *trace.start)
    return {
        "format": "ITF",
        "format-description": FORMAT_PAGE,
        "description": f"Fencepost {origin.version}: {origin.spec}, {origin.property}",
        "varTypes": types,
        "fencepost": {
            "format": FORMAT,
            "version": origin.version,
            "spec": {"name": origin.spec, "source": origin.source, "sha256": origin.spec_hash},
            "bounds": {"values": dict(origin.bounds), "sha256": origin.bounds_hash},
            "profile": origin.profile,
            "fault": origin.fault,
            "property": {"name": origin.property, "statement": origin.statement},
            "engine": origin.engine,
            "init": start,
        },
    }


def _named(rules: tuple[Rule, ...], name: str, args: Arguments) -> dict[str, Any]:
    rule = next(rule for rule in rules if rule.name == name)
    return {"action": name, "arguments": _arguments(rule, args)}


def _arguments(rule: Rule, args: Arguments) -> dict[str, Any]:
    """Arguments by name as JSON: numbers, truth values, sorted lists for sets."""
    made: dict[str, Any] = {}
    for parameter, value in zip(rule.declared.parameters, args, strict=True):
        if isinstance(parameter.type, Bool):
            made[parameter.name] = bool(value)
        elif isinstance(parameter.type, SetOf):
            made[parameter.name] = [i for i in range(value.bit_length()) if value >> i & 1]
        else:
            made[parameter.name] = value
    return made


def _state(bound: BoundSpec, trace: Trace, number: int, *, mbt: bool) -> dict[str, Any]:
    state = trace.states[number]
    meta: dict[str, Any] = {"index": number}
    action = "init"
    given: dict[str, Any] = {}
    if number:
        step = trace.steps[number - 1]
        meta |= _named(bound.actions, step.action, step.arguments)
        meta["changed"] = [path for path, _, _ in changes(bound.shape, trace.states[number - 1], state)]
        action, given = step.action, meta["arguments"]
    elif trace.start is not None:
        meta |= _named(bound.inits, *trace.start)
        action, given = trace.start[0], meta["arguments"]
    values = _variables(bound, state)
    if mbt:
        values |= {ACTION_TAKEN: action, NONDET_PICKS: _picks(bound, given)}
    return {"#meta": meta, **values}


def _variables(bound: BoundSpec, state: State) -> dict[str, Any]:
    return {name: to_itf(inner, state, offset) for name, offset, inner in bound.shape.fields}


def _pick_types(bound: BoundSpec) -> dict[str, str]:
    """The type of each parameter name over all actions; names with two types are left out: ITF is typed."""
    types: dict[str, set[str]] = {}
    for rule in (*bound.inits, *bound.actions):
        for parameter in rule.declared.parameters:
            written = parameter.type
            shown = "Bool" if isinstance(written, Bool) else "Set(Int)" if isinstance(written, SetOf) else "Int"
            types.setdefault(parameter.name, set()).add(shown)
    return {name: found.pop() for name, found in types.items() if len(found) == 1}


def _picks(bound: BoundSpec, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every parameter name with Some of its choice in this transition, or None."""
    return {
        name: {"tag": "Some", "value": _pick(given[name])} if name in given else {"tag": "None", "value": UNIT}
        for name in _pick_types(bound)
    }


def _pick(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    return {"#set": [big(i) for i in value]} if is_list(value) else big(value)
