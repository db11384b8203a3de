"""The dialect means what Python means: the same text run by Python and by the machine."""

from collections.abc import Callable, Sequence

import pytest
from fencepost.checker.explore.native import machine
from fencepost.checker.explore.native.machine import DialectError, Unit, build, emit_ir
from fencepost.spec.lang.errors import FencepostSpecError
from hypothesis import given, settings
from hypothesis import strategies as st

SMALL = st.integers(-1000, 1000)


def in_python(text: str) -> dict[str, Callable[..., int]]:
    """Run dialect text as Python, with the intrinsics that need no memory."""

    def likely(c: int) -> int:
        return int(bool(c))

    def select(c: int, a: int, b: int) -> int:
        return a if c else b

    def popcount(x: int) -> int:
        return (x & (1 << 64) - 1).bit_count()

    names: dict[str, Callable[..., int]] = {"likely": likely, "select": select, "popcount": popcount}
    exec(text, names)
    return names


def native(text: str, name: str = "f") -> Callable[..., int]:
    return build([Unit("text", text)], [name]).function(name)


def expressions() -> st.SearchStrategy[str]:
    """Expressions over a, b, c that stay far from 64 bits."""
    leaves = st.sampled_from(["a", "b", "c", "7", "-3", "0", "True"])

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        two = st.tuples(inner, inner)
        return st.one_of(
            two.flatmap(lambda p: st.sampled_from(["+", "-", "&", "|", "^"]).map(lambda op: f"({p[0]} {op} {p[1]})")),
            inner.map(lambda e: f"({e} % 97 * 3)"),
            st.tuples(inner, st.sampled_from(["//", "%"]), st.sampled_from(["1", "3", "8", "10", "-5", "-8"])).map(
                lambda p: f"({p[0]} {p[1]} {p[2]})"
            ),
            two.map(lambda p: f"(({p[0]}) % 1009 << ({p[1]}) % 5)"),
            two.map(lambda p: f"({p[0]} >> ({p[1]}) % 64)"),
            st.tuples(st.sampled_from(["-", "~", "not ", "+"]), inner).map(lambda p: f"({p[0]}({p[1]}))"),
            st.tuples(
                inner, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), inner, st.sampled_from(["<", "=="]), inner
            ).map(lambda p: f"({p[0]} {p[1]} {p[2]} {p[3]} {p[4]})"),
            st.tuples(inner, st.sampled_from(["and", "or"]), inner, st.sampled_from(["and", "or"]), inner).map(
                lambda p: f"({p[0]} {p[1]} {p[2]} {p[3]} {p[4]})"
            ),
            st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} if {p[1]} else {p[2]})"),
            st.tuples(inner, inner, inner).map(lambda p: f"select({p[0]}, {p[1]}, {p[2]})"),
            st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda p: f"{p[0]}({p[1]}, {p[2]}, c)"),
            inner.map(lambda e: f"abs({e})"),
            inner.map(lambda e: f"popcount({e})"),
        )

    return st.recursive(leaves, larger, max_leaves=12)


@settings(max_examples=25, deadline=None)
@given(st.lists(expressions(), min_size=6, max_size=6), st.lists(st.tuples(SMALL, SMALL, SMALL), min_size=4, max_size=4))
def test_expressions_are_those_of_python(texts: list[str], inputs: list[tuple[int, int, int]]) -> None:
    text = "\n".join(f"def f{i}(a, b, c):\n    return {e}" for i, e in enumerate(texts))
    expected = in_python(text)
    library = build([Unit("text", text)], [f"f{i}" for i in range(len(texts))])
    for i in range(len(texts)):
        for values in inputs:
            assert library.function(f"f{i}")(*values) == int(expected[f"f{i}"](*values)), texts[i]


