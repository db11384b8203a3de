"""Compiles dialect text to machine code with LLVM, and keeps the object code on disk."""

import ctypes
import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from functools import cache as remember
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from ....spec.lang.errors import FencepostSpecError
from .cache import Cache
from .dialect import DialectError, Unit, arities, to_ir

_LEVELS = ("0", "1", "2")
__all__ = ["DialectError", "Library", "Unit", "build", "emit_ir"]


class Library:
    """Compiled functions in memory; they take and return 64-bit integers and run without Python's lock."""

    def __init__(self, payload: bytes, cached: bool, seconds: float) -> None:
        head, _, code = payload.partition(b"\n")
        self._arities: dict[str, int] = json.loads(head)
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
        self._engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self.cached, self.seconds = cached, seconds
        """Whether the code came from disk, and how long it took to get it."""

    def address(self, name: str) -> int:
        """Return the address of an exported function."""
        if name not in self._arities:
            raise KeyError(f"the library exports no function '{name}'")
        return int(self._engine.get_function_address(name))

    def function(self, name: str) -> Callable[..., int]:
        """Return an exported function as a callable over ints."""
        address = self.address(name)
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * self._arities[name])
        call = kind(address)
        call._library = self  # type: ignore[attr-defined]  # the code lives as long as the callable
        return call


def load(units: Sequence[Unit], exports: Sequence[str], cache: Cache) -> Library | None:
    """Load the library of these units from the cache, or return None if it is not there."""
    start = time.perf_counter()
    payload = cache.load(_key(units, exports))
    try:
        return None if payload is None else Library(payload, True, time.perf_counter() - start)
    except (RuntimeError, ValueError):
        return None


def build(units: Sequence[Unit], exports: Sequence[str], cache: Cache | None = None) -> Library:
    """Compile units to a library, or load it from the cache; raises DialectError for text outside the dialect."""
    start = time.perf_counter()
    loaded = None if cache is None else load(units, exports, cache)
    if loaded is not None:
        return loaded
    known = arities(units)
    code = _compile(emit_ir(units, exports))
    payload = json.dumps({name: known[name] for name in exports}).encode() + b"\n" + code
    if cache is not None:
        cache.store(_key(units, exports), payload)
    return Library(payload, False, time.perf_counter() - start)


def emit_ir(units: Sequence[Unit], exports: Sequence[str], optimised: bool = False) -> str:
    """Return the LLVM assembly of units, for debugging; as written, or after the optimiser."""
    text = to_ir(units, exports, _gathers_bits())
    return str(_optimise(text, _target_machine())) if optimised else text


@remember
def _host() -> tuple[str, str, str]:
    """Return the triple, the name and the features of this machine's processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:
        features = ""
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


@remember
def _gathers_bits() -> bool:
    """Say whether the processor gathers bits in one fast instruction."""
    triple, name, features = _host()
    return triple.startswith("x86_64") and "+bmi2" in features.split(",") and name not in ("znver1", "znver2")


def _level() -> int:
    """How hard code is optimised, $FENCEPOST_OPTIMISE: at 0 it is there six times sooner, and runs three times slower."""
    chosen = os.environ.get("FENCEPOST_OPTIMISE") or _LEVELS[-1]
    if chosen not in _LEVELS:
        raise FencepostSpecError(f"FENCEPOST_OPTIMISE is {chosen!r}; set it to {' or '.join(_LEVELS)}, or leave it unset for 2")
    return int(chosen)


def _target_machine() -> Any:
    """Return a new description of the target; an engine that is given one owns it."""
    triple, name, features = _host()
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(cpu=name, features=features, opt=_level(), reloc="pic", codemodel="small")


def _optimise(text: str, machine: Any) -> Any:
    module = llvm.parse_assembly(text)
    module.triple = _host()[0]
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=_level())
    options.loop_vectorization = False
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


def _compile(text: str) -> bytes:
    machine = _target_machine()
    return bytes(machine.emit_object(_optimise(text, machine)))


@remember
def _compiler_version() -> str:
    """Identify the compiler by the text of its own modules, so that no stale code survives a change of them."""
    digest = hashlib.sha256()
    for name in ("dialect.py", "dialect_values.py", "intrinsics.py", "machine.py"):
        path = Path(__file__).with_name(name)
        digest.update(path.read_bytes() if path.exists() else name.encode())
    return digest.hexdigest()


def _key(units: Sequence[Unit], exports: Sequence[str]) -> str:
    parts = [
        _compiler_version(),
        llvmlite.__version__,
        str(llvm.llvm_version_info),
        *_host(),
        str(_level()),
        *sorted(exports),
        *(f"{unit.name}\n{unit.text}\n{sorted(unit.constants.items())}\n{sorted(unit.inline)}" for unit in units),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
