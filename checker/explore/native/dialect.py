"""Translates the all-integer dialect, a small subset of Python, to LLVM assembly text.

Every value is a signed 64-bit integer and addresses are integers too. Variables become stack slots, which LLVM turns
into registers. `+ - *` wrap, `//` and `%` floor as in Python, and a name that was not assigned yet reads as 0.
"""

import ast
from collections.abc import Sequence

from .dialect_values import DialectError, Scope, Unit, Values
from .intrinsics import BIT_DECLARATIONS, DECLARATIONS

__all__ = ["DialectError", "Unit", "arities", "to_ir"]


class _Function(Values):
    """Writes one function."""

    def __init__(self, scope: Scope, node: ast.FunctionDef) -> None:
        super().__init__(scope)
        self.node = node
        self.loops: list[tuple[str, str]] = []

    def block(self, statements: Sequence[ast.stmt]) -> None:
        """Write statements; what stands after a jump is dropped."""
        for node in statements:
            if not self.open:
                return
            method = getattr(self, "do_" + type(node).__name__, None)
            if method is None:
                raise self.scope.error(node, f"{type(node).__name__} is not part of the dialect")
            method(node)

    def target(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Name):
            raise self.scope.error(node, "only a plain name can be assigned")
        return self.variables[node.id]

    def do_Pass(self, node: ast.Pass) -> None:
        del node

    def do_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return
        self.value(node.value)

    def do_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self.scope.error(node, "an assignment has one target")
        slot = self.target(node.targets[0])
        self.put(f"store i64 {self.value(node.value)}, ptr {slot}")

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        slot = self.target(node.target)
        old = self.let(f"load i64, ptr {slot}")
        self.put(f"store i64 {self.binary(node, node.op, old, self.value(node.value))}, ptr {slot}")

    def do_Return(self, node: ast.Return) -> None:
        self.put(f"ret i64 {self.value(node.value) if node.value else '0'}")
        self.open = False

    def do_If(self, node: ast.If) -> None:
        then, end = self.label(), self.label()
        other = self.label() if node.orelse else end
        self.condition(node.test, then, other)
        self.begin(then)
        self.block(node.body)
        self.jump(end)
        if node.orelse:
            self.begin(other)
            self.block(node.orelse)
            self.jump(end)
        self.begin(end)

    def do_While(self, node: ast.While) -> None:
        if node.orelse:
            raise self.scope.error(node, "while-else is not part of the dialect")
        head, body, end = self.label(), self.label(), self.label()
        self.jump(head)
        self.begin(head)
        self.condition(node.test, body, end)
        self.begin(body)
        self.loop(node.body, head, end)
        self.jump(head)
        self.begin(end)

    def loop(self, body: Sequence[ast.stmt], again: str, end: str) -> None:
        self.loops.append((again, end))
        self.block(body)
        self.loops.pop()

    def do_For(self, node: ast.For) -> None:
        first, last, step = self.bounds(node)
        variable, counter = self.target(node.target), self.slot()
        head, body, again, end = (self.label() for _ in range(4))
        self.put(f"store i64 {first}, ptr {counter}")
        self.jump(head)
        self.begin(head)
        current = self.let(f"load i64, ptr {counter}")
        self.branch(self.let(f"icmp {'slt' if step > 0 else 'sgt'} i64 {current}, {last}"), body, end)
        self.begin(body)
        self.put(f"store i64 {current}, ptr {variable}")
        self.loop(node.body, again, end)
        self.jump(again)
        self.begin(again)
        current = self.let(f"load i64, ptr {counter}")
        following = self.let(f"add nsw i64 {current}, {step}")
        self.put(f"store i64 {following}, ptr {counter}")
        self.jump(head)
        self.begin(end)

    def bounds(self, node: ast.For) -> tuple[str, str, int]:
        if node.orelse:
            raise self.scope.error(node, "for-else is not part of the dialect")
        match node.iter:
            case ast.Call(func=ast.Name(id="range"), args=args, keywords=[]) if 1 <= len(args) <= 3:
                first = self.value(args[0]) if len(args) > 1 else "0"
                last = self.value(args[min(1, len(args) - 1)])
                step = self.constant(args[2], "the step of range") if len(args) == 3 else 1
            case _:
                raise self.scope.error(node, "a for loop is over range(...)")
        if step == 0:
            raise self.scope.error(node, "the step of range is 0")
        return first, last, step

    def do_Break(self, node: ast.Break) -> None:
        self.jump(self.innermost(node)[1])

    def do_Continue(self, node: ast.Continue) -> None:
        self.jump(self.innermost(node)[0])

    def innermost(self, node: ast.stmt) -> tuple[str, str]:
        if not self.loops:
            raise self.scope.error(node, "there is no loop here")
        return self.loops[-1]

    def assigned(self) -> dict[str, ast.AST]:
        """Return the local names with the node that first assigns them; parameters come first."""
        names: dict[str, ast.AST] = {arg.arg: arg for arg in self.node.args.args}
        for inner in ast.walk(self.node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                names.setdefault(inner.id, inner)
        return names

    def write(self, exported: bool) -> str:
        parameters = [arg.arg for arg in self.node.args.args]
        for name, where in self.assigned().items():
            if name in self.scope.constants or name in self.scope.arities:
                raise self.scope.error(where, f"'{name}' is a constant or a function and cannot be assigned")
            self.variables[name] = self.slot()
        for name, slot in self.variables.items():
            self.put(f"store i64 {'%a' + str(parameters.index(name)) if name in parameters else '0'}, ptr {slot}")
        self.block(self.node.body)
        if self.open:
            self.put("ret i64 0")
        signature = ", ".join(f"i64 %a{index}" for index in range(len(parameters)))
        linkage = "dso_local" if exported else "internal"
        head = f'define {linkage} i64 @"{self.node.name}"({signature}) {self.attributes()} {{'
        return "\n".join([head, "entry:", *self.slots, *self.code, "}"])

    def attributes(self) -> str:
        words = ["nounwind", *(["alwaysinline"] if self.node.name in self.scope.unit.inline else [])]
        for decorator in self.node.decorator_list:
            match decorator:
                case ast.Name(id="inline"):
                    words.append("alwaysinline")
                case ast.Name(id="noinline"):
                    words.append("noinline")
                case _:
                    raise self.scope.error(decorator, "the decorators are @inline and @noinline")
        return " ".join(words)


def _functions(unit: Unit) -> list[ast.FunctionDef]:
    scope = Scope(unit, {})
    try:
        module = ast.parse(unit.text)
    except SyntaxError as error:
        raise DialectError(f"{unit.name}: line {error.lineno}: {error.msg}: {(error.text or '').strip()}") from error
    found: list[ast.FunctionDef] = []
    for node in module.body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if not isinstance(node, ast.FunctionDef):
            raise scope.error(node, "only functions may stand at the top")
        args = node.args
        if args.vararg or args.kwarg or args.kwonlyargs or args.defaults or args.posonlyargs:
            raise scope.error(node, "a function has plain positional parameters only")
        found.append(node)
    return found


def arities(units: Sequence[Unit]) -> dict[str, int]:
    """Return the number of parameters of every function in the units."""
    result: dict[str, int] = {}
    for unit in units:
        for node in _functions(unit):
            if node.name in result:
                raise Scope(unit, {}).error(node, f"the function '{node.name}' is defined twice")
            result[node.name] = len(node.args.args)
    return result


def to_ir(units: Sequence[Unit], exports: Sequence[str], gathers_bits: bool = False) -> str:
    """Return LLVM assembly for all functions of the units; the exported ones are visible from outside.

    With `gathers_bits` the processor's instructions for `pext` and `pdep` are used.
    """
    known = arities(units)
    for name in exports:
        if name not in known:
            raise DialectError(f"the function '{name}' is to be exported but is not defined")
    parts = [*DECLARATIONS, *(BIT_DECLARATIONS if gathers_bits else ())]
    for unit in units:
        scope = Scope(unit, known, gathers_bits)
        parts += [_Function(scope, node).write(node.name in exports) for node in _functions(unit)]
    return "\n\n".join(parts) + "\n"
