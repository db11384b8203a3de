"""vLLM YAML or command line to model: role, fence gate, steps in flight and sizes, and where each came from."""

from .derived import Derived, derive_from_command, derive_from_file
from .errors import ConfigError, UnsupportedError
from .scale import Row

__all__ = ["ConfigError", "Derived", "Row", "UnsupportedError", "derive_from_command", "derive_from_file"]
