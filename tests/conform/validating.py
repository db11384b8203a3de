"""Logs that are written and validated in one call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fencepost.checker.conform.log import Log
from fencepost.checker.conform.validate import Validation, validate
from fencepost.spec.lang import BoundSpec, load_module

KV = BoundSpec(load_module("fencepost.spec.kv.kv", "kv"), {"requests": 2, "blocks": 3, "prompt-tokens": 2})


def check(folder: Path, bound: BoundSpec, lines: list[str], *unlogged: str, **more: Any) -> Validation:
    """Validate lines."""
    path = folder / "a.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return validate(Log(path, bound), [r for r in bound.actions if r.name in unlogged], **more)
