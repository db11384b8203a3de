"""Stand-ins are seen by vLLM only, for listed packages that are not installed only, and leave no trace elsewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fencepost.impl.vllm import standins

from .wheels import make_tree

START = """
import sys
sys.path.insert(0, {folder!r})
from fencepost.impl.vllm import standins
standins.install()
standins.install()
"""


def run(folder: Path, files: dict[str, str], code: str) -> None:
    """Runs code in a process of its own, in which stand-ins are installed and these files can be imported."""
    make_tree(folder, files)
    done = subprocess.run(
        [sys.executable, "-c", START.format(folder=str(folder)) + code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


INSIDE = {
    "vllm/__init__.py": "",
    "vllm/plain.py": "import gguf\nimport gguf.quants.deep\nimport gguf.quants as short\n",
    "vllm/names.py": "from gguf.quants import Table, read\n",
    "vllm/late.py": "import importlib\ndef late():\n    return importlib.import_module('gguf.late')\n",
}


def test_every_form_of_import_finds_one(tmp_path: Path) -> None:
    code = """
import vllm.plain, vllm.names, vllm.late
assert vllm.plain.gguf.__name__ == "gguf"
assert vllm.plain.short.__name__ == "gguf.quants"
assert isinstance(vllm.names.Table, type) and vllm.names.Table is not vllm.names.read
assert vllm.late.late().__name__ == "gguf.late"
assert standins.stood_in() == ["gguf"]
"""
    run(tmp_path, INSIDE, code)


def test_nobody_else_finds_one(tmp_path: Path) -> None:
    code = """
import importlib, importlib.util
import vllm.plain
for attempt in (lambda: __import__("gguf"), lambda: importlib.import_module("gguf"), lambda: importlib.import_module("other")):
    try:
        attempt()
    except ModuleNotFoundError as error:
        assert error.name == "gguf", error
    else:
        raise AssertionError
assert importlib.util.find_spec("gguf") is None
assert not [name for name in sys.modules if name.partition(".")[0] == "gguf"]
"""
    run(tmp_path, {**INSIDE, "other.py": "import gguf\n", "vllmx.py": "import gguf\n"}, code)
    run(tmp_path, {}, "try:\n    import vllmx\nexcept ModuleNotFoundError: pass\nelse: raise AssertionError\n")


def test_an_installed_package_wins_also_where_it_lacks_something(tmp_path: Path) -> None:
    code = """
import vllm.plain
"""
    real = {"gguf/__init__.py": "real = True\n", "gguf/quants/__init__.py": "Table = read = 1\n", "gguf/quants/deep.py": ""}
    run(tmp_path, {**INSIDE, **real}, code + "assert vllm.plain.gguf.real\nassert standins.stood_in() == []\n")
    code = """
try:
    import vllm.gone
except ModuleNotFoundError as error:
    assert error.name == "gguf.gone", error
else:
    raise AssertionError
"""
    run(tmp_path, {"vllm/gone.py": "import gguf.gone\n"}, code)


def test_what_is_not_listed_is_missing_also_inside_what_is_installed(tmp_path: Path) -> None:
    files = {
        **INSIDE,
        "vllm/unlisted.py": "import unlisted\n",
        "vllm/through.py": "import through\n",
        "through.py": "import gguf\n",
        "vllm/kernels.py": "import triton\n",
    }
    code = """
for name, lacking in (("vllm.unlisted", "unlisted"), ("vllm.through", "gguf"), ("vllm.nowhere", "vllm.nowhere")):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        assert error.name == lacking, error
    else:
        raise AssertionError(name)
"""
    run(tmp_path, files, code)


def test_triton_has_none() -> None:
    assert "triton" not in standins.NAMES  # torch would take it for the real one


def test_what_vllm_puts_into_sys_modules_is_taken_out(tmp_path: Path) -> None:
    lazy = {"vllm/__init__.py": "", "vllm/lazy.py": "import sys, gguf\nsys.modules['gguf'] = sys.modules['gg'] = gguf\n"}
    run(tmp_path, lazy, "import vllm.lazy\nstandins.withdraw()\nassert not {'gguf', 'gg'} & set(sys.modules)\n")


@pytest.mark.parametrize("protocol", ["__path__", "__wrapped__", "__len__"])
def test_a_stand_in_claims_no_protocol(protocol: str) -> None:
    module = standins.StandIn("gguf")
    assert not hasattr(module, protocol)
    assert not hasattr(module.Thing, protocol)


def test_what_a_stand_in_is_good_for() -> None:
    from pydantic import TypeAdapter, create_model

    module = standins.StandIn("PIL")
    assert module.Image is module.Image

    class Base(module.Image):
        """A subclass."""

    Base(1, size=2)
    assert module.Image.Image.__name__ == "PIL.Image.Image"
    assert module.Image | None
    assert module.Image[int] is module.Image
    module.configure(level=1)
    model = create_model("model", image=(module.Image, ...))
    assert TypeAdapter(model).validate_python({"image": 7}).model_dump() == {"image": 7}
