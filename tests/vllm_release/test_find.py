"""Finding a vLLM: fetched, in a folder, or importable; and which version it says it is."""

from __future__ import annotations

import site
import sys
from pathlib import Path

import pytest
from fencepost.checker.explore.native.cache import default_directory
from fencepost.impl.vllm.errors import ReleaseError
from fencepost.impl.vllm.fetch import fetch
from fencepost.impl.vllm.find import all_fetched, at, fetched, importable, releases_folder
from fencepost.impl.vllm.release import Origin, Release

from .wheels import make_tree, make_wheel


def test_releases_lie_beside_the_compiled_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = ("FENCEPOST_CACHE", "XDG_CACHE_HOME")
    for chosen in names:
        for name in names:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(chosen, str(tmp_path))
        assert releases_folder() == default_directory() / "vllm"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert releases_folder() == default_directory() / "vllm"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert releases_folder() == default_directory() / "vllm"


def test_what_was_fetched_is_found_in_the_order_of_versions(tmp_path: Path, cache: Path) -> None:
    assert all_fetched() == []
    with pytest.raises(ReleaseError, match=r"vLLM 1\.2\.3 is not in .*there: none.*fencepost vllm fetch 1\.2\.3"):
        fetched("1.2.3")
    for version in ("1.10.0", "1.9.0", "1.9.0rc1"):
        fetch(version, make_wheel(tmp_path, version))
    (cache / ".1.11.0.unpacking" / "vllm").mkdir(parents=True)
    assert [release.version for release in all_fetched()] == ["1.9.0rc1", "1.9.0", "1.10.0"]
    assert fetched("1.9.0") == Release("1.9.0", cache / "1.9.0", "fetched")
    assert at(cache / "1.9.0") == fetched("1.9.0")
    with pytest.raises(ReleaseError, match=r"there: 1\.9\.0rc1, 1\.9\.0, 1\.10\.0"):
        fetched("1.2.3")


def test_a_release_that_was_changed_is_not_taken_for_the_release(tmp_path: Path, cache: Path) -> None:
    folder = fetch("1.2.3", make_wheel(tmp_path)).release.path
    (folder / "vllm" / "sampling_params.py").write_text("class SamplingParams: pass\n")
    changed = r"is not as it was published: vllm/sampling_params\.py has changed; fencepost vllm fetch 1\.2\.3 gets it again"
    with pytest.raises(ReleaseError, match=changed):
        fetched("1.2.3")
    (folder / "vllm" / "v1" / "request.py").unlink()
    with pytest.raises(ReleaseError, match=rf"and 1 more; .*{folder} in place of the version drives it as it is"):
        fetched("1.2.3")
    assert at(folder) == Release("1.2.3", folder.resolve(), "folder")


def test_hints_lead_to_what_can_be_driven(cache: Path) -> None:
    with pytest.raises(ReleaseError, match=r"^'0\.33' is no version of vLLM; one has three numbers: name it as 0\.33\.0$"):
        fetched("0.33")
    with pytest.raises(ReleaseError, match=r"^vLLM 0\.22\.0: releases before 0\.23\.0 cannot be driven") as caught:
        fetched("0.22.0")
    assert "fencepost vllm fetch" not in str(caught.value)


@pytest.mark.parametrize("version", ["..", ".", "", "1.9.0/..", "/tmp"])
def test_a_version_is_no_path(version: str, tmp_path: Path, cache: Path) -> None:
    fetch("1.9.0", make_wheel(tmp_path, "1.9.0"))
    make_tree(cache.parent)
    with pytest.raises(ReleaseError):
        fetched(version)


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"vllm/_version.py": "__version__ = version = '1.2.3.dev4+g12'\n"}, "1.2.3.dev4+g12"),
        ({"vllm/version.py": '__version__ = "0.6.1"\n'}, "0.6.1"),
        ({"vllm/version.py": 'try:\n    from ._version import __version__\nexcept:\n    __version__ = "dev"\n'}, "0+checkout"),
        ({}, "0+checkout"),
    ],
)
def test_a_checkout_says_its_version_or_that_it_has_none(files: dict[str, str], version: str, tmp_path: Path) -> None:
    make_tree(tmp_path, {"vllm/__init__.py": "", **files})
    expected = Release(version, tmp_path.resolve(), "checkout")
    assert at(tmp_path) == expected
    assert at(tmp_path / "vllm") == expected  # the package folder itself


@pytest.mark.parametrize("origin", ["installed", "folder"])
def test_unpacked_wheels_say_their_version(origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path if origin == "installed" else tmp_path / "site-packages"
    monkeypatch.setattr(site, "getsitepackages", lambda: [str(here)])
    notes = {"vllm-1.2.3.dist-info/METADATA": "Metadata-Version: 2.4\nName: vllm\nVersion: 1.2.3+cu129\n"}
    make_tree(tmp_path, {"vllm/__init__.py": "", "vllm/_version.py": "__version__ = '9'\n", **notes})
    assert at(tmp_path) == Release("1.2.3+cu129", tmp_path.resolve(), origin)


def test_a_checkout_named_vllm_is_not_taken_for_the_package(tmp_path: Path) -> None:
    make_tree(tmp_path / "vllm", {"vllm/__init__.py": ""})
    assert at(tmp_path / "vllm").path == tmp_path.resolve() / "vllm"


def test_a_folder_without_vllm(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"no such folder"):
        at(tmp_path / "missing")
    with pytest.raises(ReleaseError, match=r"no vllm/__init__\.py"):
        at(tmp_path)
    (tmp_path / "file.py").write_text("")
    with pytest.raises(ReleaseError, match=r"no such folder"):
        at(tmp_path / "file.py")


def test_what_is_importable_is_found_and_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_tree(tmp_path, {"vllm/__init__.py": "raise AssertionError\n", "vllm/_version.py": "__version__ = '1.2.3'\n"})
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert importable() == Release("1.2.3", tmp_path.resolve(), "checkout")


def test_a_folder_that_only_happens_to_be_named_vllm_is_not_importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vllm").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert importable() is None
