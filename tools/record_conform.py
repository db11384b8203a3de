"""Writes figures into the manifest of `fencepost conform`:

    fencepost conform --target reference --all --json > all.json; python tools/record_conform.py all.json

Several files are recorded together, and only rows that agree. Read the diff: a figure that changes without a change of the
spec is a defect.
"""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

MANIFEST = Path(__file__).resolve().parent.parent / "spec" / "kv" / "data" / "conform.yaml"
FIGURES = ("spec_states", "product_states", "transitions", "depth")


def recorded(text: str, figures: dict[tuple[str, str], dict[str, int]]) -> str:
    """The manifest with these figures, by profile or fault and by name (of a fault: none), in place of those it has."""
    lines: list[str] = []
    name = fault = ""
    for line in text.split("\n"):
        key, _, value = line.strip().partition(":")
        if line.startswith("  - "):
            row: dict[str, str] = yaml.safe_load(line.strip())[0]
            name, fault = row.get("name", ""), row.get("fault", "")
        elif key == "name" and fault:
            name = yaml.safe_load(value)
        found = figures.get((fault if key == "figures" else key, name)) if value.startswith(" {") else None
        if found is not None:
            made = ", ".join(f"{figure}: {found[figure]}" for figure in FIGURES)
            line = f"{line[: line.index(':')]}: {{{made}}}"
        lines.append(line)
    return "\n".join(lines)


def figures_of(result: dict[str, Any]) -> dict[tuple[str, str], dict[str, int]]:
    """The figures of the rows that agree; a fault's row at its own bounds has no name in the manifest."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    for row in result["rows"]:
        if row["verdict"] == "HOLDS":
            unnamed = row["fault"] and row["name"].startswith("fault ")
            found[row["fault"] or row["profile"], "" if unnamed else row["name"]] = {name: row[name] for name in FIGURES}
    return found


def main() -> None:
    """Record the results in the files named on the command line."""
    figures: dict[tuple[str, str], dict[str, int]] = {}
    for name in sys.argv[1:]:
        figures |= figures_of(json.loads(Path(name).read_text()))
    MANIFEST.write_text(recorded(MANIFEST.read_text(), figures))


if __name__ == "__main__":
    main()
