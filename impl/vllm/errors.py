"""What can be wrong with a vLLM release: it is not there, it is damaged, or its source is laid out otherwise."""

from __future__ import annotations


class ReleaseError(Exception):
    """A release that cannot be used; the message names what is wrong, where, and the fix."""

    exit_code = 2
    """What the command line ends with."""
