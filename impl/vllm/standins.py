"""Stand-ins for packages that vLLM imports when it is loaded, and that its scheduler never calls.

They are seen only by import statements inside vLLM, only where the package is not installed, and only for the names
listed here. They do not stay in `sys.modules`: no other package, and no `find_spec`, is told that something is there.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

NAMES = frozenset(
    {
        *("PIL", "aiohttp", "cachetools", "cbor2", "cpuinfo", "einops", "fastapi", "gguf", "httpx", "llguidance", "msgpack"),
        *("openai", "openai_harmony", "orjson", "partial_json_parser", "prometheus_client", "psutil", "pybase64"),
        *("requests", "urllib3", "uvicorn", "uvloop", "xgrammar"),
    }
)
"""What vLLM 0.23 to 0.33 import, with their connectors, beyond the extra `vllm`; not triton, for which torch looks too."""


class _Anything(type):
    """The type of what a stand-in module holds: a class that has every attribute, and can be subscripted."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return anything(f"{cls.__qualname__}.{name}")

    def __getitem__(cls, item: object) -> Any:
        return cls


def anything(name: str) -> type:
    """Return a class that stands for a name of a stand-in module: in annotations, as a base, or called without effect."""

    def ignore(self: object, *arguments: object, **named: object) -> None:
        pass

    def any_value(cls: type, source: object, schema_of: Callable[[Any], Any]) -> Any:
        return schema_of(Any)

    return _Anything(name, (), {"__init__": ignore, "__get_pydantic_core_schema__": classmethod(any_value)})


class StandIn(ModuleType):
    """A module that is not installed; every name in it is a class without content."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = anything(f"{self.__name__}.{name}")
        setattr(self, name, found)
        return found


_modules: dict[str, StandIn] = {}
_installed = False


def stood_in() -> list[str]:
    """Return the packages for which vLLM was given a stand-in in this process, sorted."""
    return sorted({name.partition(".")[0] for name in _modules})


def withdraw() -> None:
    """Take stand-ins out of `sys.modules` again, where vLLM's LazyLoader has put some (vllm/utils/import_utils.py)."""
    for name in [name for name, module in sys.modules.items() if isinstance(module, StandIn)]:
        del sys.modules[name]


def install() -> None:
    """Let imports inside vLLM find stand-ins from now on; a second call changes nothing."""
    global _installed
    if _installed:
        return
    _installed = True
    plain, named = builtins.__import__, importlib.import_module

    def import_statement(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        try:
            return plain(name, globals, locals, fromlist or (), level)
        except ModuleNotFoundError as error:
            if level or not _stood_in(name, error, globals):
                raise
            return _module(name if fromlist else name.partition(".")[0])

    def import_module(name: str, package: str | None = None) -> ModuleType:
        try:
            return named(name, package)
        except ModuleNotFoundError as error:
            caller = getattr(inspect.currentframe(), "f_back", None)
            if not _stood_in(name, error, getattr(caller, "f_globals", None)):
                raise
            return _module(name)

    builtins.__import__ = import_statement
    importlib.import_module = import_module


def _stood_in(name: str, error: ModuleNotFoundError, importer: Mapping[str, object] | None) -> bool:
    """Whether this import, which failed, gets a stand-in: the package itself is missing, and vLLM asks for it."""
    package = name.partition(".")[0]
    inside = str((importer or {}).get("__name__")).partition(".")[0] == "vllm"
    return inside and package in NAMES and error.name == package


def _module(name: str) -> StandIn:
    if name not in _modules:
        _modules[name] = StandIn(name, "A stand-in: the package is not installed, and vLLM's scheduler does not call it.")
    return _modules[name]
