"""`fencepost audit`: a vLLM fork or plugin, or any implementation: what it behaves as, and what it violates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import check_options as given
from . import conform_options

MAX_STATES, MAX_TIME = "50k", "5min"
SUBJECT = "What is audited"


def _option(panel: str, help: str, *names: str, metavar: str | None = None, shown: bool = False) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, metavar=metavar, show_default=shown)


Vllm = Annotated[
    str | None,
    _option(
        SUBJECT,
        "A vLLM checkout or installation, or the version of a release that was fetched. Default: the vLLM of this Python.",
        "--vllm",
        metavar="PATH | VERSION",
    ),
]
TargetName = Annotated[
    str | None,
    _option(SUBJECT, "Any target of `fencepost conform`, in place of --vllm.", "--target", metavar="NAME | FILE.py:CLASS"),
]
Config = Annotated[
    Path | None,
    _option(
        SUBJECT,
        "A config of `vllm serve`: lockstep and properties at the bounds derived from it, in place of the small rows.",
        "--config",
        metavar="FILE",
    ),
]
SchedulerClass = Annotated[
    str | None,
    _option(
        SUBJECT,
        "A scheduler class of your own, importable from here or from the fork, in place of vLLM's.",
        "--scheduler-cls",
        metavar="MODULE:CLASS",
    ),
]
Connector = Annotated[
    str | None,
    _option(SUBJECT, "A connector class of your own; its scheduler side is driven.", "--kv-connector", metavar="MODULE:CLASS"),
]
LIMITS = "Limits (reached means UNDETERMINED, exit code 3)"
MaxStates = Annotated[str, _option(LIMITS, "States of each experiment and each row.", "--max-states", metavar="N", shown=True)]
MaxTime = Annotated[
    str,
    _option(LIMITS, "Time of each section: classification, lockstep, properties.", "--max-time", metavar="TIME", shown=True),
]


def audit(
    vllm: Vllm = None,
    target: TargetName = None,
    config: Config = None,
    scheduler_cls: SchedulerClass = None,
    kv_connector: Connector = None,
    target_bounds: conform_options.TargetBounds = None,
    max_states: MaxStates = MAX_STATES,
    max_time: MaxTime = MAX_TIME,
    json: given.Json = False,
    quiet: given.Quiet = False,
    verbose: conform_options.Verbose = False,
) -> None:
    """Audit a vLLM fork or plugin: which release it behaves as, where it differs, which properties it violates.

    Exit codes: 0 HOLDS, 1 VIOLATED (a property is violated, or it differs from what it behaves as), 2 usage or input error,
    3 UNDETERMINED (a limit was reached, a section failed, or something was put to the test at no row), 4 internal error.
    """
    from .audit_session import Asked, AuditSession
    from .check import Output, limits_of

    Output(json, None, False, quiet, verbose).validate()
    limits = (("--max-states", max_states, MAX_STATES), ("--max-time", max_time, MAX_TIME))
    words = [word for option, value, usual in limits if value != usual for word in (option, value)]
    asked = Asked(vllm, target, config, scheduler_cls, kv_connector, tuple(target_bounds or ()), tuple(words))
    session = AuditSession.of(asked, limits_of(max_states, None, max_time, None), quiet=quiet or json, verbose=verbose)
    raise typer.Exit(session.run(json=json, quiet=quiet))
