"""`fencepost models`: which specs, profiles and faults there are, and what is expected of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...traces.untyped import is_list, is_object
from ..report.terminal import columns

if TYPE_CHECKING:
    from rich.console import Console


def models(
    json_: Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also list the switches of each profile, and what bounds mean.")
    ] = False,
) -> None:
    """List the specs that come with Fencepost, with their profiles, known faults, and expected results."""
    if json_:
        import json

        print(json.dumps(collected(), indent=2, ensure_ascii=False))
    else:
        _print(verbose=verbose)


def collected() -> dict[str, Any]:
    """Everything as plain data."""
    from dataclasses import asdict

    from .kvdata import faults, load, profiles
    from .target import SHIPPED

    return {
        "specs": {name: _spec(name) for name in SHIPPED},
        "profiles": {name: asdict(profile) for name, profile in profiles().items()},
        "faults": {name: asdict(fault) for name, fault in faults().items()},
        "expected": load("expected"),
    }


def _spec(name: str) -> dict[str, Any]:
    from .target import load_shipped

    spec = load_shipped(name)
    return {
        "doc": spec.doc,
        "bounds": {bound: {"default": b.default, "values": b.describe(), "meaning": b.doc} for bound, b in spec.bounds.items()},
        "actions": [a.name for a in spec.actions],
        "properties": {p.name: {"kind": p.declaration.kind, "statement": " ".join(p.doc.split())} for p in spec.properties},
    }


def _print(*, verbose: bool) -> None:
    from ..report.terminal import console

    out = console()
    data = collected()
    for name, spec in data["specs"].items():
        out.print(f"spec {name}", style="bold")
        out.print(f"  {' '.join(spec['doc'].split())}")
        out.print(f"  {len(spec['actions'])} actions, {len(spec['properties'])} properties")
        if verbose:
            _bounds(out, spec)
    _profiles(out, data, verbose=verbose)
    _faults(out, data)
    _expected(out, data["expected"])


def _bounds(out: Console, spec: dict[str, Any]) -> None:
    table = columns("bound or switch", "default", "values", "meaning")
    for name, bound in spec["bounds"].items():
        table.add_row(name, _text(bound["default"]), bound["values"], bound["meaning"])
    out.print(table)
    out.print()
    table = columns("property", "kind", "statement")
    for name, prop in spec["properties"].items():
        table.add_row(name, prop["kind"], prop["statement"])
    out.print(table)


def _profiles(out: Console, data: dict[str, Any], *, verbose: bool) -> None:
    out.print()
    out.print("profiles (fencepost check … --profile NAME)", style="bold")
    table = columns("name", "title", *(("switches",) if verbose else ()))
    for name, profile in data["profiles"].items():
        switches = ", ".join(f"{switch}={choice}" for switch, choice in profile["switches"].items())
        table.add_row(name, profile["title"], *((switches,) if verbose else ()))
    out.print(table)


def _faults(out: Console, data: dict[str, Any]) -> None:
    out.print()
    out.print("faults (fencepost check --fault ID)", style="bold")
    table = columns("id", "profile", "breaks", "after", "title")
    for name, fault in data["faults"].items():
        table.add_row(name, fault["base"], fault["breaks"], _text(fault["depth"] or None), fault["title"])
    out.print(table)


def _expected(out: Console, expected: Any) -> None:
    """Expected results: a table of whatever fields the rows have."""
    rows = next(filter(is_list, expected.values()), list[Any]())
    if not rows:
        return
    out.print()
    out.print("expected results", style="bold")
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = columns(*names)
    for row in rows:
        table.add_row(*(_text(row.get(name)) for name in names))
    out.print(table)


def _text(value: Any) -> str:
    if is_object(value):
        return ", ".join(f"{k}={v}" for k, v in value.items())
    if is_list(value):
        return ", ".join(str(item) for item in value) or "none"
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else str(value)
