"""Fetching a release: whole or not at all, whatever the wheel, the network, the disk and other processes do."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from fencepost.impl.vllm import fetch as fetching
from fencepost.impl.vllm.errors import ReleaseError
from fencepost.impl.vllm.fetch import fetch
from fencepost.impl.vllm.find import all_fetched, fetched
from fencepost.impl.vllm.record import damage, edits, measure

from .wheels import make_wheel, source_files

NO_INDEX = """WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError("refused")': /simple/vllm/
ERROR: Could not find a version that satisfies the requirement vllm==1.2.3 (from versions: none)
ERROR: No matching distribution found for vllm==1.2.3
"""
THERE = ", ".join(f"0.{minor}.0" for minor in range(30))
NO_VERSION = f"""WARNING: Location 'file:///x' is ignored: it is neither a file nor a directory.
ERROR: Could not find a version that satisfies the requirement vllm==1.2.3 (from versions: {THERE})
ERROR: No matching distribution found for vllm==1.2.3
"""


def pip_that(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> Path:
    """Puts a program in the place of Python for `python -m pip`; returns the file in which it notes its calls."""
    calls = folder / "calls"
    program = folder / "python"
    program.write_text(f'#!/bin/sh\necho "$*" >> \'{calls}\'\ncase "$*" in *--version) exit 0;; esac\n{body}\n')
    program.chmod(0o755)
    monkeypatch.setattr(fetching.sys, "executable", str(program))
    return calls


def serving(wheel: Path) -> str:
    """What a program does that downloads this wheel into the folder after `--dest`."""
    return f'while [ "$1" != --dest ]; do shift; done; mkdir -p "$2"; cp "{wheel}" "$2"'


def names_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_wheel_is_downloaded_verified_and_unpacked(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = make_wheel(tmp_path)
    calls = pip_that(tmp_path, monkeypatch, serving(wheel))
    took = fetch("1.2.3")
    assert took.release == fetched("1.2.3") == all_fetched()[0]
    assert took.wheel_bytes == wheel.stat().st_size
    kept = {*source_files(), "vllm/data/table.json", "vllm-1.2.3.dist-info/METADATA"}
    assert set(names_in(took.release.path)) == {*kept, "vllm-1.2.3.dist-info/RECORD"}  # no compiled file
    assert took.files == len(kept)
    assert (took.files, took.bytes) == measure(took.release.path)
    assert sorted(path.name for path in cache.iterdir()) == [".lock", "1.2.3"]  # no wheel is left
    words = calls.read_text().splitlines()[1].split()
    assert words[:2] == ["-m", "pip"]
    assert {"download", "--no-deps", "vllm==1.2.3", "manylinux_2_28_x86_64", "abi3"} <= set(words)


def test_what_is_there_needs_no_network(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch("1.2.3", make_wheel(tmp_path))
    calls = pip_that(tmp_path, monkeypatch, "exit 1")
    again = fetch("1.2.3")
    assert again.wheel_bytes == 0
    assert again.release == fetched("1.2.3")
    assert not calls.exists()


def test_a_wheel_that_an_interrupted_fetch_has_left_is_used(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.mkdir(parents=True)
    make_wheel(tmp_path).rename(cache / ".1.2.3.whl")
    (cache / ".1.2.3.unpacking" / "vllm").mkdir(parents=True)
    (cache / ".1.2.3.unpacking" / "vllm" / "half.py").write_text("x = ")
    calls = pip_that(tmp_path, monkeypatch, "exit 1")
    fetch("1.2.3")
    assert not calls.exists()
    assert sorted(path.name for path in cache.iterdir()) == [".lock", "1.2.3"]
    assert not (cache / "1.2.3" / "vllm" / "half.py").exists()


@pytest.mark.parametrize("left", ["a changed file", "a missing file", "a new file", "no RECORD"])
def test_a_damaged_release_is_fetched_again(left: str, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fetch("1.2.3", make_wheel(tmp_path)).release.path
    {
        "a changed file": lambda: (folder / "vllm" / "sampling_params.py").write_text("x = 1\n"),
        "a missing file": (folder / "vllm" / "sampling_params.py").unlink,
        "a new file": lambda: (folder / "vllm" / "v1" / "hook.py").write_text("x = 1\n"),
        "no RECORD": (folder / "vllm-1.2.3.dist-info" / "RECORD").unlink,
    }[left]()
    assert damage(folder) != []
    pip_that(tmp_path, monkeypatch, serving(tmp_path / "vllm-1.2.3-cp38-abi3-manylinux_2_28_x86_64.whl"))
    said: list[str] = []
    fetch("1.2.3", say=said.append)
    assert damage(folder) == []
    assert "is damaged" in said[0]


def test_a_release_that_is_too_old_is_not_downloaded(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = pip_that(tmp_path, monkeypatch, "exit 1")
    with pytest.raises(ReleaseError, match=r"^vLLM 0\.22\.0: releases before 0\.23\.0 cannot be driven"):
        fetch("0.22.0")
    assert not calls.exists()


def test_what_was_edited_is_listed(tmp_path: Path, cache: Path) -> None:
    folder = fetch("1.2.3", make_wheel(tmp_path)).release.path
    assert edits(folder) == []
    (folder / "vllm" / "v1" / "hook.py").write_text("x = 1\n")
    (folder / "vllm" / "sampling_params.py").write_text("x = 1\n")
    (folder / "vllm" / "data" / "table.json").unlink()
    said = ["vllm/v1/hook.py is new", "vllm/data/table.json is missing", "vllm/sampling_params.py has changed"]
    assert sorted(edits(folder)) == sorted(said)
    (folder / "vllm-1.2.3.dist-info" / "RECORD").unlink()
    assert edits(folder) == []  # a checkout says nothing of what it was made from


def test_a_wrong_hash_is_no_release(tmp_path: Path, cache: Path) -> None:
    wheel = make_wheel(tmp_path, lie_about="vllm/v1/request.py")
    with pytest.raises(ReleaseError, match=r"vllm/v1/request\.py does not have the hash"):
        fetch("1.2.3", wheel)
    assert names_in(cache) == [".lock"]
    assert wheel.exists()  # it belongs to whoever named it


def test_a_damaged_download_is_not_kept(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = make_wheel(tmp_path, lie_about="vllm/v1/request.py")
    pip_that(tmp_path, monkeypatch, serving(wheel))
    for _ in range(2):
        with pytest.raises(ReleaseError, match="is no whole wheel"):
            fetch("1.2.3")
        assert names_in(cache) == [".lock"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_a_whole_download_is_kept_when_unpacking_is_cut_short(
    stop: BaseException | type[BaseException], tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = pip_that(tmp_path, monkeypatch, serving(make_wheel(tmp_path)))

    def stopped(new: Path, folder: Path) -> None:
        raise stop

    with monkeypatch.context() as cut:
        cut.setattr(fetching, "_exchange", stopped)
        with pytest.raises((KeyboardInterrupt, ReleaseError)):
            fetch("1.2.3")
    assert names_in(cache) == [".1.2.3.whl", ".lock"]
    calls.unlink()
    fetch("1.2.3")
    assert not calls.exists()
    assert sorted(path.name for path in cache.iterdir()) == [".lock", "1.2.3"]


def test_a_failed_fetch_leaves_what_was_there(tmp_path: Path, cache: Path) -> None:
    folder = fetch("1.2.3", make_wheel(tmp_path)).release.path
    with pytest.raises(ReleaseError):
        fetch("1.2.3", make_wheel(tmp_path, lie_about="vllm/v1/request.py"))
    assert damage(folder) == []


def truncated(folder: Path) -> Path:
    wheel = make_wheel(folder)
    wheel.write_bytes(wheel.read_bytes()[:-200])
    return wheel


def with_a_flipped_byte(folder: Path) -> Path:
    wheel = make_wheel(folder, files={**source_files(), "vllm/long.py": "x = 1\n" * 5000})
    with zipfile.ZipFile(wheel) as archive:
        entry = archive.getinfo("vllm/long.py")
    data = bytearray(wheel.read_bytes())
    data[entry.header_offset + 30 + len(entry.filename) + entry.compress_size // 2] ^= 0xFF
    wheel.write_bytes(data)
    return wheel


def of_another_package(folder: Path) -> Path:
    path = folder / "other-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other-1.2.3.dist-info/RECORD", "")
    return path


def without_record(folder: Path) -> Path:
    path = folder / "vllm-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("vllm/__init__.py", "")
    return path


def of_another_version(folder: Path) -> Path:
    return make_wheel(folder, "1.2.4")


def without_the_package(folder: Path) -> Path:
    return make_wheel(folder, files={"vllm/x.py": ""})


def missing(folder: Path) -> Path:
    return folder / "missing.whl"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (truncated, "not a zip file"),
        (with_a_flipped_byte, r"CRC|decompress"),
        (of_another_package, "it holds other-1.2.3"),
        (without_record, "no item named"),
        (of_another_version, r"it holds vllm-1\.2\.4"),
        (without_the_package, r"its RECORD has no vllm/__init__\.py"),
        (missing, "No such file"),
    ],
    ids=["truncated", "flipped byte", "other package", "no RECORD", "other version", "no package", "missing"],
)
def test_a_wheel_that_is_none_says_so(make: Callable[[Path], Path], reason: str, tmp_path: Path, cache: Path) -> None:
    with pytest.raises(ReleaseError, match=reason):
        fetch("1.2.3", make(tmp_path))
    assert names_in(cache) == [".lock"]


def test_a_wheel_cannot_write_elsewhere(tmp_path: Path, cache: Path) -> None:
    fetch("1.2.3", make_wheel(tmp_path, files={**source_files(), "vllm/../../escaped.py": "x = 1\n"}))
    assert list(tmp_path.rglob("escaped.py")) == []


def test_without_an_index_and_with_an_unknown_version(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_that(tmp_path, monkeypatch, f"cat >&2 <<'END'\n{NO_INDEX}END\nexit 1")
    with pytest.raises(
        ReleaseError, match=r"vLLM 1\.2\.3 cannot be downloaded: pip reaches no package index .*refused.*--wheel"
    ):
        fetch("1.2.3")
    pip_that(tmp_path, monkeypatch, f"cat >&2 <<'END'\n{NO_VERSION}END\nexit 1")
    with pytest.raises(ReleaseError, match=r"pip says: Could not find a version.*…, .*0\.29\.0.*; No matching") as caught:
        fetch("1.2.3")
    assert "0.10.0" not in str(caught.value)  # the newest are enough
    assert "is ignored" not in str(caught.value)
    assert names_in(cache) == [".lock"]


def test_a_python_without_pip(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(fetching.sys, "executable", str(program))
    with pytest.raises(ReleaseError, match=r"has no pip .*ensurepip.*--wheel"):
        fetch("1.2.3")


@pytest.mark.parametrize("version", ["", "latest", "../1.2.3", "1", "1.2", "v1.2.3", "1.2.3/x", "1.2.3 "])
def test_what_is_no_version(version: str, cache: Path) -> None:
    for get in (fetch, fetched):
        with pytest.raises(ReleaseError, match=f"{re.escape(repr(version))} is no version of vLLM; one has three numbers"):
            get(version)
    assert not cache.exists()


def test_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path / "file"))
    with pytest.raises(ReleaseError, match=r"FENCEPOST_CACHE names a folder"):
        fetch("1.2.3", make_wheel(tmp_path))


def test_two_processes_at_once(tmp_path: Path, cache: Path) -> None:
    cache.mkdir(parents=True)
    many = {f"vllm/part{i}.py": f"x = {i}\n" * 99 for i in range(300)}
    make_wheel(tmp_path, files={**source_files(), **many}).rename(cache / ".1.2.3.whl")  # there for one of them only
    code = (
        "from fencepost.impl.vllm.fetch import fetch\nfrom fencepost.impl.vllm.record import damage\n"
        "print(damage(fetch('1.2.3').release.path))"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    outputs = [process.communicate(timeout=60) for process in running]
    assert [out for out, _ in outputs] == ["[]\n"] * 3, outputs
