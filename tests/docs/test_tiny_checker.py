"""The toy checker of the documentation runs, finds its counterexample, and stays a page long."""

import subprocess
import sys

from code_blocks import ROOT

TOY = ROOT / "docs" / "tiny-checker.py"


def test_what_it_prints() -> None:
    done = subprocess.run([sys.executable, str(TOY)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "fence=False: 4 states; violated by: borrow, launch a step that writes b, give b back",
        "fence=True: 3 states; holds",
    ]


def test_it_is_a_page_long() -> None:
    assert len(TOY.read_text().splitlines()) <= 65
