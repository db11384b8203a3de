"""The typed tree of a spec's functions: what the front end makes of the syntax, and what the engines read.

Every name is resolved, every expression has a type, every helper is specialised to the types of its arguments, and
left-hand sides carry their numbers. Sizes are still open: they are numbers over bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from .bounds import Index, Number, Switch
from .errors import Place
from .types import Type

# ---- types of expressions


@dataclass(frozen=True)
class Scalar:
    """A whole number, a truth value or a member of `index`; with `maybe`, or None."""

    kind: str
    index: Index | None = None
    maybe: bool = False

    def __str__(self) -> str:
        name = {"int": "a number", "bool": "a truth value", "none": "None"}.get(self.kind, f"a member of {self.index}")
        return f"{name} or None" if self.maybe and self.kind != "none" else name


INT, BOOL, NOTHING = Scalar("int"), Scalar("bool"), Scalar("none", maybe=True)


@dataclass(frozen=True)
class SetValue:
    """A set of members of an index; `index` is None for the empty set."""

    index: Index | None

    def __str__(self) -> str:
        return "a set" if self.index is None else f"a set of {self.index}"


@dataclass(frozen=True)
class PlaceType:
    """A part of the state (or of a local container): its type, and its path with `[]` for every subscript."""

    type: Type
    path: tuple[str, ...]

    def __str__(self) -> str:
        return f"{type(self.type).__name__} {'.'.join(self.path)}".replace(".[]", "[…]")


ValueType = Scalar | SetValue | PlaceType

# ---- expressions


@dataclass(frozen=True)
class Expr:
    """Base of expressions; `place` is where it stands."""

    type: Any
    place: Place


@dataclass(frozen=True)
class Const(Expr):
    """A number over bounds, a plain number, 0 or 1 for a truth value, -1 for None, 0 for the empty set."""

    value: Number | int


@dataclass(frozen=True)
class SwitchIs(Expr):
    """Whether a switch is one of some choices: known once bounds are."""

    switch: Switch
    choices: frozenset[str]


@dataclass(frozen=True)
class Local(Expr):
    """A local variable or parameter (a scalar, set value or place)."""

    name: str


@dataclass(frozen=True)
class Root(Expr):
    """The state that the function works on (0), or the successor of a step property (1)."""

    number: int


@dataclass(frozen=True)
class FieldOf(Expr):
    """A field of a record: a place, or the scalar in it."""

    base: Expr
    name: str


@dataclass(frozen=True)
class Element(Expr):
    """An element of an array or sequence: a place, or the scalar in it."""

    base: Expr
    index: Expr


@dataclass(frozen=True)
class Fresh(Expr):
    """A blank local container."""


@dataclass(frozen=True)
class Binary(Expr):
    """`+ - * // %` on numbers; `| & -` on sets."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Compare(Expr):
    """`== != < <= > >=` on scalars; `== != <= >=` on sets; `== !=` on places."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Contains(Expr):
    """Whether a scalar is in a sequence, an array or a set."""

    item: Expr
    container: Expr


@dataclass(frozen=True)
class Logic(Expr):
    """`and` or `or`, short-circuit."""

    op: str
    parts: tuple[Expr, ...]


@dataclass(frozen=True)
class Not(Expr):
    """Negation."""

    operand: Expr


@dataclass(frozen=True)
class Choice(Expr):
    """`then if condition else otherwise`."""

    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True)
class MinMax(Expr):
    """`min` or `max` of two or more numbers."""

    op: str
    parts: tuple[Expr, ...]


@dataclass(frozen=True)
class Unary(Expr):
    """`neg`, `abs`, or `int` of a truth value."""

    op: str
    operand: Expr


@dataclass(frozen=True)
class Length(Expr):
    """The number of elements of a sequence, array or set."""

    container: Expr


@dataclass(frozen=True)
class Display(Expr):
    """A set written out."""

    items: tuple[Expr, ...]


@dataclass(frozen=True)
class Loop:
    """One `for` of a quantifier or statement: a range, an index, a sequence or array, or a set.

    `kind` is range (from `start` to before `stop`), items (of the place `source`) or members (of the set `source`);
    `variable` is None where its value is not used.
    """

    kind: str
    variable: str | None
    type: Any
    place: Place
    start: Expr | None = None
    stop: Expr | None = None
    source: Expr | None = None
    backwards: bool = False


@dataclass(frozen=True)
class Clause:
    """One `for … in … if …` of a quantifier."""

    loop: Loop
    conditions: tuple[Expr, ...]


@dataclass(frozen=True)
class Quantified(Expr):
    """`all`, `any`, `sum` or `set` of an element over clauses; `side` is the number of the left side, or None."""

    op: str
    clauses: tuple[Clause, ...]
    element: Expr
    side: int | None = None


@dataclass(frozen=True)
class Seen(Expr):
    """A left side: its number is noted when it holds."""

    number: int
    operand: Expr


@dataclass(frozen=True)
class Implies(Expr):
    """Both sides are evaluated."""

    left: Expr
    right: Expr


@dataclass(frozen=True)
class Call(Expr):
    """A call of a specialised helper; `type` is None where it returns nothing."""

    function: Function
    arguments: tuple[Expr, ...]


@dataclass(frozen=True)
class Method(Expr):
    """A method of a sequence or set; `type` is that of what it returns, or None."""

    name: str
    base: Expr
    arguments: tuple[Expr, ...]


# ---- statements


@dataclass(frozen=True)
class Stmt:
    """Base of statements."""

    place: Place


@dataclass(frozen=True)
class SetLocal(Stmt):
    """Assign a local variable; for a place, give it a name."""

    name: str
    value: Expr


@dataclass(frozen=True)
class Store(Stmt):
    """Assign to a scalar, set or container place; with `op`, in place."""

    target: Expr
    value: Expr
    op: str | None = None


@dataclass(frozen=True)
class Do(Stmt):
    """Evaluate a call for its effect."""

    value: Expr


@dataclass(frozen=True)
class Require(Stmt):
    """Disabled unless the condition holds."""

    condition: Expr


@dataclass(frozen=True)
class If(Stmt):
    """A branch."""

    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...]


@dataclass(frozen=True)
class For(Stmt):
    """A loop."""

    loop: Loop
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class Jump(Stmt):
    """`break` or `continue`."""

    kind: str


@dataclass(frozen=True)
class Return(Stmt):
    """Leave the function, with a value if it returns one."""

    value: Expr | None


@dataclass(frozen=True)
class Effect:
    """What running a function does to a path: read, write, add (to a set), restructure; or `require` (path empty)."""

    kind: str
    path: tuple[str, ...]
    place: Place


@dataclass(eq=False)
class Function:
    """A function specialised to the types of its parameters."""

    name: str
    original: Callable[..., Any]
    parameters: tuple[tuple[str, Any], ...]
    place: Place
    body: tuple[Stmt, ...] = ()
    returns: Any = None
    locals: dict[str, Any] = field(default_factory=dict[str, Any])
    effects: frozenset[Effect] = frozenset()


# ---- what is inside


def parts_of(node: Expr | Stmt | Loop | Clause) -> list[Any]:
    """The expressions, statements, loops and clauses that a node is made of, some of them in tuples."""
    values: list[Any] = list(vars(node).values())
    return [part for part in values if isinstance(part, (Expr, Stmt, Loop, Clause, tuple))]


def walk(node: Any) -> Iterator[Any]:
    """A node, or those of a tuple, and all that is inside; functions that are called are not entered."""
    if isinstance(node, tuple):
        for part in cast("tuple[Any, ...]", node):
            yield from walk(part)
    elif isinstance(node, Expr | Stmt | Loop | Clause):
        yield node
        for part in parts_of(node):
            yield from walk(part)
