"""Tests search small state spaces in many specs: they would spend half of their time in LLVM's optimiser.

What they hold, most of all formulas and typed specs, is much and lives long: to look through it for garbage
less often saves 6%.
"""

import gc
import os

os.environ.setdefault("FENCEPOST_OPTIMISE", "0")
gc.set_threshold(100_000, 50, 50)
