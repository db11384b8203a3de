"""Imports the scheduler of one vLLM release into this process, on a CPU, without installing vLLM.

The release's folder is not put on `sys.path`: the package `vllm` is made from its folder, and finds its modules there.
So nothing else that lies in a checkout (`tests`, `tools`, …) or in site-packages is found before what was found before.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
import traceback

from . import layout, standins
from .errors import ReleaseError
from .release import Release

PACKAGES = ("cloudpickle", "msgspec", "numpy", "pydantic", "torch", "transformers", "yaml", "zmq")
"""Import names that a release needs and that no stand-in replaces: the extra `vllm` installs them."""

ENVIRONMENT = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_DO_NOT_TRACK": "1",
    "VLLM_NO_USAGE_STATS": "1",
}
"""Set in any case: nothing is fetched and nothing is reported."""

DEFAULTS = {
    "VLLM_LOGGING_LEVEL": "CRITICAL",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_PLUGINS": "",
}
"""Set where the user has not: vLLM prints nothing, and loads no plugins of the environment."""

_loaded: Release | None = None


def loaded() -> Release | None:
    """Return the release that this process has loaded, or None."""
    return _loaded


def load(release: Release) -> None:
    """Import a release's scheduler, once a process; ReleaseError when it cannot be, or when another release is loaded."""
    global _loaded
    if _loaded is not None and _loaded.package == release.package:
        return
    if "vllm" in sys.modules:
        there = _loaded or f"vLLM of {getattr(sys.modules['vllm'], '__file__', None)}"
        raise ReleaseError(f"{release} cannot be loaded beside {there}: each release needs a process of its own")
    layout.check(release)
    require_packages()
    os.environ.update(ENVIRONMENT)
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    try:
        standins.install()
        _import_package(release)
        for name in layout.NAMES:
            importlib.import_module(name)
        # 0.33 reads the level, and leaves that of its logger as it was.
        logging.getLogger("vllm").setLevel(os.environ["VLLM_LOGGING_LEVEL"].upper())
    except (Exception, SystemExit) as error:
        _unload()
        raise ReleaseError(_failure(release, error)) from error
    finally:
        standins.withdraw()
    _loaded = release


def missing_packages() -> list[str]:
    """Return the import names of the extra `vllm` that are not installed."""
    return [name for name in PACKAGES if importlib.util.find_spec(name) is None]


def require_packages() -> None:
    """Raise a ReleaseError that names the packages of the extra `vllm` which are not installed."""
    missing = missing_packages()
    if missing:
        raise ReleaseError(f"vLLM's scheduler needs {', '.join(missing)}, not installed here: pip install 'fencepost[vllm]'")


def _import_package(release: Release) -> None:
    """Import `vllm` from its folder, after telling it that there is no device, so that every host runs the same code.

    `vllm/__init__.py` asks for the platform on the way (vllm/env_override.py, 0.25.0); `vllm.platforms` can be imported
    before it, because the package is known by then.
    """
    start = release.package / "__init__.py"
    spec = importlib.util.spec_from_file_location("vllm", start, submodule_search_locations=[str(release.package)])
    if spec is None or spec.loader is None:
        raise ImportError(f"{start} is no module")
    package = importlib.util.module_from_spec(spec)
    sys.modules["vllm"] = package
    platforms = importlib.import_module("vllm.platforms")
    interface = importlib.import_module("vllm.platforms.interface")
    vars(platforms)["current_platform"] = interface.UnspecifiedPlatform()
    spec.loader.exec_module(package)


def _unload() -> None:
    """Forget what was imported of a release that failed."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "vllm"]:
        del sys.modules[name]


def _failure(release: Release, error: BaseException) -> str:
    """What went wrong in an import, and in which line of the release."""
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(str(release.package))]
    where = f" ({lines[-1].filename}:{lines[-1].lineno})" if lines else ""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{release} cannot be imported: {error.filename}:{error.lineno or 1}: syntax error: {error.msg}"
    text = f"{release} cannot be imported: {type(error).__name__}: {error}{where}"
    if isinstance(error, ModuleNotFoundError) and error.name and error.name.partition(".")[0] != "vllm":
        text += "; this package is not of the extra vllm, and has no stand-in: install it with pip"
    return text
