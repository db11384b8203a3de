"""`layout.decode` as Python source of its own for a shape: the same result, many times faster.

Short arrays are spelled out, long ones and sequences become comprehensions, so the source stays short for large states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from .layout import ArrayShape, Leaf, RecordShape, SeqShape, SetShape, Shape, State, decode

_SPELLED_OUT, _PLAIN_SPELLED_OUT = 32, 4
"""Cells of an array at most whose elements are written one by one; and where they are just numbers."""
_TABLE = 1000
"""Values of a cell at most that are looked up."""
_SETS = 100_000
"""Sets kept at most."""


@lru_cache(maxsize=32)
def decoder(shape: Shape) -> Callable[[State], Any]:
    """A function that does the same as `decode(shape, state)`."""
    writer = _Writer()
    source = f"def decoded(s):\n    return {writer.value(shape, _At('', 0))}\n"
    names: dict[str, Any] = {f"t{number}": table for table, number in writer.tables.values()}
    exec(compile(source, f"<decoder of {getattr(shape, 'name', 'a shape')}>", "exec"), names)
    return names["decoded"]


class _Sets(dict[int, frozenset[int]]):
    """The sets of members by mask, made when asked for."""

    def __missing__(self, mask: int) -> frozenset[int]:
        if len(self) >= _SETS:
            self.clear()
        self[mask] = frozenset(i for i in range(mask.bit_length()) if mask >> i & 1)
        return self[mask]


@dataclass(frozen=True)
class _At:
    """A place in the row of cells: a number of cells from the start, or from where a variable points."""

    base: str
    offset: int
    depth: int = 0

    def __add__(self, cells: int) -> _At:
        return replace(self, offset=self.offset + cells)

    def __str__(self) -> str:
        return f"{self.base} + {self.offset}" if self.base and self.offset else self.base or str(self.offset)

    @property
    def inner(self) -> _At:
        """Where the variable of a loop at this place points."""
        return _At(f"p{self.depth}", 0, self.depth + 1)


class _Writer:
    """Writes the expression of each part of a state; `tables` are what cells are looked up in."""

    def __init__(self) -> None:
        self.tables: dict[Leaf | str, tuple[Any, int]] = {}

    def value(self, shape: Shape, at: _At) -> str:
        """The value of a part of the state."""
        match shape:
            case Leaf() | SetShape():
                return self._looked_up(shape, f"s[{at}]")
            case ArrayShape(count, item, _):
                if count * item.size <= (_PLAIN_SPELLED_OUT if self._is_plain(item) else _SPELLED_OUT):
                    return f"[{', '.join(self.value(item, at + i * item.size) for i in range(count))}]"
                return self._many(item, at, str(at + count * item.size), str(count))
            case SeqShape(_, item):
                length = f"s[{at}]"
                size = f" * {item.size}" if item.size != 1 else ""
                many = self._many(item, at + 1, f"{at + 1} + {length}{size}", length)
                return f"{many} if {length} else []"
            case RecordShape():
                return "{" + ", ".join(f"{name!r}: {self.value(inner, at + to)}" for name, to, inner in shape.fields) + "}"

    def _many(self, item: Shape, at: _At, end: str, count: str) -> str:
        """The elements from a place up to another."""
        if isinstance(item, Leaf | SetShape):
            cells = f"s[{at}:{end}]"
            return f"[*{cells}]" if self._is_plain(item) else f"[{self._looked_up(item, 'c')} for c in {cells}]"
        if not item.size:
            return f"[{self.value(item, at)} for _ in range({count})]"
        inner = at.inner
        return f"[{self.value(item, inner)} for {inner} in range({at}, {end}, {item.size})]"

    def _is_plain(self, shape: Shape) -> bool:
        return isinstance(shape, Leaf) and not shape.maybe and shape.kind != "bool" and shape.enum is None

    def _looked_up(self, cell: Leaf | SetShape, text: str) -> str:
        if self._is_plain(cell):
            return text
        if isinstance(cell, SetShape):
            return f"{self._table('sets', _Sets)}[{text}]"
        if cell.high >= _TABLE:
            return f"(None if {text} < 0 else {text})"
        values = [*range(max(cell.low, 0), cell.high + 1), *([-1] if cell.maybe else [])]
        return f"{self._table(cell, lambda: tuple(decode(cell, (value,)) for value in values))}[{text}]"

    def _table(self, key: Leaf | str, make: Callable[[], Any]) -> str:
        if key not in self.tables:
            self.tables[key] = make(), len(self.tables)
        return f"t{self.tables[key][1]}"
