"""Tests search small state spaces in many specs: they would spend half of their time in LLVM's optimiser."""

import os

os.environ.setdefault("FENCEPOST_OPTIMISE", "0")
