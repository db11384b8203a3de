"""The targets of lockstep: implementations that come with Fencepost, by name, and driver classes in users' files."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from ...spec.lang import FencepostSpecError
from ..conform.errors import DriverUnstable, frames
from .errors import UsageError

if TYPE_CHECKING:
    from ...traces.driver import Driver

Values = Mapping[str, int | str]
Maker = Callable[[Values], "Driver"]
"""Makes a driver in its initial state from the values of all bounds and switches of the spec."""

PARTS = ("title", "quiet", "reset", "take", "observe", "digest")
"""What every driver has (traces/driver.py)."""
FORM = "driver.py:CLASS"


@dataclass(frozen=True)
class Implementation:
    """What a spec is held against: its name as it was given, what makes its drivers, and the file if it is a user's."""

    name: str
    make: Maker
    path: Path | None = None
    profile: str | None = None
    """The profile of the spec that states what this implementation does, where it is known."""

    def code(self) -> tuple[Path, ...]:
        """The folder of an implementation that comes with Fencepost."""
        from ...impl import engine

        if self.name != "reference":
            raise UsageError("--coverage says which lines of the reference implementation lockstep reaches, of no other")

        return tuple(map(Path, engine.__path__))

    def blame(self, error: BaseException) -> UsageError | None:
        """What to say of an error in a user's driver: that it is theirs, and where; None for an error that is not."""
        if self.path is None or isinstance(error, UsageError | FencepostSpecError):
            return None
        if isinstance(error, DriverUnstable):
            return UsageError(f"--target {self.name}: {error}")
        at = place(error, self.path)
        return UsageError(f"--target {self.name}: {at}: {said(error)}") if at != str(self.path) else None


def find(name: str, spec: str, typed: str | None = None) -> Implementation:
    """The implementation of this name for this spec; `UsageError` says why there is none, of a release by what was `typed`."""
    path, _, class_name = name.rpartition(":")
    if class_name and path.endswith(".py"):
        return Implementation(name, _in_file(Path(path), class_name, name), Path(path))
    if name.endswith((".py", ".py:")):
        raise UsageError(f"--target {name}: name the class of the driver, too, as in {name.rstrip(':')}:Engine")
    if name == INSTALLED:
        name = f"{RELEASE}{_importable()}"
    made = of_release(name, name.removeprefix(RELEASE), typed=typed) if name.startswith(RELEASE) else _SHIPPED.get(name)
    if made is None:
        releases = f"{RELEASE}VERSION, {RELEASE}FOLDER, {INSTALLED} (the one that Python would import)"
        there = f"there is {', '.join(_SHIPPED)}, {releases}, or a driver of yours: {FORM}"
        raise UsageError(f"--target: there is no target {name!r}; {there}")
    if spec != "kv":
        raise UsageError(f"--target {name} implements the spec kv, not {spec}; name a driver of yours: --target {FORM}")
    return made


def _reference(values: Values) -> Driver:
    from ...impl.drivers.reference import ReferenceDriver

    return ReferenceDriver(values)


INSTALLED = "vllm"
RELEASE = f"{INSTALLED}=="
_SHIPPED = {"reference": Implementation("reference", _reference, profile="reference")}
"""The implementations of the spec kv that come with Fencepost."""


def _importable() -> Path:
    """The folder of the vLLM that is installed beside Fencepost."""
    from ...impl.vllm import find as releases

    found = releases.importable()
    if found is None:
        raise UsageError(f"--target {INSTALLED}: no vLLM is installed here; name a release: {RELEASE}VERSION, {RELEASE}FOLDER")
    return found.path


def of_release(
    name: str, word: str, scheduler_cls: str | None = None, connector: str | None = None, typed: str | None = None
) -> Implementation:
    """The release of this version or in this folder, with classes of the user's own; `UsageError` where there is none.

    `typed` are the option and the word that errors name, where it is not `--target`.
    """
    from ...impl.vllm import find as releases
    from ...impl.vllm.errors import ReleaseError
    from ...impl.vllm.layout import check as check_layout

    word = word.removeprefix(RELEASE)
    name, typed = f"{RELEASE}{word}", typed or f"--target {name}"
    try:
        release = releases.at(Path(word)) if "/" in word or Path(word).is_dir() else releases.fetched(word)
        check_layout(release)
    except ReleaseError as error:
        raise UsageError(f"{typed}: {error}") from error

    def make(values: Values) -> Driver:
        from ...impl.drivers.vllm import VllmDriver

        try:
            return VllmDriver(values, release, scheduler_cls, connector)
        except ReleaseError as error:
            raise UsageError(f"{typed}: {error}") from error

    # Only what was fetched is surely what its version says: a folder's code can have been changed.
    profile = profile_of(release.version) if release.origin == "fetched" else None
    return Implementation(name, make, profile=profile)