def statements(depth: int, in_loop: bool) -> st.SearchStrategy[list[str]]:
    """Blocks of statements over the locals x, y and z; loops are short."""
    simple = st.sampled_from(
        [
            "x = y + a",
            "y = x * 3 % 101",
            "z += x - y",
            "x ^= z",
            "y -= 1",
            "z = -z // 3",
            "x = h(x, y)",
            "pass",
            "z = x if y > 2 else z",
        ]
    ).map(lambda line: [line])
    if in_loop:
        jumps = st.sampled_from(["break", "continue", "return x - z"])
        simple = st.one_of(
            simple,
            st.tuples(st.sampled_from(["x > y", "z % 3 == 1"]), jumps).map(lambda p: [f"if {p[0]}:", f"    {p[1]}"]),
        )
    if depth == 0:
        return simple
    inner, looped = statements(depth - 1, in_loop), statements(depth - 1, True)
    tests = st.sampled_from(["x < y", "not z", "x % 2 and y > 1 or z < 0", "0 < x <= 50", "likely(y != 3)"])
    ranges = st.sampled_from(["4", "x % 5", "-2, y % 4", "7, -1, -2", "y % 3, 9, 3"])
    compound = st.one_of(
        st.tuples(tests, inner).map(lambda p: [f"if {p[0]}:", *indent(p[1])]),
        st.tuples(tests, inner, tests, inner, inner).map(
            lambda p: [f"if {p[0]}:", *indent(p[1]), f"elif {p[2]}:", *indent(p[3]), "else:", *indent(p[4])]
        ),
        st.tuples(ranges, looped).map(lambda p: [f"for i in range({p[0]}):", *indent(["y += i", *p[1]])]),
        looped.map(lambda body: [f"n{depth} = 5", f"while n{depth} > 0:", *indent([f"n{depth} -= 1", *body])]),
    )
    return st.lists(st.one_of(simple, compound), min_size=1, max_size=3).map(
        lambda parts: [line for part in parts for line in part]
    )


def indent(lines: Sequence[str]) -> list[str]:
    return ["    " + line for line in lines]


@settings(max_examples=60, deadline=None)
@given(statements(3, False), st.lists(st.tuples(SMALL, SMALL), min_size=5, max_size=5))
def test_statements_are_those_of_python(body: list[str], inputs: list[tuple[int, int]]) -> None:
    lines = ["x = 1", "y = b", "z = 0", "i = 0", *body, "return x + 1000 * y + 7 * z + i"]
    helper = "def h(p, q):\n    if p > q:\n        return p - q\n    p = q % 1000\n    return p\n"
    text = helper + "\n".join(["def f(a, b):", *indent(lines)])
    expected, found = in_python(text)["f"], native(text)
    for values in inputs:
        wanted = int(expected(*values))
        assert found(*values) == (wanted + (1 << 63)) % (1 << 64) - (1 << 63), text


@pytest.mark.parametrize(
    ("body", "values", "result"),
    [
        ("return a + b", ((1 << 63) - 1, 1), -(1 << 63)),
        ("return a * b", (1 << 40, 1 << 40), 0),
        ("return add_overflows(a, b)", ((1 << 63) - 1, 1), 1),
        ("return add_overflows(a, b)", ((1 << 63) - 2, 1), 0),
        ("return sub_overflows(a, b)", (-(1 << 63), 1), 1),
        ("return mul_overflows(a, b)", (1 << 40, 1 << 40), 1),
        ("return mul_overflows(a, b)", (-(1 << 31), 1 << 31), 0),
        ("return umulh(a, b)", (-1, 2), 1),
        ("return lshr(a, b)", (-1, 60), 15),
        ("return ult(a, b) + 2 * ule(b, b)", (1, -1), 3),
        ("return udiv(a, b) + urem(a, b)", (17, 5), 5),
        ("return ctz(a) * 100 + clz(b)", (8, 1), 363),
        ("return ctz(a)", (0, 0), 64),
        ("return 0xFFFFFFFFFFFFFFFF + a", (0, 0), -1),
        ("return pext(a, 0xF0F) << 8 | pdep(b, 0x33)", (0x5A7, 0b1011), (0x57 << 8) | 0x23),
        ("return never", (0, 0), 0),
        ("x = 5", (0, 0), 0),
    ],
)
def test_the_edges(body: str, values: tuple[int, int], result: int) -> None:
    body = body.replace("return never", "if a:\n        late = 3\n    return late")
    assert native(f"def f(a, b):\n    {body}")(*values) == result


