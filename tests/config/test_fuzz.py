"""Whatever is given, the answer is a result or a `ConfigError`."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from fencepost.checker.config import ConfigError, derive_from_command, derive_from_file
from fencepost.checker.config.options import spellings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

NAMES = st.sampled_from(sorted(spellings()))
TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            "",
            "-1",
            "0",
            "8k",
            "None",
            "true",
            "{}",
            "[]",
            '{"kv_connector": 1}',
            '{"kv_role": "kv_both", "kv_connector": "MultiConnector", "kv_connector_extra_config": {}}',
            "1e999",
            "--",
            "-",
            "=",
            "a.b",
        ]
    ),
)
DOTTED = st.builds("{}.{}".format, NAMES, st.text(max_size=5))
WORDS = st.lists(st.one_of(NAMES, TEXTS, DOTTED, st.builds("{}={}".format, NAMES, TEXTS)), max_size=8)
QUIET = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@QUIET
@given(WORDS)
def test_any_command(words: list[str]) -> None:
    for argv in (["vllm", "serve", "m", *words], words):
        with contextlib.suppress(ConfigError):
            derive_from_command(argv)


@QUIET
@given(st.one_of(st.binary(max_size=60), st.text(alphabet="ab-:[]{}&*!<#'\"\n 1", max_size=40).map(str.encode)))
def test_any_bytes(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    with contextlib.suppress(ConfigError):
        derive_from_file(path)


@QUIET
@given(st.dictionaries(NAMES.map(lambda name: name.lstrip("-")), TEXTS, max_size=5))
def test_any_values(tmp_path: Path, config: dict[str, str]) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(json.dumps(config))
    with contextlib.suppress(ConfigError):
        derive_from_file(path)
