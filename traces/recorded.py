"""A trace as it was read from a file: checked for its form, not yet for its fit to a spec."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from .files import TraceError, read_text
from .itf import ACTION_TAKEN, NONDET_PICKS
from .origin import FORMAT, Origin

Instance = tuple[str, Mapping[str, Any]]
"""An action (or initial state) with its arguments by name."""


@dataclass(frozen=True)
class Recorded:
    """A trace file; `origin` is None for a trace of another tool, and a step None where the action is not said."""

    path: str
    origin: Origin | None
    variables: tuple[str, ...]
    states: tuple[Mapping[str, Any], ...]
    start: Instance | None
    steps: tuple[Instance | None, ...]
    loop: int | None


def read(path: Path) -> Recorded:
    """Read a trace file; `TraceError` says what is wrong with it and where."""
    return parse(read_text(path), str(path))


def parse(text: str, path: str) -> Recorded:
    """Check the form of an ITF text."""
    try:
        made = json.loads(text)
    except ValueError as error:
        hint = " (is the file cut off?)" if _cut_off(error, text) else ""
        raise TraceError(f"{path}: is not JSON: {error}{hint}") from None
    except RecursionError:
        raise TraceError(f"{path}: is not a trace: nested too deeply") from None
    return _Reader(path).trace(made)


def _cut_off(error: ValueError, text: str) -> bool:
    return isinstance(error, json.JSONDecodeError) and (
        error.pos >= len(text.rstrip()) - 1 or error.msg.startswith("Unterminated")
    )


class _Reader:
    """Walks through an ITF object; every complaint names the file and the place in it."""

    def __init__(self, path: str) -> None:
        self.path = path

    def fail(self, where: str, what: str) -> NoReturn:
        raise TraceError(f"{self.path}: {where}: {what}")

    def expect(self, value: Any, kind: type | tuple[type, ...], where: str, words: str) -> Any:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
            self.fail(where, f"expected {words}, found {type(value).__name__}")
        return value

    def trace(self, made: Any) -> Recorded:
        if not isinstance(made, dict) or "vars" not in made or "states" not in made:
            raise TraceError(f"{self.path}: is JSON, but no ITF trace: it has no vars and states")
        names = tuple(self.strings(made["vars"], "vars"))
        states = self.expect(made["states"], list, "states", "a list")  # pyright: ignore[reportUnknownMemberType]
        if not states:
            self.fail("states", "a trace has at least one state")
        variables = tuple(name for name in names if name not in (ACTION_TAKEN, NONDET_PICKS))
        for number, state in enumerate(states):
            self.state(state, variables, f"states[{number}]")
        loop = self.loop(made.get("loop"), len(states))  # pyright: ignore[reportUnknownMemberType]
        meta: Any = self.expect(made.get("#meta", {}), dict, "#meta", "an object")  # pyright: ignore[reportUnknownMemberType]
        own = meta.get("fencepost")
        origin = None if own is None else self.origin(own)
        start = None if own is None else self.instance(own.get("init"), "#meta.fencepost.init")
        steps = tuple(self.step(state, f"states[{number}].#meta") for number, state in enumerate(states) if number)
        return Recorded(self.path, origin, variables, tuple(states), start, steps, loop)

    def state(self, state: Any, variables: tuple[str, ...], where: str) -> None:
        self.expect(state, dict, where, "an object")
        missing = [name for name in variables if name not in state]
        if missing:
            self.fail(where, f"has no value for {', '.join(missing)}")

    def loop(self, loop: Any, count: int) -> int | None:
        if loop is None:
            return None
        if not 0 <= self.expect(loop, int, "loop", "the number of a state") < count:
            self.fail("loop", f"{loop} is not the number of a state (0 to {count - 1})")
        return loop

    def step(self, state: Mapping[str, Any], where: str) -> Instance | None:
        meta = self.expect(state.get("#meta", {}), dict, where, "an object")
        return self.instance(meta, where) if "action" in meta else None

    def instance(self, made: Any, where: str) -> Instance | None:
        if made is None:
            return None
        self.expect(made, dict, where, "an object")
        action = self.expect(made.get("action"), str, f"{where}.action", "the name of an action")
        return action, self.expect(made.get("arguments", {}), dict, f"{where}.arguments", "an object")

    def origin(self, own: Any) -> Origin:
        where = "#meta.fencepost"
        self.expect(own, dict, where, "an object")
        written = self.expect(own.get("format"), int, f"{where}.format", "a number")
        if written > FORMAT:
            self.fail(
                f"{where}.format",
                f"the trace has format {written}, written by Fencepost {own.get('version')}; this version reads up to "
                f"format {FORMAT}",
            )
        spec = self.expect(own.get("spec"), dict, f"{where}.spec", "an object")
        bounds = self.expect(own.get("bounds"), dict, f"{where}.bounds", "an object")
        shown = self.expect(own.get("property"), dict, f"{where}.property", "an object")
        return Origin(
            version=self.text(own, "version", where),
            spec=self.text(spec, "name", f"{where}.spec"),
            source=self.maybe(spec, "source", f"{where}.spec"),
            spec_hash=self.text(spec, "sha256", f"{where}.spec"),
            bounds=self.values(bounds.get("values"), f"{where}.bounds.values"),
            bounds_hash=self.text(bounds, "sha256", f"{where}.bounds"),
            property=self.text(shown, "name", f"{where}.property"),
            statement=self.maybe(shown, "statement", f"{where}.property") or "",
            profile=self.maybe(own, "profile", where),
            fault=self.maybe(own, "fault", where),
            engine=self.maybe(own, "engine", where),
        )

    def values(self, made: Any, where: str) -> dict[str, int | str]:
        self.expect(made, dict, where, "an object")
        return {name: self.expect(value, (int, str), f"{where}.{name}", "a number or a name") for name, value in made.items()}

    def text(self, made: Mapping[str, Any], name: str, where: str) -> str:
        return self.expect(made.get(name), str, f"{where}.{name}", "text")

    def maybe(self, made: Mapping[str, Any], name: str, where: str) -> str | None:
        return None if made.get(name) is None else self.text(made, name, where)

    def strings(self, made: Any, where: str) -> list[str]:
        self.expect(made, list, where, "a list of names")
        return [self.expect(name, str, where, "a list of names") for name in made]
