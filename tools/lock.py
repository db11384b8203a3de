"""Writes requirements/*.txt: the exact releases that make installs, one file a level, each on top of the one before.

Run it with the oldest supported Python (3.11), so that the releases suit newer ones too. Archives are not hashed: one
release has other files for each platform and Python.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# setuptools is there to install the checkout itself without a second, isolated download.
LEVELS = {"run": [".", "setuptools>=77"], "test": [".[test]"], "dev": [".[dev]"]}


def resolve(requirements: list[str], constraints: Path) -> dict[str, str]:
    """Returns the release of every package that pip would install for these requirements."""
    command = [sys.executable, "-m", "pip", "install", "-qq", "--dry-run", "--ignore-installed", "--report", "-"]
    done = subprocess.run(
        [*command, "--constraint", str(constraints), *requirements], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    items = [item["metadata"] for item in json.loads(done.stdout)["install"]]
    return {item["name"].lower().replace("_", "-"): item["version"] for item in items if item["name"] != "fencepost"}


def main() -> None:
    """Resolves each level against the pins of the levels before it, and writes what it adds."""
    folder = ROOT / "requirements"
    pinned: dict[str, str] = {}
    constraints = folder / ".pinned.txt"
    try:
        for level, requirements in LEVELS.items():
            constraints.write_text("".join(f"{name}=={version}\n" for name, version in pinned.items()))
            added = {n: v for n, v in resolve(requirements, constraints).items() if n not in pinned}
            pinned |= added
            lines = [f"{name}=={version}\n" for name, version in sorted(added.items())]
            (folder / f"{level}.txt").write_text("# Written by `make lock`.\n" + "".join(lines))
    finally:
        constraints.unlink(missing_ok=True)
        shutil.rmtree(ROOT / "fencepost.egg-info", ignore_errors=True)


if __name__ == "__main__":
    main()
