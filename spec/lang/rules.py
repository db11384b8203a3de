"""What fits where: the rules by which the front end for expressions decides, and how it says what does not fit."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from .codes import CODES
from .errors import LanguageError, Place
from .tree import BOOL, INT, NOTHING, Binary, Const, Expr, PlaceType, Scalar, SetValue
from .types import Bool, EnumType, Int, Maybe, Member, SetOf, Type

if TYPE_CHECKING:
    from .scope import Scope


def value_type(written: Type, path: tuple[str, ...]) -> Any:
    """The type of an expression that names a part of the state of this type."""
    match written:
        case Int() | EnumType():
            return INT
        case Bool():
            return BOOL
        case Member(index):
            return Scalar("index", index)
        case Maybe(item):
            inner = value_type(item, path)
            return Scalar(inner.kind, inner.index, maybe=True)
        case _:
            return PlaceType(written, path)


class Rules:
    """Expressions with an expected type, within one function; `owner` is the elaborator of that function."""

    def __init__(self, owner: Scope) -> None:
        self.owner = owner

    def fail(self, node: ast.AST, code: str, rule: str, fix: str | None = None) -> LanguageError:
        """The error to raise for a node."""
        return LanguageError(code, self.place(node), rule, fix or CODES[code].fix)

    def place(self, node: ast.AST) -> Place:
        """Where a node stands."""
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        return Place(self.owner.function.place.file, line, column + 1)

    def make(self, node: ast.expr) -> Expr:
        """The typed form of an expression."""
        method = getattr(self, "_" + type(node).__name__.lower(), None)
        if method is None:
            raise self.fail(node, "FP102", f"{describe(node)} is not part of the spec language")
        made: Expr = method(node)
        return made

    # ---- with an expected type

    def condition(self, node: ast.expr) -> Expr:
        """An expression that must be a truth value."""
        made = self.make(node)
        if made.type != BOOL:
            raise self.fail(node, "FP107", f"a condition is a truth value, this is {made.type}")
        return made

    def number(self, node: ast.expr) -> Expr:
        """An expression that must be a number; a member used as one makes its index ordered."""
        return self.as_number(self.make(node), node)

    def as_number(self, made: Expr, node: ast.AST) -> Expr:
        """The same for an expression that is made already."""
        if isinstance(made.type, Scalar) and made.type.kind == "index":
            assert made.type.index is not None
            self.owner.order(made.type.index, made.place, "is used as a number")
        elif not (isinstance(made.type, Scalar) and made.type.kind == "int"):
            raise self.fail(node, "FP107", f"a number is needed, this is {made.type}")
        return made

    def fits(self, made: Expr, wanted: Any, node: ast.AST) -> Expr:
        """Check that a value may be stored where `wanted` is declared."""
        have = made.type
        if isinstance(wanted, PlaceType):
            return self._fits_place(made, wanted, node)
        if isinstance(wanted, Scalar) and isinstance(have, Scalar):
            if have == NOTHING and wanted.maybe:
                return made
            if wanted.kind == have.kind and (wanted.kind != "index" or wanted.index is have.index):
                return made
            if {wanted.kind, have.kind} == {"int", "index"} or wanted.kind == have.kind == "index":
                for index in (wanted.index, have.index):
                    if index is not None:
                        self.owner.order(index, made.place, "is mixed with a number or another index")
                return made
        raise self.fail(node, "FP107", f"{wanted} is needed, this is {have}")

    def _fits_place(self, made: Expr, wanted: PlaceType, node: ast.AST) -> Expr:
        have = made.type
        if isinstance(wanted.type, SetOf):
            made_set = self.as_set(made, node)
            if made_set.type.index is None or made_set.type.index is wanted.type.index:
                return made_set
        elif isinstance(have, PlaceType) and have.type == wanted.type:
            self.owner.effect("read", have.path, made.place)
            return made
        raise self.fail(node, "FP107", f"{wanted} is needed, this is {have}")

    def as_set(self, made: Expr, node: ast.AST) -> Expr:
        """A set value, or a set place read."""
        if isinstance(made.type, SetValue):
            return made
        if isinstance(made.type, PlaceType) and isinstance(made.type.type, SetOf):
            self.owner.effect("read", made.type.path, made.place)
            return self._read(made, SetValue(made.type.type.index))
        raise self.fail(node, "FP107", f"a set is needed, this is {made.type}")

    def set_value(self, made: Expr, node: ast.AST) -> Expr:
        """A set value; a set place is refused where its later changes would show."""
        if isinstance(made.type, PlaceType):
            raise self.fail(node, "FP107", f"this names {made.type}, it is not a set value", "write set(…) around it")
        return self.as_set(made, node)

    def _read(self, made: Expr, kind: SetValue) -> Expr:
        return Binary(kind, made.place, "|", made, Const(SetValue(None), made.place, 0))

    def is_set(self, made: Expr) -> bool:
        """Whether an expression is a set value or set place."""
        return isinstance(made.type, SetValue) or isinstance(getattr(made.type, "type", None), SetOf)


def describe(node: ast.AST) -> str:
    """Syntax in words."""
    names = {"ListComp": "a list comprehension", "DictComp": "a dictionary comprehension", "Lambda": "lambda"}
    names |= {"GeneratorExp": "a generator outside all(), any() and sum()", "Tuple": "a tuple", "List": "a list"}
    names |= {"Dict": "a dictionary", "JoinedStr": "an f-string", "NamedExpr": "':='", "Starred": "'*'"}
    names |= {"Await": "await", "Yield": "yield", "YieldFrom": "yield", "Slice": "a slice"}
    return names.get(type(node).__name__, f"{type(node).__name__}")
