"""Builds a wheel by way of a source archive, installs it in an empty environment, and runs every verb of it there.

The environment has the releases of requirements/run.txt, no torch, and the commands run far from the checkout.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("spec", "checker", "impl", "traces")
PRODUCER = "kv-role=kv_producer,steps-in-flight=2,enable-prefix-caching=0"
EXAMPLE = str(ROOT / "examples" / "decode-consumer.yaml")

# Each real run: the exit code, and the words after `fencepost`. A trace written by one run is read by later ones.
RUNS: list[tuple[int, list[str]]] = [
    (1, ["check", EXAMPLE, "--profile", "vllm-0.23", "--trace-out", "found.itf.json"]),
    (1, ["check", EXAMPLE, "--profile", "vllm-0.27", "--json"]),
    (0, ["check", EXAMPLE, "--profile", "vllm-0.33"]),
    (1, ["check", "--fault", "B01"]),
    (0, ["replay", "found.itf.json"]),
    (0, ["explain", "found.itf.json"]),
    (0, ["conform", "--target", "reference", "--fault", "B01"]),
    (1, ["conform", "--target", "reference", "--fault", "B11", "--target-bounds", "uncached-free-order=head"]),
    (0, ["conform", "--target", "reference", "--bounds", "requests=2", "--random", "2k", "--log", "run.jsonl"]),
    (0, ["validate", "run.jsonl", "--spec", "kv", "--bounds", "requests=2"]),
    (0, ["prove", "fence", "-q"]),
    (1, ["prove", "kv", "--fault", "B11", "--method", "bmc", "--max-depth", "8"]),
    (1, ["prove", "kv", "--find-configs", "--profile", "vllm-0.33", "--bounds", PRODUCER, "-q"]),
    (0, ["models"]),
    (0, ["vllm", "list"]),
    (2, ["vllm", "fetch", "0.33.0", "--wheel", "missing.whl"]),
    (2, ["audit", "--vllm", "missing"]),
    (0, ["doctor"]),
    (2, ["check", "missing.yaml"]),
]

LIST_VERBS = """
from fencepost.checker.cli.main import VERBS
print(*VERBS)
"""


def build(folder: Path) -> Path:
    """Builds the source archive, and the wheel from it; returns the wheel."""
    # Setuptools packs what an older listing names, also files that are no longer there.
    shutil.rmtree(ROOT / "fencepost.egg-info", ignore_errors=True)
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(ROOT / "fencepost.egg-info")
    (wheel,) = folder.glob("*.whl")
    return wheel


def missing_files(wheel: Path) -> list[str]:
    """Returns the files of the rooms that are not in the wheel, and files of the wheel outside of our import name."""
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    paths = (path for room in ROOMS for path in (ROOT / room).rglob("*"))
    ours = {f"fencepost/{path.relative_to(ROOT)}" for path in paths if path.is_file() and path.suffix != ".pyc"}
    return sorted(ours ^ held)


class Environment:
    """An empty virtual environment in a folder, with the wheel installed."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        """Creates it, and installs the wheel with the pinned releases."""
        self.home = folder / "home"
        self.home.mkdir()
        self.bin = folder / "env" / "bin"
        venv.create(folder / "env", with_pip=True)
        pip = [str(self.bin / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "-qq"]
        subprocess.run([*pip, "--constraint", str(ROOT / "requirements" / "run.txt"), str(wheel)], check=True)

    def run(self, command: str, *words: str) -> tuple[int, str]:
        """Runs a command of this environment in its home folder; returns the exit code and all it printed."""
        variables = {"PATH": f"{self.bin}{os.pathsep}{os.defpath}", "HOME": str(self.home), "COLUMNS": "120"}
        done = subprocess.run(
            [str(self.bin / command), *words],
            cwd=self.home,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout


def failures_of(environment: Environment) -> list[str]:
    """Runs every verb, its help and the runs above; returns what did not end as expected."""
    code, verbs = environment.run("python", "-c", LIST_VERBS)
    if code:
        return [f"the verbs cannot be listed:\n{verbs}"]
    failures = [f"no run for the verb {verb}" for verb in verbs.split() if all(words[0] != verb for _, words in RUNS)]
    helps = [(0, ["--help"]), (0, ["--version"]), *((0, [verb, "--help"]) for verb in verbs.split())]
    for expected, words in [*helps, *RUNS]:
        code, output = environment.run("fencepost", *words)
        print(f"exit code {code}  fencepost {' '.join(words)}", flush=True)
        if code != expected or "Traceback (most recent call last)" in output:
            failures.append(f"fencepost {' '.join(words)}: exit code {code}, expected {expected}\n{output}")
    return failures


def main() -> int:
    """Returns 0 when the wheel is complete and every run ended as expected."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder)
        print(f"built {wheel.name}", flush=True)
        failures = [f"{path}: only in one of the checkout and the wheel" for path in missing_files(wheel)]
        failures += failures_of(Environment(folder, wheel))
    print("\n".join(failures) if failures else "the wheel runs every verb in an empty environment")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
