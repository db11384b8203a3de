"""`fencepost conform`: an implementation held against the spec on every transition within bounds."""

from __future__ import annotations

import typer

from . import conform_options as given


def conform(
    target: given.TargetName,
    spec: given.SpecWord = "kv",
    profile: given.Profile = None,
    fault: given.Fault = None,
    everything: given.Everything = False,
    quick: given.Quick = False,
    bounds: given.Bounds = None,
    target_bounds: given.TargetBounds = None,
    symmetry: given.Symmetry = "on",
    workers: given.Workers = None,
    random: given.Random = None,
    seed: given.Seed = None,
    log: given.Log = None,
    coverage: given.Coverage = False,
    measure: given.Measure = None,
    max_states: given.MaxStates = None,
    max_depth: given.MaxDepth = None,
    max_time: given.MaxTime = None,
    max_memory: given.MaxMemory = None,
    json: given.Json = False,
    trace_out: given.TraceOut = None,
    quiet: given.Quiet = False,
    verbose: given.Verbose = False,
) -> None:
    """Hold an implementation against the spec: every transition is compared, from every state of both.

    Exit codes: 0 HOLDS, 1 VIOLATED (they differ), 2 usage, spec, driver or input error, 3 UNDETERMINED, 4 internal error.
    """
    from .check import Output, limits_of
    from .conform_coverage import Wish
    from .conform_how import how
    from .conform_session import Asked, Session

    output = Output(json, trace_out, False, quiet, verbose)
    output.validate(spec, target.rpartition(":")[0], log=log)
    asked = Asked(spec, profile, fault, tuple(bounds or ()), tuple(target_bounds or ()), everything, random is not None, quick)
    chosen = how(symmetry, workers, random, seed, log, {"--max-states": max_states, "--max-depth": max_depth})
    wish, limits = Wish.of(coverage, measure, workers, random), limits_of(max_states, max_depth, max_time, max_memory)
    raise typer.Exit(Session.of(target, asked, output, limits, chosen, wish).run())
