"""An empty folder of releases for each test."""

from pathlib import Path

import pytest


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of fetched releases, empty; it is made by whoever writes to it."""
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "vllm"
