"""The decorators of a spec: what is its state, how it starts, what can happen, what must hold."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NoReturn, Protocol, TypeVar, cast, overload

from .errors import Disabled
from .types import Record, record

Function = TypeVar("Function", bound=Callable[..., Any])
MARK = "__fencepost__"
PROPERTY_KINDS = ("always", "step", "quiescent", "reachable", "latent", "eventually", "leads_to")
WITNESS_KINDS = ("reachable", "latent")


@dataclass(frozen=True)
class Declaration:
    """What a decorator says of a function: `condition` is the quiescence or trigger predicate, `fair` weak or strong.

    A `lemma` is an invariant for the sake of proofs; `of` is the function whose loop an invariant is about.
    """

    kind: str
    name: str
    doc: str
    when: Callable[[], Any] | None = None
    fair: str | None = None
    condition: Callable[..., Any] | None = None
    lemma: bool = False
    of: Callable[..., Any] | None = None


class Pending:
    """A decorator with its arguments, still to be put on a function; one that a module keeps was forgotten."""

    def __init__(self, kind: str, apply: Callable[[Any], Any]) -> None:
        self.kind, self.apply = kind, apply
        self.function: Callable[..., Any] | None = None

    def __call__(self, function: Any) -> Any:
        """Declare the function."""
        return self.apply(function)


def state(declaration: type) -> Record:
    """Declare the state of a spec: a class whose annotations are its fields."""
    made = record(declaration)
    object.__setattr__(made, MARK, True)
    return made


def _declare(function: Function, kind: str, name: str | None, **more: Any) -> Function:
    if not isinstance(function, FunctionType):
        raise TypeError(f"@{kind} goes on a plain function, not on {function!r}")
    if hasattr(function, MARK):
        raise TypeError(f"{function.__name__} is already declared as {getattr(function, MARK).kind}")
    if more.get("when") is not None and not inspect.isfunction(more["when"]):
        raise TypeError(f"{function.__name__}: when= takes a function without parameters: when=lambda: STEPS > 1")
    if name is not None and re.fullmatch(r"[\w-]+", name) is None:
        raise TypeError(f"{function.__name__}: name={name!r} is not a name: use letters, digits, - and _")
    plain = name or (function.__name__ if kind in ("action", "init") else function.__name__.replace("_", "-"))
    setattr(function, MARK, Declaration(kind, plain, inspect.getdoc(function) or "", **more))
    return cast("Function", function)


def init(function: Function) -> Function:
    """Declare how a state is filled at the start; with parameters, each choice of them is an initial state."""
    return _declare(function, "init", None)


@overload
def action(function: Function) -> Function: ...
@overload
def action(
    *, fair: str | None = None, when: Callable[[], Any] | None = None, name: str | None = None
) -> Callable[[Function], Function]: ...
def action(
    function: Any = None, *, fair: str | None = None, when: Callable[[], Any] | None = None, name: str | None = None
) -> Any:
    """Declare an action: what can happen in one transition, for every choice of its parameters."""
    if fair not in (None, "weak", "strong"):
        raise TypeError(f"fair={fair!r}: fairness is 'weak' or 'strong'")
    if function is not None:
        return _declare(function, "action", None)
    return Pending("action", lambda made: _declare(made, "action", name, when=when, fair=fair))


def _property(kind: str) -> Any:
    def declare(function: Any = None, *, name: str | None = None, when: Callable[[], Any] | None = None) -> Any:
        if function is not None:
            return _declare(function, kind, name)
        return Pending(kind, lambda made: _declare(made, kind, name, when=when))

    return declare


class _Proved(Protocol):
    """A decorator of a kind of properties that may be lemmas."""

    @overload
    def __call__(self, function: Function) -> Function: ...
    @overload
    def __call__(
        self, *, name: str | None = None, when: Callable[[], Any] | None = None, lemma: bool = False
    ) -> Callable[[Function], Function]: ...


def _proved(kind: str) -> _Proved:
    def declare(function: Any = None, *, name: str | None = None, when: Any = None, lemma: bool = False) -> Any:
        if function is not None:
            return _declare(function, kind, None)
        return Pending(kind, lambda made: _declare(made, kind, name, when=when, lemma=lemma))

    return declare


always = _proved("always")
"""Declare an invariant: a property of every state.

