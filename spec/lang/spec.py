"""A loaded spec: its state type, bounds, initial states, actions and properties, collected from a module."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from .bounds import Bound, Index, Number, Switch
from .codes import CODES
from .declare import MARK, PROPERTY_KINDS, Declaration, Pending
from .errors import BoundsError, LanguageError, LoadError, Place
from .types import Bool, Int, Member, Record, SetOf, Type, as_type

if TYPE_CHECKING:
    from .elaborate import Elaborated

MAX_SOURCE_BYTES = 4_000_000
PLAIN_KINDS = ("narrator", "observed", "abstraction", "published", "refines")
"""Declared functions that are ordinary Python: the rules of the language do not apply to them."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of an action: its name and its type (index member, Int, Bool or SetOf)."""

    name: str
    type: Type


@dataclass(frozen=True, eq=False)
class Declared:
    """A declared function of a spec."""

    function: Callable[..., Any]
    declaration: Declaration
    parameters: tuple[Parameter, ...] = ()

    @property
    def name(self) -> str:
        """The name shown to users and used in traces."""
        return self.declaration.name

    @property
    def doc(self) -> str:
        """Its docstring: the action or property in words."""
        return self.declaration.doc

    @property
    def place(self) -> Place:
        """Where the function stands."""
        return place_of(self.function)

    @property
    def states(self) -> int:
        """How many of its first parameters are states: a state, or with a second one before and after."""
        return len(inspect.signature(self.function).parameters) - len(self.parameters)


@dataclass(frozen=True, eq=False)
class Spec:
    """Everything a spec module declares, in order of declaration."""

    name: str
    module: ModuleType
    doc: str
    state: Record
    bounds: Mapping[str, Bound | Switch]
    inits: tuple[Declared, ...]
    actions: tuple[Declared, ...]
    properties: tuple[Declared, ...]
    lemmas: tuple[Declared, ...]
    loops: tuple[Declared, ...]
    narrator: Callable[..., list[str]] | None
    observed: Callable[..., Mapping[str, Any]] | None
    abstraction: Callable[..., Mapping[str, Any]] | None
    published: Callable[[Mapping[str, int | str]], Any] | None
    refines: Mapping[str, Callable[[Mapping[str, int | str]], Any]]
    modules: tuple[ModuleType, ...]
    sources: tuple[Path, ...]
    elaborated: Elaborated | None = None

    def action(self, name: str) -> Declared:
        """The action of this name; `KeyError` if there is none."""
        return next(a for a in self.actions if a.name == name)

    @property
    def ordered(self) -> Mapping[str, tuple[Place, str]]:
        """The indices that are used in an order-dependent way, and so not permuted: the place and the reason."""
        return {} if self.elaborated is None else self.elaborated.ordered

    def source_hash(self) -> str:
        """SHA-256 over the source text of every module of the spec."""
        digest = hashlib.sha256()
        for path in self.sources:
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
        return digest.hexdigest()

    def values(self, given: Mapping[str, int | str]) -> dict[str, int | str]:
        """Complete and check bounds: given values over defaults; `BoundsError` names what is unknown or missing."""
        for name in given:
            if name not in self.bounds:
                raise BoundsError(f"{self.name} has no bound {name!r}{_nearest(name, self.bounds)}")
        full: dict[str, int | str] = {}
        for name, bound in self.bounds.items():
            value = given.get(name, bound.default)
            if value is None:
                raise BoundsError(f"bound {name} has no default: give it with --bounds {name}=N ({bound.describe()})")
            full[name] = bound.parse(value)
        return full


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    import difflib

    close = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {close[0]!r}?" if close else f"; it has {', '.join(known)}"


def place_of(function: Callable[..., Any]) -> Place:
    """File and line of a function."""
    code = function.__code__
    return Place(code.co_filename, code.co_firstlineno)


