"""`fencepost prove fence`: the fence and the free queue, for any number of requests, blocks and steps."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .check import Output

WORD = "fence"
"""What is proved where this is the target."""


def run(output: Output, models: Sequence[object], query_time: str, certificate: Path | None) -> int:
    """Prove, print and write what was asked for; returns the exit code. `models` are options that are about models."""
    import json

    from ...traces.files import write_whole
    from ..prove.protocol_certificate import certificate as obligations
    from ..prove.protocol_fence import PROVED, prove_fence
    from ..prove.protocol_report import EXIT_CODES, document_of_fence, print_fence, verdict_of_fence
    from ..report.terminal import console
    from .units import seconds

    if any(models):
        raise UsageError("prove fence is about any size; it takes --query-time, --certificate, --json, -q and -v only")
    found = prove_fence(seconds(query_time, "--query-time"))
    if output.json:
        print(json.dumps(document_of_fence(found), indent=2))
    elif output.quiet:
        verdict_of_fence(console(), found)
    else:
        print_fence(console(), found, verbose=output.verbose)
    code = EXIT_CODES[found.verdict]
    if certificate is not None and code == 0:
        write_whole(certificate, obligations(*PROVED))
    elif certificate is not None:
        print(f"note: it is not proved, so {certificate} is not written", file=sys.stderr)
    return code
