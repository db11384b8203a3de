"""The command `fencepost`: its verbs, and what becomes of errors."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from .errors import INPUT_ERROR, INTERNAL_ERROR, UNDETERMINED, UsageError

VERBS = ("check", "replay", "explain", "models", "doctor")
"""Each is a function in the module of its name."""
CTRL_C = 130
"""What typer makes of a KeyboardInterrupt."""
READER_GONE = 141
"""The exit code where whoever read the output went away, as shells have it for a broken pipe."""


def _version(wanted: bool) -> None:
    if wanted:
        from ...traces.origin import version

        print(f"fencepost {version()}")
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; only with FENCEPOST_DEBUG=1 does an error show a traceback."""
    _replace_what_cannot_be_shown()
    try:
        return _run(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:
        return _interrupted()
    except (BrokenPipeError, SystemExit):  # typer makes the latter of the former
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except Exception as error:
        if os.environ.get("FENCEPOST_DEBUG") == "1":
            import traceback

            traceback.print_exc()
        return _answer(error)


def application(verbs: Sequence[str] = VERBS) -> typer.Typer:
    """The command with some of its verbs: building all of them for each start would cost a tenth of a second."""
    app = typer.Typer(
        name="fencepost",
        help="Checks vLLM KV-cache scheduling for blocks that are handed on while something still uses them.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for verb in verbs:
        module = importlib.import_module(f".{verb}", __package__)
        app.command()(getattr(module, verb))
    app.callback()(_about)
    return app


def _about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    pass


def _interrupted() -> int:
    print("interrupted", file=sys.stderr)
    return UNDETERMINED


def _replace_what_cannot_be_shown() -> None:
    """A terminal that knows no Unicode shows ? instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _run(arguments: list[str]) -> int:
    verbs = arguments[:1] if arguments and arguments[0] in VERBS else VERBS
    command = typer.main.get_command(application(verbs))
    code = command(args=arguments, prog_name="fencepost", standalone_mode=False)
    sys.stdout.flush()
    if code == CTRL_C:
        return _interrupted()
    return code if isinstance(code, int) else 0


def _answer(error: Exception) -> int:
    """Say what went wrong, in one or two lines, and choose the exit code."""
    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, typer.Abort):
        print("interrupted", file=sys.stderr)
        return UNDETERMINED
    show = getattr(error, "format_message", None)
    if show is not None:
        if show():  # no arguments at all: the help was printed, and that says it
            print(f"error: {show()}", file=sys.stderr)
        return INPUT_ERROR
    if _is_input_error(error):
        print(f"error: {error}", file=sys.stderr)
        return INPUT_ERROR
    if isinstance(error, MemoryError):
        print("out of memory: lower the bounds, or give --max-memory a smaller value than is free", file=sys.stderr)
        return UNDETERMINED
    print(f"internal error: {type(error).__name__}: {error}", file=sys.stderr)
    if os.environ.get("FENCEPOST_DEBUG") != "1":
        print("This is a defect of Fencepost. FENCEPOST_DEBUG=1 shows where; please report it.", file=sys.stderr)
    return INTERNAL_ERROR


def _is_input_error(error: Exception) -> bool:
    from ...spec.lang import FencepostSpecError
    from ...traces.files import TraceError
    from ...traces.trace import ReplayError

    if isinstance(error, UsageError | FencepostSpecError | TraceError | ReplayError):
        return True
    return getattr(error, "exit_code", None) == INPUT_ERROR  # the errors of configs, whose module is not imported here


if __name__ == "__main__":
    sys.exit(main())
