"""Expressions of the dialect, written as LLVM assembly: every value is the name of a register or a number."""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .intrinsics import VALUE_INTRINSICS, runs

_MASK = (1 << 64) - 1
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "slt",
    ast.LtE: "sle",
    ast.Gt: "sgt",
    ast.GtE: "sge",
}
_PLAIN: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "ashr",
}
_FOLD: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitXor: lambda a, b: a ^ b,
    ast.LShift: lambda a, b: a << b,
    ast.RShift: lambda a, b: a >> b,
}
_FOLD_UNARY: dict[type[ast.unaryop], Callable[[int], int]] = {
    ast.USub: lambda a: -a,
    ast.UAdd: lambda a: a,
    ast.Invert: lambda a: ~a,
    ast.Not: lambda a: int(not a),
}
_LOADS = {f"load{bits}": (bits, "sext") for bits in (8, 16, 32, 64)} | {f"loadu{bits}": (bits, "zext") for bits in (8, 16, 32)}
_STORES = {f"store{bits}": bits for bits in (8, 16, 32, 64)}


class DialectError(ValueError):
    """A place in dialect text that is not part of the dialect, with its line."""


@dataclass(frozen=True)
class Unit:
    """One named piece of dialect text with its constants; all units of a library see each other's functions."""

    name: str
    text: str
    constants: Mapping[str, int] = field(default_factory=dict[str, int])
    inline: frozenset[str] = frozenset()
    """Functions that are always inlined, as if decorated."""


def wrap(value: int) -> int:
    """Reduce an integer to the signed 64-bit value with the same low bits."""
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value


def _is_number(operand: str) -> bool:
    return not operand.startswith("%")


class Scope:
    """What all functions of a unit share: constants, function arities, and how errors are worded."""

    def __init__(self, unit: Unit, arities: Mapping[str, int], gathers_bits: bool = False) -> None:
        self.unit, self.constants, self.arities = unit, unit.constants, arities
        self.gathers_bits = gathers_bits
        self.lines = unit.text.splitlines()

    def error(self, node: ast.AST, what: str) -> DialectError:
        line = getattr(node, "lineno", 1)
        text = self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""
        return DialectError(f"{self.unit.name}: line {line}: {what}: {text}")