@pytest.mark.parametrize("shifts", [False, True])
@pytest.mark.parametrize("mask", [0x0, 0x1, 0xFF00FF, -1, 0x0101010101010101, 0x0F03070103, 1 << 63])
def test_bits_are_gathered_and_scattered(mask: int, shifts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if shifts:
        monkeypatch.setattr(machine, "_gathers_bits", lambda: False)
    places = [bit for bit in range(64) if mask >> bit & 1]
    for value in (0, -1, 0x0123456789ABCDEF, 0x5555AAAA3333CCCC):
        gathered = sum((value >> place & 1) << index for index, place in enumerate(places))
        scattered = sum((value >> index & 1) << place for index, place in enumerate(places))
        found = build(
            [Unit("text", "def f(a):\n    return pext(a, M)\ndef g(a):\n    return pdep(a, M)", {"M": mask})],
            ["f", "g"],
        )
        assert found.function("f")(value) % (1 << 64) == gathered
        assert found.function("g")(value) % (1 << 64) == scattered


def test_memory() -> None:
    text = """
def f(a, b):
    p = alloca(64)
    clear(p, 64)
    store8(p + 1, a)
    store16(p + 2, a)
    store32(p + 4, a)
    store64(p + 8, a)
    q = alloca(32)
    copy(q, p, 32)
    store8(p + 1, 99)
    prefetch(p + 4 * b)
    total = load8(q + 1) + 1000 * loadu8(q + 1)
    total += 1000000 * (load16(q + 2) == -2) + 2000000 * (loadu16(q + 2) == 65534)
    total += 4000000 * (load32(q + 4) == -2) + 8000000 * (loadu32(q + 4) == 4294967294)
    return total + 16000000 * (load64(q + 8 - b + b) == -2) + 32000000 * (load8(q) == 0)
"""
    assert native(text)(-2, 3) == -2 + 254_000 + 63_000_000


def test_addresses_are_sums_of_any_shape() -> None:
    text = """
def f(n, s):
    p = alloca(N * 8)
    for i in range(N):
        store64(8 * i + p, i * i)
    q = p + 8 * n
    return load64(q) + load64(q - 8) * 100 + load64((q + 8) - 16 + s)
"""
    assert build([Unit("t", text, {"N": 8})], ["f"]).function("f")(5, 8) == 25 + 1600 + 25


def test_functions_call_each_other_in_any_order() -> None:
    text = """
@noinline
def even(n):
    return 1 if n == 0 else odd(n - 1)

def odd(n):
    \"\"\"Docstrings are fine.\"\"\"
    if n == 0:
        return False
    return even(n - 1)
"""
    even = native(text, "even")
    assert [even(n) for n in range(5)] == [1, 0, 1, 0, 1]


def test_short_circuit_leaves_calls_out() -> None:
    text = """
def note(p, v):
    store64(p, load64(p) * 10 + v)
    return v

def f(a):
    p = alloca(8)
    store64(p, 0)
    if note(p, a) and note(p, 2) or note(p, 3):
        note(p, 4)
    x = note(p, 0) or note(p, 5)
    return load64(p) * 10 + x
"""
    f = native(text)
    assert (f(1), f(0)) == (124055, 34055)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(a):\n    while a:\n        a = 1\n    else:\n        a = 2", "line 2: while-else is not part"),
        ("def f(a):\n    for x in a:\n        pass", "line 2: a for loop is over range"),
        ("def f(a):\n    return a / 2", "line 2: the operator Div is not part of the dialect: return a / 2"),
        ("def f(a):\n    return a // 0", "division by the constant 0"),
        ("def f(a):\n    return a << 64", "shift by a constant outside 0..63"),
        ("def f(a):\n    return 'x'", "'x' is not a 64-bit integer"),
        ("def f(a):\n    return 1 << 2.5", "2.5 is not a 64-bit integer"),
        ("def f(a):\n    return g(a)", "there is no function 'g'"),
        ("def f(a):\n    return b", "the name 'b' is neither"),
        ("def f(a):\n    return f()", "'f' takes 1 arguments, not 0"),
        ("def f(a):\n    return load8(a, 1)", "'load8' takes 1 arguments, not 2"),
        ("def f(a):\n    return f(a=1)", "only plain calls"),
        ("def f(a):\n    return a.b(1)", "only plain calls"),
        ("def f(a):\n    a.x = 1", "only a plain name can be assigned"),
        ("def f(a):\n    x = y = 1", "an assignment has one target"),
        ("def f(a):\n    return [a]", "List is not part of the dialect"),
        ("def f(a):\n    return a is a", "the comparison Is is not part"),
        ("def f(a):\n    with a:\n        pass", "line 2: With is not part"),
        ("def f(a):\n    copy(a, a, a)", "the size of copy must be a constant"),
        ("def f(a):\n    return alloca(a)", "the size of alloca must be a constant"),
        ("def f(a):\n    return pext(a, a)", "the mask of pext must be a constant"),
        ("def f(a):\n    K = 1", "'K' is a constant or a function and cannot be assigned"),
        ("def f(f):\n    pass", "'f' is a constant or a function"),
        ("def f(a):\n    break", "there is no loop here"),
        ("def f(a):\n    for i in range(0, 4, 0):\n        pass", "the step of range is 0"),
        ("def f(a):\n    for i in range(0, 4, a):\n        pass", "the step of range must be a constant"),
        ("def f(a=1):\n    pass", "plain positional parameters only"),
        ("@twice\ndef f(a):\n    pass", "the decorators are @inline and @noinline"),
        ("def f(a):\n    pass\ndef f(a):\n    pass", "line 3: the function 'f' is defined twice"),
        ("x = 1", "only functions may stand at the top"),
        ("def f(a:\n", "line 1: "),
        ("def g(a):\n    pass", "the function 'f' is to be exported but is not defined"),
    ],
)
def test_what_is_not_in_the_dialect_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(DialectError) as caught:
        build([Unit("text", text, {"K": 3})], ["f"])
    assert message in str(caught.value)


def test_the_assembly_can_be_looked_at() -> None:
    units = [Unit("text", "def f(a):\n    return a * 3 + a * 5")]
    assert "mul i64" in emit_ir(units, ["f"])
    assert "shl i64" in emit_ir(units, ["f"], optimised=True)


def test_an_unknown_function_is_refused() -> None:
    with pytest.raises(KeyError, match="exports no function 'g'"):
        build([Unit("text", "def f(a):\n    return a")], ["f"]).function("g")


@pytest.mark.parametrize("level", ["0", "1", "2", ""])
def test_code_does_the_same_however_hard_it_is_optimised(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCEPOST_OPTIMISE", level)
    text = "def f(n):\n    total = 0\n    for i in range(n):\n        total += i * i % 7\n    return total\n"
    made = build([Unit("some", text)], ["f"])
    assert [made.function("f")(n) for n in range(9)] == [in_python(text)["f"](n) for n in range(9)]


def test_another_level_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCEPOST_OPTIMISE", "fast")
    with pytest.raises(FencepostSpecError, match="FENCEPOST_OPTIMISE is 'fast'; set it to 0 or 1 or 2"):
        build([Unit("some", "def f(n):\n    return n\n")], ["f"])
