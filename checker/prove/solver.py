"""Z3, imported without its types, of which it has none."""

from __future__ import annotations

from importlib import import_module
from typing import Any

z3: Any = import_module("z3")


class Disagreement(Exception):
    """What the solver found is not so where it is run or evaluated: a defect of Fencepost."""
