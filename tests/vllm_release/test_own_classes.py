"""Classes of the user's own: what is wrong with one is said in one line, with its name and its place."""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from fencepost.impl.vllm.errors import ReleaseError
from fencepost.impl.vllm.own_classes import CONNECTOR, SCHEDULER, Place, blamed

from .wheels import make_tree

MODULE = "s_own"


class Base(ABC):
    """The interface of a release."""

    @abstractmethod
    def schedule(self) -> None:
        """What a class of the user's has to have."""


@pytest.fixture(autouse=True)
def release(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The interfaces of a release, and a folder that classes are imported from."""
    for place in (SCHEDULER, CONNECTOR):
        module, _, name = place.interface.rpartition(".")
        made = ModuleType(module)
        vars(made)[name] = Base
        monkeypatch.setitem(sys.modules, module, made)
    base = ModuleType("s_base")
    vars(base)["Base"] = Base
    monkeypatch.setitem(sys.modules, "s_base", base)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == MODULE]:
        del sys.modules[name]


def refused(place: Place, name: str) -> str:
    """What is said of a class that cannot be used."""
    with pytest.raises(ReleaseError) as caught:
        place.find(name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", [f"{MODULE}:Own", f"{MODULE}.Own"])
@pytest.mark.parametrize("place", [SCHEDULER, CONNECTOR])
def test_a_class_that_fits_is_found(place: Place, name: str, tmp_path: Path) -> None:
    make_tree(tmp_path, {f"{MODULE}.py": "from s_base import Base\nclass Own(Base):\n    def schedule(self): ...\n"})
    assert place.find(name).__name__ == "Own"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("s_nowhere:Own", "No module named 's_nowhere'; name an importable class as module:Class"),
        ("s_nowhere.sched:Own", "No module named 's_nowhere'; name an importable class as module:Class"),
        (f"{MODULE}.sched:Own", f"No module named '{MODULE}.sched'; '{MODULE}' is not a package; name an importable"),
        (f"{MODULE}:Other", f"{MODULE} has no class Other"),
        ("Own", "name the module, too, as module:Class"),
        (".own:Own", "name the module, too, as module:Class"),
    ],
)
def test_a_name_of_nothing(name: str, said: str, tmp_path: Path) -> None:
    make_tree(tmp_path, {f"{MODULE}.py": "class Own: ...\n"})
    assert refused(SCHEDULER, name).startswith(f"--scheduler-cls {name}: {said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\nimport nothing_such\n", "FILE:2: import failed: ModuleNotFoundError: No module named 'nothing_such'"),
        ("import os\nos.no_such\n", "FILE:2: import failed: AttributeError: module 'os' has no attribute 'no_such'"),
        (
            "import sys\nsys.exit('config missing')\n",
            "FILE:2: import failed: it ends the process with sys.exit('config missing')",
        ),
        ("x = 1\ny = (\n", "FILE:2: import failed: SyntaxError: '(' was never closed"),
        ("import json\njson.loads('x')\n", "FILE:2: import failed: JSONDecodeError: Expecting value"),
    ],
)
def test_a_module_whose_import_fails_says_where(text: str, said: str, tmp_path: Path) -> None:
    make_tree(tmp_path, {f"{MODULE}.py": text})
    said = said.replace("FILE", str(tmp_path / f"{MODULE}.py"))
    assert refused(CONNECTOR, f"{MODULE}:Own").startswith(f"--kv-connector {MODULE}:Own: {said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("class Own: ...\n", "it does not derive from Base; derive it from vllm."),
        ("Own = lambda **_: None\n", "it is no class but a function: name one that derives from Base; derive it from vllm."),
        ("from s_base import Base\nclass Own(Base): ...\n", "it lacks schedule, which Base leaves to it"),
    ],
)
def test_a_class_that_does_not_fit_is_not_made(text: str, said: str, tmp_path: Path) -> None:
    make_tree(tmp_path, {f"{MODULE}.py": text})
    for place in (SCHEDULER, CONNECTOR):
        assert refused(place, f"{MODULE}:Own").startswith(f"{place.option} {MODULE}:Own: {said}")


OWN = """import json, sys
from s_base import Base
class Own(Base):
    def schedule(self): ...
    def __init__(self):
        """


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("sys.exit(0)", "it ends the process with sys.exit(0)"),
        ("sys.exit('config missing')", "it ends the process with sys.exit('config missing')"),
        ("json.loads('x')", "JSONDecodeError: Expecting value"),
    ],
)
def test_a_class_that_cannot_be_made_says_where(line: str, said: str, tmp_path: Path) -> None:
    make_tree(tmp_path, {f"{MODULE}/__init__.py": "from .sched import Own\n", f"{MODULE}/sched.py": OWN + line + "\n"})
    name = f"{MODULE}:Own"
    made = SCHEDULER.find(name)
    place = re.escape(f"{tmp_path / MODULE / 'sched.py'}:6: cannot be made: {said}")
    with pytest.raises(ReleaseError, match=rf"^--scheduler-cls {name}: {place}"), blamed(name, None):
        made()
    with pytest.raises(ReleaseError, match=rf"^--kv-connector {name}: {place}"), blamed("other:Own", name):
        made()


def test_what_another_raises_is_not_blamed_on_a_class(tmp_path: Path) -> None:
    make_tree(tmp_path, {f"{MODULE}.py": OWN + "\n        pass\n"})
    SCHEDULER.find(f"{MODULE}:Own")
    with pytest.raises(ZeroDivisionError), blamed(f"{MODULE}:Own", None):
        raise ZeroDivisionError
    with pytest.raises(MemoryError), blamed(f"{MODULE}:Own", None):
        raise MemoryError
    ended = r"^the scheduler cannot be made: it ends the process with sys\.exit\(3\)$"
    with pytest.raises(ReleaseError, match=ended), blamed(None, None):
        sys.exit(3)
