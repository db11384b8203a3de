"""Writes requirements/*.txt: the exact releases that make installs, one file a level, each on top of those it names.

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
# torch: the release of which the machines that run the tests have the build without CUDA.
LEVELS = {
    "run": [".", "setuptools>=77"],
    "test": [".[test]"],
    "dev": [".[dev]"],
    "vllm": [".[vllm]", "torch==2.13.0"],
}
BELOW = {"run": [], "test": ["run"], "dev": ["run", "test"], "vllm": ["run", "test"]}


def resolve(requirements: list[str], constraints: Path) -> dict[str, str]:
    """Returns the release of every package that pip would install for these requirements, without local labels (+cpu)."""
    command = [sys.executable, "-m", "pip", "install", "-qq", "--dry-run", "--ignore-installed", "--report", "-"]
    done = subprocess.run(
        [*command, "--constraint", str(constraints), *requirements], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    items = [item["metadata"] for item in json.loads(done.stdout)["install"]]
    versions = {item["name"].lower().replace("_", "-"): item["version"].partition("+")[0] for item in items}
    return {name: version for name, version in versions.items() if name != "fencepost"}


def main() -> None:
    """Resolves each level against all the pins made before it, and writes what it adds to the levels below it."""
    folder = ROOT / "requirements"
    levels: dict[str, dict[str, str]] = {}
    constraints = folder / ".pinned.txt"
    try:
        for level, requirements in LEVELS.items():
            pinned = {name: version for pins in levels.values() for name, version in pins.items()}
            constraints.write_text("".join(f"{name}=={version}\n" for name, version in pinned.items()))
            below = {name for lower in BELOW[level] for name in levels[lower]}
            levels[level] = {n: v for n, v in resolve(requirements, constraints).items() if n not in below}
            lines = [f"{name}=={version}\n" for name, version in sorted(levels[level].items())]
            (folder / f"{level}.txt").write_text("# Written by `make lock`.\n" + "".join(lines))
    finally:
        constraints.unlink(missing_ok=True)
        shutil.rmtree(ROOT / "fencepost.egg-info", ignore_errors=True)


if __name__ == "__main__":
    main()