def profile_for(target: Implementation) -> str:
    """The profile to hold a target against where none is named; `UsageError` where it is of a release that has none."""
    from . import kvdata

    if target.profile is None and target.name.startswith(RELEASE):
        known = ", ".join(kvdata.profiles())
        word = target.name.removeprefix(RELEASE)
        raise UsageError(
            f"--target {target.name}: no profile is recorded for it; choose one with --profile ({known}), "
            f"or let it be found out: fencepost vllm classify {word}"
        )
    return target.profile or kvdata.DEFAULT


def profile_of(version: str) -> str | None:
    """The profile that was recorded for this version of vLLM; None where none was."""
    from . import kvdata

    found = [name for name in kvdata.profiles() if kvdata.profile(name).title == f"vLLM {version}"]
    return found[0] if found else None


def _in_file(path: Path, class_name: str, name: str) -> Maker:
    made = _load(path, name).__dict__
    found = made.get(class_name)
    if not inspect.isclass(found):
        classes = [n for n, value in made.items() if inspect.isclass(value) and value.__module__ == made["__name__"]]
        instead = f"it has {', '.join(classes)}" if classes else "it has none at all"
        raise UsageError(f"--target {name}: {path} has no class {class_name!r}; {instead}")
    make = cast(Callable[[Values], Any], found)

    def make_checked(values: Values) -> Driver:
        try:
            driver = make(dict(values))
            check(driver, f"--target {name}: {class_name}")
            return driver
        except (UsageError, KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:
            called = f"{class_name}(values) failed: {said(error)}"
            raise UsageError(f"--target {name}: {place(error, path)}: {called}") from error

    return make_checked


def check(driver: Any, who: str) -> None:
    """`UsageError` names what an object lacks that a driver must have, or has in another form."""
    missing = [part for part in PARTS if inspect.getattr_static(driver, part, None) is None]
    if missing:
        raise UsageError(f"{who} is no Driver, it lacks {', '.join(missing)} (fencepost.traces.driver says what each is)")
    if not isinstance(driver.title, str):
        raise UsageError(f"{who}.title is not a text but {driver.title!r}")
    quiet: Any = driver.quiet
    if not isinstance(quiet, frozenset) or not all(isinstance(name, str) for name in cast("frozenset[Any]", quiet)):
        raise UsageError(f"{who}.quiet is {quiet!r}; it has to be a frozenset of names of actions: frozenset({{'abort'}})")
    one, other = (inspect.getattr_static(driver, part, None) is not None for part in ("save", "restore"))
    if one != other:
        there, gone = ("save", "restore") if one else ("restore", "save")
        raise UsageError(f"{who} has {there} and no {gone}: a driver has both, or is run again from the start")
    for part, arguments in {"take": ("action", ()), "digest": (None,), "observe": (), "reset": ()}.items():
        try:
            inspect.signature(getattr(driver, part)).bind(*arguments)
        except TypeError as error:
            raise UsageError(f"{who}.{part} cannot be called as traces/driver.py says: {error}") from None


def _load(path: Path, name: str) -> ModuleType:
    """Import a user's file; what stands beside it can be imported by it, and what it prints goes to standard error."""
    from contextlib import redirect_stdout

    try:
        code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except OSError as error:
        raise UsageError(f"--target {name}: {path} cannot be read: {error.strerror}") from None
    except SyntaxError as error:
        raise UsageError(f"--target {name}: {path}:{error.lineno or 1}: syntax error: {error.msg}") from None
    except ValueError as error:
        raise UsageError(f"--target {name}: {path} is not Python source: {error}") from None
    module = ModuleType(f"fencepost_user_driver_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # found again when its classes are pickled
    sys.path.insert(0, str(path.parent))  # and kept: an engine may import more when it first runs
    try:
        with redirect_stdout(sys.stderr):
            exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        raise UsageError(f"--target {name}: {place(error, path)}: import failed: {said(error)}") from error
    return module


def place(error: BaseException, path: Path) -> str:
    """The last line of this file that an error went through, as FILE:LINE."""
    line = next((line for file, line in reversed(frames(error)) if file == str(path)), 0)
    return f"{path}:{line}" if line else str(path)


def said(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")
