"""Compiled steps from single states: one action, all successors, the representative under symmetry.

It knows the actions of a spec only, no properties, and compiles much faster than a search. A forked child may go on using
one; two threads may not use one at the same time.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from copy import copy

from ....spec.lang.bind import MAX_INSTANCES, Arguments, BoundSpec, Rule
from ....spec.lang.bounds import number_at
from ....spec.lang.layout import SetShape, State
from ....spec.lang.types import SetOf
from .cache import Cache
from .canon import canon_source
from .lower import Lowering
from .lower_statements import FunctionLowering
from .machine import Unit, build
from .pack import CellLayout, cell_range

DISABLED, FULL = -1, -1
_ROOM = 64
"""Successors that the buffer takes at first."""


class Stepper:
    """Steps of a spec at given bounds; compiled, or loaded from the cache.

    States must be within the ranges of their cells. `BoundsError` where an index has too many members for a set, or for
    symmetry. `seconds` is how long it took to get the code, `cached` whether it was there.
    """

    def __init__(self, bound: BoundSpec, *, symmetry: bool = True) -> None:
        self.bound = bound
        self._permutable = bound.permutable()
        self._same = {name: tuple(range(size)) for name, size in self._permutable.items()}
        self._reduces = symmetry and any(size > 1 for size in self._permutable.values())
        self._domains = [tuple(_domain(bound, rule, i) for i in range(len(rule.domains))) for rule in bound.actions]
        made = _Lowered(bound)
        text = made.text
        if self._reduces:
            text += canon_source(bound.shape, self._permutable, made.layout, with_names=True)
        exports = [*made.names, *["successors"] * made.lists, *["canon"] * self._reduces]
        library = build([Unit("steps", text)], exports, Cache())
        self.cached, self.seconds = library.cached, library.seconds
        self._cells = cell_struct(made.layout)
        self._steps = [library.function(name) for name in made.names]
        self._list = library.function("successors") if made.lists else None
        self._instances = _Instances(bound.actions)
        self._before, self._at_before = buffer(self._cells.size)
        self._held: State | None = None
        self._reserve(_ROOM)
        if self._reduces:
            self._canon = library.function("canon")
            sizes = self._permutable.values()
            self._parts = [slice(end - size, end) for size, end in zip(sizes, itertools.accumulate(sizes), strict=True)]
            self._ranks = struct.Struct(f"<{sum(sizes)}q")
            self._new_names, self._at_new_names = buffer(self._ranks.size)

    def _reserve(self, room: int) -> None:
        """Make room for so many successors at once."""
        self._room = room
        self._numbers = (ctypes.c_int64 * room)()
        self._at_numbers = ctypes.addressof(self._numbers)
        self._after, self._at_after = buffer(self._cells.size * room)

    def _hold(self, state: State) -> None:
        """Put a state where compiled code finds it, unless it is there from the call before."""
        if state is not self._held:
            self._before[:] = self._cells.pack(*state)
            self._held = state

    def after(self, state: State, rule: Rule, args: Arguments) -> State | None:
        """The successor by one action instance, or None where it is disabled; `SpecError` where the spec is wrong."""
        if not self._has(rule, args):
            return self.bound.after(state, rule, args)
        self._hold(state)
        status = self._steps[rule.number](self._at_before, self._at_after, *args)
        if status == 0:
            return self._cells.unpack_from(self._after)
        return None if status == DISABLED else self._interpreted(state, rule, args)

    def _has(self, rule: Rule, args: Arguments) -> bool:
        """Whether this is an instance of an action: others are left to the spec's own function."""
        if rule.declared.declaration.kind != "action":
            return False
        domains = self._domains[rule.number]
        return len(args) == len(domains) and all(map(range.__contains__, domains, args))

    def successors(self, state: State) -> list[tuple[Rule, Arguments, State]]:
        """Every enabled action instance with its successor, in order; `SpecError` where one of them is wrong.

        `ValueError` where the actions have more instances than can be listed.
        """
        if self._list is None:
            raise ValueError(f"the actions have more than {MAX_INSTANCES:,} instances at these bounds, too many to list")
        self._hold(state)
        while (count := self._list(self._at_before, self._at_numbers, self._at_after, self._room)) == FULL:
            self._reserve(4 * self._room)
        if count < 0:
            self._interpreted(state, *self._instances[FULL - 1 - count])
        states = self._cells.iter_unpack(self._after[: self._cells.size * count])
        instances = self._instances
        numbers = self._numbers[:count]
        return [(*instances[number], after) for number, after in zip(numbers, states, strict=True)]

    def canonical(self, state: State) -> tuple[State, dict[str, tuple[int, ...]]]:
        """The representative under symmetry and the permutation that leads to it: x becomes `names[index][x]`."""
        if not self._reduces:
            return state, dict(self._same)
        self._hold(state)
        self._canon(self._at_before, self._at_after, self._at_new_names)
        ranks = self._ranks.unpack(self._new_names)
        names = {name: ranks[part] for name, part in zip(self._permutable, self._parts, strict=True)}
        return self._cells.unpack_from(self._after), names

    def _interpreted(self, state: State, rule: Rule, args: Arguments) -> State | None:
        """Run the spec's own function, for the error that compiled code found."""
        self.bound.after(state, rule, args)
        raise AssertionError(f"compiled code and the spec disagree on {rule.name}{args}")


