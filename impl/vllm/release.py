"""Which vLLM an implementation under test comes from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Origin = Literal["fetched", "checkout", "installed", "folder"]


@dataclass(frozen=True)
class Release:
    """One vLLM: its version, the folder that holds `vllm/` (to put in front of sys.path), and how it came there."""

    version: str
    path: Path
    origin: Origin

    @property
    def package(self) -> Path:
        """The folder `vllm/` itself."""
        return self.path / "vllm"

    def __str__(self) -> str:
        return f"vLLM {self.version} ({self.origin}, {self.path})"
