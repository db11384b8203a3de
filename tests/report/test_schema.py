"""The JSON result: every field is documented, and says what the result says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.cli.main import main
from fencepost.checker.report.schema import ResultDocument
from fencepost.traces import recorded
from pydantic import BaseModel

ROOT = Path(__file__).parents[2]
LENDING = ROOT / "tests" / "cli" / "specs" / "lending.py"


def result(capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    """The result of a check as JSON; it validates against the schema."""
    code = main(["check", str(LENDING), "--engine", "reference", "--json", *more])
    made = json.loads(capsys.readouterr().out)
    assert ResultDocument.model_validate(made).exit_code == code
    return made


def test_a_violation(capsys: pytest.CaptureFixture[str]) -> None:
    made = result(capsys)
    assert made["verdict"] == "VIOLATED"
    assert (made["distinct"], made["generated"], made["depth"], made["symmetry"]) == (6, 12, 3, True)
    assert made["model"]["bounds"] == {"requests": 2, "blocks": 2, "fence": "off"}
    first = made["properties"][0]
    assert (first["name"], first["status"], first["depth"]) == ("no-free-block-is-written", "violated", 3)
    assert made["replay"].startswith("fencepost replay lending:")
    assert made["trace"] == first["trace"]
    assert len(recorded.parse(json.dumps(made["trace"]), "x").steps) == 3
    assert set(made["seconds"]) == {"start", "compile", "search", "total"}
    assert made["peak_memory_bytes"] >= made["start_memory_bytes"] > 1_000_000


def test_a_pass(capsys: pytest.CaptureFixture[str]) -> None:
    made = result(capsys, "--bounds", "fence=on", "--symmetry", "off")
    assert (made["verdict"], made["exit_code"], made["trace"], made["replay"]) == ("HOLDS", 0, None, None)
    assert (made["distinct"], made["symmetry"]) == (18, False)
    assert sum(made["per_depth"]) == 18
    assert [p["status"] for p in made["properties"]] == ["holds", "reached"]


def test_a_limit(capsys: pytest.CaptureFixture[str]) -> None:
    made = result(capsys, "--bounds", "fence=on", "--max-depth", "1")
    assert (made["verdict"], made["exit_code"]) == ("UNDETERMINED", 3)
    assert made["reason"] == made["cut"] != None  # noqa: E711 - a chain: equal, and set


def test_every_field_is_documented() -> None:
    page = (ROOT / "docs" / "json-result.md").read_text()
    words = set(re.findall(r"`(\w+)`", page))
    assert set(fields(ResultDocument)) <= words


def fields(model: type[BaseModel]) -> Iterator[str]:
    """Names of the fields of a model and of the models inside it."""
    for name, field in model.model_fields.items():
        yield name
        for inner in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                yield from fields(inner)
