"""`fencepost check … --target NAME`: the search of an implementation, and what came out."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from .clock import since_start
from .drivers import RELEASE, Implementation, find, profile_for
from .driving import driving
from .errors import UsageError

if TYPE_CHECKING:
    from ...traces.driver import Driver
    from ..conform.search import Searched
    from ..model import Options
    from .check import Output
    from .target import Target, Wanted


def chosen(name: str | None, wanted: Wanted, engine: str, *, compare: bool) -> tuple[Implementation | None, Wanted]:
    """The implementation of this name, if one is to be searched, and what is wanted of it.

    A release of vLLM has by default its own profile. `UsageError` for options that are about searches of a spec.
    """
    if name is None:
        return None, wanted
    if engine != "native" or compare:
        raise UsageError("--engine and --check-symmetry are for searches of the spec; leave them out with --target")
    word = wanted.words[0] if wanted.words else "kv"
    implementation = find(name, Path(word).stem if word.endswith(".py") else "kv")
    if name.startswith(RELEASE) and not wanted.profile and not wanted.fault:
        wanted = replace(wanted, profile=profile_for(implementation))
    return implementation, wanted


def run(found: Target, implementation: Implementation, options: Options, output: Output) -> int:
    """Search an implementation, print what came out, and return the exit code."""
    from ..conform.search_report import Subject
    from .present import introduce, present

    with redirect_stdout(sys.stderr):  # what an implementation prints is no part of the report
        driver = implementation.make(found.model.bound.values)
    if not output.json and not output.quiet:
        introduce(found, verbose=output.verbose, searched=(implementation.name, driver.title))
    start = since_start()
    searched = _search(found, implementation, driver, options, output)
    present(found, searched.result, output, start, Subject(implementation.name, searched))
    return searched.result.exit_code


def _search(found: Target, implementation: Implementation, driver: Driver, options: Options, output: Output) -> Searched:
    from ..conform.search import search
    from ..explore.memory import default_budget
    from ..explore.native.memory import processors

    workers = options.threads or (1 if implementation.path is not None else processors())
    most = options.limits.max_bytes or default_budget()
    with driving(implementation, replace(options.limits, max_bytes=most), quiet=output.quiet) as run:
        return search(found.model, driver, replace(options, limits=run.limits), run.progress, workers=workers)
