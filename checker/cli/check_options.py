"""The options of `fencepost check`, one type each: what they are called, what they take, and what help says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer


def option(panel: str, help: str, *names: str, metavar: str | None = None, **more: Any) -> Any:
    """An option in a panel of the help; defaults are said in words where they are not plain."""
    settings: dict[str, Any] = {"show_default": False, **more}
    return typer.Option(*names, help=help, rich_help_panel=panel, metavar=metavar, **settings)


MODEL, SEARCH, LIMITS, OUTPUT = "Model", "Search", "Limits (reached means UNDETERMINED, exit code 3)", "Output"

TargetWords = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TARGET | -- vllm serve …",
        help="A vLLM config (.yaml), a spec (.py), or the name of a shipped spec (kv); or, after --, a command line that "
        "starts vLLM.",
        show_default=False,
    ),
]
Profile = Annotated[
    str | None,
    option(
        MODEL,
        "Which release of vLLM the KV spec follows (see `fencepost models`). For a config, the default is that of the vLLM "
        "installed here, else the newest one modelled.",
    ),
]
Fault = Annotated[
    str | None,
    option(
        MODEL,
        "Check a known bug (see `fencepost models`) at its own bounds, for the property that it breaks.",
        metavar="ID",
    ),
]
Bounds = Annotated[
    list[str] | None,
    option(
        MODEL,
        "Values for bounds and switches, over those of the config or spec. May be repeated.",
        metavar="NAME=VALUE,…",
    ),
]
Properties = Annotated[
    list[str] | None,
    option(MODEL, "Check only this property (or `deadlock`). May be repeated.", "--property", metavar="NAME"),
]
Implementation = Annotated[
    str | None,
    option(
        MODEL,
        "Search this implementation instead of the spec: its own states, and the spec's properties "
        "(docs/search-implementation.md). `reference`, a release of vLLM, or the driver class in a file of yours.",
        "--target",
        metavar="NAME | FILE.py:CLASS",
    ),
]
Refines = Annotated[
    str | None,
    option(
        MODEL,
        "Hold every transition against this protocol of any size (`fence`), by the mapping that the spec declares, instead of "
        "checking properties (docs/fence.md).",
        "--refines",
        metavar="NAME",
    ),
]
Engine = Annotated[
    Literal["native", "reference"],
    option(
        SEARCH,
        "native: compiled, all cores. reference: plain Python, slow; also decides progress properties.",
        show_default=True,
    ),
]
Symmetry = Annotated[
    Literal["on", "off"],
    option(
        SEARCH,
        "Whether states that differ only in the names of interchangeable members count as one.",
        show_default=True,
    ),
]
CheckSymmetry = Annotated[bool, option(SEARCH, "Search with and without symmetry and compare the results.", "--check-symmetry")]
Deadlock = Annotated[
    Literal["off", "stuck"],
    option(
        SEARCH,
        "stuck: a state in which no action is enabled is a violation. off: it is only counted.",
        show_default=True,
    ),
]
KeepGoing = Annotated[
    bool,
    option(SEARCH, "Search on after a violation; show a shortest trace for each violated property.", "--keep-going"),
]
Threads = Annotated[
    int | None,
    option(
        SEARCH,
        "Threads of the native engine; with --target, processes. Default: one a core (one for a driver of yours, which "
        "would be forked). Results do not depend on it.",
        min=1,
        max=1024,
    ),
]
MaxStates = Annotated[str | None, option(LIMITS, "Distinct states, such as 5M.", metavar="N")]
MaxDepth = Annotated[int | None, option(LIMITS, "Transitions from an initial state.", metavar="N", min=0)]
MaxTime = Annotated[str | None, option(LIMITS, "Time, such as 30s or 5min.", metavar="TIME")]
MaxMemory = Annotated[
    str | None,
    option(
        LIMITS,
        "Memory of this process, such as 2GiB. Default: nine tenths of what is free at the start.",
        metavar="SIZE",
    ),
]
Json = Annotated[bool, option(OUTPUT, "Print the whole result as one JSON object (docs/json-result.md).", "--json")]
TraceOut = Annotated[
    Path | None,
    option(
        OUTPUT,
        "Write the shortest counterexample as FILE, usually NAME.itf.json (docs/trace-format.md).",
        metavar="FILE",
    ),
]
Mbt = Annotated[bool, option(OUTPUT, "Add Quint's mbt:: variables to the states of --trace-out.", "--mbt")]
Quiet = Annotated[bool, option(OUTPUT, "Print the verdict only, and no progress.", "--quiet", "-q")]
Verbose = Annotated[
    bool,
    option(
        OUTPUT,
        "Print the whole table of the derived model, and coverage property by property.",
        "--verbose",
        "-v",
    ),
]
