"""The command `fencepost`: its verbs, and what becomes of errors.

Nothing that takes time is imported before `main` runs: Ctrl-C during the start must end as cleanly as later.
"""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .errors import INPUT_ERROR, INTERNAL_ERROR, UNDETERMINED, UsageError

if TYPE_CHECKING:
    import typer

VERBS = ("check", "prove", "conform", "validate", "replay", "explain", "audit", "models", "vllm", "doctor")
"""Each is a function in the module of its name, or the commands `app` there."""
CTRL_C = 130
"""What typer makes of a KeyboardInterrupt."""
READER_GONE = 141
"""The exit code where whoever read the output went away, as shells have it for a broken pipe."""
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What writing to a file fails with that takes no more; on standard output that is no defect of ours."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; only with FENCEPOST_DEBUG=1 does an error show a traceback."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    code = _guarded(words)
    if arguments is None:  # this process ends now: what is left to do is not worth another exit code
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _leave_threads(code)
    return code


def _leave_threads(code: int) -> None:
    """End now if an engine under test left threads behind, for which Python would wait."""
    import threading

    if any(not thread.daemon and thread is not threading.main_thread() for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _guarded(words: list[str]) -> int:
    try:
        _repair_streams()
        _refuse_undecodable(words)
        return _run(words)
    except KeyboardInterrupt:
        return _interrupted()
    except (BrokenPipeError, SystemExit):  # typer makes the latter of the former
        _discard_output()
        return READER_GONE
    except Exception as error:
        if os.environ.get("FENCEPOST_DEBUG") == "1":
            import traceback

            traceback.print_exc()
        return _answer(error, words)


def application(verbs: Sequence[str] = VERBS) -> typer.Typer:
    """The command with some of its verbs: building all of them for each start would cost a tenth of a second."""
    import typer

    def show_version(wanted: bool) -> None:
        if wanted:
            from ...traces.origin import version

            print(f"fencepost {version()}")
            raise typer.Exit

    def about(
        version: bool = typer.Option(
            False, "--version", callback=show_version, is_eager=True, help="Print the version and end."
        ),
    ) -> None:
        pass

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
        if hasattr(module, "app"):
            app.add_typer(module.app, name=verb)
        else:
            app.command()(getattr(module, verb))
    app.callback()(about)
    return app


def _interrupted() -> int:
    print("interrupted", file=sys.stderr)
    return UNDETERMINED


def _repair_streams() -> None:
    """A closed stream swallows what is written to it; a terminal that knows no Unicode shows ? instead of failing."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - open until the end
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _refuse_undecodable(words: Sequence[str]) -> None:
    """Refuse names that this locale cannot read: they could be opened, but not shown, recorded or hashed."""
    for word in words:
        if any("\ud800" <= letter <= "\udfff" for letter in word):
            shown = word.encode("utf-8", "replace").decode()
            encoding = sys.getfilesystemencoding()
            raise UsageError(
                f"{shown}: not text in the encoding of this locale ({encoding}); set LC_ALL=C.UTF-8, or rename the file"
            )


def _discard_output() -> None:
    """What is still to be written goes nowhere: the end of the process must not fail on it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: list[str]) -> int:
    import typer

    verbs = arguments[:1] if arguments and arguments[0] in VERBS else VERBS
    command = typer.main.get_command(application(verbs))
    code = command(args=arguments, prog_name="fencepost", standalone_mode=False)
    sys.stdout.flush()
    if code == CTRL_C:
        return _interrupted()
    return code if isinstance(code, int) else 0


def _answer(error: Exception, words: Sequence[str]) -> int:
    """Say what went wrong, in one or two lines, and choose the exit code."""
    import typer

    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, typer.Abort):
        return _interrupted()
    show = getattr(error, "format_message", None)
    if show is not None:
        if show():  # no arguments at all: the help was printed, and that says it
            print(f"error: {show().replace('Value error, ', '')}{_hint(error, words)}", file=sys.stderr)
        return INPUT_ERROR
    if _is_input_error(error):
        print(f"error: {error}", file=sys.stderr)
        return INPUT_ERROR
    if isinstance(error, OSError) and error.filename is None and error.errno in DISK_ERRORS:
        _discard_output()
        print(f"error: the output cannot be written: {error.strerror}", file=sys.stderr)
        return INPUT_ERROR
    if isinstance(error, MemoryError):
        from ..conform.errors import WorkerLost

        words = "out of memory: lower the bounds, or give --max-memory a smaller value than is free"
        print(error if isinstance(error, WorkerLost) else words, file=sys.stderr)
        return UNDETERMINED
    print(f"internal error: {type(error).__name__}: {error}", file=sys.stderr)
    if os.environ.get("FENCEPOST_DEBUG") != "1":
        print("This is a defect of Fencepost. FENCEPOST_DEBUG=1 shows where; please report it.", file=sys.stderr)
    return INTERNAL_ERROR


def _hint(error: Exception, words: Sequence[str]) -> str:
    """What to do about an unknown option that belongs to a pasted command line of vLLM."""
    pasted = any(word == "vllm" or word.endswith("/vllm") or word.startswith("vllm.") for word in words)
    if type(error).__name__ != "NoSuchOption" or not pasted or "--" in words:
        return ""
    return "; a command line of vLLM goes after --, as in: fencepost check -- vllm serve MODEL --…"


def _is_input_error(error: Exception) -> bool:
    from ...spec.lang import FencepostSpecError
    from ...traces.files import TraceError
    from ...traces.trace import ReplayError

    if isinstance(error, UsageError | FencepostSpecError | TraceError | ReplayError):
        return True
    return getattr(error, "exit_code", None) == INPUT_ERROR  # the errors of configs, whose module is not imported here


if __name__ == "__main__":
    sys.exit(main())
