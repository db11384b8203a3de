"""Compiled code on disk: found again, never trusted when damaged, never in the way."""

import logging
import multiprocessing
import time
from pathlib import Path

import pytest
from fencepost.checker.explore.native import cache as cache_module
from fencepost.checker.explore.native.cache import Cache, default_directory
from fencepost.checker.explore.native.machine import Unit, build

UNITS = [Unit("text", "def f(a):\n    return a * K", {"K": 3})]


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.fpo"))


def test_a_second_build_is_loaded(tmp_path: Path) -> None:
    first = build(UNITS, ["f"], Cache(tmp_path))
    second = build(UNITS, ["f"], Cache(tmp_path))
    assert (first.cached, second.cached) == (False, True)
    assert first.function("f")(5) == second.function("f")(5) == 15
    assert second.seconds < 0.1


def test_text_constants_and_exports_are_told_apart(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    build(UNITS, ["f"], cache)
    other = build([Unit("text", UNITS[0].text, {"K": 4})], ["f"], cache)
    assert not other.cached
    assert other.function("f")(5) == 20
    assert not build([Unit("text", UNITS[0].text + "\n", {"K": 3})], ["f"], cache).cached


@pytest.mark.parametrize("damage", ["empty", "truncated", "flipped", "garbage", "wrong header"])
def test_a_damaged_file_is_built_again(tmp_path: Path, damage: str) -> None:
    build(UNITS, ["f"], Cache(tmp_path))
    (path,) = entries(tmp_path)
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    path.write_bytes(
        {
            "empty": b"",
            "truncated": whole[:-100],
            "flipped": bytes(flipped),
            "garbage": b"\0" * len(whole),
            "wrong header": b"fencepost object 0\n" + whole[19:],
        }[damage]
    )
    library = build(UNITS, ["f"], Cache(tmp_path))
    assert not library.cached
    assert library.function("f")(5) == 15
    assert path.read_bytes() == whole


def test_an_intact_file_that_is_no_object_is_built_again(tmp_path: Path) -> None:
    build(UNITS, ["f"], Cache(tmp_path))
    (path,) = entries(tmp_path)
    Cache(tmp_path).store(path.stem, b"not json\nand no object")
    assert build(UNITS, ["f"], Cache(tmp_path)).function("f")(5) == 15


def test_a_folder_that_cannot_be_used_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    cache = Cache(blocked / "folder")
    with caplog.at_level(logging.WARNING):
        assert build(UNITS, ["f"], cache).function("f")(5) == 15
        assert build(UNITS, ["f"], cache).function("f")(5) == 15
    assert len(caplog.records) == 1
    assert "is not kept on disk" in caplog.text


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache_module.os, "replace", full)
    Cache(tmp_path).store("key", b"value")
    assert list(tmp_path.iterdir()) == []


def test_old_entries_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_KEEP", 3)
    cache = Cache(tmp_path)
    for number in range(5):
        cache.store(f"k{number}", b"x")
        time.sleep(0.01)
    assert [path.stem for path in entries(tmp_path)] == ["k2", "k3", "k4"]


def _build_many(folder: Path) -> bool:
    cache = Cache(folder)
    return all(
        build([Unit("text", f"def f(a):\n    return a * {n}")], ["f"], cache).function("f")(2) == 2 * n for n in range(8)
    )


def test_two_processes_share_a_folder(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(_build_many, [tmp_path, tmp_path]) == [True, True]
    assert len(entries(tmp_path)) == 8 == len(list(tmp_path.iterdir()))


def test_where_the_folder_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path / "mine"))
    assert default_directory() == Cache().directory == tmp_path / "mine"
    monkeypatch.delenv("FENCEPOST_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cache_module.sys, "platform", "linux")
    assert default_directory() == tmp_path / "fencepost"
    monkeypatch.setattr(cache_module.sys, "platform", "darwin")
    assert default_directory().parts[-3:] == ("Library", "Caches", "fencepost")
