"""What a person can do wrong on the command line, and the exit codes of everything."""

from __future__ import annotations

HOLDS, VIOLATED, INPUT_ERROR, UNDETERMINED, INTERNAL_ERROR = range(5)
"""Exit codes: 0 holds, 1 violated, 2 usage, spec or input error, 3 undetermined, 4 internal error."""


class UsageError(Exception):
    """A command that cannot be carried out as it was given; the message says why and what to do."""
