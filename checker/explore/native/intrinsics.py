"""The intrinsics of the dialect that turn values into a value, and the LLVM declarations they need."""

from collections.abc import Callable, Sequence

Let = Callable[[str], str]
"""Writes one instruction and returns the register that holds its result."""

Writer = Callable[[Let, Sequence[str]], str]

DECLARATIONS = (
    "declare i1 @llvm.expect.i1(i1, i1)",
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
    "declare i64 @llvm.smin.i64(i64, i64)",
    "declare i64 @llvm.smax.i64(i64, i64)",
    "declare i64 @llvm.abs.i64(i64, i1)",
    "declare i64 @llvm.ctpop.i64(i64)",
    "declare i64 @llvm.cttz.i64(i64, i1)",
    "declare i64 @llvm.ctlz.i64(i64, i1)",
    "declare {i64, i1} @llvm.sadd.with.overflow.i64(i64, i64)",
    "declare {i64, i1} @llvm.ssub.with.overflow.i64(i64, i64)",
    "declare {i64, i1} @llvm.smul.with.overflow.i64(i64, i64)",
)


BIT_DECLARATIONS = (
    "declare i64 @llvm.x86.bmi.pext.64(i64, i64)",
    "declare i64 @llvm.x86.bmi.pdep.64(i64, i64)",
)


def runs(mask: int) -> list[tuple[int, int, int]]:
    """Return the runs of ones in a mask, from below: where each starts, the ones below it, and its length."""
    result: list[tuple[int, int, int]] = []
    place = below = 0
    while mask >> place:
        if not mask >> place & 1:
            place += 1
            continue
        length = 1
        while mask >> (place + length) & 1:
            length += 1
        result.append((place, below, length))
        place, below = place + length, below + length
    return result


def _plain(instruction: str) -> Writer:
    return lambda let, args: let(f"{instruction} i64 {args[0]}, {args[1]}")


def _compare(kind: str) -> Writer:
    return lambda let, args: let(f"zext i1 {let(f'icmp {kind} i64 {args[0]}, {args[1]}')} to i64")


def _count(name: str, tail: str = "") -> Writer:
    return lambda let, args: let(f"call i64 @llvm.{name}.i64(i64 {args[0]}{tail})")


def _overflow(kind: str) -> Writer:
    def write(let: Let, args: Sequence[str]) -> str:
        pair = let(f"call {{i64, i1}} @llvm.s{kind}.with.overflow.i64(i64 {args[0]}, i64 {args[1]})")
        bit = let(f"extractvalue {{i64, i1}} {pair}, 1")
        return let(f"zext i1 {bit} to i64")

    return write


def _high_product(let: Let, args: Sequence[str]) -> str:
    left, right = (let(f"zext i64 {arg} to i128") for arg in args)
    product = let(f"mul i128 {left}, {right}")
    high = let(f"lshr i128 {product}, 64")
    return let(f"trunc i128 {high} to i64")


def _select(let: Let, args: Sequence[str]) -> str:
    bit = let(f"icmp ne i64 {args[0]}, 0")
    return let(f"select i1 {bit}, i64 {args[1]}, i64 {args[2]}")


VALUE_INTRINSICS: dict[str, tuple[int, Writer]] = {
    "lshr": (2, _plain("lshr")),
    "udiv": (2, _plain("udiv")),
    "urem": (2, _plain("urem")),
    "ult": (2, _compare("ult")),
    "ule": (2, _compare("ule")),
    "umulh": (2, _high_product),
    "ctz": (1, _count("cttz", ", i1 false")),
    "clz": (1, _count("ctlz", ", i1 false")),
    "popcount": (1, _count("ctpop")),
    "abs": (1, _count("abs", ", i1 false")),
    "select": (3, _select),
    "add_overflows": (2, _overflow("add")),
    "sub_overflows": (2, _overflow("sub")),
    "mul_overflows": (2, _overflow("mul")),
}
"""Name to (number of arguments, writer)."""
