"""The commands `fencepost vllm fetch` and `fencepost vllm list`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fencepost.checker.cli.drivers import find as find_target
from fencepost.checker.cli.drivers import of_release
from fencepost.checker.cli.errors import UsageError
from fencepost.checker.cli.main import main
from fencepost.impl.vllm import find

from .wheels import make_tree, make_wheel, source_files


@pytest.fixture(autouse=True)
def no_vllm_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this environment has installed."""
    monkeypatch.setattr(find, "importable", lambda: None)


def test_fetch_says_what_it_took(tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheel = make_wheel(tmp_path)
    assert main(["vllm", "fetch", "1.2.3", "--wheel", str(wheel)]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("vLLM 1.2.3: wheel of ")
    assert shown.out.endswith(f"{cache / '1.2.3'}\n")
    assert " files, " in shown.out
    assert "unpacked and verified in " in shown.out
    assert shown.err == ""
    assert main(["vllm", "fetch", "1.2.3"]) == 0
    assert capsys.readouterr().out.startswith("vLLM 1.2.3: there already, verified (")


def test_fetch_warns_of_an_unknown_layout(tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = source_files()
    del files["vllm/v1/request.py"]
    assert main(["vllm", "fetch", "1.2.3", "--wheel", str(make_wheel(tmp_path, files=files))]) == 0
    assert "warning: 1.2.3 cannot be driven; its source has no module vllm.v1.request" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["1.2.3", "--wheel", "missing.whl"], "missing.whl: No such file or directory"),
        (["1.2.3", "1.2.4", "--wheel", "missing.whl"], "is one release; name one version, not 2"),
        (["newest"], "'newest' is no version of vLLM"),
        ([], "Missing argument"),
    ],
)
def test_what_cannot_be_fetched_is_an_input_error(
    words: list[str], reason: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["vllm", "fetch", *words]) == 2
    shown = capsys.readouterr()
    assert reason in shown.err
    assert shown.out == ""


def test_list_says_what_is_there_and_in_which_state(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["vllm", "list"]) == 0
    assert "no vLLM is here" in capsys.readouterr().out
    for version in ("1.2.3", "1.2.4"):
        assert main(["vllm", "fetch", version, "--wheel", str(make_wheel(tmp_path, version))]) == 0
    (cache / "1.2.4" / "vllm" / "sampling_params.py").write_text("class SamplingParams: pass\n")
    checkout = make_tree(tmp_path / "checkout", {"vllm/__init__.py": "", "vllm/_version.py": "__version__ = '9.9'\n"})
    monkeypatch.setattr(find, "importable", lambda: find.at(checkout))
    capsys.readouterr()
    assert main(["vllm", "list"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1][:2] == ["1.2.3", "fetched"]
    assert lines[1][-2:] == ["ready", str(cache / "1.2.3")]
    assert lines[2][4:] == ["damaged:", "fetch", "it", "again", str(cache / "1.2.4")]
    assert lines[3] == ["9.9", "checkout", "layout", "unknown", str(checkout)]
    assert lines[4] == ["1.2.4:", "vllm/sampling_params.py", "has", "changed"]
    assert lines[5] == ["9.9:", "module", "vllm.config", "is", "missing"]
    assert lines[-1][:2] == ["9.9:", "and"]  # how many more, and where they are listed
    assert lines[-1][-2:] == ["--json", "lists"]
    assert main(["vllm", "list", "--json"]) == 0
    first, second, third = json.loads(capsys.readouterr().out)["releases"]
    assert (first["version"], first["damage"], first["missing"]) == ("1.2.3", [], [])
    assert second["damage"] == ["vllm/sampling_params.py has changed"]
    assert third["bytes"] is None
    assert "module vllm.v1.request" in third["missing"]


def test_a_release_may_be_named_as_a_target_and_errors_say_what_was_typed(tmp_path: Path, cache: Path) -> None:
    assert main(["vllm", "fetch", "1.2.3", "--wheel", str(make_wheel(tmp_path))]) == 0
    assert of_release("vllm==vllm==1.2.3", "vllm==1.2.3").name == "vllm==1.2.3"
    assert find_target("vllm==1.2.3", "kv").name == "vllm==1.2.3"
    for typed, said in {None: "--target vllm==1.2.4", "--vllm 1.2.4": "--vllm 1.2.4"}.items():
        with pytest.raises(UsageError, match=f"^{said}: vLLM 1.2.4 is not in "):
            of_release("vllm==1.2.4", "1.2.4", typed=typed)
        with pytest.raises(UsageError, match=f"^{said}: vLLM 1.2.4 is not in "):
            find_target("vllm==1.2.4", "kv", typed)


def test_the_doctor_names_the_releases(tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    assert "none fetched" in capsys.readouterr().out
    assert main(["vllm", "fetch", "1.2.3", "--wheel", str(make_wheel(tmp_path))]) == 0
    capsys.readouterr()
    assert main(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["vllm_releases"]["fetched"] == ["1.2.3"]
