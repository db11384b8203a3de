"""The options of `fencepost conform`, one type each; limits and output are those of `fencepost check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer


def _option(panel: str, help: str, *names: str, metavar: str | None = None, **more: Any) -> Any:
    settings: dict[str, Any] = {"show_default": False, **more}
    return typer.Option(*names, help=help, rich_help_panel=panel, metavar=metavar, **settings)


MODEL, SEARCH, RANDOM, COVERAGE, OUTPUT = "Model", "Search", "Random runs", "Coverage", "Output"
LIMITS = "Limits of each row (reached means UNDETERMINED, exit code 3)"

SpecWord = Annotated[
    str,
    typer.Argument(metavar="[SPEC]", help="The spec: kv (the default), or a spec of yours (.py).", show_default=False),
]
TargetName = Annotated[
    str,
    _option(
        MODEL,
        "The implementation: `reference` (impl/engine), a vLLM release (docs/vllm.md), or the driver class in a file of yours "
        "(docs/conform.md).",
        "--target",
        metavar="reference | vllm==VERSION | vllm==FOLDER | FILE.py:CLASS",
    ),
]
Profile = Annotated[
    str | None,
    _option(MODEL, "Which release of vLLM both follow; without --bounds, every row of the manifest for it."),
]
Fault = Annotated[
    str | None,
    _option(MODEL, "A known bug, put back in both; without --bounds, at the bounds of the manifest.", metavar="ID"),
]
Everything = Annotated[bool, _option(MODEL, "Every row of the manifest: all profiles, all faults.", "--all")]
Quick = Annotated[
    bool, _option(MODEL, "Of these rows only the small ones: at most 10,000 transitions are recorded for them.", "--quick")
]
Bounds = Annotated[
    list[str] | None,
    _option(MODEL, "Bounds of your own instead of the rows of the manifest. May be repeated.", metavar="NAME=VALUE,…"),
]
TargetBounds = Annotated[
    list[str] | None,
    _option(
        MODEL,
        "Values that only the implementation gets: it differs on purpose, and conform should find it.",
        "--target-bounds",
        metavar="NAME=VALUE,…",
    ),
]
Symmetry = Annotated[
    Literal["on", "off"],
    _option(
        SEARCH,
        "Whether members that the spec does not tell apart stand for each other, in the implementation too. off: every "
        "naming is compared, too, which finds code that is not symmetric.",
        show_default=True,
    ),
]
Workers = Annotated[
    int | None,
    _option(
        SEARCH,
        "Processes. Default: one a core, and one for a driver of yours (it is forked). Results do not depend on it.",
        metavar="N",
        min=1,
        max=1024,
    ),
]
Random = Annotated[
    str | None,
    _option(
        RANDOM,
        "Compare so many transitions of random runs, at the large sizes of the manifest (or --bounds), such as 100k.",
        metavar="N",
    ),
]
Seed = Annotated[
    int | None, _option(RANDOM, "What the runs are drawn from; the same seed draws the same. Default: 0.", metavar="N", min=0)
]
Log = Annotated[
    Path | None,
    _option(
        RANDOM, "Write the events of the first run as FILE, a log for `fencepost validate` (docs/logs.md).", metavar="FILE"
    ),
]
Coverage = Annotated[
    bool,
    _option(
        COVERAGE,
        "Report which lines and branches of the implementation the compared transitions run through, and why not the others.",
        "--coverage",
    ),
]
Measure = Annotated[
    list[Path] | None,
    _option(
        COVERAGE,
        "The file or folder to look at. Default: all of the reference implementation; of a driver of yours the files in its "
        "folder that its events run through. May be repeated.",
        metavar="PATH",
    ),
]
MaxStates = Annotated[str | None, _option(LIMITS, "Pairs of a spec state and an implementation state.", metavar="N")]
MaxDepth = Annotated[int | None, _option(LIMITS, "Transitions from an initial state.", metavar="N", min=0)]
MaxTime = Annotated[str | None, _option(LIMITS, "Time, such as 30s or 5min.", metavar="TIME")]
MaxMemory = Annotated[str | None, _option(LIMITS, "Memory of this process, such as 2GiB.", metavar="SIZE")]
Json = Annotated[bool, _option(OUTPUT, "Print the whole result as one JSON object (docs/json-result.md).", "--json")]
TraceOut = Annotated[
    Path | None,
    _option(
        OUTPUT,
        "Write the shortest trace to the first difference as FILE, usually NAME.itf.json (docs/trace-format.md).",
        metavar="FILE",
    ),
]
Quiet = Annotated[bool, _option(OUTPUT, "Print the verdicts only, and no progress.", "--quiet", "-q")]
Verbose = Annotated[
    bool,
    _option(OUTPUT, "Print every bound, how often each action was taken, and whole states of a trace.", "--verbose", "-v"),
]
