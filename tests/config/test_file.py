"""Config files, good and bad."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from fencepost.checker.config import ConfigError, derive_from_file
from fencepost.checker.config.yamlfile import MOST_BYTES


def write(tmp_path: Path, text: str | bytes) -> Path:
    """A file with this content."""
    path = tmp_path / "engine.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refusal(path: Path) -> ConfigError:
    """The error for a file."""
    with pytest.raises(ConfigError) as caught:
        derive_from_file(path)
    assert str(path) in caught.value.place
    return caught.value


def test_every_way_to_write_a_value(tmp_path: Path) -> None:
    text = """
# a comment
model: m
max-num-seqs: 2
max_num_batched_tokens: 4k
async-scheduling: true
no-enable-prefix-caching: true
served-model-name: [a, b]
kv-transfer-config:
  kv_connector: NixlConnector
  kv_role: kv_consumer
watermark: 1e-2
compilation-config.mode: 3
"""
    result = derive_from_file(write(tmp_path, text))
    assert (result.model, result.role, result.fence) == ("m", "kv_consumer", True)
    assert result.bounds["max-num-seqs"] == 2
    assert result.row("max-num-batched-tokens").config == "4000"
    assert result.row("kv-role").source.endswith("engine.yaml:9")
    assert result.bounds["watermark"] == 1


def test_json_text_dotted_keys_anchors_and_merges(tmp_path: Path) -> None:
    text = 'kv-transfer-config: \'{"kv_connector": "NixlConnector", "kv_role": "kv_both"}\'\n'
    assert derive_from_file(write(tmp_path, text)).role == "kv_both"
    text = "kv-transfer-config.kv_connector: NixlConnector\nkv-transfer-config.kv_role: kv_both\n"
    assert derive_from_file(write(tmp_path, text)).role == "kv_both"
    text = "<<: {max-num-seqs: 1, block-size: 1}\nmax-num-seqs: &n 2\nmax-logprobs: *n\n"
    assert derive_from_file(write(tmp_path, text)).bounds["max-num-seqs"] == 2


def test_a_false_in_a_file_alone_is_taken_as_written_with_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path, "async-scheduling: false\nenable_prefix_caching: false\nenforce-eager: false\n")
    result = derive_from_file(path)
    assert (result.steps_in_flight, result.bounds["enable-prefix-caching"]) == (1, 0)
    assert len(result.warnings) == 2
    assert "no-async-scheduling: true" in result.warnings[0]


@pytest.mark.parametrize(
    ("text", "says", "line"),
    [
        ("", "the file is empty", None),
        ("\n \n", "the file is empty", None),
        ("# nothing\n", "says nothing", None),
        (b"\x00\x01\x02", "zero byte", None),
        (b"\x7fELF\xff\xfe\x80", "not UTF-8", None),
        (b"a: \x07\n", "not valid YAML", None),
        ("- a\n- b\n", "this is a list", 1),
        ("max-num-seqs\n", "this is a single value", 1),
        ("a: [1\n", "not valid YAML", 2),
        ("a: b: c\n", "not valid YAML", 1),
        ("a: 1\n---\nb: 2\n", "not valid YAML", 2),
        ("port: 1\nmax-num-seqs: 1\nport: 2\n", "stands twice, first at", 3),
        ("kv-transfer-config:\n  kv_role: kv_both\n  kv_role: kv_both\n", "stands twice", 3),
        ("port: !!python/object/apply:os.system [ls]\n", "the tag", 1),
        ("port: !mine 3\n", "the tag", 1),
        ("!!python/dict\nport: 3\n", "the tag", 1),
        ("port: 1\n3: x\n", "a key must be text", 2),
        ("? [a, b]\n: x\n", "a key must be text", 1),
        ("port: 1\nmax-num-sequences: 3\n", "did you mean '--max-num-seqs'", 2),
        ("asinc-scheduling: false\n", "did you mean '--async-scheduling'", 1),
        ("async-scheduling: true\nno-async-scheduling: true\n", "contradict each other", 1),
        ("max-num-seqs: -1\n", "at least 1", 1),
        ("max-num-seqs: 0\n", "at least 1", 1),
        ("max-num-seqs: 1e99\n", "takes a whole number", 1),
        ("max-num-seqs: 99999999999999999999\n", "at most 2147483647", 1),
        ("max-num-seqs: true\n", "needs a value", 1),
        ("max-num-seqs: false\n", "takes a value, not false", 1),
        ("max-num-seqs: null\n", "takes a whole number", 1),
        ("max-num-seqs: [1, 2]\n", "belongs to no option", 1),
        ("max-num-seqs: {a: 1}\n", "takes a whole number", 1),
        ("enforce-eager: 'true'\n", "belongs to no option", 1),
        ("kv-transfer-config: 3\n", "takes a JSON object", 1),
        ("kv-transfer-config: [a]\n", "not valid JSON", 1),
        ("kv-transfer-config:\n  since: 2020-01-01\n", "cannot be written as JSON", 1),
        ("port: 2020-13-45\n", "not a valid value", 1),
        ("a: " + "[" * 3000 + "\n", "", None),
        ("a: &a [*a]\n", "aliases", 1),
        ("b: *nowhere\n", "not valid YAML", 1),
        ("<<: 3\n", "takes a mapping", 1),
    ],
)
def test_bad_files_are_refused_with_their_line(tmp_path: Path, text: str | bytes, says: str, line: int | None) -> None:
    path = write(tmp_path, text)
    error = refusal(path)
    assert says in str(error)
    if line is not None:
        assert f"{path}:{line}" in error.place


def test_an_alias_bomb_is_refused_quickly(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    start = time.monotonic()
    assert "aliases" in str(refusal(write(tmp_path, "\n".join(lines))))
    assert time.monotonic() - start < 5


def test_a_large_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    with path.open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    start = time.monotonic()
    error = refusal(path)
    assert str(MOST_BYTES) in error.rule
    assert time.monotonic() - start < 1


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "d.yaml").mkdir()
    assert "directory" in str(refusal(tmp_path / "d.yaml"))
    write(tmp_path, "port: 1\n")
    assert "did you mean 'engine.yaml'" in str(refusal(tmp_path / "engin.yaml"))
    assert "only .yaml and .yml" in str(refusal(tmp_path / "engine.json"))
    os.mkfifo(tmp_path / "f.yaml")
    assert "regular file" in str(refusal(tmp_path / "f.yaml"))
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    assert "cannot be read" in str(refusal(tmp_path / "loop.yaml"))


def test_a_byte_order_mark_is_no_obstacle(tmp_path: Path) -> None:
    assert derive_from_file(write(tmp_path, b"\xef\xbb\xbfmax-num-seqs: 2\n")).bounds["max-num-seqs"] == 2
