"""Random specs as text: every construct of the language, put together by type; most are accepted, many go wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

T = TypeVar("T")

HEAD = '''"""A random spec."""

from enum import IntEnum

from fencepost.spec.lang import (
    Array, Bool, Bound, Index, Int, Maybe, Seq, SetOf, Switch, action, always, fresh, implies, init, quiescent,
    reachable, record, require, state, step,
)

REQS = Index("reqs", default=2)
BLKS = Index("blks", default=3)
STEPS = Bound("steps", default=2, least=1)
MODE = Switch("mode", "one", "two")
LIMIT = -1


class Kind(IntEnum):
    IDLE = 0
    BUSY = 1
    DONE = 2


@record
class Entry:
    n: Int(-2, 3)
    block: BLKS
    who: Maybe[REQS]
    held: SetOf[BLKS]


@state
class World:
    n: Int(-2, 5)
    on: Bool
    kind: Kind
    maybe: Maybe[Int(0, 3)]
    status: Array[REQS, Kind]
    owner: Array[BLKS, Maybe[REQS]]
    grid: Array[REQS, Array[BLKS, Bool]]
    level: Array[STEPS, Int(0, 3)]
    table: Array[REQS, Seq[BLKS, 2]]
    free: Seq[BLKS, 3]
    nums: Seq[Int(-1, 2), 2]
    none: Seq[BLKS, STEPS - 2]
    entries: Seq[Entry, 2]
    sets: Seq[SetOf[BLKS], 2]
    one: Entry
    busy: SetOf[BLKS]
    late: SetOf[BLKS]
    asked: SetOf[REQS]


@init
def start(s, flip: Bool):
    for b in range(BLKS):
        s.free.append(b)
    s.on = flip
    s.entries.grow().n = 1
    s.nums.append(2)
    s.one.who = 1


'''


@dataclass
class Scope:
    """Names in scope by type, how deep the code is nested, and where it stands."""

    names: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    depth: int = 0
    acts: bool = True
    root: str = "s"
    loops: int = 0
    over: tuple[str, ...] = ()

    def of(self, kind: str) -> list[str]:
        """The names of a type."""
        return self.names.get(kind, [])

    def inner(self, **more: str) -> Scope:
        """A nested scope with more names (name=type)."""
        names = {kind: list(known) for kind, known in self.names.items()}
        for name, kind in more.items():
            names.setdefault(kind, []).append(name)
        return Scope(names, self.depth + 1, self.acts, self.root, self.loops, self.over)


class Writer:
    """Writes one spec; `pick` chooses one of several things."""

    def __init__(self, pick: Callable[[Sequence[T]], T]) -> None:
        self.pick: Callable[[Sequence[object]], object] = pick  # pyright: ignore[reportAttributeAccessIssue]
        self.count = 0
        self.helpers: list[tuple[str, str, str]] = []

    def choose(self, *options: str | Callable[[], str]) -> str:
        """One of several texts, or of what makes them."""
        option = self.pick(options)
        return option if isinstance(option, str) else option()  # pyright: ignore[reportCallIssue, reportUnknownVariableType]

    def chance(self, percent: int) -> bool:
        """True in about so many of a hundred cases."""
        return int(str(self.pick(range(100)))) >= 100 - percent

    def name(self, hint: str) -> str:
        """A new name."""
        self.count += 1
        return f"{hint}{self.count}"

    # ---- expressions

    def num(self, c: Scope) -> str:
        """A number."""
        s = c.root
        leaves = ["0", "1", "2", "-1", "3", f"{s}.n", f"{s}.kind", "STEPS", "LIMIT", "Kind.BUSY", *c.of("num") * 2]
        leaves += [f"{e}.n" for e in c.of("entry")] * 2
        if c.depth > 3:
            return self.choose(*leaves)
        d = c.inner()
        return self.choose(
            *leaves,
            lambda: f"len({self.seq(d)})",
            lambda: f"len({self.set(d, 'blk')})",
            lambda: f"({self.num(d)} {self.choose('+', '-', '*')} {self.num(d)})",
            lambda: f"({self.num(d)} {self.choose('//', '%')} {self.choose('1', '2', '3', 'STEPS')})",
            lambda: f"{self.choose('min', 'max')}({self.num(d)}, {self.num(d)})",
            lambda: f"abs({self.num(d)})",
            lambda: f"-{self.num(d)}",
            lambda: f"int({self.cond(d)})",
            lambda: f"({self.num(d)} if {self.cond(d)} else {self.num(d)})",
            lambda: f"{s}.level[{self.at(d, 'level')}]",
            lambda: self.element(d, f"{s}.nums", "", self.at(d, "nums"), "0"),
            lambda: self.element(d, f"{s}.entries", ".n", self.at(d, "entries"), "-1"),
            lambda: f"{s}.status[{self.member(d, 'req')}]",
            lambda: f"{s}.maybe" if self.chance(20) else f"(0 if {s}.maybe is None else {s}.maybe)",
            lambda: f"sum({self.generated(d, 'num')})",
            lambda: f"sum({self.generated(d, 'cond')})",
            *([lambda: f"{s}.nums.{self.choose('pop_front', 'pop_back')}()"] if self.may_change(c, "nums") else []),
            *self.calls(d, "num"),
        )

    def at(self, c: Scope, of: str) -> str:
        """A position in a sequence or array, mostly one that exists."""
        if self.chance(15):
            return self.num(c)
        known = {"level": "STEPS", "nums": "2", "entries": "1", "free": "2"}[of]
        return self.choose("0", f"{self.num(c)} % {known}")

    def element(self, c: Scope, sequence: str, part: str, at: str, instead: str) -> str:
        """An element of a sequence, mostly only if there is one."""
        taken = f"{sequence}[{at}]{part}"
        if self.chance(15) or "pop" in taken:
            return taken
        return f"({taken} if len({sequence}) > {at} else {instead})"

    def within(self, c: Scope, low: int, high: int) -> str:
        """A number, mostly one in a range."""
        if self.chance(15):
            return self.num(c)
        return self.choose(f"max({low}, min({high}, {self.num(c)}))", f"{self.num(c)} % {high + 1}", str(high), "0")

    def member(self, c: Scope, kind: str) -> str:
        """A member of an index, or what may be one or None."""
        s = c.root
        names = c.of(kind) * 4
        if kind == "blk":
            names += [f"{s}.one.block", *(f"{e}.block" for e in c.of("entry"))]
        elif self.chance(10) or not names:
            names += [f"{s}.one.who", *(f"{e}.who" for e in c.of("entry"))]
        if c.depth > 3:
            return self.choose(*names)
        d = c.inner()
        makers: list[str | Callable[[], str]] = [*names]
        if kind == "blk":
            some = f"{s}.one.block"
            makers += [lambda: self.element(d, f"{s}.free", "", self.at(d, "free"), some)]
            makers += [lambda: self.element(d, f"{s}.entries", ".block", self.at(d, "entries"), some)]
            makers += [lambda: self.element(d, f"{s}.table[{self.member(d, 'req')}]", "", "0", some)]
            if self.may_change(c, "free"):
                makers += [lambda: f"{s}.free.{self.choose('pop_front', 'pop_back')}()"]
        else:
            pass
        if kind == "req" and self.chance(10):
            makers += [lambda: f"{s}.owner[{self.member(d, 'blk')}]", lambda: f"{s}.entries[{self.at(d, 'entries')}].who"]
        if self.chance(15):
            makers += [lambda: f"({self.member(d, kind)} if {self.cond(d)} else {self.member(d, kind)})"]
        if self.chance(3):
            makers += [lambda: self.num(d)]
        return self.choose(*makers)

    def maybe(self, c: Scope, kind: str) -> str:
        """A member or None."""
        return self.choose("None", lambda: self.member(c, kind), lambda: self.member(c, kind))

    def set(self, c: Scope, kind: str) -> str:
        """A set, of the state or a value."""
        s = c.root
        names = [*c.of("set") * 2, f"{s}.busy", f"{s}.late", f"{s}.one.held"] if kind == "blk" else [f"{s}.asked"]
        names += [f"{e}.held" for e in c.of("entry") if kind == "blk"]
        names += c.of(f"set_{kind}") * 2
        if c.depth > 3:
            return self.choose(*names)
        d = c.inner()
        more: list[str | Callable[[], str]] = []
        if kind == "blk":
            more = [lambda: f"{s}.sets[{self.choose('0', '1')}]"]
        return self.choose(
            *names,
            *names,
            *more,
            lambda: f"({self.set(d, kind)} {self.choose('|', '&', '-')} {self.set(d, kind)})",
            lambda: f"{{{self.member(d, kind)}}}",
            lambda: f"{{{self.generated(d, kind)}}}",
            lambda: f"set({self.set(d, kind)})",
            "set()",
        )

    def seq(self, c: Scope) -> str:
        """A sequence or array."""
        s = c.root
        return self.choose(
            f"{s}.free", f"{s}.nums", f"{s}.entries", f"{s}.none", f"{s}.level", f"{s}.sets",
            lambda: f"{s}.table[{self.member(c.inner(), 'req')}]",
        )  # fmt: skip

    def cond(self, c: Scope) -> str:
        """A truth value."""
        s = c.root
        leaves = [f"{s}.on", "True", "False", f"{s}.n > 0", 'MODE == "one"', 'MODE in ("two",)', *c.of("bool") * 2]
        if c.depth > 3:
            return self.choose(*leaves)
        d = c.inner()
        return self.choose(
            *leaves,
            lambda: f"{self.num(d)} {self.choose('==', '!=', '<', '<=', '>', '>=')} {self.num(d)}",
            lambda: f"({self.num(d)} < {self.num(d)} <= {self.num(d)})",
            lambda: f"({self.member(d, 'blk')} {self.choose('==', '!=')} {self.member(d, 'blk')})",
            lambda: f"({self.maybe(d, 'req')} {self.choose('==', '!=')} {self.member(d, 'req')})",
            lambda: f"({self.member(d, 'req')} {self.choose('is', 'is not')} None)",
            lambda: f"({s}.maybe == {self.num(d)})",
            lambda: f"({self.num(d)} is None)",
            lambda: f"({self.member(d, 'blk')} {self.choose('in', 'not in')} {self.set(d, 'blk')})",
            lambda: f"({self.member(d, 'req')} in {self.set(d, 'req')})",
            lambda: f"({self.member(d, 'blk')} in {self.choose(f'{s}.free', f'{s}.none')})",
            lambda: f"({self.maybe(d, 'req')} in {s}.owner)",
            lambda: f"({self.num(d)} {self.choose('in', 'not in')} {self.choose(f'{s}.nums', f'{s}.level')})",
            lambda: f"({self.set(d, 'blk')} {self.choose('==', '!=', '<=', '>=')} {self.set(d, 'blk')})",
            lambda: f"({s}.free {self.choose('==', '!=')} {s}.free)",
            lambda: f"({s}.entries[0] == {s}.one)",
            lambda: f"{s}.grid[{self.member(d, 'req')}][{self.member(d, 'blk')}]",
            lambda: f"(not {self.cond(d)})",
            lambda: f"({self.cond(d)} and {self.cond(d)})",
            lambda: f"({self.cond(d)} or {self.cond(d)})",
            lambda: f"(not {self.cond(d)} or {self.cond(d)})",
            lambda: f"implies({self.cond(d)}, {self.cond(d)})",
            lambda: f"{self.choose('all', 'any')}({self.generated(d, 'cond')})",
            lambda: f"({self.cond(d)} if {self.cond(d)} else {self.cond(d)})",
            *self.calls(d, "bool"),
        )

    def generated(self, c: Scope, kind: str) -> str:
        """The inside of a quantifier or set: an element for members and elements, perhaps two levels deep."""
        text, inner = "", Scope(c.names, c.depth, False, c.root, c.loops, c.over)
        for _ in range(2 if self.chance(25) else 1):
            variable, over, of = self.iterated(inner)
            text += f" for {variable} in {over}"
            inner = inner.inner(**{variable: of})
            if self.chance(35):
                text += f" if {self.cond(inner)}"
        makers = {"num": self.num, "cond": self.cond}
        element = makers[kind](inner) if kind in makers else self.member(inner, kind)
        if kind not in makers and self.chance(70):
            text += f" if {element} is not None"
        return element + text

    def iterated(self, c: Scope) -> tuple[str, str, str]:
        """A loop: its variable, what it runs over, and the type of the variable."""
        s = c.root
        option = self.pick(range(11))
        match option:
            case 0 | 1:
                return self.name("r"), "range(REQS)", "req"
            case 2 | 3:
                return self.name("b"), "range(BLKS)", "blk"
            case 4:
                return self.name("i"), f"range({self.num(c)})", "num"
            case 5:
                return self.name("i"), f"range({self.choose('-1', '0', '1')}, {self.num(c)})", "num"
            case 6:
                return self.name("b"), self.choose(f"{s}.free", f"reversed({s}.free)", f"{s}.none"), "blk"
            case 7:
                return self.name("i"), self.choose(f"{s}.nums", f"reversed({s}.nums)", f"{s}.level"), "num"
            case 8:
                return self.name("e"), self.choose(f"{s}.entries", f"reversed({s}.entries)"), "entry"
            case 9:
                return self.name("b"), f"{s}.table[{self.member(c, 'req')}]", "blk"
            case _:
                return self.name("b"), self.set(c, "blk"), "blk"

    def calls(self, c: Scope, returns: str) -> list[Callable[[], str]]:
        """What makes calls of the helpers that return a type."""
        return [partial(self.call, c, helper) for helper in self.helpers if helper[1] == returns and c.acts]

    def call(self, c: Scope, helper: tuple[str, str, str]) -> str:
        """A call of a helper."""
        name, _, parameters = helper
        kinds = {"num": self.num, "cond": self.cond}
        given = [c.root]
        for kind in parameters.split():
            if kind in kinds:
                given.append(kinds[kind](c))
            elif kind == "seq":
                given.append(self.choose(f"{c.root}.free", lambda: f"{c.root}.table[{self.member(c, 'req')}]"))
            elif kind == "entry":
                given.append(self.choose(f"{c.root}.one", f"{c.root}.entries[0]", *c.of("entry")))
            else:
                given.append(self.member(c, kind))
        return f"{name}({', '.join(given)})"

    # ---- statements

    def may_change(self, c: Scope, what: str) -> bool:
        """Whether a statement or expression here may take something out of a sequence."""
        return c.acts and what not in c.over

    def block(self, c: Scope, lines: int, pad: str) -> list[str]:
        """Some statements; names that they assign stay in scope."""
        made: list[str] = []
        for _ in range(lines):
            made += [pad + line for line in self.statement(c)]
        return made or [pad + "pass"]

    def statement(self, c: Scope) -> list[str]:
        """One statement as lines."""
        option = int(str(self.pick(range(26))))
        if option == 0:
            return ["pass"]
        if option < 4 and c.depth < 4:
            return self.branch(c)
        if option < 7 and c.depth < 4:
            return self.loop(c)
        if option == 7 and c.loops:
            return [f"if {self.cond(c)}:", f"    {self.choose('break', 'continue')}"]
        if option == 8:
            return [f"if {self.cond(c)}:", "    return"] if "ret" not in c.names else ["pass"]
        if option < 12:
            return [self.assignment(c)]
        if option == 12:
            return [f"require({self.cond(c)})"]
        if option < 15:
            return self.local(c)
        if option < 17 and self.helpers:
            return [self.call(c, self.pick(self.helpers))]  # pyright: ignore[reportArgumentType]
        if option == 17:
            return self.augmented(c)
        return self.guarded(c, self.change(c))

    def guarded(self, c: Scope, line: str) -> list[str]:
        """A change under a condition that mostly makes it possible."""
        what, _, call = line.partition("(")
        sequence, _, method = what.rpartition(".")
        if not sequence.startswith(("s.free", "s.nums", "s.entries", "s.sets")) or "(" in sequence or self.chance(10):
            return [line]
        capacity = 3 if sequence == "s.free" else 2
        if method in ("append", "push_front", "insert", "grow"):
            return [f"if len({sequence}) < {capacity}:", f"    {line}"]
        if method == "remove" and "pop" not in call:
            return [f"if {call[:-1]} in {sequence}:", f"    {line}"]
        return [f"if len({sequence}) > {self.choose('0', '1')}:", f"    {line}"]

    def branch(self, c: Scope) -> list[str]:
        """An if, perhaps with elif and else."""
        lines = [f"if {self.cond(c)}:", *self.block(c.inner(), 1, "    ")]
        if self.chance(30):
            lines += [f"elif {self.cond(c)}:", *self.block(c.inner(), 1, "    ")]
        if self.chance(40):
            lines += ["else:", *self.block(c.inner(), 2, "    ")]
        return lines

    def loop(self, c: Scope) -> list[str]:
        """A for loop."""
        variable, over, of = self.iterated(Scope(c.names, c.depth, False, c.root, c.loops, c.over))
        inner = c.inner(**{variable: of})
        inner.loops += 1
        inner.over = (*c.over, *(w for w in ("free", "nums", "entries", "table", "none") if f".{w}" in over))
        if self.chance(10):
            variable = "_"
            inner = c.inner()
            inner.loops += 1
        return [f"for {variable} in {over}:", *self.block(inner, 2, "    ")]

    def local(self, c: Scope) -> list[str]:
        """A new local, or a new value of an old one."""
        kind = str(self.pick(("num", "num", "blk", "req", "bool", "set_blk", "entry", "found")))
        if kind == "entry":
            name = self.name("p")
            place = self.choose("s.one", "s.entries[0]", lambda: f"s.entries[{self.at(c, 'entries')}]")
            c.names.setdefault("entry", []).append(name)
            return [f"{name} = {place}"]
        if kind == "found":
            name, b = self.name("f"), self.name("b")
            c.names.setdefault("blk", []).append(name)
            return [
                f"{name} = None",
                f"for {b} in s.free:",
                f"    if {self.cond(c.inner(**{b: 'blk'}))}:",
                f"        {name} = {b}",
            ]
        makers = {"num": self.num, "bool": self.cond}
        make = makers.get(kind)
        value = make(c) if make else self.set(c, "blk") if kind == "set_blk" else self.member(c, kind)
        old = [name for name in c.of(kind) if name.startswith("x")]
        if kind == "set_blk":
            value = f"set({value})"
        name = str(self.pick(old)) if old and self.chance(40) else self.name("x")
        if name not in c.of(kind):
            c.names.setdefault(kind, []).append(name)
        return [f"{name} = {value}"]

    def assignment(self, c: Scope) -> str:
        """An assignment to a part of the state."""
        return self.choose(
            lambda: f"s.n = {self.within(c, -2, 5)}",
            lambda: f"s.on = {self.cond(c)}",
            lambda: f"s.kind = {self.choose('Kind.IDLE', 'Kind.DONE', lambda: self.within(c, 0, 2))}",
            lambda: f"s.maybe = {self.choose('None', lambda: self.within(c, 0, 3), '(None if s.on else s.n)')}",
            lambda: f"s.status[{self.member(c, 'req')}] = {self.within(c, 0, 2)}",
            lambda: f"s.owner[{self.member(c, 'blk')}] = {self.maybe(c, 'req')}",
            lambda: f"s.grid[{self.member(c, 'req')}][{self.member(c, 'blk')}] = {self.cond(c)}",
            lambda: f"s.level[{self.at(c, 'level')}] = {self.within(c, 0, 3)}",
            lambda: f"s.nums[{self.at(c, 'nums')}] = {self.within(c, -1, 2)}",
            lambda: f"s.one.block = {self.member(c, 'blk')}",
            lambda: f"s.one.who = {self.maybe(c, 'req')}",
            lambda: f"s.busy = {self.set(c, 'blk')}",
            lambda: f"s.one.held = {self.set(c, 'blk')}",
            lambda: f"s.asked = {self.set(c, 'req')}",
            lambda: "s.one = s.entries[0]",
            lambda: f"s.entries[{self.at(c, 'entries')}] = s.one",
            *[lambda e=e: f"{e}.n = {self.within(c, -2, 3)}" for e in c.of("entry")],
            *[lambda e=e: f"{e}.held = {self.set(c, 'blk')}" for e in c.of("entry")],
        )

    def augmented(self, c: Scope) -> list[str]:
        """An augmented assignment."""
        targets = ["s.n", "s.one.n", *(f"{e}.n" for e in c.of("entry")), *(x for x in c.of("num") if x[0] == "x")]
        return [
            self.choose(
                lambda: f"{self.choose(*targets)} {self.choose('+=', '-=', '*=')} {self.num(c)}",
                lambda: f"{self.choose(*targets)} {self.choose('//=', '%=')} {self.choose('2', '3', 'STEPS')}",
                lambda: f"s.level[{self.at(c, 'level')}] += {self.num(c)}",
                lambda: f"s.status[{self.member(c, 'req')}] += {self.num(c)}",
                lambda: f"{self.choose('s.busy', 's.late', 's.one.held')} {self.choose('|=', '&=', '-=')} {self.set(c, 'blk')}",
            )
        ]

    def change(self, c: Scope) -> str:
        """A method of a sequence or set."""
        options: list[str | Callable[[], str]] = [
            lambda: f"{self.choose('s.busy', 's.late', 's.one.held')}.{self.choose('add', 'discard')}({self.member(c, 'blk')})",
            lambda: f"s.asked.add({self.member(c, 'req')})",
            lambda: f"{self.choose('s.busy', 's.one', 's.grid')}.clear()",
        ]
        for what in ("free", "nums"):
            if self.may_change(c, what):
                options += self.taking(c, what)
        if self.may_change(c, "table"):
            options += [
                lambda: f"s.table[{self.member(c, 'req')}].append({self.member(c, 'blk')})",
                lambda: f"s.table[{self.member(c, 'req')}].{self.choose('pop_front', 'drop_back', 'clear')}()",
                lambda: f"s.table[{self.member(c, 'req')}] = s.table[{self.member(c, 'req')}]",
            ]
        if self.may_change(c, "entries"):
            options += [
                lambda: f"s.entries.grow().block = {self.member(c, 'blk')}",
                lambda: f"s.entries.{self.choose('append', 'push_front')}(s.one)",
                lambda: f"s.entries.{self.choose('drop_front', 'drop_back', 'clear')}()",
                lambda: f"s.entries.remove_at({self.num(c)})",
                lambda: f"s.entries.insert({self.num(c)}, s.one)",
            ]
        options += [lambda: f"s.sets.append({self.set(c, 'blk')})", "s.sets.drop_front()"]
        if self.chance(5):
            options += ["s.none.append(s.one.block)"]
        return self.choose(*options)

    def taking(self, c: Scope, what: str) -> list[Callable[[], str]]:
        """Methods of a sequence of scalars."""

        def value() -> str:
            return self.member(c, "blk") if what == "free" else self.num(c)

        return [
            lambda: f"s.{what}.{self.choose('append', 'push_front', 'remove')}({value()})",
            lambda: f"s.{what}.insert({self.num(c)}, {value()})",
            lambda: f"s.{what}.{self.choose('pop_front', 'pop_back', 'drop_front', 'drop_back', 'clear')}()",
            lambda: f"s.{what}.remove_at({self.num(c)})",
        ]

    # ---- whole specs

    def helper(self) -> str:
        """A helper with a few parameters; what it returns decides where it is called."""
        name = self.name("help")
        returns = str(self.pick(("num", "bool", "nothing")))
        kinds = ["req", "blk"] if self.chance(70) else []
        kinds += [str(self.pick(("num", "seq", "entry"))) for _ in range(int(str(self.pick(range(3)))))]
        parameters = [f"a{i}" for i in range(len(kinds))]
        scope = Scope({"ret": [""]} if returns != "nothing" else {})
        for parameter, kind in zip(parameters, kinds, strict=True):
            scope.names.setdefault(kind, []).append(parameter)
        if returns != "nothing" and self.chance(50):
            scope.acts = False
            body: list[str] = []
        else:
            body = self.block(scope, int(str(self.pick((1, 2, 3)))), "    ")
        if returns == "num":
            body += [f"    if {self.cond(scope)}:", f"        return {self.num(scope)}", f"    return {self.num(scope)}"]
        elif returns == "bool":
            body += [f"    return {self.cond(scope)}"]
        if "seq" in kinds and returns == "nothing":
            q = parameters[kinds.index("seq")]
            body += [
                f"    if len({q}) > 0:",
                f"        s.busy.add({q}.pop_front())",
                "    else:",
                f"        {q}.append(s.one.block)",
            ]
        self.helpers.append((name, returns, " ".join(kinds)))
        return f"def {name}({', '.join(['s', *parameters])}):\n" + "\n".join(body or ["    pass"]) + "\n\n\n"

    def action(self) -> str:
        """An action with parameters."""
        kinds = [("r", "REQS", "req"), ("b", "BLKS", "blk"), ("k", "Int(-1, 2)", "num"), ("f", "Bool", "bool")]
        kinds += [("w", "SetOf[BLKS]", "set_blk")]
        chosen = [kind for kind in kinds if self.chance(80 if kind[0] in "rb" else 30)]
        parameters = "".join(f", {name}: {written}" for name, written, _ in chosen)
        scope = Scope()
        for name, _, kind in chosen:
            scope.names.setdefault(kind, []).append(name)
        guard = [f"    require({self.cond(Scope(scope.names, 1, False))})"] if self.chance(40) else []
        body = guard + self.block(scope, int(str(self.pick((1, 2, 3, 4)))), "    ")
        return f"@action\ndef {self.name('act')}(s{parameters}):\n" + "\n".join(body) + "\n\n\n"

    def property(self) -> str:
        """A property of a random kind."""
        kind = str(self.pick(("always", "always", "reachable", "step", "quiescent")))
        name = self.name("prop")
        scope = Scope(acts=False)
        if kind == "step":
            later = Scope(acts=False, root="t")
            sign = self.choose("==", "<=")
            body = f"{self.quantified(scope)} or {self.num(later)} {sign} {self.num(scope)}"
            return f"@step\ndef {name}(s, t):\n    return {body}\n\n\n"
        mark = kind
        before = ""
        if kind == "quiescent":
            idle = self.name("idle")
            before, mark = f"def {idle}(s):\n    return {self.cond(scope)}\n\n\n", f"quiescent({idle})"
        return f"{before}@{mark}\ndef {name}(s):\n    return {self.quantified(scope)}\n\n\n"

    def quantified(self, c: Scope) -> str:
        """A truth value in which members are mostly at hand."""
        if self.chance(15):
            return self.cond(c)
        inner = c.inner(r="req", b="blk")
        return f"{self.choose('all', 'any')}({self.cond(inner)} for r in range(REQS) for b in range(BLKS))"

    def spec(self) -> str:
        """A whole spec."""
        helpers = [self.helper() for _ in range(int(str(self.pick((0, 1, 2)))))]
        actions = [self.action() for _ in range(int(str(self.pick((2, 3, 4)))))]
        properties = [self.property() for _ in range(int(str(self.pick((1, 2)))))]
        return HEAD + "".join([*helpers, *actions, *properties])
