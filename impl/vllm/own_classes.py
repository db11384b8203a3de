"""Classes of the user's own in the places of a release's: found, checked before they are made, and named where they fail."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .errors import ReleaseError
from .layout import CONNECTORS


@dataclass(frozen=True)
class Place:
    """Where a class of the user's own can stand: the option that names it, what it derives from, and what one derives it of."""

    option: str
    interface: str
    advised: str

    def find(self, name: str) -> Any:
        """Return the class named as `module:Class` or `module.Class`; ReleaseError where there is none that fits."""
        module, _, class_name = name.replace(":", ".").rpartition(".")
        who = f"{self.option} {name}"
        found = getattr(_imported(module, who), class_name, None)
        if found is None:
            raise ReleaseError(f"{who}: {module} has no class {class_name}")
        base = _interface(self.interface)
        if not inspect.isclass(found) or not issubclass(found, base):
            what = (
                "does not derive"
                if inspect.isclass(found)
                else f"is no class but a {type(found).__name__}: name one that derives"
            )
            raise ReleaseError(f"{who}: it {what} from {base.__name__}; derive it from {self.advised}")
        absent = sorted(getattr(found, "__abstractmethods__", ()))
        if absent:
            raise ReleaseError(f"{who}: it lacks {', '.join(absent)}, which {base.__name__} leaves to it")
        return found


SCHEDULER = Place(
    "--scheduler-cls",
    "vllm.v1.core.sched.interface.SchedulerInterface",
    "vllm.v1.core.sched.scheduler.Scheduler or vllm.v1.core.sched.async_scheduler.AsyncScheduler",
)
CONNECTOR = Place("--kv-connector", f"{CONNECTORS}.v1.base.KVConnectorBase_V1", f"{CONNECTORS}.v1.base.KVConnectorBase_V1")


@contextmanager
def blamed(scheduler: str | None, connector: str | None) -> Generator[None]:
    """Name the user's class and its line in a ReleaseError where making a scheduler fails in it, or ends the process."""
    try:
        yield
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:
        for place, name in ((CONNECTOR, connector), (SCHEDULER, scheduler)):
            at = None if name is None else _raised_in(error, name)
            if at is not None:
                raise ReleaseError(f"{place.option} {name}: {at}: cannot be made: {_said(error)}") from error
        if isinstance(error, SystemExit):
            raise ReleaseError(f"the scheduler cannot be made: {_said(error)}") from error
        raise


def _interface(name: str) -> type[Any]:
    module, _, class_name = name.rpartition(".")
    return getattr(import_module(module), class_name)


def _imported(module: str, who: str) -> Any:
    """The module of a user's class; an import of its own that fails is told from a module that is not there."""
    if not module or module.startswith("."):
        raise ReleaseError(f"{who}: name the module, too, as module:Class")
    try:
        return import_module(module)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name in _packages(module):
            raise ReleaseError(f"{who}: {error}; name an importable class as module:Class") from error
        at = _imports_at(error, _packages(module))
        raise ReleaseError(f"{who}: {at}import failed: {_said(error)}") from error


def _packages(module: str) -> list[str]:
    """A module and the packages it is in."""
    parts = module.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]


def _imports_at(error: BaseException, modules: Iterable[str]) -> str:
    """The last line of these modules that an error went through, or the line that is no Python, as `FILE:LINE: `."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno or 1}: "
    lines = [
        f"{frame.f_code.co_filename}:{line}: "
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")) in modules
    ]
    return lines[-1] if lines else ""


def _raised_in(error: BaseException, name: str) -> str | None:
    """The line of a user's class that raised an error, itself or in what it calls outside of vLLM; None if another did."""
    module, _, class_name = name.replace(":", ".").rpartition(".")
    found = getattr(sys.modules.get(module), class_name, None)
    file = getattr(sys.modules.get(getattr(found, "__module__", module)), "__file__", None)
    own = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == file or str(frame.f_globals.get("__name__")).partition(".")[0] == "vllm"
    ]
    return f"{file}:{own[-1][1]}" if own and own[-1][0] == file else None


def _said(error: BaseException) -> str:
    """An error in one line."""
    if isinstance(error, SystemExit):
        return f"it ends the process with sys.exit({error.code!r})"
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")
