"""The syntax tree of a spec's functions, read from the files they were imported from."""

from __future__ import annotations

import ast
import copy
import inspect
import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from .codes import CODES
from .errors import LanguageError, LoadError, Place


@lru_cache(maxsize=256)
def _functions(file: str, _version: tuple[int, int]) -> dict[tuple[str, int], ast.FunctionDef]:
    try:
        with open(file, "rb") as stream:
            tree = ast.parse(stream.read(), file)
    except (OSError, SyntaxError, ValueError) as error:
        raise LoadError(f"{file}: the source of this spec cannot be read again: {error}") from None
    found: dict[tuple[str, int], ast.FunctionDef] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found[node.name, first] = node
    return found


def tree_of(function: Callable[..., Any]) -> ast.FunctionDef:
    """The definition of a function: FP121 where it is not a plain one, `LoadError` where its source cannot be read."""
    code = function.__code__
    place = Place(code.co_filename, code.co_firstlineno)
    what = _not_plain(function)
    if what is not None:
        raise LanguageError("FP121", place, f"{function.__name__} is {what}", CODES["FP121"].fix)
    node = _functions(code.co_filename, _version(code.co_filename)).get((code.co_name, code.co_firstlineno))
    if node is None:
        raise LoadError(f"{place}: no source for {code.co_name}; write it in a file with def")
    return node


def _not_plain(function: Callable[..., Any]) -> str | None:
    code = function.__code__
    if code.co_name == "<lambda>":
        return "a lambda"
    if hasattr(function, "__wrapped__"):
        return "wrapped by a decorator"
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return "an async function"
    if code.co_flags & inspect.CO_GENERATOR:
        return "a generator"
    return "made inside another function" if "<locals>" in function.__qualname__ else None


def _version(file: str) -> tuple[int, int]:
    try:
        status = os.stat(file)
    except OSError as error:
        raise LoadError(f"{file}: the source of this spec cannot be read again: {error.strerror}") from None
    return status.st_mtime_ns, status.st_size


def left_sides(tree: ast.FunctionDef) -> list[ast.expr]:
    """What must hold somewhere for a property not to be vacuous, in order of appearance.

    The call `implies(a, b)`, the disjunction `not a or b`, the call `all(e for … )`, each as its own node.
    """
    found = [node for node in ast.walk(tree) if isinstance(node, ast.expr) and is_left_side(node)]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def is_left_side(node: ast.expr) -> bool:
    """Whether a node is an implication or a universal quantifier."""
    match node:
        case ast.Call(func=ast.Name(id="implies"), args=[_, _]):
            return True
        case ast.Call(func=ast.Name(id="all"), args=[ast.GeneratorExp()]):
            return True
        case ast.BoolOp(op=ast.Or(), values=[ast.UnaryOp(op=ast.Not()), *_]):
            return True
        case _:
            return False


def watched(function: Callable[..., Any], names: dict[str, Any], seen: Callable[[int], None]) -> Callable[..., Any]:
    """The function with every left side reporting its number to `seen` when it holds; `names` are its globals."""
    original = tree_of(function)
    numbers = {(n.lineno, n.col_offset, type(n)): k for k, n in enumerate(left_sides(original))}

    def note(number: int, value: Any) -> Any:
        if value:
            seen(number)
        return value

    made = _Watch(numbers).visit(copy.deepcopy(original))
    made.decorator_list = []
    made.returns = None
    for argument in made.args.args:
        argument.annotation = None
    tree = ast.Module([made], [])
    scope = {**names, "__seen__": note}
    code = compile(ast.fix_missing_locations(tree), inspect.unwrap(function).__code__.co_filename, "exec")
    exec(code, scope)
    return scope[original.name]


class _Watch(ast.NodeTransformer):
    def __init__(self, numbers: dict[tuple[int, int, type], int]) -> None:
        self.numbers = numbers

    def visit(self, node: ast.AST) -> Any:
        number = None
        if isinstance(node, ast.expr) and is_left_side(node):
            number = self.numbers[node.lineno, node.col_offset, type(node)]
        self.generic_visit(node)
        match number, node:
            case int(), ast.Call(func=ast.Name(id="implies")):
                node.args[0] = _seen(number, node.args[0])
            case int(), ast.Call(args=[ast.GeneratorExp() as quantified]):
                both = [_seen(number, ast.Constant(True)), quantified.elt]
                quantified.elt = ast.copy_location(ast.BoolOp(ast.And(), both), quantified.elt)
            case int(), ast.BoolOp(values=[ast.UnaryOp() as negation, *_]):
                negation.operand = _seen(number, negation.operand)
            case _:
                pass
        return node


def _seen(number: int, value: ast.expr) -> ast.expr:
    call = ast.Call(ast.Name("__seen__", ast.Load()), [ast.Constant(number), value], [])
    return ast.copy_location(call, value)
