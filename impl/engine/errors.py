"""What stops the engine: broken assumptions of its own or its worker's, never a mistake of a caller."""

from __future__ import annotations

from typing import ClassVar


class EngineError(Exception):
    """The engine stops; `kind` is the error's name for logs and monitors."""

    kind: ClassVar[str] = "ENGINE"


class PlaceholderUnderflow(EngineError):
    """A sampled token finds no output placeholder left to take the place of (vLLM #48245)."""

    kind: ClassVar[str] = "PLACEHOLDERS"


class PoolExhausted(EngineError):
    """More blocks are asked of the pool than are free."""

    kind: ClassVar[str] = "ALLOCATION"


class DoubleFree(EngineError):
    """A reference is given back that nobody holds."""

    kind: ClassVar[str] = "DOUBLE_FREE"


class UnknownCompletion(EngineError):
    """A transfer is reported complete for a request that the scheduler does not know."""

    kind: ClassVar[str] = "COMPLETION"


class ResetWhileHeld(EngineError):
    """The prefix cache is reset by preempting everybody, and blocks are still held afterwards."""

    kind: ClassVar[str] = "RESET"


class InternalError(EngineError):
    """Anything else that went wrong in the midst of an event: its cause."""

    kind: ClassVar[str] = "INTERNAL"