def buffer(size: int) -> tuple[memoryview, int]:
    """Memory for compiled code, and its address."""
    made = bytearray(size)
    return memoryview(made), ctypes.addressof(ctypes.c_char.from_buffer(made))


def cell_struct(layout: CellLayout) -> struct.Struct:
    """The unpacked struct of a state, for conversion from and to a tuple of its cells."""
    letters = "".join(_letter(layout.width(cell), cell_range(cell)[0] < 0) for _, cell in layout.cells)
    runs = (f"{len(list(same))}{letter}" for letter, same in itertools.groupby(letters))
    written = "<" + "".join(runs)
    return struct.Struct(f"{written}{max(8, layout.bytes) - struct.calcsize(written)}x")


def _letter(width: int, signed: bool) -> str:
    letter = {1: "B", 2: "H", 4: "I", 8: "Q"}[width]
    return letter.lower() if signed or width == 8 else letter


class _Instances(dict[int, tuple[Rule, Arguments]]):
    """The action instances by number, in order, found when asked for."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        super().__init__()
        self._rules = rules
        self._first = list(itertools.accumulate((rule.count for rule in rules), initial=0))

    def __missing__(self, number: int) -> tuple[Rule, Arguments]:
        place = bisect_right(self._first, number) - 1
        rule, rest = self._rules[place], number - self._first[place]
        args: list[int] = []
        for domain in reversed(rule.domains):
            rest, at = divmod(rest, len(domain))
            args.append(domain[at])
        self[number] = rule, tuple(reversed(args))
        return self[number]


class _Lowered:
    """The actions of a spec as dialect text: a function each, and `successors`, which lists them if they are few enough."""

    def __init__(self, bound: BoundSpec) -> None:
        alone = copy(bound)
        alone.properties = ()
        lowering = Lowering(alone, symmetry=False)
        self.layout = lowering.layout
        self.names: list[str] = []
        for rule in bound.actions:
            function = lowering.elaborated.of(rule.declared.function)
            made = FunctionLowering(lowering, function, f"a{rule.number}_{function.name}", 1).lower_action()
            lowering.texts.append("@noinline\n" + made.text)
            self.names.append(made.name)
        self.lists = sum(rule.count for rule in bound.actions) <= MAX_INSTANCES
        self.text = "\n".join([*lowering.texts, *(self._listing(bound.actions) if self.lists else ())])

    def _listing(self, rules: Sequence[Rule]) -> Iterator[str]:
        """Functions that return the number of successors, or -1 where there is no room, or the wrong instance from -2 down."""
        calls: list[str] = ["n = 0"]
        first = 0
        for rule in rules:
            yield _function(f"list{rule.number}", "cells, numbers, states, n, room", self._instances(rule, first))
            call = f"n = list{rule.number}(cells, numbers, states, n, room)"
            calls += [call, "if n < 0:", "    return n"]
            first += rule.count
        yield _function("successors", "cells, numbers, states, room", [*calls, "return n"])

    def _instances(self, rule: Rule, first: int) -> list[str]:
        names = [f"p{i}" for i in range(len(rule.domains))]
        number = "0"
        lines: list[str] = []
        for depth, (name, domain) in enumerate(zip(names, rule.domains, strict=True)):
            lines.append("    " * depth + f"for {name} in range({domain.start}, {domain.stop}):")
            number = f"({number} * {len(domain)} + {name} - {domain.start})"
        body = [
            f"st = {self.names[rule.number]}({', '.join(['cells', f'states + n * {max(8, self.layout.bytes)}', *names])})",
            "if st == 0:",
            f"    store64(numbers + n * 8, {first} + {number})",
            "    n += 1",
            "    if unlikely(n >= room):",
            "        return -1",
            "elif unlikely(st > 0):",
            f"    return -2 - ({first} + {number})",
        ]
        return [*lines, *("    " * len(names) + line for line in body), "return n"]


def _function(name: str, parameters: str, lines: Sequence[str]) -> str:
    return f"def {name}({parameters}):\n" + "".join(f"    {line}\n" for line in lines)


def _domain(bound: BoundSpec, rule: Rule, place: int) -> range:
    """What a parameter can be; for a set every mask, also where they are too many to list."""
    kind = rule.declared.parameters[place].type
    if not isinstance(kind, SetOf):
        return rule.domains[place]
    _, greatest = cell_range(SetShape(kind.index.name, number_at(kind.index, bound.values)))
    return range(greatest + 1)


def lowered(bound: BoundSpec) -> str:
    """The actions of a spec at given bounds in the compiler's dialect: where two texts are equal, so are all transitions."""
    return _Lowered(bound).text