def load_file(path: Path) -> Spec:
    """Import a spec file and collect it; `LoadError` with the place where it cannot be read or imported."""
    source = _read(path)
    try:
        code = compile(source, str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        raise LoadError(f"{path}:{error.lineno or 1}: syntax error: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise LoadError(f"{path}: not Python source: {error or type(error).__name__}") from None
    name = f"fencepost_user_spec_{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:12]}"
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        told = " ".join(str(error).split())
        raise LoadError(f"{_where(error, path)}: import failed: {type(error).__name__}: {told}") from error
    finally:
        if str(path.parent) in sys.path:
            sys.path.remove(str(path.parent))
    return collect(module, path.stem)


def _read(path: Path) -> bytes:
    try:
        if path.is_file() and path.stat().st_size > MAX_SOURCE_BYTES:
            raise LoadError(f"{path}: larger than {MAX_SOURCE_BYTES:,} bytes; a spec is a short Python module")
        return path.read_bytes()
    except OSError as error:
        raise LoadError(f"{path}: cannot be read: {error.strerror}") from None


def _where(error: BaseException, path: Path) -> str:
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{path}:{line}" if line else str(path)


def collect(module: ModuleType, name: str) -> Spec:
    """The spec that an imported module declares, its imports from other spec modules included, checked and typed."""
    members = module.__dict__
    states = [v for v in members.values() if isinstance(v, Record) and hasattr(v, MARK)]
    if len(states) != 1:
        found = "no class" if not states else f"{len(states)} classes"
        raise LoadError(f"{module.__file__}: {found} under @state; a spec has exactly one state")
    _refuse_pending(module)
    declared = list(dict.fromkeys(v for v in members.values() if inspect.isfunction(v) and hasattr(v, MARK)))
    by_kind = _by_kind(declared)
    made = [d for kind in PROPERTY_KINDS for d in by_kind.get(kind, [])]
    properties = sorted(made, key=lambda d: declared.index(d.function))
    actions = by_kind.get("action", [])
    if not actions:
        raise LoadError(f"{module.__file__}: no function under @action; a spec needs at least one")
    _unique(actions + by_kind.get("init", []), "action")
    _unique([*properties, *by_kind.get("loop_invariant", [])], "property")
    _unique(by_kind.get("refines", []), "refinement of")
    plain = {kind: by_kind[kind][-1].function for kind in PLAIN_KINDS if kind in by_kind}
    modules = _modules(module)
    spec = Spec(
        name=name,
        module=module,
        doc=inspect.getdoc(module) or "",
        state=states[0],
        bounds=_bounds(modules),
        inits=tuple(by_kind.get("init", [])),
        actions=tuple(actions),
        properties=tuple(p for p in properties if not p.declaration.lemma),
        lemmas=tuple(p for p in properties if p.declaration.lemma),
        loops=tuple(by_kind.get("loop_invariant", [])),
        narrator=plain.get("narrator"),
        observed=plain.get("observed"),
        abstraction=plain.get("abstraction"),
        published=plain.get("published"),
        refines={declared.name: declared.function for declared in by_kind.get("refines", [])},
        modules=modules,
        sources=tuple(Path(str(m.__file__)) for m in modules),
    )
    return _elaborated(spec)


def _by_kind(functions: Sequence[FunctionType]) -> dict[str, list[Declared]]:
    """What decorated functions declare, in order, by the decorator."""
    by_kind: dict[str, list[Declared]] = {}
    for function in functions:
        declaration: Declaration = getattr(function, MARK)
        parameters = () if declaration.kind in PLAIN_KINDS else _parameters(function, declaration)
        by_kind.setdefault(declaration.kind, []).append(Declared(function, declaration, parameters))
    return by_kind


def _elaborated(spec: Spec) -> Spec:
    from .elaborate import elaborate

    try:
        made = elaborate(spec)
        helpers = {Path(function.__code__.co_filename) for function in made.written}
        return replace(spec, elaborated=made, sources=(*spec.sources, *sorted(helpers - set(spec.sources))))
    except RecursionError:
        raise LoadError(f"{spec.module.__file__}: an expression is nested too deeply") from None


def _refuse_pending(module: ModuleType) -> None:
    for name, value in module.__dict__.items():
        if isinstance(value, Pending):
            where = Place(str(module.__file__), 1) if value.function is None else place_of(value.function)
            raise LanguageError("FP128", where, f"{name}: @{value.kind} was not completed", CODES["FP128"].fix)


def _unique(declared: list[Declared], what: str) -> None:
    seen: dict[str, Declared] = {}
    for one in declared:
        if one.name in seen:
            raise LanguageError(
                "FP113", one.place, f"{what} {one.name!r} is declared twice", f"rename one (see {seen[one.name].place})"
            )
        seen[one.name] = one


def _parameters(function: Callable[..., Any], declaration: Declaration) -> tuple[Parameter, ...]:
    place = place_of(function)
    try:
        annotations = inspect.get_annotations(function, eval_str=True)
    except Exception as error:
        raise LanguageError("FP110", place, f"an annotation cannot be evaluated ({error})", "fix the name") from None
    names = list(inspect.signature(function).parameters)
    states = 2 if declaration.kind == "step" else 1
    if declaration.kind == "loop_invariant" and len(names) > 1 and names[1] not in annotations:
        states = 2
    if len(names) < states:
        raise LanguageError(
            "FP111",
            place,
            f"{declaration.kind} {function.__name__} takes {len(names)} parameters",
            "the first is the state" + (", the second its successor" if states == 2 else ""),
        )
    if declaration.kind not in ("action", "init", "loop_invariant") and len(names) > states:
        rule = f"property {function.__name__} takes extra parameters"
        raise LanguageError("FP111", place, rule, "quantify inside it")
    return tuple(_parameter(name, annotations.get(name), place) for name in names[states:])


def _parameter(name: str, written: Any, place: Place) -> Parameter:
    fix = "annotate it with an index, Int(low, high), Bool or SetOf[index]"
    if written is None:
        raise LanguageError("FP112", place, f"parameter {name} has no type", fix)
    try:
        kind = as_type(written)
    except TypeError as error:
        raise LanguageError("FP112", place, f"parameter {name}: {error}", fix) from None
    if not isinstance(kind, Member | Int | Bool | SetOf):
        raise LanguageError("FP112", place, f"parameter {name} has a type that cannot be enumerated", fix)
    return Parameter(name, kind)


def _modules(module: ModuleType) -> tuple[ModuleType, ...]:
    """The module and every spec module that its names come from, the language itself left out."""
    found, others = [module], set[ModuleType]()

    def visit(one: ModuleType) -> None:
        for value in list(one.__dict__.values()):
            inner = value if isinstance(value, ModuleType) else sys.modules.get(_module_of(value))
            if inner is None or inner in found or inner in others:
                continue
            if _is_spec_module(inner):
                found.append(inner)
                visit(inner)
            else:
                others.add(inner)

    visit(module)
    return (module, *sorted(found[1:], key=lambda m: m.__name__))


def _module_of(value: object) -> str:
    name = getattr(value, "__module__", None)
    return name if isinstance(name, str) else ""


def _is_spec_module(module: ModuleType) -> bool:
    """Whether a module shares names with the spec language: it was written as (part of) a spec."""
    name = module.__name__
    if name.startswith("fencepost.spec.lang") or not getattr(module, "__file__", None):
        return False
    return any(
        isinstance(v, Number | Record | Switch | Type) or hasattr(v, MARK)
        for v in module.__dict__.values()
        if not isinstance(v, ModuleType)
    )


def _states_lemmas(module: ModuleType) -> bool:
    """Whether a module is where lemmas stand."""
    own = (v for v in module.__dict__.values() if inspect.isfunction(v) and v.__module__ == module.__name__)
    marks = [getattr(function, MARK) for function in own if hasattr(function, MARK)]
    return any(mark.lemma or mark.kind == "loop_invariant" for mark in marks)


def _bounds(modules: Sequence[ModuleType]) -> dict[str, Bound | Switch]:
    found: dict[str, Bound | Switch] = {}
    for one in sorted(modules, key=_states_lemmas):  # what proofs need comes last
        for value in one.__dict__.values():
            if isinstance(value, Bound | Switch) and found.setdefault(value.name, value) is not value:
                raise LoadError(f"{one.__file__}: two different bounds are named {value.name!r}")
    return found


@cache
def load_module(dotted: str, name: str) -> Spec:
    """Import a spec by its dotted module name and collect it."""
    return collect(importlib.import_module(dotted), name)


__all__ = ["Declared", "Index", "Parameter", "Spec", "collect", "load_file", "load_module", "place_of"]