class Values:
    """Writes the expressions of one function; `code` collects its lines, `slots` those that go to its start."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.slots: list[str] = []
        self.code: list[str] = []
        self.variables: dict[str, str] = {}
        self.count = 0
        self.open = True

    def fresh(self) -> str:
        self.count += 1
        return f"%t{self.count}"

    def label(self) -> str:
        self.count += 1
        return f"b{self.count}"

    def put(self, text: str) -> None:
        self.code.append("  " + text)

    def let(self, text: str) -> str:
        name = self.fresh()
        self.code.append(f"  {name} = {text}")
        return name

    def slot(self) -> str:
        name = self.fresh()
        self.slots.append(f"  {name} = alloca i64")
        return name

    def begin(self, label: str) -> None:
        self.code.append(f"{label}:")
        self.open = True

    def jump(self, label: str) -> None:
        if self.open:
            self.put(f"br label %{label}")
        self.open = False

    def branch(self, bit: str, yes: str, no: str) -> None:
        self.put(f"br i1 {bit}, label %{yes}, label %{no}")
        self.open = False

    def bit(self, operand: str) -> str:
        return self.let(f"icmp ne i64 {operand}, 0")

    def widen(self, bit: str) -> str:
        return self.let(f"zext i1 {bit} to i64")

    def value(self, node: ast.expr) -> str:
        """Write the code of an expression and return its operand: a number or a register."""
        method = getattr(self, "value_" + type(node).__name__, None)
        if method is None:
            raise self.scope.error(node, f"{type(node).__name__} is not part of the dialect")
        return method(node)

    def constant(self, node: ast.expr, what: str) -> int:
        operand = self.value(node)
        if not _is_number(operand):
            raise self.scope.error(node, f"{what} must be a constant")
        return int(operand)

    def value_Constant(self, node: ast.Constant) -> str:
        if not isinstance(node.value, int) or not -(1 << 63) <= node.value <= _MASK:
            raise self.scope.error(node, f"{node.value!r} is not a 64-bit integer")
        return str(wrap(int(node.value)))

    def value_Name(self, node: ast.Name) -> str:
        if node.id in self.variables:
            return self.let(f"load i64, ptr {self.variables[node.id]}")
        if node.id in self.scope.constants:
            return str(wrap(self.scope.constants[node.id]))
        raise self.scope.error(node, f"the name '{node.id}' is neither a variable nor a constant")

    def value_BinOp(self, node: ast.BinOp) -> str:
        return self.binary(node, node.op, self.value(node.left), self.value(node.right))

    def binary(self, node: ast.AST, op: ast.operator, left: str, right: str) -> str:
        kind = type(op)
        if kind not in _FOLD:
            raise self.scope.error(node, f"the operator {kind.__name__} is not part of the dialect")
        if _is_number(right):
            number = int(right)
            if kind in (ast.FloorDiv, ast.Mod) and number == 0:
                raise self.scope.error(node, "division by the constant 0")
            if kind in (ast.LShift, ast.RShift) and not 0 <= number < 64:
                raise self.scope.error(node, "shift by a constant outside 0..63")
            if _is_number(left):
                return str(wrap(_FOLD[kind](int(left), number)))
        if kind in (ast.FloorDiv, ast.Mod):
            return self.divide(kind is ast.Mod, left, right)
        return self.let(f"{_PLAIN[kind]} i64 {left}, {right}")

    def divide(self, modulo: bool, left: str, right: str) -> str:
        """Write a division that floors; by a power of two it is a shift or a mask."""
        number = int(right) if _is_number(right) else 0
        if number > 0 and number & (number - 1) == 0:
            if modulo:
                return self.let(f"and i64 {left}, {number - 1}")
            return self.let(f"ashr i64 {left}, {number.bit_length() - 1}")
        rest = self.let(f"srem i64 {left}, {right}")
        signs = self.let(f"xor i64 {rest}, {right}")
        differ = self.let(f"icmp slt i64 {signs}, 0")
        adjust = self.let(f"select i1 {differ}, i1 {self.bit(rest)}, i1 false")
        if modulo:
            moved = self.let(f"add i64 {rest}, {right}")
            return self.let(f"select i1 {adjust}, i64 {moved}, i64 {rest}")
        quotient = self.let(f"sdiv i64 {left}, {right}")
        return self.let(f"sub i64 {quotient}, {self.widen(adjust)}")

    def value_UnaryOp(self, node: ast.UnaryOp) -> str:
        operand = self.value(node.operand)
        if _is_number(operand):
            number = int(operand)
            return str(wrap(_FOLD_UNARY[type(node.op)](number)))
        match node.op:
            case ast.USub():
                return self.let(f"sub i64 0, {operand}")
            case ast.Invert():
                return self.let(f"xor i64 {operand}, -1")
            case ast.Not():
                return self.widen(self.let(f"icmp eq i64 {operand}, 0"))
            case _:
                return operand

    def value_Compare(self, node: ast.Compare) -> str:
        if len(node.ops) == 1:
            return self.widen(self.compare(node, node.ops[0], self.value(node.left), self.value(node.comparators[0])))
        return self.chosen(node, lambda: "1", lambda: "0")

    def compare(self, node: ast.AST, op: ast.cmpop, left: str, right: str) -> str:
        if type(op) not in _COMPARE:
            raise self.scope.error(node, f"the comparison {type(op).__name__} is not part of the dialect")
        return self.let(f"icmp {_COMPARE[type(op)]} i64 {left}, {right}")

    def value_BoolOp(self, node: ast.BoolOp) -> str:
        slot, end = self.slot(), self.label()
        for index, part in enumerate(node.values):
            operand = self.value(part)
            self.put(f"store i64 {operand}, ptr {slot}")
            if index + 1 == len(node.values):
                self.jump(end)
                break
            rest, bit = self.label(), self.bit(operand)
            yes, no = (rest, end) if isinstance(node.op, ast.And) else (end, rest)
            self.branch(bit, yes, no)
            self.begin(rest)
        self.begin(end)
        return self.let(f"load i64, ptr {slot}")

    def value_IfExp(self, node: ast.IfExp) -> str:
        return self.chosen(node.test, lambda: self.value(node.body), lambda: self.value(node.orelse))

    def chosen(self, test: ast.expr, yes: Callable[[], str], no: Callable[[], str]) -> str:
        slot, then, other, end = self.slot(), self.label(), self.label(), self.label()
        self.condition(test, then, other)
        for label, side in ((then, yes), (other, no)):
            self.begin(label)
            self.put(f"store i64 {side()}, ptr {slot}")
            self.jump(end)
        self.begin(end)
        return self.let(f"load i64, ptr {slot}")

    def condition(self, node: ast.expr, yes: str, no: str) -> None:
        """Write a branch on the truth of an expression."""
        match node:
            case ast.BoolOp(op=op, values=values):
                for part in values[:-1]:
                    rest = self.label()
                    self.condition(part, *((rest, no) if isinstance(op, ast.And) else (yes, rest)))
                    self.begin(rest)
                self.condition(values[-1], yes, no)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.condition(operand, no, yes)
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                operand = self.value(left)
                for index, (op, right) in enumerate(zip(ops, comparators, strict=True)):
                    following = self.value(right)
                    rest = yes if index + 1 == len(ops) else self.label()
                    self.branch(self.compare(node, op, operand, following), rest, no)
                    operand = following
                    if rest != yes:
                        self.begin(rest)
            case ast.Call(func=ast.Name(id="likely" | "unlikely" as hint), args=[inner], keywords=[]):
                expected = "true" if hint == "likely" else "false"
                bit = self.bit(self.value(inner))
                self.branch(self.let(f"call i1 @llvm.expect.i1(i1 {bit}, i1 {expected})"), yes, no)
            case _:
                self.branch(self.bit(self.value(node)), yes, no)

    def pointer(self, node: ast.expr) -> str:
        """Write an address as a pointer; the leftmost term of a sum becomes its base."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            base = self.pointer(node.left)
            offset = self.value(node.right)
            if isinstance(node.op, ast.Sub):
                offset = self.binary(node, ast.Sub(), "0", offset)
            return base if offset == "0" else self.let(f"getelementptr i8, ptr {base}, i64 {offset}")
        return self.let(f"inttoptr i64 {self.value(node)} to ptr")

    def value_Call(self, node: ast.Call) -> str:
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise self.scope.error(node, "only plain calls with positional arguments are part of the dialect")
        name, args = node.func.id, node.args
        if name in self.scope.arities:
            self.expect(node, self.scope.arities[name])
            operands = [f"i64 {self.value(arg)}" for arg in args]
            return self.let(f'call i64 @"{name}"({", ".join(operands)})')
        if name in _LOADS:
            return self.load(node, *_LOADS[name])
        if name in _STORES:
            return self.store(node, _STORES[name])
        method = getattr(self, "call_" + name, None)
        if method is not None:
            return method(node)
        if name in VALUE_INTRINSICS:
            arity, write = VALUE_INTRINSICS[name]
            self.expect(node, arity)
            return write(self.let, [self.value(arg) for arg in args])
        raise self.scope.error(node, f"there is no function '{name}'")

    def expect(self, node: ast.Call, arity: int) -> None:
        if len(node.args) != arity:
            assert isinstance(node.func, ast.Name)
            raise self.scope.error(node, f"'{node.func.id}' takes {arity} arguments, not {len(node.args)}")

    def load(self, node: ast.Call, bits: int, extend: str) -> str:
        self.expect(node, 1)
        loaded = self.let(f"load i{bits}, ptr {self.pointer(node.args[0])}, align 1")
        return loaded if bits == 64 else self.let(f"{extend} i{bits} {loaded} to i64")

    def store(self, node: ast.Call, bits: int) -> str:
        self.expect(node, 2)
        pointer, operand = self.pointer(node.args[0]), self.value(node.args[1])
        if bits < 64:
            operand = self.let(f"trunc i64 {operand} to i{bits}")
        self.put(f"store i{bits} {operand}, ptr {pointer}, align 1")
        return "0"

    def call_copy(self, node: ast.Call) -> str:
        self.expect(node, 3)
        target, source = self.pointer(node.args[0]), self.pointer(node.args[1])
        size = self.constant(node.args[2], "the size of copy")
        self.put(f"call void @llvm.memcpy.p0.p0.i64(ptr align 1 {target}, ptr align 1 {source}, i64 {size}, i1 false)")
        return "0"

    def call_clear(self, node: ast.Call) -> str:
        self.expect(node, 2)
        target, size = self.pointer(node.args[0]), self.constant(node.args[1], "the size of clear")
        self.put(f"call void @llvm.memset.p0.i64(ptr align 1 {target}, i8 0, i64 {size}, i1 false)")
        return "0"

    def call_prefetch(self, node: ast.Call) -> str:
        self.expect(node, 1)
        self.put(f"call void @llvm.prefetch.p0(ptr {self.pointer(node.args[0])}, i32 0, i32 3, i32 1)")
        return "0"

    def call_alloca(self, node: ast.Call) -> str:
        self.expect(node, 1)
        size, name = self.constant(node.args[0], "the size of alloca"), self.fresh()
        self.slots.append(f"  {name} = alloca [{size} x i8], align 16")
        return self.let(f"ptrtoint ptr {name} to i64")

    def gather(self, node: ast.Call) -> str:
        """Write `pext` or `pdep` with a constant mask: one instruction where there is one, else shifts."""
        assert isinstance(node.func, ast.Name)
        name, scatter = node.func.id, node.func.id == "pdep"
        self.expect(node, 2)
        operand, mask = self.value(node.args[0]), self.constant(node.args[1], f"the mask of {name}")
        if self.scope.gathers_bits:
            return self.let(f"call i64 @llvm.x86.bmi.{name}.64(i64 {operand}, i64 {mask})")
        result = "0"
        for place, index, length in runs(mask & _MASK):
            before, after = (index, place) if scatter else (place, index)
            part = self.let(f"lshr i64 {operand}, {before}")
            part = self.let(f"and i64 {part}, {wrap((1 << length) - 1)}")
            part = self.let(f"shl i64 {part}, {after}")
            result = part if result == "0" else self.let(f"or i64 {result}, {part}")
        return result

    call_pext = call_pdep = gather

    def hinted(self, node: ast.Call) -> str:
        self.expect(node, 1)
        return self.chosen(node, lambda: "1", lambda: "0")

    call_likely = call_unlikely = hinted

    def extreme(self, node: ast.Call) -> str:
        assert isinstance(node.func, ast.Name)
        if len(node.args) < 2:
            raise self.scope.error(node, f"'{node.func.id}' takes two arguments or more")
        result = self.value(node.args[0])
        for arg in node.args[1:]:
            result = self.let(f"call i64 @llvm.s{node.func.id}.i64(i64 {result}, i64 {self.value(arg)})")
        return result

    call_min = call_max = extreme