A lemma is one that proofs by induction need, and prove as well; a search looks at it only where it is named.
"""
step = _proved("step")
"""Declare a property of every transition: a function of the state and its successor; a lemma, as with `always`."""
reachable = _property("reachable")
"""Declare a witness: some reachable state must satisfy it, or the check is vacuous."""
latent = _property("latent")
"""Declare a hazard that is no violation by itself: a state that satisfies it is reported as LATENT, for information."""
eventually = _property("eventually")
"""Declare that every fair path reaches a state that satisfies it."""


def quiescent(
    condition: Callable[..., Any], *, name: str | None = None, when: Callable[[], Any] | None = None
) -> Callable[[Function], Function]:
    """Declare an invariant of the states that satisfy the condition (nothing is outstanding)."""
    return _conditional("quiescent", condition, name, when)


def leads_to(
    condition: Callable[..., Any], *, name: str | None = None, when: Callable[[], Any] | None = None
) -> Callable[[Function], Function]:
    """Declare that on every fair path, a state that satisfies the condition is followed by one that satisfies this."""
    return _conditional("leads_to", condition, name, when)


def _conditional(kind: str, condition: Any, name: str | None, when: Any) -> Pending:
    if not inspect.isfunction(condition):
        raise TypeError(f"@{kind}(…) takes a function of the state, not {condition!r}")
    made = Pending(kind, lambda made: _declare(made, kind, name, when=when, condition=condition))
    made.function = condition
    return made


def loop_invariant(of: Callable[..., Any], *, when: Callable[[], Any] | None = None) -> Callable[[Function], Function]:
    """Declare what holds each time the loop of a function comes to its head, for the sake of proofs by induction.

    A function of the state and of the locals that it names, which are annotated with what they can be:
    `def in_order(s, at: Int(0, REQUESTS))`. With two states, the first is the one in which the action began. The loop is the
    only outermost one of its function, `for _ in range(…)`, is not left by return, and runs in no other loop; every local that
    outlives one iteration is named. A proof cuts
    the action there: all properties of states have to hold at the head as well, and nothing else is known of it.
    """
    if not inspect.isfunction(of):
        raise TypeError(f"@loop_invariant(…) takes the function whose loop is meant, not {of!r}")
    made = Pending("loop_invariant", lambda made: _declare(made, "loop_invariant", None, of=of, when=when))
    made.function = of
    return made


def narrator(function: Function) -> Function:
    """Declare who tells a transition in words: plain Python, `(before, after, action, arguments) -> list[str]`.

    `before` and `after` are decoded states (dicts); the function is used for reports only and is outside the subset.
    """
    return _declare(function, "narrator", None)


def observed(function: Function) -> Function:
    """Declare what of a state an implementation can show: plain Python, `(state, values) -> dict`.

    `state` is a decoded state (a dict), `values` the bounds; the function is used to hold implementations against the
    spec only and is outside the subset. Without one, an implementation shows the decoded state itself.
    """
    return _declare(function, "observed", None)


def abstraction(function: Function) -> Function:
    """Declare the state that an observation stands for: plain Python, `(shown, values, before) -> dict`.

    `shown` is what an implementation shows, in the words of the `@observed` function, as plain values (None where nothing is
    promised); the result is a decoded state. `before` is the decoded state before the event that stopped the implementation,
    else None: one that has stopped need not show the rest. Used to search implementations only, and outside the subset.
    """
    return _declare(function, "abstraction", None)


def published(function: Function) -> Function:
    """Declare what an implementation publishes of its runs: plain Python, `(values) -> Published`.

    `Published` is a protocol in checker/conform/published.py; used to read recorded events only, and outside the subset.
    """
    return _declare(function, "published", None)


def refines(protocol: str) -> Callable[[Function], Function]:
    """Declare how the spec is an instance of a protocol of any size: plain Python, `(values) -> Refinement`.

    `Refinement` is a protocol in checker/prove/refine.py; used to hold transitions against the named protocol only, and
    outside the subset.
    """
    if not isinstance(protocol, str):  # pyright: ignore[reportUnnecessaryIsInstance] - what a user forgets
        raise TypeError('@refines takes the name of a protocol: @refines("fence")')
    return Pending("refines", lambda made: _declare(made, "refines", protocol))


def require(condition: Any) -> None:
    """The action is enabled only if the condition holds; nothing of it remains otherwise."""
    if not condition:
        raise Disabled


def implies(left: Any, right: Any) -> bool:
    """If the left side holds, so must the right; both sides are always evaluated, and the left must hold somewhere."""
    return not left or bool(right)


def fresh(kind: Any) -> NoReturn:
    """A blank local container of a type, such as `fresh(Seq[BLOCKS, 2])`; it has a size only once a spec is bound."""
    raise TypeError(f"fresh({kind!r}) has no size yet: call the spec through a bound spec")
